//! What makes this machine known: token, workspaces, runtime profiles, registration and its end.

use super::json::{self, DecodeError};
use super::lenient;
use super::task::Repo;
use longshore_core::id::{RuntimeId, WorkspaceId};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;
use std::collections::BTreeMap;

/// A list of which some elements could not be read. Whoever takes what is missing for gone must look at `unusable`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Readable<T> {
    /// Those that could be read, in order.
    pub items: Vec<T>,
    /// How many could not.
    pub unusable: usize,
}

impl<T: DeserializeOwned> Readable<T> {
    fn read(elements: &[&RawValue]) -> Self {
        let items: Vec<T> = elements.iter().filter_map(|raw| serde_json::from_str(raw.get()).ok()).collect();
        Self { unusable: elements.len() - items.len(), items }
    }

    /// Reads a reply that is a list.
    ///
    /// # Errors
    /// If the reply is none.
    pub fn list(text: &str) -> Result<Self, DecodeError> {
        json::decode::<Vec<&RawValue>>(text, "a list").map(|elements| Self::read(&elements))
    }
}

/// What became of the daemon's own token.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Renewal {
    /// RFC 3339; empty if the token never expires.
    #[serde(deserialize_with = "lenient::field")]
    pub expires_at: String,
    /// Whether this call moved the expiry.
    #[serde(deserialize_with = "lenient::field")]
    pub renewed: bool,
}

/// A workspace that this machine may work for.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Workspace {
    /// Its id.
    pub id: WorkspaceId,
    /// Shown name; may be empty.
    #[serde(default, deserialize_with = "lenient::field")]
    pub name: String,
}

/// A custom runtime that a workspace defines: a CLI family with its own command.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct RuntimeProfile {
    /// Echoed as `profile_id` when its runtime is registered.
    pub id: String,
    /// Base of the runtime's name.
    #[serde(default, deserialize_with = "lenient::field")]
    pub display_name: String,
    /// The CLI family to drive it as.
    #[serde(default, deserialize_with = "lenient::field")]
    pub protocol_family: String,
    /// Executable, to be found on the path.
    #[serde(default, deserialize_with = "lenient::field")]
    pub command_name: String,
    /// Arguments before all others.
    #[serde(default, deserialize_with = "lenient::list")]
    pub fixed_args: Vec<String>,
    /// Who sees it; informational.
    #[serde(default, deserialize_with = "lenient::field")]
    pub visibility: String,
    /// Whether it is in use; the server lists no others, so that one that does not say is.
    #[serde(default = "yes", deserialize_with = "unless_no")]
    pub enabled: bool,
}

const fn yes() -> bool {
    true
}

fn unless_no<'de, D: Deserializer<'de>>(from: D) -> Result<bool, D::Error> {
    lenient::field::<D, Option<bool>>(from).map(|said| said.unwrap_or(true))
}

/// Reads the reply to `runtime-profiles`.
///
/// # Errors
/// If it is no object with a list `runtime_profiles` (which may be `null`).
pub fn runtime_profiles(text: &str) -> Result<Readable<RuntimeProfile>, DecodeError> {
    #[derive(Deserialize)]
    struct Reply<'a> {
        #[serde(borrow, deserialize_with = "json::nullable")]
        runtime_profiles: Vec<&'a RawValue>,
    }
    json::decode::<Reply<'_>>(text, "an object with a list `runtime_profiles`")
        .map(|reply| Readable::read(&reply.runtime_profiles))
}

/// Registers all runtimes of this machine in one workspace.
#[derive(Clone, Debug, Serialize)]
pub struct RegisterRequest {
    /// The workspace.
    pub workspace_id: WorkspaceId,
    /// This machine, not empty.
    pub daemon_id: String,
    /// Earlier ids of this machine, whose runtimes are merged into the new ones.
    #[serde(serialize_with = "json::null_if_empty")]
    pub legacy_daemon_ids: Vec<String>,
    /// Shown name of the machine.
    pub device_name: String,
    /// Version that the server's gates look at.
    pub cli_version: String,
    /// `desktop` if an app owns the daemon, else empty.
    pub launched_by: String,
    /// Runtimes; this or `failed_profiles` must not be empty.
    #[serde(serialize_with = "json::null_if_empty")]
    pub runtimes: Vec<OfferedRuntime>,
    /// Profiles that cannot be used here.
    #[serde(serialize_with = "json::null_if_empty")]
    pub failed_profiles: Vec<FailedProfile>,
}

