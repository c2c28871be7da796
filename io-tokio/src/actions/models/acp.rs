//! Agent CLIs that speak ACP: a session is opened in an empty directory, which names the models, and the program is ended before it does anything.

use super::levels::{levels, thinking};
use super::{Cli, first_object, named};
use crate::config::Env;
use crate::discover::dialogue::{Dialogue, Next};
use crate::wire::action::{Level, Model};
use serde_json::{Value, json};
use std::path::Path;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(15);
/// The first version of Kimi that says how hard its models can be told to think.
const KIMI_EFFORTS: (u32, u32, u32) = (0, 29, 0);

/// How the program is started to speak ACP.
pub(super) fn args(provider: &str) -> &'static [&'static str] {
    match provider {
        "kiro" => &["acp", "--trust-all-tools"],
        "grok" => &["--no-auto-update", "agent", "--always-approve", "stdio"],
        "qoder" | "qoderclicn" => &["--yolo", "--acp"],
        "traecli" => &["acp", "serve", "--yolo"],
        "reasonix" => &[
            "acp",
            "--profile",
            "balanced",
            "--planner",
            "auto",
            "--sandbox-network",
            "auto",
            "--sandbox-bash",
            "auto",
            "--workspace-only",
        ],
        "copilot" | "codebuddy" => &["--acp"],
        _ => &["acp"],
    }
}

/// What it said before its session.
struct Opened {
    agent_version: String,
    session: Value,
}

pub(super) async fn ask(cli: Cli<'_>, provider: &str) -> Result<Vec<Model>, String> {
    let temp = tempfile::Builder::new().prefix("longshore-models-").tempdir();
    let temp = temp.map_err(|error| format!("no temporary directory could be made: {error}"))?;
    let opened = open(cli, provider, temp.path()).await;
    let cleared = tokio::task::spawn_blocking(move || temp.close()).await;
    if !matches!(cleared, Ok(Ok(()))) {
        tracing::debug!("a temporary directory is left behind");
    }
    let opened = opened?;
    let mut models = read(&opened.session);
    let efforts = efforts(&opened.session);
    match provider {
        "hermes" | "reasonix" | "dim" => {
            for model in models.iter_mut().filter(|model| model.default) {
                model.thinking = thinking(efforts.0.clone(), &efforts.1);
            }
        }
        // It says the same of all; what it lists is looked through by who knows its levels.
        "codebuddy" => {
            for model in &mut models {
                model.thinking = thinking(efforts.0.clone(), &efforts.1);
            }
        }
        "kimi" if crate::discover::version(&opened.agent_version).is_some_and(|it| it >= KIMI_EFFORTS) => {
            if let Ok(text) = cli.says(&["provider", "list", "--json"], LIMIT).await {
                kimi_efforts(&mut models, &text);
            }
        }
        _ => {}
    }
    Ok(models)
}

/// Opens a session. The answer is that of `session/new`.
async fn open(cli: Cli<'_>, provider: &str, cwd: &Path) -> Result<Opened, String> {
    let mut env: Env = cli.machine.env.clone();
    match provider {
        "hermes" => env.set("HERMES_YOLO_MODE", "1"),
        "reasonix" => env.set("REASONIX_STATE_HOME", cwd.join("state")),
        _ => {}
    }
    let work = cwd.join("work");
    std::fs::create_dir(&work).map_err(|error| format!("no temporary directory could be made: {error}"))?;
    let key = env.raw("XAI_API_KEY").is_some_and(|key| !key.is_empty());
    let ours = args(provider);
    let argv = cli.argv(ours);
    let talk =
        Dialogue { program: &cli.program.path, args: &argv, env: &env, cwd: Some(&work), limit: LIMIT };
    let call = |id: u8, method: &str, params: Value| {
        json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string()
    };
    let client = json!({ "name": "multica-model-discovery", "version": "0.1.0" });
    let hello = json!({ "protocolVersion": 1, "clientInfo": client, "clientCapabilities": {} });
    let session = json!({ "cwd": work, "mcpServers": [] });
    let mut agent_version = String::new();
    let heard = |line: &str| {
        let Ok(frame) = serde_json::from_str::<Value>(line) else { return Next::Wait };
        if frame.get("method").is_some() {
            // What it asks for is not there: no file, no terminal, no permission.
            let refuse = frame.get("id").map(|id| {
                let error = json!({ "code": -32601, "message": "not supported" });
                json!({ "jsonrpc": "2.0", "id": id, "error": error }).to_string()
            });
            return refuse.map_or(Next::Wait, |refuse| Next::Say(vec![refuse]));
        }
        let id = frame["id"].as_f64();
        if let Some(error) = frame.get("error").filter(|error| !error.is_null()) {
            let message = error["message"].as_str().unwrap_or("no reason given");
            return Next::Done(Err(format!("it answers with an error: {}", head(message))));
        }
        match id {
            Some(0.0) => {
                let version = &frame["result"]["agentInfo"]["version"];
                version.as_str().unwrap_or_default().clone_into(&mut agent_version);
                if provider != "grok" {
                    return Next::Say(vec![call(2, "session/new", session.clone())]);
                }
                let offered = |id: &str| {
                    frame["result"]["authMethods"]
                        .as_array()
                        .is_some_and(|all| all.iter().any(|one| one["id"] == id))
                };
                let method = if key && offered("xai.api_key") {
                    "xai.api_key"
                } else if offered("cached_token") {
                    "cached_token"
                } else {
                    return Next::Done(Err("nobody is signed in to it".to_owned()));
                };
                let how = json!({ "methodId": method, "_meta": { "headless": true } });
                Next::Say(vec![call(1, "authenticate", how)])
            }
            Some(1.0) => Next::Say(vec![call(2, "session/new", session.clone())]),
            Some(2.0) => Next::Done(Ok(frame["result"].clone())),
            _ => Next::Wait,
        }
    };
    let answer = talk.ask(vec![call(0, "initialize", hello)], heard).await;
    let answer = answer.map_err(|error| cli.failure(ours, &error))?;
    let session =
        answer.ok_or_else(|| format!("`{}` ended before it named its models", cli.call(ours)))??;
    Ok(Opened { agent_version, session })
}

