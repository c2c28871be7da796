//! Files for the claude CLI and those that take the same flags: settings that hide skills, and MCP servers.

use super::beneath::{Dir, read_bounded};
use super::error::{At, PrepareError};
use super::job::HiddenSkill;
use super::layout::{CLAUDE_SETTINGS, MCP_CONFIG, PRIVATE_FILE};
use super::skill::Placed;
use serde::Serialize;
use serde_json::value::RawValue;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::path::{Component, Path, PathBuf};

/// Largest `~/.claude.json` that is read, in bytes; it has histories in it.
const MAX_USER_CONFIG: u64 = 64 * 1024 * 1024;

/// Whether the provider takes `--mcp-config <file>`.
pub(super) fn takes_mcp_file(provider: &str) -> bool {
    matches!(provider, "claude" | "codebuddy" | "qwen")
}

/// Writes the settings that hide skills, or removes old ones; the file if there is one. A skill of the workspace with
/// the same name wins over a hidden one.
pub(super) fn settings(
    env_root: &Dir,
    hidden: &[HiddenSkill],
    skills: &[Placed],
) -> Result<Option<PathBuf>, PrepareError> {
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Settings {
        skill_overrides: BTreeMap<String, &'static str>,
        permissions: Permissions,
    }
    #[derive(Serialize)]
    struct Permissions {
        deny: Vec<String>,
    }
    let mut overrides = BTreeMap::new();
    let mut denied = BTreeSet::new();
    for skill in hidden {
        let Some(name) =
            key_name(&skill.key).or_else(|| (!skill.name.is_empty()).then_some(skill.name.as_str()))
        else {
            continue;
        };
        if skill.plugin.is_empty() {
            if !skills.iter().any(|placed| placed.slug == name) {
                overrides.insert(name.to_owned(), "off");
                denied.insert(name.to_owned());
            }
        } else if !skill.key.is_empty() {
            let qualified = format!("{}:", skill.plugin);
            denied.insert(if name.starts_with(&qualified) { name.to_owned() } else { qualified + name });
        }
    }
    let path = env_root.path().join(CLAUDE_SETTINGS);
    if denied.is_empty() {
        env_root.unlink(CLAUDE_SETTINGS).at("remove", &path)?;
        return Ok(None);
    }
    let deny =
        denied.iter().flat_map(|name| [format!("Skill({name})"), format!("Skill({name} *)")]).collect();
    let settings = Settings { skill_overrides: overrides, permissions: Permissions { deny } };
    let bytes =
        serde_json::to_vec(&settings).map_err(|error| PrepareError::Job { reason: error.to_string() })?;
    env_root.replace(CLAUDE_SETTINGS, &bytes, PRIVATE_FILE).at("write", &path)?;
    Ok(Some(path))
}

/// The last part of a key that goes only down: the folder's name, which is the skill's.
fn key_name(key: &str) -> Option<&str> {
    let path = Path::new(key);
    let plain = path.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
    if plain { path.file_name()?.to_str() } else { None }
}

/// Writes the agent's MCP servers for `--mcp-config`, with the user's own ones of claude below them; or removes old
/// ones. The file if there is one.
pub(super) fn mcp_config(
    env_root: &Dir,
    provider: &str,
    config: Option<&str>,
    home: Option<&Path>,
    warnings: &mut Vec<String>,
) -> Result<Option<PathBuf>, PrepareError> {
    let path = env_root.path().join(MCP_CONFIG);
    let Some(config) = config.filter(|_| takes_mcp_file(provider)) else {
        env_root.unlink(MCP_CONFIG).at("remove", &path)?;
        return Ok(None);
    };
    let mut merged = None;
    if let (true, Some(home)) = (provider == "claude", home) {
        match with_users_servers(config, home) {
            Ok(text) => merged = text,
            Err(reason) => warnings.push(format!("the user's own MCP servers are left out: {reason}")),
        }
    }
    env_root
        .replace(MCP_CONFIG, merged.as_deref().unwrap_or(config).as_bytes(), PRIVATE_FILE)
        .at("write", &path)?;
    Ok(Some(path))
}

type Object = BTreeMap<String, Box<RawValue>>;

