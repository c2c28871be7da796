use super::*;
use std::time::{Duration, Instant};

/// A home with scripts on its own `PATH`.
struct Machine {
    _dir: tempfile::TempDir,
    home: PathBuf,
    env: Env,
}

impl Machine {
    fn new() -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let home = dir.path().canonicalize().expect("a real path");
        std::fs::create_dir(home.join("bin")).expect("a directory");
        let path = format!("{}:/usr/bin:/bin", home.join("bin").display());
        Self { _dir: dir, env: Env::from_pairs([("PATH", path)]), home }
    }

    /// Another process writes the file: while this one forks in other tests, a file that it has open for writing
    /// cannot be run.
    fn script(&self, name: &str, body: &str) -> PathBuf {
        let path = self.home.join("bin").join(name);
        let write = "printf '%s' \"$2\" > \"$1\" && chmod 755 \"$1\"";
        let text = format!("#!/bin/sh\n{body}\n");
        let status = std::process::Command::new("/bin/sh")
            .args(["-c", write, "sh"])
            .arg(&path)
            .arg(text)
            .status()
            .expect("a shell");
        assert!(status.success());
        path
    }

    async fn search(
        &self,
        providers: &[&str],
        settings: &BTreeMap<&'static str, AgentSettings>,
    ) -> Discovery {
        let clis: Vec<_> = providers.iter().map(|p| agent_cli(p).expect("known")).collect();
        let (env, home) = (&self.env, self.home.as_path());
        let search = Search { clis: &clis, settings, env, home, cwd: home, login_shell: LoginShell::Never };
        search.run().await
    }

    async fn find(&self, providers: &[&str]) -> Discovery {
        self.search(providers, &BTreeMap::new()).await
    }
}

fn command(text: impl Into<OsString>) -> BTreeMap<&'static str, AgentSettings> {
    BTreeMap::from([("claude", AgentSettings { command: Some(text.into()), ..AgentSettings::default() })])
}

#[tokio::test]
async fn installed_agents_are_found_in_order_and_absent_ones_are_silent() {
    let machine = Machine::new();
    machine.script("codex", "sleep 0.2; echo codex-cli 0.144.1");
    let claude = machine.script("claude", "[ \"$*\" = --version ] && echo '2.1.197 (Claude Code)'");
    let found = machine.find(&["claude", "kimi", "codex"]).await;
    assert!(found.skipped.is_empty(), "{:?}", found.skipped);
    let seen: Vec<_> = found.agents.iter().map(|a| (a.provider.as_str(), a.version_line.as_str())).collect();
    assert_eq!(seen, [("claude", "2.1.197 (Claude Code)"), ("codex", "codex-cli 0.144.1")]);
    assert_eq!(found.agents[0].path, claude);
    assert_eq!(found.agents[0].runtime_name("box"), "Claude (box)");
}

#[tokio::test]
async fn cli_27_a_configured_path_has_no_fallback() {
    let machine = Machine::new();
    let real = machine.script("claude", "echo 2.1.0");
    let missed = machine.search(&["claude"], &command("/missing/claude")).await;
    assert!(missed.agents.is_empty());
    let reason = missed.skipped[0].problem.to_string();
    assert!(reason.contains("/missing/claude") && reason.contains("MULTICA_CLAUDE_PATH"), "{reason}");
    let hit = machine.search(&["claude"], &command(&real)).await;
    assert_eq!(hit.agents[0].path, real);
    let bare = machine.search(&["claude"], &command("claude")).await;
    assert_eq!(bare.agents[0].path, real);
}

#[tokio::test]
async fn programs_are_asked_side_by_side() {
    let machine = Machine::new();
    // Each waits until all have begun: one after the other they would never answer.
    let wait =
        "touch \"$0.up\"; while [ $(ls \"${0%/*}\" | grep -c up$) -lt 8 ]; do sleep 0.01; done; echo 9.9.9";
    let names = ["claude", "codex", "copilot", "opencode", "hermes", "pi", "kimi", "grok"];
    for name in names {
        machine.script(name, wait);
    }
    let found = machine.find(&names).await;
    assert_eq!(found.agents.len(), PROBES_AT_ONCE, "{:?}", found.skipped);
}

