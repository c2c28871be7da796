//! Request bodies, as strict and as lenient as the real server: unknown fields are ignored, null is as if the field were
//! not there, a wrong type or an empty body refuses the request.

use super::reply::Refused;
use longshore_core::plane::{Text, Usage};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// Reads the first JSON value of a body.
pub(super) fn decode<T: DeserializeOwned>(body: &[u8]) -> Result<T, Refused> {
    let mut from = serde_json::Deserializer::from_slice(body);
    T::deserialize(&mut from).map_err(|why| Refused::new(400, format!("invalid request body: {why}")))
}

fn nullable<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(from: D) -> Result<T, D::Error> {
    Option::<T>::deserialize(from).map(Option::unwrap_or_default)
}

/// A text without NUL, which the real server strips.
fn text<'de, D: Deserializer<'de>>(from: D) -> Result<Text, D::Error> {
    let given: String = nullable(from)?;
    Ok(if given.contains('\0') { given.replace('\0', "").into() } else { given.into() })
}

macro_rules! bodies {
    ($($(#[$doc:meta])* $name:ident { $($(#[$attr:meta])* $field:ident: $type:ty = $with:literal,)* })*) => {$(
        $(#[$doc])*
        #[derive(Debug, Default, Deserialize)]
        #[serde(default)]
        pub(super) struct $name { $($(#[$attr])* #[serde(deserialize_with = $with)] pub(super) $field: $type,)* }
    )*};
}

bodies! {
    /// `register`.
    Register {
        workspace_id: String = "nullable",
        daemon_id: Text = "text",
        device_name: Text = "text",
        cli_version: Text = "text",
        launched_by: Text = "text",
        legacy_daemon_ids: Vec<Text> = "nullable",
        runtimes: Vec<RegisterRuntime> = "nullable",
        failed_profiles: Vec<RegisterFailed> = "nullable",
    }
    /// One CLI of it.
    RegisterRuntime {
        name: Text = "text",
        r#type: Text = "text",
        version: Text = "text",
        status: String = "nullable",
        profile_id: String = "nullable",
    }
    /// One profile of it that cannot be used.
    RegisterFailed {
        profile_id: String = "nullable",
        command_name: Text = "text",
        reason: Text = "text",
    }
    /// `deregister`.
    Deregister {
        runtime_ids: Vec<String> = "nullable",
        offline_reasons: BTreeMap<String, Reason> = "nullable",
    }
    /// Why a runtime goes offline.
    Reason {
        code: Text = "text",
        detail: Text = "text",
        repair: Option<Mend> = "nullable",
    }
    /// What mends it.
    Mend {
        package: Text = "text",
        command: Text = "text",
        shell: Text = "text",
    }
    /// `skill-bundles/resolve`.
    Resolve { skills: Vec<WantedSkill> = "nullable", }
    /// One skill of it.
    WantedSkill {
        id: String = "nullable",
        source: String = "nullable",
        hash: String = "nullable",
    }
    /// `heartbeat`.
    Heartbeat { runtime_id: String = "nullable", }
    /// The batch claim.
    Claim {
        daemon_id: String = "nullable",
        runtime_ids: Vec<String> = "nullable",
        max_tasks: i64 = "nullable",
    }
    /// `wait-local-directory`.
    Wait { reason: Text = "text", }
    /// `progress`.
    Progress {
        summary: Text = "text",
        step: i64 = "nullable",
        total: i64 = "nullable",
    }
    /// `messages`.
    Messages { messages: Vec<OneMessage> = "nullable", }
    /// One of them.
    OneMessage {
        seq: i32 = "nullable",
        r#type: Text = "text",
        tool: Text = "text",
        content: Text = "text",
        input: Option<Map<String, Value>> = "nullable",
        output: Text = "text",
    }
    /// `session`.
    Session { session_id: String = "nullable", work_dir: String = "nullable", }
    /// `usage`.
    UsageReport { usage: Vec<UsageRow> = "nullable", }
    /// One row of it.
    UsageRow {
        provider: Text = "text",
        model: Text = "text",
        input_tokens: i64 = "nullable",
        output_tokens: i64 = "nullable",
        cache_read_tokens: i64 = "nullable",
        cache_write_tokens: i64 = "nullable",
        cost_usd_ticks: i64 = "nullable",
    }
    /// `complete`, `fail` and `cancel-ack`: each uses its own part of it.
    Ending {
        output: Text = "text",
        pr_url: Text = "text",
        error: Text = "text",
        error_message: Text = "text",
        failure_reason: Text = "text",
        session_id: Text = "text",
        work_dir: Text = "text",
        durable_work_dir: Text = "text",
        branch_name: Text = "text",
        session_rollout_missing: bool = "nullable",
        retired_session_id: Text = "text",
    }
    /// The batch of gc-checks.
    GcCheck { issue_ids: Vec<String> = "nullable", }
    /// A WebSocket frame.
    Frame { r#type: String = "nullable", payload: Value = "nullable", }
    /// The payload of an RPC request.
    Rpc {
        request_id: String = "nullable",
        method: String = "nullable",
        body: Value = "nullable",
    }
}

impl From<UsageRow> for Usage {
    fn from(row: UsageRow) -> Self {
        Self {
            provider: row.provider,
            model: row.model,
            input_tokens: row.input_tokens,
            output_tokens: row.output_tokens,
            cache_read_tokens: row.cache_read_tokens,
            cache_write_tokens: row.cache_write_tokens,
            cost_usd_ticks: Some(row.cost_usd_ticks).filter(|ticks| *ticks > 0),
        }
    }
}