/// A runtime to register.
#[derive(Clone, Debug, Serialize)]
pub struct OfferedRuntime {
    /// Shown name.
    pub name: String,
    /// The CLI family, in lower case.
    #[serde(rename = "type")]
    pub provider: String,
    /// The CLI's own version line.
    pub version: String,
    /// `online` or `offline`.
    pub status: &'static str,
    /// The profile it is made from, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profile_id: Option<String>,
}

/// A profile that cannot be used on this machine.
#[derive(Clone, Debug, Serialize)]
pub struct FailedProfile {
    /// Which.
    pub profile_id: String,
    /// The command that was looked for.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub command_name: String,
    /// Why it cannot be used.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

/// A runtime as the server registered it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct RegisteredRuntime {
    /// Its id.
    pub id: RuntimeId,
    /// Shown name.
    #[serde(default, deserialize_with = "lenient::field")]
    pub name: String,
    /// The CLI family.
    #[serde(default, deserialize_with = "lenient::field")]
    pub provider: String,
    /// `online` or `offline`.
    #[serde(default, deserialize_with = "lenient::field")]
    pub status: String,
    /// The profile; `None` for a built-in one.
    #[serde(default, deserialize_with = "lenient::field")]
    pub profile_id: Option<String>,
}

/// What a registration brought.
#[derive(Clone, Debug)]
pub struct RegisterReply {
    /// Runtimes in the order of the request.
    pub runtimes: Readable<RegisteredRuntime>,
    /// The workspace's repositories.
    pub repos: Repos,
}

/// Repositories of a workspace, and the settings about them.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Repos {
    /// Those that agents may check out.
    #[serde(deserialize_with = "lenient::list")]
    pub repos: Vec<Repo>,
    /// Changes when the list does; opaque.
    #[serde(deserialize_with = "lenient::field")]
    pub repos_version: String,
    /// Settings about them.
    #[serde(deserialize_with = "lenient::field")]
    pub settings: RepoSettings,
}

/// Settings of a workspace about its repositories.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct RepoSettings {
    #[serde(deserialize_with = "lenient::field")]
    github_enabled: Option<bool>,
    #[serde(deserialize_with = "lenient::field")]
    co_authored_by_enabled: Option<bool>,
}

impl RepoSettings {
    /// Whether commits name the agent as a co-author: unless one of the two settings says no.
    pub fn names_co_author(&self) -> bool {
        self.github_enabled.unwrap_or(true) && self.co_authored_by_enabled.unwrap_or(true)
    }
}

impl RegisterReply {
    /// Reads the reply.
    ///
    /// # Errors
    /// If it is no object with a list `runtimes` (which may be `null`).
    pub fn decode(text: &str) -> Result<Self, DecodeError> {
        const SHAPE: &str = "an object with a list `runtimes`";
        #[derive(Deserialize)]
        struct Reply<'a> {
            #[serde(borrow, deserialize_with = "json::nullable")]
            runtimes: Vec<&'a RawValue>,
        }
        let reply: Reply<'_> = json::decode(text, SHAPE)?;
        Ok(Self { runtimes: Readable::read(&reply.runtimes), repos: json::decode(text, SHAPE)? })
    }
}

/// Says that runtimes are gone.
#[derive(Clone, Debug, Serialize)]
pub struct DeregisterRequest<'a> {
    /// Which; not empty.
    pub runtime_ids: &'a [RuntimeId],
    /// Why, where the reason is not that the daemon ends.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub offline_reasons: BTreeMap<RuntimeId, OfflineReason>,
}

