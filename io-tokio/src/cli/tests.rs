use super::*;
use crate::config::Flags;
use crate::simulate::Simulate;
use crate::trace::TraceCommand;
use crate::trace::replay::Replay;
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
    let line = "daemon start --foreground --detached --log-target both --daemon-id i --device-name d --runtime-name r --workspaces-root w \
        --poll-interval 1s --heartbeat-interval=2s --agent-timeout 0 --codex-semantic-inactivity-timeout 3s \
        --codex-handshake-timeout 4s --max-concurrent-tasks -1 --no-auto-update --auto-update-interval 5s \
        --no-auto-reload --health-port 6 --claim-mode batch --disk-budget 7 --trace-budget 9 --min-free-space 8 \
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
        trace_budget: text("9"),
        min_free_space: text("8"),
        on_sigterm: text("drain"),
        log_level: text("info"),
        log_format: text("json"),
    };
    let start = DaemonStart {
        flags,
        foreground: true,
        detached: true,
        log_target: Some(LogTarget::Both),
        record: Some("t".into()),
        debug: true,
    };
    assert_eq!(parsed(line), Command::DaemonStart(Box::new(start.clone())));
    let restart = line.replace("daemon start", "daemon restart");
    assert_eq!(parsed(&restart), Command::DaemonRestart(Box::new(start)));
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
    let (dir, record) = (Some("d".into()), Some("t".into()));
    let local = Local { prompt: "fix".into(), dir, record, ..Local::default() };
    assert_eq!(parsed("local fix --dir d --record t"), Command::Local(local));
    let replay = TraceCommand::Replay(Replay { file: "t".into(), ..Replay::default() });
    assert_eq!(parsed("trace replay t --debug"), Command::Trace(replay));
    let simulate = Simulate { seeds: 1, from: 7, only: Fault::named("crash"), ..Simulate::default() };
    assert_eq!(
        parsed("trace simulate --seeds 1 --from 7 --only crash"),
        Command::Trace(TraceCommand::Simulate(simulate))
    );
    assert_eq!(parsed("trace simulate"), Command::Trace(TraceCommand::Simulate(Simulate::default())));
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
fn a_form_that_there_is_not_is_a_usage_error_that_names_those_that_there_are() {
    for (line, forms) in
        [("daemon status --output yaml", "table, json"), ("version --output xml", "text, json")]
    {
        let (exit, out, err, performed) = ran(line, &Env::default());
        assert_eq!((exit, out.as_str(), performed), (Exit::Code(2), "", None), "{line}");
        assert!(err.contains(forms) && err.lines().count() == 1, "{err}");
    }
    assert_eq!(ran("daemon stop --drain=never", &Env::default()).0, Exit::Failed);
}

#[test]
fn local_without_a_prompt_says_both_ways_to_call_it() {
    let (exit, _, err, _) = ran("local", &Env::default());
    assert_eq!(exit, Exit::Failed);
    assert!(
        err.contains("local [OPTIONS] <PROMPT>\n") && err.ends_with("local [OPTIONS] --resume <PATH>\n"),
        "{err}"
    );
}

