use super::*;
use crate::config::Flags;
use crate::simulate::Simulate;
use longshore_core::sim::Fault;

fn words(line: &str) -> Vec<OsString> {
    std::iter::once("longshore").chain(line.split_whitespace()).map(OsString::from).collect()
}

fn parsed(line: &str) -> Command {
    parse(words(line)).unwrap_or_else(|e| panic!("{line}: {e}"))
}

/// Exit, standard output, standard error, and the command that was to be performed.
fn ran(line: &str, env: &Env) -> (Exit, String, String, Option<Command>) {
    let (mut out, mut err, mut performed) = (Vec::new(), Vec::new(), None);
    let exit = run_in(words(line), env, Path::new("/missing"), &mut out, &mut err, |command, _, _| {
        performed = Some(command);
        Exit::Success
    });
    let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
    (exit, text(out), text(err), performed)
}

#[test]
fn every_flag_of_daemon_start_is_read() {
    let line = "daemon start --foreground --daemon-id i --device-name d --runtime-name r --workspaces-root w \
        --poll-interval 1s --heartbeat-interval=2s --agent-timeout 0 --codex-semantic-inactivity-timeout 3s \
        --codex-handshake-timeout 4s --max-concurrent-tasks -1 --no-auto-update --auto-update-interval 5s \
        --no-auto-reload --health-port 6 --claim-mode batch --disk-budget 7 --min-free-space 8 \
        --on-sigterm drain --record t --server-url u --profile p --debug --log-level info --log-format json";
    let text = |t: &str| Some(t.to_owned());
    let flags = Flags {
        profile: "p".into(),
        server_url: text("u"),
        daemon_id: text("i"),
        device_name: text("d"),
        runtime_name: text("r"),
        workspaces_root: Some("w".into()),
        poll_interval: text("1s"),
        heartbeat_interval: text("2s"),
        agent_timeout: text("0"),
        codex_semantic_inactivity_timeout: text("3s"),
        codex_handshake_timeout: text("4s"),
        max_concurrent_tasks: text("-1"),
        no_auto_update: true,
        auto_update_interval: text("5s"),
        no_auto_reload: true,
        health_port: text("6"),
        claim_mode: text("batch"),
        disk_budget: text("7"),
        min_free_space: text("8"),
        on_sigterm: text("drain"),
        log_level: text("info"),
        log_format: text("json"),
    };
    let start = DaemonStart { flags, foreground: true, record: Some("t".into()), debug: true };
    assert_eq!(parsed(line), Command::DaemonStart(Box::new(start)));
}

#[test]
fn global_flags_stand_before_or_after_the_command() {
    let flags = Flags { profile: "dev".into(), ..Flags::default() };
    let want =
        Command::DaemonStart(Box::new(DaemonStart { flags, foreground: true, ..DaemonStart::default() }));
    assert_eq!(parsed("--profile dev daemon start --foreground"), want);
    assert_eq!(parsed("daemon start --foreground --profile=dev"), want);
    assert_eq!(parsed("daemon --profile dev start --foreground --workspace-id w"), want);
}

#[test]
fn the_other_commands_are_read() {
    assert_eq!(
        parsed("demo --record t"),
        Command::Demo(Demo { record: Some("t".into()), ..Demo::default() })
    );
    let local = Local { prompt: "fix".into(), dir: Some("d".into()), ..Local::default() };
    assert_eq!(parsed("local fix --dir d"), Command::Local(local));
    let replay = TraceReplay { file: "t".into(), debug: true };
    assert_eq!(parsed("trace replay t --debug"), Command::TraceReplay(replay));
    let simulate = Simulate { seeds: 1, from: 7, only: Fault::named("crash"), ..Simulate::default() };
    assert_eq!(parsed("trace simulate --seeds 1 --from 7 --only crash"), Command::TraceSimulate(simulate));
    assert_eq!(parsed("trace simulate"), Command::TraceSimulate(Simulate::default()));
    let refused = ran("trace simulate --only rain", &Env::default()).2;
    assert!(refused.contains("lost-reply") && refused.lines().count() == 1, "{refused}");
    // What checks nothing must not look like what found nothing.
    let refused = ran("trace simulate --seeds 0", &Env::default()).2;
    assert!(refused.contains("--seeds") && refused.lines().count() == 1, "{refused}");
    assert_eq!(parsed("version --output json"), Command::Version(VersionOutput::Json));
    for line in ["version", "-v", "--version"] {
        assert_eq!(parsed(line), Command::Version(VersionOutput::Text), "{line}");
    }
}

#[test]
fn an_unknown_flag_is_one_line_and_exit_1() {
    for line in ["daemon start --foregroun", "--nope", "daemon fly", "version --output xml", "--debug"] {
        let (exit, out, err, performed) = ran(line, &Env::default());
        assert_eq!((exit, out.as_str()), (Exit::Failed, ""), "{line}");
        assert!(err.starts_with("error: ") && err.ends_with('\n'), "{err}");
        assert_eq!(err.lines().count(), 1, "{err}");
        assert_eq!(performed, None);
    }
    assert!(ran("daemon start --foregroun", &Env::default()).2.contains("--foreground"), "a suggestion");
    let missing = ran("local", &Env::default()).2;
    assert!(
        missing.starts_with("error: the following required arguments were not provided: <PROMPT>\n"),
        "{missing}"
    );
}

#[test]
fn a_wrong_number_of_arguments_shows_the_usage() {
    for line in ["local", "trace replay", "demo surplus", "trace replay a b"] {
        let (exit, _, err, _) = ran(line, &Env::default());
        assert_eq!(exit, Exit::Failed, "{line}");
        assert_eq!(err.lines().count(), 2, "{err}");
        assert!(err.lines().nth(1).is_some_and(|usage| usage.starts_with("Usage: longshore ")), "{err}");
    }
}

#[test]
fn help_goes_to_standard_output() {
    for line in ["", "--help", "daemon", "daemon start --help", "trace"] {
        let (exit, out, err, _) = ran(line, &Env::default());
        assert_eq!((exit, err.as_str()), (Exit::Success, ""), "{line}");
        assert!(out.contains("Usage: longshore"), "{out}");
    }
}

#[test]
fn a_start_in_the_background_is_refused_and_not_pretended() {
    let (exit, out, err, performed) = ran("daemon start", &Env::default());
    assert_eq!((exit, out.as_str(), performed), (Exit::Failed, "", None));
    assert!(err.contains("--foreground"), "{err}");
}

#[test]
fn a_start_inside_of_a_task_is_refused() {
    let env = Env::from_pairs([("MULTICA_TASK_ID", "t")]);
    let (exit, _, err, performed) = ran("daemon start --foreground", &env);
    assert_eq!((exit, performed), (Exit::Failed, None));
    assert!(err.contains("MULTICA_TASK_ID"), "{err}");
}

#[test]
fn commands_are_performed_and_versions_printed() {
    let (exit, _, _, performed) = ran("daemon start --foreground", &Env::default());
    assert_eq!(exit, Exit::Success);
    assert!(matches!(performed, Some(Command::DaemonStart(start)) if start.foreground));
    let (exit, out, _, performed) = ran("version", &Env::default());
    assert_eq!((exit, performed), (Exit::Success, None));
    assert!(out.starts_with("longshore v"), "{out}");
}
