use super::*;
use crate::prepare::Identity;
use std::path::PathBuf;

fn prepared() -> Prepared {
    let identity = Identity::at(Path::new("/")).expect("there");
    Prepared {
        root: "/w/ws/key".into(),
        identity,
        workdir: "/w/ws/key/workdir".into(),
        workdir_identity: identity,
        reused: false,
        local_directory: false,
        shared_directory: false,
        cli_config: "/w/ws/key/multica-config".into(),
        codex_home: Some("/w/ws/key/codex-home".into()),
        claude_settings: None,
        mcp_config: None,
        brief: String::new(),
        warnings: Vec::new(),
    }
}

fn task(json: &str) -> Task {
    serde_json::from_str(json).expect("a task")
}

fn with_env(custom_env: &str) -> Task {
    task(&format!(
        r#"{{"id":"t-1","workspace_id":"ws","agent_id":"a","auth_token":"mat_1","agent":{{"id":"a","name":"N","custom_env":{custom_env}}}}}"#
    ))
}

fn build_with(task: &Task, inherited: &[(&str, &str)], provider: &str, allow_dangerous: bool) -> Environment {
    let prepared = prepared();
    let sources = Sources {
        task,
        provider,
        prepared: &prepared,
        temp_dir: Path::new("/tmp/multica-task-1"),
        workspaces_root: Path::new("/w"),
        server_url: "http://127.0.0.1:1",
        daemon_port: 19514,
        slot: SlotIndex(3),
        cli_dir: Some(Path::new("/opt/cli")),
        allow_dangerous,
    };
    let inherited = inherited.iter().map(|(name, value)| (OsString::from(name), OsString::from(value)));
    build(inherited, &sources).expect("an environment")
}

#[test]
fn the_agent_gets_what_its_cli_needs() {
    let environment = build_with(&with_env("{}"), &[("PATH", "/bin"), ("HOME", "/h")], "codex", false);
    for (name, want) in [
        ("MULTICA_TOKEN", "mat_1"),
        ("MULTICA_SERVER_URL", "http://127.0.0.1:1"),
        ("MULTICA_DAEMON_PORT", "19514"),
        ("MULTICA_WORKSPACE_ID", "ws"),
        ("MULTICA_AGENT_ID", "a"),
        ("MULTICA_AGENT_NAME", "N"),
        ("MULTICA_TASK_ID", "t-1"),
        ("MULTICA_TASK_SLOT", "3"),
        ("MULTICA_TASK_CONFIG_ROOT", "/w/ws/key/multica-config"),
        ("MULTICA_TASK_WORKSPACES_ROOT", "/w"),
        ("CODEX_HOME", "/w/ws/key/codex-home"),
        ("PATH", "/opt/cli:/bin"),
        ("PWD", "/w/ws/key/workdir"),
        ("HOME", "/h"),
    ] {
        assert_eq!(environment.get(name), Some(OsStr::new(want)), "{name}");
    }
    let isolated = environment.get("MULTICA_REPO_CHECKOUT_MODE").is_some();
    assert_eq!(isolated, cfg!(target_os = "linux"));
    assert!(environment.warning().is_none() && environment.warnings.is_empty());
}

