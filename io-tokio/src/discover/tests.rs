use super::*;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::Path;
use std::sync::Arc;
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
        fs::create_dir(home.join("bin")).expect("a directory");
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

    fn prober(&self, providers: &[&str], settings: BTreeMap<&'static str, AgentSettings>) -> Prober {
        let clis = providers.iter().map(|p| agent_cli(p).expect("known")).collect();
        let (env, home, cwd) = (self.env.clone(), self.home.clone(), self.home.clone());
        Prober::new(Search { clis, settings, env, home, cwd, login_shell: true })
    }

    async fn search(
        &self,
        providers: &[&str],
        settings: &BTreeMap<&'static str, AgentSettings>,
    ) -> Arc<Discovery> {
        self.prober(providers, settings.clone()).look_to_the_end().await.expect("a look")
    }

    async fn find(&self, providers: &[&str]) -> Arc<Discovery> {
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
    let count = fs::read_to_string(machine.home.join("bin/codex.count")).expect("counted");
    assert_eq!(count, "x\nx\n");
}

#[tokio::test]
async fn old_silent_and_broken_programs_are_skipped_with_a_reason() {
    let machine = Machine::new();
    machine.script("claude", "echo 1.0.3");
    machine.script("kimi", "exit 0");
    let package = machine.home.join("npm");
    fs::create_dir_all(package.join("bin")).expect("directories");
    let json = r#"{"name":"agent","scripts":{"postinstall":"sh fix.sh"}}"#;
    fs::write(package.join("package.json"), json).expect("written");
    let broken = machine.script("codex", "");
    fs::rename(&broken, package.join("bin/codex")).expect("moved");
    fs::write(package.join("bin/codex"), [0x7f, b'?', 0, 1]).expect("written");
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
    fs::write(machine.home.join(".profile"), profile).expect("written");
    machine.env = Env::from_pairs([
        ("PATH", OsStr::new("/usr/bin:/bin")),
        ("SHELL", OsStr::new("/bin/sh")),
        ("HOME", machine.home.as_os_str()),
    ]);
    let prober = machine.prober(&["claude"], BTreeMap::new());
    let found = prober.look(true).await.expect("a look");
    assert_eq!(found.agents.len(), 1, "it is waited for where nothing else is there");
}

#[tokio::test]
async fn the_login_shell_is_asked_beside_for_what_is_missing_later() {
    let mut machine = Machine::new();
    machine.script("claude", "echo 2.1.0");
    let other = machine.home.join("other");
    fs::create_dir(&other).expect("a directory");
    fs::rename(machine.script("kimi", "echo 1.0.0"), other.join("kimi")).expect("moved");
    fs::write(machine.home.join(".profile"), format!("PATH='{}':$PATH\n", other.display())).expect("written");
    machine.env.set("SHELL", "/bin/sh");
    machine.env.set("HOME", &machine.home);
    let prober = machine.prober(&["claude", "kimi"], BTreeMap::new());
    assert_eq!(prober.look(true).await.expect("a look").agents.len(), 1, "nobody waits for the shell");
    let shell = prober.shell.clone();
    // It is at work by now, and whoever asks waits for the same answer.
    shell.ask(&prober.search, Duration::from_mins(1)).await;
    let found = prober.look(false).await.expect("a look");
    assert_eq!(found.agents[1].path, other.join("kimi"));
}

/// A script that says what is in a file, and counts how often it was asked.
fn says(version: &Path) -> String {
    format!("echo x >> \"$0.count\"; cat '{}'", version.display())
}

fn asked(program: &Path) -> usize {
    fs::read_to_string(format!("{}.count", program.display())).unwrap_or_default().lines().count()
}

#[tokio::test]
async fn a_program_that_is_known_to_work_is_asked_again_only_by_a_look_at_all_or_if_its_file_is_another() {
    let machine = Machine::new();
    let version = machine.home.join("version");
    fs::write(&version, "2.1.0").expect("written");
    let claude = machine.script("claude", &says(&version));
    let prober = machine.prober(&["claude"], BTreeMap::new());
    let version_of = |found: &Discovery| found.agents[0].version_line.clone();
    for all in [true, false, false] {
        assert_eq!(version_of(&prober.look(all).await.expect("a look")), "2.1.0");
    }
    assert_eq!(asked(&claude), 1);
    fs::write(&version, "2.2.0").expect("written");
    let before = prober.look(false).await.expect("a look").standings();
    let after = prober.look(true).await.expect("a look").standings();
    assert_eq!(asked(&claude), 2);
    assert_ne!(before, after, "another version");
    let new = machine.script("new", &says(&version));
    fs::rename(&new, &claude).expect("replaced");
    fs::write(&version, "1.0.0").expect("written");
    for asks in [3, 4] {
        let found = prober.look(false).await.expect("a look");
        assert!(matches!(found.skipped[0].problem, Problem::TooOld { .. }), "{found:?}");
        assert_eq!(asked(&claude), asks, "one that cannot be used is asked each time");
    }
    assert_eq!(prober.known("claude").expect("known").version_line, "2.2.0", "what worked last");
}

