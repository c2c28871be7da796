//! The MCP servers that the user of an agent CLI has configured: their names and kinds. Commands, addresses and values, which may hold
//! secrets, never leave the machine.

use super::places::{Places, json, settings};
use crate::actions::shown;
use crate::wire::action::McpServer;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;

/// Servers in one list, and bytes of a name.
const MOST: usize = 256;
const LONGEST_NAME: usize = 256;

/// All of them, and whether it is known where this agent CLI has them.
pub(super) fn servers(places: &Places, provider: &str) -> (Vec<McpServer>, bool) {
    let (home, env) = (&places.home, &places.env);
    let or = |variable: &str, below: &str| env.path(variable).unwrap_or_else(|| home.join(below));
    let mut found = Found { servers: Vec::new(), names: BTreeSet::new(), home };
    match provider {
        "claude" => {
            let path = home.join(".claude.json");
            found.add(&json(&path)["mcpServers"], &path);
            for (_, plugin) in &places.plugins {
                let path = plugin.join(".mcp.json");
                let file = json(&path);
                found.add(file.get("mcpServers").unwrap_or(&file), &path);
            }
        }
        "codex" => {
            let path = or("CODEX_HOME", ".codex").join("config.toml");
            found.add(&codex(&path), &path);
        }
        "cursor" => {
            let path = home.join(".cursor/mcp.json");
            found.add(&json(&path)["mcpServers"], &path);
        }
        "opencode" => {
            let path = or("XDG_CONFIG_HOME", ".config").join("opencode/opencode.json");
            found.add(&json(&path)["mcp"], &path);
        }
        "openclaw" => {
            let state = || or("OPENCLAW_STATE_DIR", ".openclaw").join("openclaw.json");
            let path = env.path("CLAWDBOT_CONFIG_PATH").unwrap_or_else(state);
            found.add(&json(&path)["mcp"]["servers"], &path);
        }
        "codebuddy" => {
            let own = or("CODEBUDDY_CONFIG_DIR", ".codebuddy");
            for path in [own.join(".mcp.json"), own.join("mcp.json"), home.join(".codebuddy.json")] {
                found.add(&commented(&path)["mcpServers"], &path);
            }
        }
        "kimi" => {
            let path = or("KIMI_CODE_HOME", ".kimi-code").join("mcp.json");
            found.add(&json(&path)["mcpServers"], &path);
        }
        _ => return (Vec::new(), false),
    }
    (found.servers, true)
}

struct Found<'a> {
    servers: Vec<McpServer>,
    names: BTreeSet<String>,
    home: &'a Path,
}

impl Found<'_> {
    /// Takes those of one file; the first of a name counts.
    fn add(&mut self, listed: &Value, path: &Path) {
        for (name, server) in listed.as_object().into_iter().flatten() {
            let fits = server.is_object() && !name.is_empty() && name.len() <= LONGEST_NAME;
            if !fits || self.servers.len() >= MOST || !self.names.insert(name.clone()) {
                continue;
            }
            let off =
                server["enabled"].as_bool() == Some(false) || server["disabled"].as_bool() == Some(true);
            self.servers.push(McpServer {
                name: name.clone(),
                transport: Some(transport(server)),
                source: Some(shown(path, self.home)),
                enabled: !off,
            });
        }
    }
}

fn transport(server: &Value) -> &'static str {
    let said = server["type"].as_str().or_else(|| server["transport"].as_str()).unwrap_or_default();
    match said.to_ascii_lowercase().as_str() {
        "stdio" | "local" => "stdio",
        "sse" => "sse",
        "http" | "remote" | "streamable-http" | "streamable_http" | "streamablehttp" => "http",
        _ if server.get("command").is_some() => "stdio",
        _ if server.get("url").is_some() => "http",
        _ => "unknown",
    }
}

/// The table `mcp_servers`, with as much of each as tells its kind.
fn codex(path: &Path) -> Value {
    let text = settings(path).unwrap_or_default();
    let Ok(document) = text.parse::<toml_edit::DocumentMut>() else { return Value::Null };
    let Some(tables) = document.get("mcp_servers").and_then(toml_edit::Item::as_table_like) else {
        return Value::Null;
    };
    let server = |item: &toml_edit::Item| {
        let text = |key: &str| item.get(key).and_then(toml_edit::Item::as_str).map(Value::from);
        let on = item.get("enabled").and_then(toml_edit::Item::as_bool).map(Value::from);
        let known =
            [("type", text("type")), ("command", text("command")), ("url", text("url")), ("enabled", on)];
        known.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))).collect::<Value>()
    };
    tables.iter().map(|(name, item)| (name.to_owned(), server(item))).collect()
}

/// JSON in which people may have written comments.
fn commented(path: &Path) -> Value {
    let text = settings(path).unwrap_or_default();
    serde_json::from_str(&without_comments(&text)).unwrap_or(Value::Null)
}

fn without_comments(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(['"', '/']) {
        plain.push_str(&rest[..at]);
        rest = &rest[at..];
        if let Some(comment) = rest.strip_prefix("//") {
            rest = &comment[comment.find('\n').unwrap_or(comment.len())..];
        } else if let Some(comment) = rest.strip_prefix("/*") {
            rest = comment.split_once("*/").map_or("", |(_, after)| after);
            plain.push(' ');
        } else if rest.starts_with('"') {
            let mut escaped = false;
            let ends = |c: char| {
                let ends = c == '"' && !escaped;
                escaped = c == '\\' && !escaped;
                ends
            };
            let end = rest[1..].find(ends).map_or(rest.len(), |end| end + 2);
            plain.push_str(&rest[..end]);
            rest = &rest[end..];
        } else {
            plain.push('/');
            rest = &rest[1..];
        }
    }
    plain + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_go_and_texts_stay() {
        let text = "{ // one\n \"a//b\": \"c\\\"/*d\", /* two\n */ \"e\": 1/2 }";
        assert_eq!(without_comments(text), "{ \n \"a//b\": \"c\\\"/*d\",   \"e\": 1/2 }");
        assert_eq!(without_comments("{} /* open"), "{}  ");
    }

    #[test]
    fn the_kind_is_told_from_what_is_there() {
        for (server, kind) in [
            (r#"{"command":"npx"}"#, "stdio"),
            (r#"{"url":"https://x"}"#, "http"),
            (r#"{"type":"sse","url":"https://x"}"#, "sse"),
            (r#"{"type":"local","command":["x"]}"#, "stdio"),
            ("{}", "unknown"),
        ] {
            assert_eq!(transport(&serde_json::from_str(server).expect("JSON")), kind, "{server}");
        }
    }
}
