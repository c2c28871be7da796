//! What the service manager does to runs when the daemon ends. systemd knows the processes of a unit by their control group, which supervisors and
//! agents share with the daemon: with its default, a stop or restart of the unit ends all of them at once, whatever the daemon would do.

use crate::config::Env;
use crate::discover::capture::{CaptureError, Probe};
use std::ffi::OsStr;
use std::path::Path;
use std::time::Duration;

/// How long `systemctl` is heard out.
const LIMIT: Duration = Duration::from_secs(2);
const CGROUP: &str = "/proc/self/cgroup";

/// A unit of systemd that this process belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Unit {
    name: String,
    /// Whether it is one of the user's own manager.
    of_user: bool,
}

/// Warns once if this process belongs to a unit of systemd whose end would be the end of its runs. Where systemd does not tell within 2 s, nothing
/// is said.
pub async fn warn_if_runs_end_with_it(env: &Env) {
    // Without the file this is no Linux, and there is no systemd.
    let cgroup = std::fs::read_to_string(CGROUP).unwrap_or_default();
    if let Some((unit, mode, what)) = trouble(&cgroup, env, LIMIT).await {
        tracing::warn!(
            unit = unit.name,
            kill_mode = mode,
            "{what}; write KillMode=process below [Service] of the unit"
        );
    }
}

/// The unit that a process with this `cgroup` file is in, its mode, and what that means, if it means anything to runs.
async fn trouble(cgroup: &str, env: &Env, limit: Duration) -> Option<(Unit, String, &'static str)> {
    let unit = unit_of(cgroup)?;
    match kill_mode(&unit, env, limit).await {
        Ok(mode) => consequence(&mode).map(|what| (unit, mode, what)),
        Err(error) => {
            tracing::debug!(unit = unit.name, %error, "systemd was asked for the KillMode of this unit and did not tell");
            None
        }
    }
}

/// The service that the lines of a `cgroup` file name, if the innermost unit in them is one.
fn unit_of(cgroup: &str) -> Option<Unit> {
    let path = cgroup.lines().find_map(|line| {
        // With version 1 of control groups, systemd has a hierarchy of its own.
        line.strip_prefix("0::").or_else(|| line.split_once(":name=systemd:").map(|(_, path)| path))
    })?;
    let is_unit = |part: &&str| [".service", ".scope", ".slice"].iter().any(|kind| part.ends_with(kind));
    // Below a unit there may be groups that it made itself.
    let (above, name) = path.rsplit('/').find(is_unit).and_then(|name| {
        let start = path.rfind(name)?;
        Some((&path[..start], name))
    })?;
    let of_user = above.split('/').any(|part| part.starts_with("user@") && part.ends_with(".service"));
    name.ends_with(".service").then(|| Unit { name: name.to_owned(), of_user })
}

async fn kill_mode(unit: &Unit, env: &Env, limit: Duration) -> Result<String, CaptureError> {
    let args = ["show", "--property=LoadState,KillMode", "--", &unit.name].map(OsStr::new);
    let of_user = [OsStr::new("--user")];
    let args = [if unit.of_user { &of_user[..] } else { &[] }, &args].concat();
    let program = Path::new("systemctl");
    let probe = Probe {
        program,
        args: &args,
        env,
        limit,
        enough: |text| text.lines().count() > 1,
        makes_session: false,
    };
    let text = probe.run().await?;
    let value = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
    // Of a unit that it does not know, as from inside of a container, systemd tells the default.
    let known = value("LoadState") == Some("loaded");
    Ok(value("KillMode").filter(|_| known).unwrap_or_default().trim().to_owned())
}