#[test]
fn inv_76_temp_uniform_and_not_overridable() {
    let task = with_env(r#"{"TMPDIR":"/x","tmp":"/x","Temp":"/x"}"#);
    let environment = build_with(&task, &[("TMPDIR", "/long"), ("TMP", "/other")], "claude", true);
    for name in ["TMPDIR", "TMP", "TEMP"] {
        assert_eq!(environment.get(name), Some(OsStr::new("/tmp/multica-task-1")), "{name}");
    }
    assert_eq!((environment.get("tmp"), environment.get("Temp")), (None, None));
    assert_eq!(environment.dropped, ["TMPDIR", "Temp", "tmp"]);
}

#[test]
fn inv_88_only_a_task_token_reaches_an_agent() {
    let prepared = prepared();
    for (json, want) in [
        (r#"{"id":"t"}"#, EnvironmentError::NoToken),
        (r#"{"id":"t","auth_token":"mul_daemon"}"#, EnvironmentError::NotATaskToken),
    ] {
        let task = task(json);
        let sources = Sources {
            task: &task,
            provider: "claude",
            prepared: &prepared,
            temp_dir: Path::new("/t"),
            workspaces_root: Path::new("/w"),
            server_url: "",
            daemon_port: 0,
            slot: SlotIndex(0),
            cli_dir: None,
            allow_dangerous: false,
        };
        assert_eq!(build([], &sources).expect_err("refused"), want);
    }
    let environment =
        build_with(&with_env("{}"), &[("MULTICA_TOKEN", "mul_daemon"), ("multica_x", "y")], "claude", false);
    assert!(environment.iter().all(|(_, value)| value != "mul_daemon"), "env_1");
    assert_eq!(environment.get("multica_x"), None);
}

#[test]
fn bug_47_code_loading_names_of_the_server_are_dropped_by_name_and_the_operators_pass() {
    let mut custom = serde_json::Map::new();
    let bad = [
        "LD_PRELOAD",
        "ld_preload",
        "LD_AUDIT",
        "DYLD_INSERT_LIBRARIES",
        "NODE_OPTIONS",
        "BASH_ENV",
        "ENV",
        "PYTHONSTARTUP",
        "PERL5OPT",
        "RUBYOPT",
        "GIT_SSH_COMMAND",
        "PATH",
        "HOME",
        "TMPDIR",
        "MULTICA_TOKEN",
        "longshore_x",
        "",
        "A=B",
        "N\nL",
        "GIT_DIR",
        "CLAUDECODE",
        "Path",
    ];
    for name in bad {
        custom.insert(name.to_owned(), "zzz".into());
    }
    custom.insert("NUL".to_owned(), "zzz\u{0}".into());
    custom.insert("FOO".to_owned(), "bar".into());
    let task = with_env(&serde_json::Value::Object(custom).to_string());
    let inherited = [
        ("CLAUDE_CODE_USE_BEDROCK", "1"),
        ("CLAUDE_CODE_GIT_BASH_PATH", "b"),
        ("ANTHROPIC_BASE_URL", "u"),
        ("HTTPS_PROXY", "p"),
        ("NODE_OPTIONS", "operator's"),
        ("CLAUDECODE", "1"),
        ("CLAUDE_CODE_ENTRYPOINT", "cli"),
        ("CLAUDECODE_X", "1"),
        ("CLAUDE_CODE_SESSION_ID", "s"),
    ];
    let environment = build_with(&task, &inherited, "claude", false);
    assert_eq!(environment.get("FOO"), Some(OsStr::new("bar")));
    assert!(environment.iter().all(|(_, value)| !value.to_string_lossy().contains("zzz")));
    for name in [
        "CLAUDE_CODE_USE_BEDROCK",
        "CLAUDE_CODE_GIT_BASH_PATH",
        "ANTHROPIC_BASE_URL",
        "HTTPS_PROXY",
        "NODE_OPTIONS",
    ] {
        assert!(environment.get(name).is_some(), "{name}");
    }
    for name in ["CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT", "CLAUDECODE_X", "CLAUDE_CODE_SESSION_ID"] {
        assert!(environment.get(name).is_none(), "{name}");
    }
    let warning = environment.warning().expect("one warning");
    assert_eq!(environment.dropped.len(), bad.len() + 1);
    assert!(
        warning.contains("ld_preload") && !warning.contains("zzz") && !warning.contains('\n'),
        "{warning}"
    );

    let allowed = build_with(&task, &inherited, "claude", true);
    assert_eq!(allowed.get("NODE_OPTIONS"), Some(OsStr::new("zzz")));
    assert_eq!((allowed.get("HOME"), allowed.get("GIT_DIR")), (None, Some(OsStr::new("zzz"))));
}

#[test]
fn bug_45_variables_that_select_a_repository_are_not_inherited() {
    let inherited = [
        ("GIT_DIR", "/d"),
        ("GIT_WORK_TREE", "/d"),
        ("GIT_INDEX_FILE", "/d"),
        ("GIT_OBJECT_DIRECTORY", "/d"),
        ("GIT_COMMON_DIR", "/d"),
        ("GIT_AUTHOR_NAME", "Ann"),
        ("GIT_SSH_COMMAND", "ssh -i k"),
    ];
    let environment = build_with(&with_env("{}"), &inherited, "claude", false);
    assert!(environment.iter().all(|(_, value)| value != "/d"));
    assert!(environment.get("GIT_AUTHOR_NAME").is_some() && environment.get("GIT_SSH_COMMAND").is_some());
}

#[test]
fn bug_48_it_prints_names_only() {
    let environment = build_with(&with_env(r#"{"KEY":"zzz"}"#), &[("A", "zzz")], "claude", false);
    let text = format!("{environment:?}");
    assert!(text.contains("KEY") && !text.contains("zzz") && !text.contains("mat_1"), "{text}");
}

#[test]
fn autopilots_and_quick_creates_get_their_ids() {
    let environment = build_with(
        &task(r#"{"id":"t","auth_token":"mat_1","autopilot_run_id":"r","autopilot_id":"p"}"#),
        &[],
        "claude",
        false,
    );
    assert_eq!(environment.get("MULTICA_AUTOPILOT_RUN_ID"), Some(OsStr::new("r")));
    assert_eq!(environment.get("MULTICA_AGENT_NAME"), Some(OsStr::new("agent")));
    let environment = build_with(
        &task(
            r#"{"id":"t","auth_token":"mat_1","quick_create_prompt":"q","quick_create_attachment_ids":["x","y\""]}"#,
        ),
        &[],
        "claude",
        false,
    );
    assert_eq!(environment.get("MULTICA_QUICK_CREATE_TASK_ID"), Some(OsStr::new("t")));
    assert_eq!(environment.get("MULTICA_QUICK_CREATE_ATTACHMENT_IDS"), Some(OsStr::new(r#"["x","y\""]"#)));
}

#[test]
fn the_search_path_stays_usable_without_one_and_with_an_odd_folder() {
    let mut warnings = Vec::new();
    assert_eq!(
        path(None, Some(Path::new("/c")), &mut warnings),
        OsString::from("/c:/usr/local/bin:/usr/bin:/bin")
    );
    assert_eq!(path(Some(OsStr::new("/b")), None, &mut warnings), OsString::from("/b"));
    let odd = PathBuf::from("/a:b");
    assert_eq!(path(Some(OsStr::new("/b")), Some(&odd), &mut warnings), OsString::from("/b"));
    assert_eq!(warnings.len(), 1);
}