/// The config with the servers of `~/.claude.json` added where their names are free; `None` if there are none.
fn with_users_servers(config: &str, home: &Path) -> Result<Option<String>, String> {
    let path = home.join(".claude.json");
    let file = match File::open(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(format!("{}: {error}", path.display())),
    };
    // Texts of JSON errors can quote what is in the file.
    let unclear = |what: &str| format!("{what} is not as expected");
    let bytes =
        read_bounded(file, MAX_USER_CONFIG).map_err(|error| format!("{}: {error}", path.display()))?;
    let user: Object = serde_json::from_slice(&bytes).map_err(|_| unclear(&path.display().to_string()))?;
    let Some(users) = user.get("mcpServers") else { return Ok(None) };
    let mut servers: Object =
        serde_json::from_str(users.get()).map_err(|_| unclear("mcpServers of the user"))?;
    if servers.is_empty() {
        return Ok(None);
    }
    let mut config: Object =
        serde_json::from_str(config).map_err(|_| unclear("the agent's MCP configuration"))?;
    if let Some(own) = config.get("mcpServers") {
        let own: Object = serde_json::from_str(own.get()).map_err(|_| unclear("mcpServers of the agent"))?;
        servers.extend(own);
    }
    let merged =
        serde_json::value::to_raw_value(&servers).map_err(|_| unclear("the merged configuration"))?;
    config.insert("mcpServers".to_owned(), merged);
    serde_json::to_string(&config).map(Some).map_err(|_| unclear("the merged configuration"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    fn hidden(key: &str, plugin: &str) -> HiddenSkill {
        HiddenSkill { key: key.into(), name: String::new(), plugin: plugin.into() }
    }

    #[test]
    fn hidden_skills_are_turned_off_and_denied_and_the_file_goes_when_none_is_left() {
        let temp = tempfile::tempdir().expect("temp");
        let root = Dir::open(temp.path()).expect("open");
        let placed = Placed { slug: "mine".into(), is_listed: true, files: Vec::new() };
        let list = [
            hidden("group/foo", ""),
            hidden("bar", "kit"),
            hidden("mine", ""),
            hidden("../x", ""),
            hidden("/abs", ""),
        ];
        let path = settings(&root, &list, &[placed]).expect("written").expect("a file");
        assert_eq!(
            fs::read_to_string(&path).expect("file"),
            r#"{"skillOverrides":{"foo":"off"},"permissions":{"deny":["Skill(foo)","Skill(foo *)","Skill(kit:bar)","Skill(kit:bar *)"]}}"#
        );
        assert_eq!(fs::metadata(&path).expect("meta").permissions().mode() & 0o777, 0o600);
        assert_eq!(settings(&root, &[], &[]).expect("removed"), None);
        assert!(!path.exists());
    }

    #[test]
    fn mcp_1_and_2_nothing_is_written_for_none_and_the_users_servers_stay_below() {
        let temp = tempfile::tempdir().expect("temp");
        let root = Dir::open(temp.path()).expect("open");
        let home = temp.path().join("home");
        fs::create_dir(&home).expect("home");
        let mut warnings = Vec::new();
        let mut write = |config: Option<&str>| {
            mcp_config(&root, "claude", config, Some(&home), &mut warnings)
                .expect("ok")
                .map(|path| fs::read_to_string(path).expect("file"))
        };
        assert_eq!(write(None), None);
        assert_eq!(
            write(Some(r#"{"mcpServers":{"a":{"x":1}}}"#)).as_deref(),
            Some(r#"{"mcpServers":{"a":{"x":1}}}"#)
        );
        fs::write(home.join(".claude.json"), r#"{"mcpServers":{"a":{"user":1},"b":{"user":2}},"other":1}"#)
            .expect("user's");
        assert_eq!(
            write(Some(r#"{"mcpServers":{"a":{"x":1}}}"#)).as_deref(),
            Some(r#"{"mcpServers":{"a":{"x":1},"b":{"user":2}}}"#)
        );
        assert_eq!(write(Some("{}")).as_deref(), Some(r#"{"mcpServers":{"a":{"user":1},"b":{"user":2}}}"#));
        fs::write(home.join(".claude.json"), r#"{"mcpServers":"zzz"#).expect("broken");
        assert_eq!(write(Some("{}")).as_deref(), Some("{}"));
        assert_eq!(write(None), None);
        assert!(!temp.path().join(MCP_CONFIG).exists());
        assert!(warnings.len() == 1 && !warnings[0].contains("zzz"));
    }

    #[test]
    fn bug_48_the_mcp_file_is_private() {
        let temp = tempfile::tempdir().expect("temp");
        let root = Dir::open(temp.path()).expect("open");
        let path =
            mcp_config(&root, "qwen", Some("{}"), None, &mut Vec::new()).expect("written").expect("a file");
        assert_eq!(fs::metadata(path).expect("meta").permissions().mode() & 0o777, 0o600);
    }
}
