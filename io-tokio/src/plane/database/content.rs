//! A task's texts as they are in the file. Secrets are among them: the file is for its owner alone.

use crate::plane::content::{Comment, Content};
use crate::secret::Secret;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

#[derive(Deserialize, Serialize)]
#[serde(default)]
#[derive(Default)]
struct Stored {
    agent_name: String,
    instructions: String,
    thread_name: String,
    model: String,
    custom_args: Vec<String>,
    custom_env: BTreeMap<String, String>,
    comments: Vec<Comment>,
    agent_fields: Map<String, Value>,
    task_fields: Map<String, Value>,
}

pub(in crate::plane) fn write_content(of: &Content) -> Vec<u8> {
    let env = of.custom_env.iter().map(|(name, value)| (name.clone(), value.expose().to_owned()));
    let stored = Stored {
        agent_name: of.agent_name.clone(),
        instructions: of.instructions.clone(),
        thread_name: of.thread_name.clone(),
        model: of.model.clone(),
        custom_args: of.custom_args.clone(),
        custom_env: env.collect(),
        comments: of.comments.clone(),
        agent_fields: of.agent_fields.clone(),
        task_fields: of.task_fields.clone(),
    };
    // Maps with text keys and nothing that can fail.
    serde_json::to_vec(&stored).unwrap_or_default()
}

pub(in crate::plane) fn read_content(from: &[u8]) -> Result<Content, serde_json::Error> {
    let stored: Stored = serde_json::from_slice(from)?;
    let env = stored.custom_env.into_iter().map(|(name, value)| (name, Secret::new(value)));
    Ok(Content {
        agent_name: stored.agent_name,
        instructions: stored.instructions,
        thread_name: stored.thread_name,
        model: stored.model,
        custom_args: stored.custom_args,
        custom_env: env.collect(),
        comments: stored.comments,
        agent_fields: stored.agent_fields,
        task_fields: stored.task_fields,
    })
}
