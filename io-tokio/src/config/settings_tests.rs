use super::*;
use serde_json::{Map, Value};

/// A home, a working directory and the three places of settings, none of them real.
struct Case {
    flags: Flags,
    env: Env,
    file: ConfigFile,
}

fn case(env: &[(&str, &str)], json: &str) -> Case {
    let mut all = Env::from_pairs([("HOME", "/h")]);
    for (name, value) in env {
        all.set(*name, *value);
    }
    let root: Map<String, Value> = serde_json::from_str(json).expect("an object");
    Case { flags: Flags::default(), env: all, file: ConfigFile::from_value("/h/.multica/config.json", root) }
}

impl Case {
    fn with(mut self, set: impl FnOnce(&mut Flags)) -> Self {
        set(&mut self.flags);
        self
    }

    fn load(&self) -> Result<Settings, ConfigError> {
        let profile = Profile::new(&self.flags.profile)?;
        let dirs = StateDirs::find(&self.env, &profile)?;
        Settings::assemble(&self.flags, &self.env, &self.file, Path::new("/cwd"), profile, dirs, Vec::new())
    }

    fn good(&self) -> Settings {
        self.load().unwrap_or_else(|e| panic!("{e}"))
    }

    fn error(&self) -> String {
        self.load().expect_err("a wrong value").to_string()
    }
}

fn seconds(n: u64) -> Duration {
    Duration::from_secs(n)
}

#[test]
fn more_slots_than_the_core_has_are_refused_with_their_place() {
    let text = case(&[("MULTICA_DAEMON_MAX_CONCURRENT_TASKS", "1001")], "{}").error();
    assert!(text.contains("MULTICA_DAEMON_MAX_CONCURRENT_TASKS") && text.contains("1 to 1000"), "{text}");
}

#[test]
fn nothing_said_gives_the_defaults() {
    let s = case(&[], "{}").good();
    assert_eq!(s.server_url, "http://localhost:8080");
    assert_eq!((s.poll_interval, s.heartbeat_interval), (seconds(30), seconds(15)));
    assert_eq!((s.max_concurrent_tasks, s.agent_timeout), (20, None));
    assert_eq!((s.watchdogs.idle, s.watchdogs.tool), (Some(seconds(1800)), Some(seconds(7200))));
    assert_eq!(s.prepare_timeout, seconds(300));
    assert_eq!(s.workspaces_root, Path::new("/h/multica_workspaces"));
    assert_eq!(s.health_port, 19514);
    assert_eq!((s.claim_mode, s.on_sigterm), (ClaimMode::Auto, OnSigterm::Stop));
    assert!(s.token.is_empty() && s.warnings.is_empty() && !s.update.auto_update && s.update.auto_reload);
    assert!(s.gc.enabled && s.gc.completed_task_ttl.is_none() && !s.allow_dangerous_env);
    assert_eq!(s.source("poll_interval"), &Source::Default);
}

/// One valued knob: the flag's setter, the variable, the key, and what to read back.
type Knob = (fn(&mut Flags, String), &'static str, &'static str, fn(&Settings) -> String);