#[tokio::test]
async fn a_child_that_outlives_the_answer_costs_no_time() {
    let machine = Machine::new();
    machine.script("claude", "sleep 600 & echo 2.1.0");
    let begun = Instant::now();
    assert_eq!(machine.find(&["claude"]).await.agents.len(), 1);
    assert!(begun.elapsed() < Duration::from_secs(2), "less than the grace for pipes: {:?}", begun.elapsed());
}

#[tokio::test]
async fn a_quick_failure_is_tried_once_more() {
    let machine = Machine::new();
    let once = "if mkdir \"$0.tried\" 2>/dev/null; then exit 1; fi; echo 2.1.0";
    machine.script("claude", once);
    machine.script("codex", "echo x >> \"$0.count\"; exit 4");
    let found = machine.find(&["claude", "codex"]).await;
    assert_eq!(found.agents.len(), 1);
    let reason = found.skipped[0].problem.to_string();
    assert!(reason.contains("exit status: 4"), "{reason}");
    let count = std::fs::read_to_string(machine.home.join("bin/codex.count")).expect("counted");
    assert_eq!(count, "x\nx\n");
}

#[tokio::test]
async fn old_silent_and_broken_programs_are_skipped_with_a_reason() {
    let machine = Machine::new();
    machine.script("claude", "echo 1.0.3");
    machine.script("kimi", "exit 0");
    let package = machine.home.join("npm");
    std::fs::create_dir_all(package.join("bin")).expect("directories");
    let json = r#"{"name":"agent","scripts":{"postinstall":"sh fix.sh"}}"#;
    std::fs::write(package.join("package.json"), json).expect("written");
    let broken = machine.script("codex", "");
    std::fs::rename(&broken, package.join("bin/codex")).expect("moved");
    std::fs::write(package.join("bin/codex"), [0x7f, b'?', 0, 1]).expect("written");
    std::os::unix::fs::symlink(package.join("bin/codex"), &broken).expect("a link");
    let found = machine.find(&["claude", "kimi", "codex"]).await;
    assert!(found.agents.is_empty(), "{:?}", found.agents);
    assert!(matches!(found.skipped[0].problem, Problem::TooOld { found: (1, 0, 3), least: (2, 0, 0) }));
    assert!(found.skipped[1].problem.to_string().contains("printed nothing"));
    let reason = found.skipped[2].problem.to_string();
    assert!(reason.contains("sh fix.sh"), "{reason}");
}

#[tokio::test]
async fn dsh_must_say_that_it_speaks_the_protocol() {
    let answer = r#"{"v":1,"type":"probe","runtime":"dsh","protocol_version":1}"#;
    for (text, good) in [(answer, true), ("{\"v\":2}", false)] {
        let machine = Machine::new();
        machine.script("dsh", &format!("case $1 in --version) echo 1.0.0;; *) echo '{text}';; esac"));
        let found = machine.find(&["dsh"]).await;
        assert_eq!(found.agents.len(), usize::from(good), "{:?}", found.skipped);
    }
}

#[tokio::test]
async fn the_login_shell_is_asked_when_path_has_nothing() {
    let mut machine = Machine::new();
    machine.script("claude", "echo 2.1.0");
    let profile = format!("PATH='{}':$PATH\n", machine.home.join("bin").display());
    std::fs::write(machine.home.join(".profile"), profile).expect("written");
    machine.env = Env::from_pairs([
        ("PATH", OsStr::new("/usr/bin:/bin")),
        ("SHELL", OsStr::new("/bin/sh")),
        ("HOME", machine.home.as_os_str()),
    ]);
    let clis = [agent_cli("claude").expect("known")];
    let (settings, env, home) = (BTreeMap::new(), &machine.env, machine.home.as_path());
    let search = |login_shell| Search { clis: &clis, settings: &settings, env, home, cwd: home, login_shell };
    assert!(search(LoginShell::Never).run().await.agents.is_empty());
    assert_eq!(search(LoginShell::IfNothingFound).run().await.agents.len(), 1);
    assert_eq!(search(LoginShell::ForMissing).run().await.agents.len(), 1);
}

#[test]
fn a_search_can_move_between_threads() {
    fn is_send<T: Send>(_: &T) {}
    let (settings, env, home) = (BTreeMap::new(), Env::default(), Path::new("/"));
    let search =
        Search { clis: &[], settings: &settings, env: &env, home, cwd: home, login_shell: LoginShell::Never };
    is_send(&search.run());
}