/// What this mode means for runs, where it means anything to them.
fn consequence(mode: &str) -> Option<&'static str> {
    Some(match mode {
        "control-group" => {
            "a stop or restart of this unit signals agents together with the daemon: their tasks fail, whatever on_sigterm says, and a \
             crash of the daemon takes them along"
        }
        "mixed" => {
            "as soon as the daemon ends, systemd kills the agents that are still at work: on_sigterm=detach cannot leave them to the next \
             daemon, and a crash of the daemon takes them along"
        }
        "none" => {
            "a stop of this unit reaches nothing: the daemon works on, and the next one is refused as the second"
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    const LONG: Duration = Duration::from_secs(30);
    const SHORT: Duration = Duration::from_millis(200);

    fn unit(name: &str, of_user: bool) -> Unit {
        Unit { name: name.into(), of_user }
    }

    #[test]
    fn the_innermost_unit_counts_if_it_is_a_service() {
        for (cgroup, want) in [
            ("0::/system.slice/longshore.service\n", Some(unit("longshore.service", false))),
            (
                "0::/user.slice/user-1000.slice/user@1000.service/app.slice/longshore@dev.service\n",
                Some(unit("longshore@dev.service", true)),
            ),
            ("0::/system.slice/longshore.service/runs/1\n", Some(unit("longshore.service", false))),
            ("2:cpu:/x.service\n1:name=systemd:/system.slice/a.service\n", Some(unit("a.service", false))),
            ("0::/user.slice/user-1000.slice/session-3.scope\n", None),
            ("0::/user.slice/user-1000.slice/user@1000.service/app.slice/app-term.scope\n", None),
            ("0::/system.slice/docker-0123.scope/a.b\n", None),
            ("0::/system.slice\n", None),
            ("0::/\n", None),
            ("", None),
        ] {
            assert_eq!(unit_of(cgroup), want, "{cgroup}");
        }
    }

    /// An environment whose `systemctl` is this script.
    fn with_systemctl(dir: &Path, script: &str) -> Env {
        // Written by another process: what a fork of this one has open for writing cannot be run.
        let made = r#"rm -f "$1" && printf '#!/bin/sh\n%s\n' "$2" > "$1" && chmod 755 "$1""#;
        let path = dir.join("systemctl");
        let status = Command::new("/bin/sh").args(["-c", made, "sh"]).arg(path).arg(script).status();
        assert!(status.expect("a shell").success());
        Env::from_pairs([("PATH", format!("{}:/usr/bin:/bin", dir.display()))])
    }

    #[tokio::test]
    async fn systemctl_is_asked_for_the_unit_of_the_right_manager() {
        let dir = tempfile::tempdir().expect("a directory");
        let env = with_systemctl(
            dir.path(),
            r#"echo "$*" >> "${0%/*}/asked"; echo KillMode=control-group; echo LoadState=loaded"#,
        );
        for of_user in [false, true] {
            let mode = kill_mode(&unit("a.service", of_user), &env, LONG).await.expect("an answer");
            assert!(consequence(&mode).is_some_and(|text| text.contains("signals agents")), "{mode}");
        }
        let asked = std::fs::read_to_string(dir.path().join("asked")).expect("it was asked");
        assert_eq!(
            asked,
            "show --property=LoadState,KillMode -- a.service\n--user show --property=LoadState,KillMode -- a.service\n"
        );
    }

    #[tokio::test]
    async fn what_systemctl_does_not_tell_is_unknown() {
        let dir = tempfile::tempdir().expect("a directory");
        let unit = unit("a.service", false);
        let env = with_systemctl(dir.path(), "exit 1");
        assert!(matches!(kill_mode(&unit, &env, LONG).await, Err(CaptureError::Failed(_))));
        let env = with_systemctl(dir.path(), "exec sleep 600");
        assert!(matches!(kill_mode(&unit, &env, SHORT).await, Err(CaptureError::TimedOut(_))));
        for answer in ["echo nonsense", "echo LoadState=not-found; echo KillMode=control-group"] {
            let env = with_systemctl(dir.path(), answer);
            let mode = kill_mode(&unit, &env, LONG).await.expect("an answer");
            assert_eq!(consequence(&mode), None, "{answer}");
        }
        let nowhere = Env::from_pairs([("PATH", "/missing")]);
        assert!(matches!(kill_mode(&unit, &nowhere, LONG).await, Err(CaptureError::Start(_))));
    }

    #[tokio::test]
    async fn only_a_unit_whose_mode_ends_runs_is_worth_a_warning() {
        let dir = tempfile::tempdir().expect("a directory");
        let cgroup = "0::/user.slice/user-1.slice/user@1.service/app.slice/longshore.service\n";
        for (mode, warned) in [("control-group", true), ("process", false)] {
            let env = with_systemctl(dir.path(), &format!("echo KillMode={mode}; echo LoadState=loaded"));
            let found = trouble(cgroup, &env, LONG).await.map(|(unit, mode, _)| (unit.name, mode));
            assert_eq!(found, warned.then(|| ("longshore.service".to_owned(), mode.to_owned())));
            assert_eq!(trouble("0::/user.slice/session-1.scope\n", &env, LONG).await, None);
        }
    }

    #[test]
    fn only_modes_that_end_runs_or_spare_the_daemon_are_worth_a_warning() {
        for (mode, warned) in
            [("control-group", true), ("mixed", true), ("none", true), ("process", false), ("", false)]
        {
            assert_eq!(consequence(mode).is_some(), warned, "{mode}");
        }
    }
}