#[test]
fn cli_15_flag_beats_environment_beats_file_beats_default() {
    let durations: [Knob; 6] = [
        (
            |f, v| f.poll_interval = Some(v),
            "MULTICA_DAEMON_POLL_INTERVAL",
            "poll_interval",
            |s| format!("{:?}", s.poll_interval),
        ),
        (
            |f, v| f.heartbeat_interval = Some(v),
            "MULTICA_DAEMON_HEARTBEAT_INTERVAL",
            "heartbeat_interval",
            |s| format!("{:?}", s.heartbeat_interval),
        ),
        (
            |f, v| f.agent_timeout = Some(v),
            "MULTICA_AGENT_TIMEOUT",
            "agent_timeout",
            |s| format!("{:?}", s.agent_timeout.unwrap_or_default()),
        ),
        (
            |f, v| f.codex_semantic_inactivity_timeout = Some(v),
            "MULTICA_CODEX_SEMANTIC_INACTIVITY_TIMEOUT",
            "codex_semantic_inactivity_timeout",
            |s| format!("{:?}", s.watchdogs.codex_semantic_inactivity),
        ),
        (
            |f, v| f.codex_handshake_timeout = Some(v),
            "MULTICA_CODEX_HANDSHAKE_TIMEOUT",
            "codex_handshake_timeout",
            |s| format!("{:?}", s.watchdogs.codex_handshake),
        ),
        (
            |f, v| f.auto_update_interval = Some(v),
            "MULTICA_DAEMON_AUTO_UPDATE_INTERVAL",
            "auto_update_interval",
            |s| format!("{:?}", s.update.interval),
        ),
    ];
    let check = |knob: &Knob, values: [&str; 3]| {
        let (set, var, key, get) = *knob;
        let json = format!("{{\"{key}\":\"{}\"}}", values[0]);
        let from_file = case(&[], &json);
        let from_env = case(&[(var, values[1])], &json);
        let from_flag = case(&[(var, values[1])], &json).with(|f| set(f, values[2].to_owned()));
        [get(&from_file.good()), get(&from_env.good()), get(&from_flag.good())]
    };
    for knob in &durations {
        assert_eq!(check(knob, ["11s", "12s", "13s"]), ["11s", "12s", "13s"], "{}", knob.1);
    }
    let texts: [Knob; 2] = [
        (
            |f, v| f.device_name = Some(v),
            "MULTICA_DAEMON_DEVICE_NAME",
            "device_name",
            |s| s.device_name.clone().unwrap_or_default(),
        ),
        (|f, v| f.server_url = Some(v), "MULTICA_SERVER_URL", "server_url", |s| s.server_url.clone()),
    ];
    let urls = ["http://a", "http://b", "http://c"];
    for knob in &texts {
        assert_eq!(check(knob, urls), urls, "{}", knob.1);
    }
    let root: Knob = (
        |f, v| f.workspaces_root = Some(v.into()),
        "MULTICA_WORKSPACES_ROOT",
        "workspaces_root",
        |s| s.workspaces_root.display().to_string(),
    );
    assert_eq!(check(&root, ["/a", "b/../c", "./d"]), ["/a", "/cwd/c", "/cwd/d"]);
    let slots: Knob = (
        |f, v| f.max_concurrent_tasks = Some(v),
        "MULTICA_DAEMON_MAX_CONCURRENT_TASKS",
        "max_concurrent_tasks",
        |s| s.max_concurrent_tasks.to_string(),
    );
    assert_eq!(check(&slots, ["1", "2", "3"]), ["1", "2", "3"]);
}

