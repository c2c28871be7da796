//! Heartbeats, and what the server asks for in its replies. Over HTTP and over the control link they are alike.

use super::{json, lenient};
use longshore_core::id::RuntimeId;
use serde::{Deserialize, Serialize};

/// Actions of one reply that are looked at. The server hands out at most ten imports at once.
pub const MAX_ACTIONS: usize = 32;

/// Says that a runtime is alive.
#[derive(Clone, Debug, Serialize)]
pub struct HeartbeatRequest<'a> {
    /// Which.
    pub runtime_id: &'a RuntimeId,
    /// Whether several imports may come with one reply.
    #[serde(skip_serializing_if = "json::is_false")]
    pub supports_batch_import: bool,
}

/// What the server says to a heartbeat.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct HeartbeatReply {
    /// The runtime; empty over HTTP.
    #[serde(deserialize_with = "lenient::field")]
    pub runtime_id: String,
    /// Whether the server has no such runtime any more. Such a reply is no sign of life.
    #[serde(deserialize_with = "lenient::field")]
    pub runtime_gone: bool,
    /// What the server understands; only over the control link.
    #[serde(deserialize_with = "lenient::list")]
    pub server_capabilities: Vec<String>,
    #[serde(deserialize_with = "lenient::field")]
    pending_update: Option<Update>,
    #[serde(deserialize_with = "lenient::field")]
    pending_model_list: Option<Id>,
    #[serde(deserialize_with = "lenient::field")]
    pending_local_skills: Option<Id>,
    #[serde(deserialize_with = "lenient::field")]
    pending_local_skill_import: Option<Import>,
    #[serde(deserialize_with = "lenient::list")]
    pending_local_skill_imports: Vec<Import>,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
struct Id {
    id: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
struct Update {
    id: String,
    #[serde(default, deserialize_with = "lenient::field")]
    target_version: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
struct Import {
    id: String,
    #[serde(default, deserialize_with = "lenient::field")]
    skill_key: String,
}

/// Something that the server asks of a runtime. It is handed out once: a reply that is thrown away loses it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Update the program.
    Update {
        /// Of the request, for the answer.
        id: String,
        /// To which version; may be empty.
        target_version: String,
    },
    /// Say which models there are.
    ListModels {
        /// Of the request, for the answer.
        id: String,
    },
    /// Say which skills are installed here.
    ListSkills {
        /// Of the request, for the answer.
        id: String,
    },
    /// Upload a skill that is installed here.
    ImportSkill {
        /// Of the request, for the answer.
        id: String,
        /// Which.
        skill_key: String,
    },
}

impl HeartbeatReply {
    /// Whether the server takes requests over the control link.
    pub fn speaks_rpc(&self) -> bool {
        self.server_capabilities.iter().any(|capability| capability == "rpc-v1")
    }

    /// What is asked for, at most [`MAX_ACTIONS`]. The single import only counts if there is no list of them, whose
    /// first element it repeats.
    pub fn into_actions(self) -> Vec<Action> {
        let single = self.pending_local_skill_import.filter(|_| self.pending_local_skill_imports.is_empty());
        let update = self
            .pending_update
            .map(|update| Action::Update { id: update.id, target_version: update.target_version });
        let imports = self.pending_local_skill_imports.into_iter().chain(single);
        update
            .into_iter()
            .chain(self.pending_model_list.map(|asked| Action::ListModels { id: asked.id }))
            .chain(self.pending_local_skills.map(|asked| Action::ListSkills { id: asked.id }))
            .chain(imports.map(|import| Action::ImportSkill { id: import.id, skill_key: import.skill_key }))
            .take(MAX_ACTIONS)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_action_is_read_and_the_plural_wins() {
        let reply: HeartbeatReply = serde_json::from_str(
            r#"{"status":"ok","pending_update":{"id":"u","target_version":"v1"},"pending_model_list":{"id":"m"},
                "pending_local_skills":{"id":"s"},"pending_local_skill_import":{"id":"i1","skill_key":"a"},
                "pending_local_skill_imports":[{"id":"i1","skill_key":"a"},{"no":1},{"id":"i2","skill_key":"b"}]}"#,
        )
        .expect("a reply");
        let ids: Vec<_> = reply
            .into_actions()
            .into_iter()
            .map(|action| match action {
                Action::Update { id, target_version } => id + &target_version,
                Action::ListModels { id } | Action::ListSkills { id } => id,
                Action::ImportSkill { id, skill_key } => id + &skill_key,
            })
            .collect();
        assert_eq!(ids, ["uv1", "m", "s", "i1a", "i2b"]);
    }

    #[test]
    fn wrong_types_ask_for_nothing() {
        let reply: HeartbeatReply = serde_json::from_str(
            r#"{"pending_update":7,"pending_model_list":{"id":1},"pending_local_skill_imports":{},"runtime_gone":"yes"}"#,
        )
        .expect("lenient");
        assert!(!reply.runtime_gone);
        assert!(reply.into_actions().is_empty());
    }

    #[test]
    fn actions_are_bounded() {
        let imports: Vec<_> = (0..100).map(|n| format!(r#"{{"id":"{n}","skill_key":"k"}}"#)).collect();
        let text = format!(r#"{{"pending_local_skill_imports":[{}]}}"#, imports.join(","));
        let reply: HeartbeatReply = serde_json::from_str(&text).expect("a reply");
        assert_eq!(reply.into_actions().len(), MAX_ACTIONS);
    }
}