#[tokio::test]
async fn a_program_that_takes_its_time_is_slow_and_its_answer_is_for_the_next_look() {
    let machine = Machine::new();
    machine.script("claude", "echo 2.1.0");
    let go = machine.home.join("go");
    let waits = format!("echo x >> \"$0.count\"; until [ -e '{}' ]; do sleep 0.05; done; ", go.display());
    let codex = machine.script("codex", &format!("{waits} echo codex-cli 0.144.1"));
    let kimi = machine.script("kimi", &format!("{waits} sleep 1; exit 3"));
    let prober = machine.prober(&["claude", "codex", "kimi"], BTreeMap::new());
    let begun = Instant::now();
    let found = prober.look(true).await.expect("a look");
    assert!(begun.elapsed() >= PATIENCE && begun.elapsed() < PATIENCE * 4, "{:?}", begun.elapsed());
    assert_eq!((found.agents.len(), found.skipped.len()), (1, 2));
    assert!(found.skipped.iter().all(|skipped| skipped.problem == Problem::Slow) && !found.is_in_vain());
    fs::write(&go, "").expect("written");
    let mut last = found;
    for _ in 0..10 {
        last = prober.look(false).await.expect("a look");
        if last.skipped.iter().all(|skipped| skipped.problem != Problem::Slow) {
            break;
        }
    }
    assert_eq!(last.agents[1].provider.as_str(), "codex");
    assert!(matches!(last.skipped[0].problem, Problem::NoVersion { .. }), "{last:?}");
    assert_eq!((asked(&codex), asked(&kimi)), (1, 1), "nobody was asked twice");
}

#[tokio::test]
async fn what_is_still_asked_at_the_end_is_ended() {
    let machine = Machine::new();
    let claude = machine.script("claude", "echo $$ > \"$0.pid\"; sleep 600");
    let prober = machine.prober(&["claude"], BTreeMap::new());
    assert_eq!(prober.look(true).await.expect("a look").skipped[0].problem, Problem::Slow);
    let pid = fs::read_to_string(format!("{}.pid", claude.display())).expect("it was started");
    prober.close().await;
    let zombie = |stat: String| stat.rsplit(')').next().is_some_and(|rest| rest.starts_with(" Z"));
    // The kernel takes a moment from the signal to the end.
    let ended = async {
        while !fs::read_to_string(format!("/proc/{}/stat", pid.trim())).map_or(true, zombie) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), ended).await.expect("it is gone, or waits to be reaped");
}

#[tokio::test]
async fn a_program_that_has_moved_is_looked_up_once_when_it_is_to_be_launched() {
    let machine = Machine::new();
    let version = machine.home.join("version");
    fs::write(&version, "2.1.0").expect("written");
    let (old, new) = (machine.home.join("v1"), machine.home.join("v2"));
    for dir in [&old, &new] {
        fs::create_dir(dir).expect("a directory");
    }
    let link = machine.home.join("bin/claude");
    fs::rename(machine.script("x", &says(&version)), old.join("claude")).expect("moved");
    std::os::unix::fs::symlink(old.join("claude"), &link).expect("a link");
    let prober = machine.prober(&["claude"], BTreeMap::new());
    prober.look(true).await.expect("a look");
    assert_eq!(prober.for_launch("claude").await.expect("there").path, old.join("claude"));

    fs::rename(old.join("claude"), new.join("claude")).expect("moved");
    fs::write(&version, "2.2.0").expect("written");
    let gone = prober.for_launch("claude").await.expect_err("nothing is there");
    assert!(gone.contains("v1/claude") && gone.contains("install"), "{gone}");
    fs::remove_file(&link).expect("removed");
    std::os::unix::fs::symlink(new.join("claude"), &link).expect("a link");
    let both = tokio::join!(prober.for_launch("claude"), prober.for_launch("claude"));
    for agent in [both.0, both.1] {
        let agent = agent.expect("found again");
        assert_eq!((agent.path.clone(), agent.version_line.as_str()), (new.join("claude"), "2.2.0"));
    }
    assert_eq!(asked(&new.join("claude")), 1, "one of the two asked");

    fs::remove_file(new.join("claude")).expect("removed");
    fs::remove_file(&link).expect("removed");
    machine.script("claude", "echo 1.0.0");
    let old = prober.for_launch("claude").await.expect_err("too old");
    assert!(old.contains("too old"), "{old}");
    assert!(prober.for_launch("codex").await.is_err());
}
