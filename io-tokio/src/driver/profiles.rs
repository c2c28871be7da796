//! Custom runtimes, which people define for a workspace: a command of their own that is driven as an agent CLI family.

use super::host::Host;
use crate::discover::{AGENT_CLIS, AgentCli, PATIENCE, Problem, agent_cli, fingerprint};
use crate::http::{CallError, Limit, RejectKind};
use crate::wire::register::{Readable, RuntimeProfile};
use futures_util::future::join_all;
use longshore_core::codec;
use longshore_core::event::ApiReply;
use longshore_core::id::{ProfileId, WorkspaceId};
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::time::{Instant, timeout_at};

/// Most custom runtimes of one workspace; the rest is not used.
const MAX_PROFILES: usize = 256;

/// All custom runtimes of a workspace.
#[derive(Debug)]
pub(super) struct ProfileSet {
    /// Stands for all that matters of them, also for whether they can be used here.
    pub(super) signature: u64,
    pub(super) all: Vec<Arc<Profile>>,
}

/// One of them.
#[derive(Debug)]
pub(super) struct Profile {
    pub(super) id: ProfileId,
    /// What people call it; may be empty.
    pub(super) name: String,
    pub(super) command: String,
    /// Arguments before all others.
    pub(super) args: Vec<String>,
    /// How it is used on this machine, or why it cannot be.
    pub(super) here: Result<Usable, String>,
}

/// How a custom runtime is used on this machine.
#[derive(Debug)]
pub(super) struct Usable {
    pub(super) cli: &'static AgentCli,
    pub(super) path: PathBuf,
    /// Empty if it did not say.
    pub(super) version_line: String,
}

/// Learns of the custom runtimes of a workspace, and keeps them.
pub(super) async fn fetch(
    host: &Arc<Host>,
    workspace: &WorkspaceId,
    limit: Limit,
) -> Result<ApiReply, CallError> {
    let listed = match host.client.runtime_profiles(workspace, limit).await {
        // A server without the route has none.
        Err(error) if error.rejected_as() == Some(RejectKind::RouteMissing) => {
            Readable { items: Vec::new(), unusable: 0 }
        }
        listed => listed?,
    };
    let set = Arc::new(resolve(host, workspace, listed).await);
    let (signature, count) = (set.signature, set.all.len());
    if host.served().set_profiles(workspace, set.clone()) {
        say(workspace, &set);
    }
    host.heard.send_replace(());
    Ok(ApiReply::Profiles { signature, count: u16::try_from(count).unwrap_or(u16::MAX) })
}

fn say(workspace: &WorkspaceId, set: &ProfileSet) {
    for profile in &set.all {
        match &profile.here {
            Ok(usable) => {
                tracing::info!(%workspace, profile = %profile.id, name = profile.name, path = %usable.path.display(), "custom runtime found");
            }
            Err(why) => {
                tracing::warn!(%workspace, profile = %profile.id, name = profile.name, "custom runtime not used: {why}");
            }
        }
    }
}

async fn resolve(host: &Arc<Host>, workspace: &WorkspaceId, listed: Readable<RuntimeProfile>) -> ProfileSet {
    let mut skipped = listed.unusable;
    let mut seen = BTreeSet::new();
    let mut good: Vec<RuntimeProfile> = Vec::new();
    for profile in listed.items.into_iter().filter(|profile| profile.enabled) {
        if profile.id.is_empty() || good.len() == MAX_PROFILES || !seen.insert(profile.id.clone()) {
            skipped += 1;
        } else {
            good.push(profile);
        }
    }
    if skipped > 0 {
        tracing::warn!(%workspace, count = skipped, "the server lists custom runtimes that cannot be read, twice, or too many of them; those are not used");
    }
    // Their order says nothing.
    good.sort_by(|a, b| a.id.cmp(&b.id));
    let end = Instant::now() + PATIENCE;
    let here = join_all(good.iter().map(|profile| usable(host, profile, end))).await;
    let mut texts: Vec<String> = Vec::new();
    let mut all = Vec::new();
    for (profile, here) in good.into_iter().zip(here) {
        let RuntimeProfile {
            id, display_name, protocol_family, command_name, fixed_args, visibility, ..
        } = profile;
        let count = fixed_args.len().to_string();
        let works = here.is_ok().to_string();
        let own = [&id, &display_name, &protocol_family, &command_name, &visibility, &works, &count];
        texts.extend(own.into_iter().chain(&fixed_args).cloned());
        let (id, command) = (ProfileId::new(id), command_name);
        all.push(Arc::new(Profile { id, name: display_name, command, args: fixed_args, here }));
    }
    ProfileSet { signature: fingerprint(&texts), all }
}