#[test]
fn an_unknown_flag_is_one_line_and_exit_1() {
    for line in ["daemon start --foregroun", "--nope", "daemon fly", "--debug"] {
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

/// 1 says that a rule is broken, that a core differs, that a world failed.
#[test]
fn a_trace_command_that_is_typed_wrong_is_no_verdict() {
    for line in [
        "trace check --rule NOPE t",
        "trace shrink --rule NOPE t",
        "trace check --rule",
        "trace replay --until x t",
        "trace replay --out x t",
        "trace simulate --seeds 0",
        "trace simulate --only rain",
        "trace import --from other x",
        "trace import --from multica-log --date 9999-12-31 x",
        "trace render t",
        "trace diff a",
        "trace show --nope t",
        "trace nope",
        "--profile p trace check",
        "trace --profile p check",
        "trace check t --log-levels x",
    ] {
        let (exit, out, err, performed) = ran(line, &Env::default());
        assert_eq!((exit.code(), out.as_str(), performed), (2, "", None), "{line}: {err}");
        assert!(err.starts_with("error: "), "{err}");
    }
    for line in
        ["daemon trace", "local --nope trace", "--profile", "--profile trace daemon fly", "tracer check"]
    {
        assert_eq!(ran(line, &Env::default()).0, Exit::Failed, "{line}");
    }
}

#[test]
fn where_a_trace_command_writes_is_said_in_one_way_and_understood_in_both() {
    for line in [
        "trace dump",
        "trace import --from multica-log x",
        "trace replay --rebase t",
        "trace export --chrome t",
        "trace render t",
        "trace shrink t",
        "trace simulate",
    ] {
        let said = ["-o", "--output", "--out"].map(|option| parsed(&format!("{line} {option} new.svg")));
        assert!(said[0] == said[1] && said[1] == said[2], "{said:?}");
        let name = line.split(' ').nth(1).expect("a command");
        let help = ran(&format!("trace {name} --help"), &Env::default()).1;
        assert!(help.contains("-o, --output <") && !help.contains("--out "), "{help}");
    }
}

#[test]
fn a_moment_that_is_none_is_told_without_advice_that_leads_astray() {
    for (line, why) in [
        ("trace replay --until -1 t", "a step is a number from 0, such as 59"),
        ("trace replay --until 1/x t", "2/59 is step 59 of life 2"),
        ("trace replay --until 0/5 t", "lives are counted from 1"),
        ("trace render t -o a.svg --from -1", "neither is negative"),
        ("trace render t -o a.svg --to -90s", "neither is negative"),
        ("trace render t -o a.svg --lanes -1", "invalid digit"),
    ] {
        let (exit, _, err, _) = ran(line, &Env::default());
        assert_eq!(exit.code(), 2, "{line}");
        assert!(err.contains(why) && !err.contains("-- -") && err.lines().count() == 1, "{line}: {err}");
    }
}

#[test]
fn every_trace_command_says_how_it_ends_or_what_it_is_for() {
    let all = ran("trace --help", &Env::default()).1;
    assert!(all.contains("Exit codes:\n  0 ") && all.contains("longshore trace show run.jsonl.gz"), "{all}");
    let read = ["replay", "show", "stats", "diff", "export", "render", "check", "shrink"];
    for name in read.into_iter().chain(["dump", "import", "simulate"]) {
        let help = ran(&format!("trace {name} --help"), &Env::default()).1;
        assert!(help.contains("Exit code: 0"), "{help}");
        assert_eq!(help.contains("or a tar archive of it"), read.contains(&name), "{help}");
    }
}

#[test]
fn a_wrong_number_of_arguments_shows_the_usage() {
    for line in ["trace replay", "demo surplus", "trace replay a b"] {
        let (exit, _, err, _) = ran(line, &Env::default());
        assert_eq!(exit.code(), if line.starts_with("trace") { 2 } else { 1 }, "{line}");
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
fn cli_106_inside_of_a_task_a_daemon_is_left_alone() {
    let env = Env::from_pairs([("MULTICA_TASK_ID", "t")]);
    for command in ["start", "start --foreground", "stop", "stop --drain", "restart", "logs"] {
        let (exit, _, err, performed) = ran(&format!("daemon {command}"), &env);
        assert_eq!((exit, performed), (Exit::Failed, None), "{command}");
        assert!(err.contains("MULTICA_TASK_ID") && err.lines().count() == 1, "{err}");
    }
    assert!(ran("daemon status", &env).3.is_some(), "an agent may ask how its daemon is");
}

#[test]
fn the_commands_of_a_daemons_life_are_read() {
    let stop = |line| match parsed(line) {
        Command::DaemonStop(stop) => stop,
        other => panic!("{other:?}"),
    };
    assert_eq!(stop("daemon stop").drain, None);
    assert_eq!(stop("daemon stop --drain").drain, Some(DrainFor::Ever));
    let within = DrainFor::Within(std::time::Duration::from_mins(90));
    assert_eq!(stop("daemon stop --drain=1h30m").drain, Some(within));
    let which = Which { profile: "dev".into(), health_port: Some("7".into()) };
    assert_eq!(stop("daemon stop --health-port 7 --profile dev").which, which);
    for bad in ["--drain=soon", "--drain=-1s", "--drain=1d"] {
        let refused = ran(&format!("daemon stop {bad}"), &Env::default()).2;
        assert!(refused.contains("--drain") && refused.lines().count() == 1, "{refused}");
    }
    let status = |line| match parsed(line) {
        Command::DaemonStatus(status) => (status.json, status.exit_code),
        other => panic!("{other:?}"),
    };
    assert_eq!(status("daemon status"), (false, false));
    assert_eq!(status("daemon status --output json --exit-code"), (true, true));
    assert_eq!(status("daemon status --output table"), (false, false));
    let logs = DaemonLogs { profile: "dev".into(), follow: true, lines: 7, debug: false };
    assert_eq!(parsed("daemon logs -f -n 7 --profile dev"), Command::DaemonLogs(logs));
    assert_eq!(parsed("daemon logs"), Command::DaemonLogs(DaemonLogs { lines: 50, ..DaemonLogs::default() }));
}

#[test]
fn an_answer_that_cannot_be_written_is_told_and_one_that_nobody_reads_is_not() {
    struct Broken(io::ErrorKind);
    impl Write for Broken {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(self.0.into())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    for line in ["version", "--help", "trace show --help"] {
        let said = |kind| {
            let (env, mut err) = (Env::default(), Vec::new());
            let out = &mut Broken(kind);
            let exit =
                run_in(words(line), &env, Path::new("/missing"), out, &mut err, |_, _, _| Exit::NotFound);
            (exit, String::from_utf8(err).expect("UTF-8"))
        };
        assert_eq!(said(io::ErrorKind::BrokenPipe), (Exit::Success, String::new()));
        let (exit, told) = said(io::ErrorKind::StorageFull);
        assert_eq!(
            (exit, told.as_str()),
            (Exit::Failed, "error: the output could not be written: no storage space\n")
        );
    }
}

#[test]
fn commands_are_performed_and_versions_printed() {
    let (exit, _, _, performed) = ran("daemon start --foreground", &Env::default());
    assert_eq!(exit, Exit::Success);
    assert!(matches!(performed, Some(Command::DaemonStart(start)) if start.foreground));
    let (exit, out, _, performed) = ran("version", &Env::default());
    assert_eq!((exit, performed), (Exit::Success, None));
    assert!(out.starts_with(concat!("longshore ", env!("CARGO_PKG_VERSION"))), "{out}");
}