/// Why a runtime cannot work here.
#[derive(Clone, Debug, Serialize)]
pub struct OfflineReason {
    /// `not_executable` is the one that the server knows.
    pub code: &'static str,
    /// In words.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub detail: String,
    /// How a person repairs it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repair: Option<Repair>,
}

/// A command that a person is shown.
#[derive(Clone, Debug, Serialize)]
pub struct Repair {
    /// The package to install.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub package: String,
    /// The command.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub command: String,
    /// The shell it is for.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub shell: String,
}

/// What became of tasks that an earlier process left behind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Recovered {
    /// How many there were.
    #[serde(deserialize_with = "lenient::field")]
    pub orphaned: u64,
    /// How many are tried again.
    #[serde(deserialize_with = "lenient::field")]
    pub retried: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_that_cannot_be_read_are_counted() {
        let list: Readable<Workspace> =
            Readable::list(r#"[{"id":"w","name":7},{"name":"no id"},null,{"id":"v","name":"V","x":1}]"#)
                .expect("a list");
        let ids: Vec<_> = list.items.iter().map(|workspace| workspace.id.as_str()).collect();
        assert_eq!((ids, list.unusable), (vec!["w", "v"], 2));
        assert!(Readable::<Workspace>::list("{}").is_err());
    }

    #[test]
    fn a_registration_is_read_with_its_settings() {
        let reply = RegisterReply::decode(
            r#"{"runtimes":[{"id":"r","provider":"claude","profile_id":null},{"id":4}],
                "repos":[{"url":"u"}],"repos_version":"1","settings":{"co_authored_by_enabled":false}}"#,
        )
        .expect("a reply");
        assert_eq!(reply.runtimes.items[0].id.as_str(), "r");
        assert_eq!(reply.runtimes.unusable, 1);
        assert_eq!(reply.repos.repos[0].url, "u");
        assert!(!reply.repos.settings.names_co_author());
        let bare = RegisterReply::decode(r#"{"runtimes":[],"settings":null}"#).expect("a reply");
        assert!(bare.repos.settings.names_co_author());
        assert!(RegisterReply::decode("{}").is_err());
    }

    #[test]
    fn custom_runtimes_are_read_one_by_one_and_are_in_use_unless_they_say_no() {
        let text = r#"{"workspace_id":"w","runtime_profiles":[
            {"id":"a","display_name":"A","protocol_family":"claude","command_name":"a","fixed_args":["x",1],"enabled":true},
            {"id":"b","fixed_args":null},{"id":"c","enabled":false},{"id":"d","enabled":"odd"},{"display_name":"no id"},7]}"#;
        let read = runtime_profiles(text).expect("a reply");
        let enabled: Vec<_> = read.items.iter().map(|one| (one.id.as_str(), one.enabled)).collect();
        assert_eq!(enabled, [("a", true), ("b", true), ("c", false), ("d", true)]);
        assert_eq!((read.unusable, read.items[0].fixed_args.as_slice()), (2, &["x".to_owned()][..]));
        assert!(runtime_profiles("[]").is_err());
        let none = runtime_profiles(r#"{"runtime_profiles":null}"#).expect("a reply");
        assert_eq!((none.items.len(), none.unusable), (0, 0));
    }

    #[test]
    fn a_reason_names_its_runtime_and_leaves_out_what_is_empty() {
        let reason = OfflineReason {
            code: "not_executable",
            detail: String::new(),
            repair: Some(Repair {
                package: String::new(),
                command: "chmod +x x".into(),
                shell: String::new(),
            }),
        };
        let request = DeregisterRequest {
            runtime_ids: &[RuntimeId::new("r")],
            offline_reasons: BTreeMap::from([(RuntimeId::new("r"), reason)]),
        };
        assert_eq!(
            serde_json::to_string(&request).expect("json"),
            r#"{"runtime_ids":["r"],"offline_reasons":{"r":{"code":"not_executable","repair":{"command":"chmod +x x"}}}}"#
        );
    }
}