/// The head of a text that somebody else wrote.
fn head(text: &str) -> String {
    text.chars().take(200).collect()
}

/// One of two spellings.
fn either<'a>(value: &'a Value, camel: &str, snake: &str) -> &'a Value {
    value.get(camel).unwrap_or(&value[snake])
}

fn read(session: &Value) -> Vec<Model> {
    let models = &session["models"];
    let current = either(models, "currentModelId", "current_model_id");
    let listed = either(models, "availableModels", "available_models").as_array();
    let mut found: Vec<Model> = listed
        .into_iter()
        .flatten()
        .filter_map(|listed| model(either(listed, "modelId", "model_id"), &listed["name"], current))
        .collect();
    if found.is_empty()
        && let Some(option) = options(session).find(|option| is_about(option, &["model"]))
    {
        let current = either(option, "currentValue", "current_value");
        let listed = option["options"].as_array().into_iter().flatten();
        found = listed.filter_map(|one| model(&one["value"], &one["name"], current)).collect();
    }
    found
}

fn model(id: &Value, name: &Value, current: &Value) -> Option<Model> {
    let id = id.as_str().map(str::trim).filter(|id| !id.is_empty())?;
    let name = name.as_str().unwrap_or_default().trim();
    let name = if name.eq_ignore_ascii_case("unknown") { "" } else { name };
    let provider = id.split_once(':').map_or("", |(provider, _)| provider).to_owned();
    Some(Model { provider, default: current.as_str() == Some(id), ..named(id, name) })
}

fn options(session: &Value) -> impl Iterator<Item = &Value> {
    either(session, "configOptions", "config_options").as_array().into_iter().flatten()
}

fn is_about(option: &Value, names: &[&str]) -> bool {
    ["id", "category"].iter().any(|key| {
        option[*key].as_str().is_some_and(|it| names.iter().any(|name| it.eq_ignore_ascii_case(name)))
    })
}

/// How hard the session can be told to think, and how hard it does.
fn efforts(session: &Value) -> (Vec<Level>, String) {
    let Some(option) = options(session).find(|option| is_about(option, &["effort", "thought_level"])) else {
        return (Vec::new(), String::new());
    };
    let mut values: Vec<&str> = Vec::new();
    for value in option["options"].as_array().into_iter().flatten().filter_map(|one| one["value"].as_str()) {
        if !value.trim().is_empty() && !values.contains(&value) {
            values.push(value);
        }
    }
    let current = either(option, "currentValue", "current_value").as_str().unwrap_or_default();
    (levels(values), current.to_owned())
}

fn kimi_efforts(models: &mut [Model], text: &str) {
    let Some(listed) = first_object(text) else { return };
    for model in models {
        let Some(told) = listed["models"].get(&model.id) else { continue };
        let values = either(told, "supportEfforts", "support_efforts").as_array().into_iter().flatten();
        let default = either(told, "defaultEffort", "default_effort").as_str().unwrap_or_default();
        model.thinking = thinking(levels(values.filter_map(Value::as_str)), default);
    }
}