/// How a custom runtime is used here, or why it cannot be, for people.
async fn usable(host: &Arc<Host>, profile: &RuntimeProfile, end: Instant) -> Result<Usable, String> {
    let cli = family(&profile.protocol_family)?;
    check(profile)?;
    let path = locate(host, &profile.id, &profile.command_name, end).await?;
    let prefix = match codec::for_provider(cli.provider) {
        Some(family) => family.launch_prefix(&profile.fixed_args).args,
        None => profile.fixed_args.clone(),
    };
    // Its version is for people. Without one it is used all the same.
    let version_line = match host.prober.version_of(cli, path.clone(), &prefix, end).await {
        Some(Ok(line)) => line,
        Some(Err(problem @ Problem::NotExecutable { .. })) => {
            return Err(format!("{}: {problem}", path.display()));
        }
        Some(Err(_)) | None => String::new(),
    };
    Ok(Usable { cli, path, version_line })
}

/// The agent CLI that it is driven as.
fn family(name: &str) -> Result<&'static AgentCli, String> {
    let drivable = |cli: &&AgentCli| codec::for_provider(cli.provider).is_some();
    agent_cli(&name.trim().to_ascii_lowercase()).filter(drivable).ok_or_else(|| {
        let known: Vec<&str> = AGENT_CLIS.iter().filter(drivable).map(|cli| cli.provider).collect();
        format!("this daemon cannot drive a program as {name:?}; it can as: {}", known.join(", "))
    })
}

fn check(profile: &RuntimeProfile) -> Result<(), String> {
    let command = &profile.command_name;
    if command.is_empty() {
        return Err("it names no command".to_owned());
    }
    if command.contains(|c: char| c.is_whitespace() || c == '\0') {
        return Err(format!(
            "its command {command:?} is no single word; arguments belong into its fixed arguments"
        ));
    }
    if command.contains('/') && !Path::new(command).is_absolute() {
        return Err(format!(
            "its command {command:?} is neither a name to be found on PATH nor an absolute path"
        ));
    }
    if profile.fixed_args.iter().any(|arg| arg.contains('\0')) {
        return Err("one of its fixed arguments has a NUL character in it".to_owned());
    }
    Ok(())
}

/// Where its program is: where this machine's user said, if that can be run, else on `PATH`.
pub(super) async fn locate(
    host: &Arc<Host>,
    id: &str,
    command: &str,
    end: Instant,
) -> Result<PathBuf, String> {
    let own = host.settings.profile_commands.get(id).cloned();
    let (shared, name) = (host.clone(), command.to_owned());
    let looked = tokio::task::spawn_blocking(move || {
        let own = own.filter(|own| Path::new(own).is_absolute()).and_then(|own| shared.prober.locate(&own));
        own.or_else(|| shared.prober.locate(OsStr::new(&name)))
    });
    let path = match timeout_at(end, looked).await {
        Ok(looked) => looked.ok().flatten(),
        Err(_) => return Err(format!("the disk did not say in time where its command {command:?} is")),
    };
    path.ok_or_else(|| {
        format!(
            "its command {command:?} is not on the daemon's PATH; install it, or set profile_command_overrides.{id} in {} to its path and restart the daemon",
            host.settings.dirs.profile.join("config.json").display()
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn profile(command: &str, args: &[&str]) -> RuntimeProfile {
        let text = serde_json::json!({ "id": "p", "command_name": command, "fixed_args": args });
        serde_json::from_value(text).expect("a profile")
    }

    #[test]
    fn a_command_is_one_word_and_its_reasons_are_for_people() {
        for (command, says) in [
            ("", "no command"),
            ("a b", "single word"),
            ("./a", "absolute"),
            ("dir/a", "absolute"),
            ("a\0", "single word"),
        ] {
            let why = check(&profile(command, &[])).expect_err("refused");
            assert!(why.contains(says), "{why}");
        }
        assert!(check(&profile("a", &["b c"])).is_ok() && check(&profile("/opt/a", &[])).is_ok());
        assert!(check(&profile("a", &["b\0"])).expect_err("refused").contains("NUL"));
    }

    #[test]
    fn a_family_that_is_not_spoken_is_named_with_those_that_are() {
        assert_eq!(family(" Claude ").expect("known").provider, "claude");
        for name in ["", "cobol", "kimi"] {
            let why = family(name).expect_err("not known");
            assert!(why.contains("claude") && why.contains(&format!("{name:?}")), "{why}");
        }
    }
}