#[test]
fn the_place_of_a_value_is_kept() {
    let s = case(&[("MULTICA_DAEMON_POLL_INTERVAL", "5s")], r#"{"heartbeat_interval":"7s"}"#).good();
    assert_eq!(s.source("poll_interval").to_string(), "environment variable MULTICA_DAEMON_POLL_INTERVAL");
    assert_eq!(
        s.source("heartbeat_interval").to_string(),
        "key heartbeat_interval of /h/.multica/config.json"
    );
}

#[test]
fn cli_16_blank_environment_lets_the_file_through() {
    let s = case(&[("MULTICA_DAEMON_POLL_INTERVAL", "  ")], r#"{"poll_interval":"7s"}"#).good();
    assert_eq!(s.poll_interval, seconds(7));
}

#[test]
fn cli_17_zero_agent_timeout_means_no_cap() {
    let env = [("MULTICA_AGENT_TIMEOUT", "1h")];
    let s = case(&env, "{}").with(|f| f.agent_timeout = Some("0".into())).good();
    assert_eq!(s.agent_timeout, None);
    assert_eq!(s.source("agent_timeout"), &Source::Flag("--agent-timeout"));
    assert_eq!(case(&[], r#"{"agent_timeout":"0s"}"#).good().agent_timeout, None);
}

#[test]
fn zero_flags_are_as_if_not_given() {
    let c = case(&[], r#"{"poll_interval":"7s","max_concurrent_tasks":3}"#).with(|f| {
        f.poll_interval = Some("0".into());
        f.max_concurrent_tasks = Some("0".into());
    });
    assert_eq!((c.good().poll_interval, c.good().max_concurrent_tasks), (seconds(7), 3));
    let handshake = case(&[("MULTICA_CODEX_HANDSHAKE_TIMEOUT", "0")], "{}").good();
    assert_eq!(handshake.watchdogs.codex_handshake, seconds(30));
}

#[test]
fn cli_18_19_days_are_for_the_environment() {
    for (text, want) in [("1d", 86_400), ("1.5d", 129_600), ("1d12h", 129_600), ("0", 0)] {
        let s = case(&[("MULTICA_GC_TTL", text)], "{}").good();
        assert_eq!(s.gc.ttl.unwrap_or_default(), seconds(want), "{text}");
    }
    for bad in ["5", "abc"] {
        let error = case(&[("MULTICA_GC_TTL", bad)], "{}").error();
        assert!(error.contains("environment variable MULTICA_GC_TTL") && error.contains(bad), "{error}");
    }
    let flag = case(&[], "{}").with(|f| f.poll_interval = Some("1d".into())).error();
    assert!(flag.contains("flag --poll-interval") && flag.contains("hours"), "{flag}");
    let file = case(&[], r#"{"poll_interval":"1d"}"#).error();
    assert!(file.contains("poll_interval") && file.contains("/h/.multica/config.json"), "{file}");
}

#[test]
fn cli_20_21_self_update_switches() {
    let hosted = r#"{"server_url":"https://API.multica.ai:8443"}"#;
    assert!(case(&[], hosted).good().update.auto_update);
    assert!(case(&[("MULTICA_DAEMON_AUTO_UPDATE", "junk")], hosted).good().update.auto_update);
    assert!(case(&[("MULTICA_DAEMON_AUTO_UPDATE", "ON")], "{}").good().update.auto_update);
    assert!(!case(&[("MULTICA_DAEMON_AUTO_UPDATE", "off")], hosted).good().update.auto_update);
    let off = r#"{"server_url":"https://api.multica.ai","disable_auto_update":true}"#;
    assert!(!case(&[], off).good().update.auto_update);
    assert!(case(&[("MULTICA_DAEMON_AUTO_UPDATE", "true")], off).good().update.auto_update);
    assert!(!case(&[], hosted).with(|f| f.no_auto_update = true).good().update.auto_update);
}

#[test]
fn cli_22_values_that_would_hurt_are_refused_with_their_place() {
    for (name, value) in [
        ("MULTICA_DAEMON_MAX_CONCURRENT_TASKS", "0"),
        ("MULTICA_DAEMON_MAX_CONCURRENT_TASKS", "-1"),
        ("MULTICA_DAEMON_MAX_CONCURRENT_TASKS", "many"),
        ("MULTICA_DAEMON_MAX_CONCURRENT_TASKS", "70000"),
        ("MULTICA_DAEMON_POLL_INTERVAL", "0"),
        ("MULTICA_DAEMON_POLL_INTERVAL", "-1s"),
        ("MULTICA_DAEMON_HEARTBEAT_INTERVAL", "0s"),
        ("MULTICA_GC_INTERVAL", "0"),
        ("MULTICA_AGENT_TIMEOUT", "-1h"),
        ("MULTICA_AGENT_IDLE_WATCHDOG", "-1h"),
        ("LONGSHORE_PREPARE_TIMEOUT", "0"),
        ("MULTICA_SERVER_URL", "ftp://h"),
        ("MULTICA_LOG_FORMAT", "xml"),
    ] {
        let error = case(&[(name, value)], "{}").error();
        assert!(error.contains(&format!("environment variable {name}")), "{name}={value}: {error}");
        assert!(error.contains("expected"), "{error}");
    }
    for json in
        [r#"{"max_concurrent_tasks":-1}"#, r#"{"max_concurrent_tasks":1.5}"#, r#"{"poll_interval":"0s"}"#]
    {
        assert!(case(&[], json).error().contains("/h/.multica/config.json"), "{json}");
    }
}

#[test]
fn a_wrong_server_url_is_not_shown_as_it_may_hold_a_password() {
    let error = case(&[("MULTICA_SERVER_URL", "http://me:hunter2@h")], "{}").error();
    assert!(error.contains("MULTICA_SERVER_URL") && !error.contains("hunter2"), "{error}");
}

#[test]
fn cli_24_exact_words_switch_collection_and_keeping() {
    assert!(case(&[("MULTICA_GC_ENABLED", "no")], "{}").good().gc.enabled);
    assert!(!case(&[("MULTICA_GC_ENABLED", "0")], "{}").good().gc.enabled);
    assert!(!case(&[("MULTICA_KEEP_ENV_AFTER_TASK", "TRUE")], "{}").good().keep_env_after_task);
    assert!(case(&[("MULTICA_KEEP_ENV_AFTER_TASK", "1")], "{}").good().keep_env_after_task);
}

#[test]
fn cli_26_agent_commands_models_and_arguments() {
    let env = [
        ("MULTICA_CLAUDE_PATH", "/opt/claude"),
        ("MULTICA_CLAUDE_MODEL", " m-1 "),
        ("MULTICA_CLAUDE_ARGS", "--a 'b c'"),
    ];
    let s = case(&env, r#"{"providers":{"claude":{"max_concurrent_tasks":2},"cluade":{}}}"#).good();
    let want = AgentSettings {
        command: Some("/opt/claude".into()),
        model: Some("m-1".into()),
        args: vec!["--a".into(), "b c".into()],
        max_concurrent_tasks: Some(2),
    };
    assert_eq!(s.agents, BTreeMap::from([("claude", want)]));
    assert_eq!(s.warnings.len(), 1, "{:?}", s.warnings);
    assert!(s.warnings[0].contains("providers.cluade"), "{:?}", s.warnings);
    let error = case(&[("MULTICA_CLAUDE_ARGS", "'open")], "{}").error();
    assert!(error.contains("MULTICA_CLAUDE_ARGS") && error.contains("quote"), "{error}");
}

#[test]
fn cli_28_openclaw_keys_count_only_where_the_variable_is_absent() {
    let json =
        r#"{"backends":{"openclaw":{"binary_path":"/o/bin","state_dir":"/o/state","cli_timeout":"90s"}}}"#;
    let s = case(&[], json).good();
    assert_eq!(s.agents["openclaw"].command.as_deref(), Some("/o/bin".as_ref()));
    assert_eq!((s.openclaw.state_dir.as_deref(), s.openclaw.cli_timeout), (Some("/o/state"), seconds(60)));
    let empty =
        [("MULTICA_OPENCLAW_PATH", ""), ("OPENCLAW_STATE_DIR", ""), ("MULTICA_OPENCLAW_CLI_TIMEOUT", "")];
    let s = case(&empty, json).good();
    assert!(s.agents.is_empty() && s.openclaw.state_dir.is_none());
    assert_eq!(s.openclaw.cli_timeout, seconds(30));
    let junk = case(&[("MULTICA_OPENCLAW_CLI_TIMEOUT", "soon")], "{}").good();
    assert_eq!((junk.openclaw.cli_timeout, junk.warnings.len()), (seconds(30), 1));
}

#[test]
fn cli_29_the_exported_port_does_not_choose_ours() {
    assert_eq!(case(&[("MULTICA_DAEMON_PORT", "4000")], "{}").good().health_port, 19514);
    assert_eq!(case(&[("MULTICA_DAEMON_HEALTH_PORT", "4000")], "{}").good().health_port, 4000);
}

#[test]
fn our_own_keys_are_read_from_file_and_flags() {
    let json = r#"{"claim_mode":"batch","disk_budget":"1GiB","min_free_space":0,"on_sigterm":"drain",
                   "allow_dangerous_env":true}"#;
    let s = case(&[], json).good();
    assert_eq!((s.claim_mode, s.on_sigterm), (ClaimMode::Batch, OnSigterm::Drain));
    assert_eq!((s.disk_budget, s.min_free_space, s.allow_dangerous_env), (Some(1 << 30), None, true));
    let flagged = case(&[], json).with(|f| {
        f.claim_mode = Some("per-runtime".into());
        f.disk_budget = Some("2MiB".into());
        f.on_sigterm = Some("detach".into());
    });
    assert_eq!(flagged.good().claim_mode, ClaimMode::PerRuntime);
    assert_eq!((flagged.good().disk_budget, flagged.good().on_sigterm), (Some(2 << 20), OnSigterm::Detach));
    let named = case(&[("LONGSHORE_ON_SIGTERM", "stop")], json).good();
    assert_eq!(named.on_sigterm, OnSigterm::Stop, "the environment beats the file");
    let wrong = case(&[("LONGSHORE_ON_SIGTERM", "wait")], json).error();
    assert!(wrong.contains("LONGSHORE_ON_SIGTERM") && wrong.contains("stop, drain or detach"), "{wrong}");
    let wrong = case(&[], "{}").with(|f| f.claim_mode = Some("both".into())).error();
    assert!(wrong.contains("--claim-mode") && wrong.contains("auto, per-runtime or batch"), "{wrong}");
    let size = case(&[], r#"{"disk_budget":"1G"}"#).error();
    assert!(size.contains("disk_budget") && size.contains("GiB"), "{size}");
}

#[test]
fn the_flight_recorder_gets_its_share_of_the_disk_unless_somebody_says_otherwise() {
    const MIB: u64 = 1 << 20;
    let budget = |env: &[(&str, &str)], json: &str| case(env, json).good().trace_budget;
    for (json, want) in [
        ("{}", Some(64 * MIB)),
        (r#"{"disk_budget":"160MiB"}"#, Some(10 * MIB)),
        (r#"{"disk_budget":"2MiB"}"#, Some(MIB)),
        (r#"{"disk_budget":0}"#, Some(64 * MIB)),
        (r#"{"trace_budget":"200MiB"}"#, Some(200 * MIB)),
        (r#"{"trace_budget":"1MiB","disk_budget":0}"#, Some(MIB)),
        (r#"{"trace_budget":0}"#, None),
    ] {
        assert_eq!(budget(&[], json), want, "{json}");
    }
    assert_eq!(budget(&[("LONGSHORE_TRACE_BUDGET", "0")], r#"{"trace_budget":"2MiB"}"#), None);
    let flagged =
        case(&[("LONGSHORE_TRACE_BUDGET", "0")], "{}").with(|f| f.trace_budget = Some("3MiB".into()));
    assert_eq!(flagged.good().trace_budget, Some(3 * MIB));
    for (json, why) in [
        (r#"{"trace_budget":1048575}"#, "too small"),
        (r#"{"trace_budget":"5GiB"}"#, "more than the whole disk budget"),
        (r#"{"trace_budget":"-1"}"#, "the unit is none"),
    ] {
        let error = case(&[], json).error();
        assert!(error.contains("trace_budget") && error.contains(why) && error.contains("1MiB"), "{error}");
    }
}

#[test]
fn the_daemon_does_not_take_the_tasks_token() {
    let s = case(&[("MULTICA_TOKEN", "mat_x")], r#"{"token":" mul_y\n"}"#).good();
    assert_eq!(s.token.expose(), "mul_y");
    assert!(!format!("{s:?}").contains("mul_y"));
}

#[test]
fn settings_are_loaded_from_the_profiles_file() {
    let home = tempfile::tempdir().expect("a directory");
    let dir = home.path().join(".multica/profiles/dev");
    std::fs::create_dir_all(&dir).expect("a profile");
    std::fs::write(dir.join("config.json"), r#"{"server_url":"http://h:1","future":1}"#).expect("written");
    let env = Env::from_pairs([("HOME", home.path())]);
    let flags = Flags { profile: "dev".into(), ..Flags::default() };
    let s = Settings::load(&flags, &env, Path::new("/cwd")).expect("settings");
    assert_eq!((s.server_url.as_str(), s.health_port), ("http://h:1", 19834));
    assert_eq!(s.workspaces_root, home.path().join("multica_workspaces_dev"));
}

#[test]
fn the_root_of_the_file_system_is_no_workspaces_root() {
    for given in ["/", "/x/.."] {
        let flags = Flags { workspaces_root: Some(given.into()), ..Flags::default() };
        let env = Env::from_pairs([("HOME", "/missing")]);
        let error = Settings::load(&flags, &env, Path::new("/")).expect_err("refused").to_string();
        assert!(error.contains("--workspaces-root") && error.contains("root of the file system"), "{error}");
    }
}
