//! Where an agent CLI looks for the skills of its user.

use super::plain;
use crate::actions::Machine;
use crate::config::Env;
use crate::wire::action::SkillRoot;
use serde_json::Value;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// What is read of a settings file of an agent CLI.
const MAX_SETTINGS: u64 = 16 << 20;
/// Plugins that are looked at.
const MAX_PLUGINS: usize = 64;

/// A folder of skills.
#[derive(Clone, Debug)]
pub(super) struct Root {
    pub(super) kind: SkillRoot,
    pub(super) path: PathBuf,
    /// The plugin that it is part of; empty if it is of none.
    pub(super) plugin: String,
}

impl Root {
    /// What a skill in this folder of it is called by.
    pub(super) fn key(&self, folder: &Path) -> String {
        let folder = folder.display();
        if self.plugin.is_empty() { folder.to_string() } else { format!("{}:{folder}", self.plugin) }
    }

    /// The folder of a key that can be one of it.
    pub(super) fn folder(&self, key: &str) -> Option<PathBuf> {
        if self.plugin.is_empty() {
            return plain(key);
        }
        plain(key.strip_prefix(&self.plugin)?.strip_prefix(':')?)
    }
}

/// Those of one agent CLI; a skill that is in two of them is that of the first.
#[derive(Clone, Debug)]
pub(in crate::actions) struct Places {
    pub(super) home: PathBuf,
    pub(super) env: Env,
    pub(super) supported: bool,
    pub(super) roots: Vec<Root>,
    /// The folders of the plugins that are in use, by name.
    pub(super) plugins: Vec<(String, PathBuf)>,
}

impl Places {
    pub(in crate::actions) fn of(machine: &Machine, provider: &str) -> Self {
        let (home, env) = (machine.home.clone(), machine.env.clone());
        let own = own_root(provider, &env, &home);
        let mut places = Self { home, env, supported: own.is_some(), roots: Vec::new(), plugins: Vec::new() };
        let Some(own) = own else { return places };
        let root = |kind, path| Root { kind, path, plugin: String::new() };
        places.roots.push(root(SkillRoot::Provider, own));
        places.roots.push(root(SkillRoot::Universal, places.home.join(".agents/skills")));
        if provider == "claude" {
            places.plugins = claude_plugins(&places.home.join(".claude"));
            let of = |(name, path): &(String, PathBuf)| Root {
                kind: SkillRoot::Plugin,
                path: path.join("skills"),
                plugin: name.clone(),
            };
            places.roots.extend(places.plugins.iter().map(of));
        }
        places
    }
}

/// The agent CLI's own folder of skills; none if it has no such thing.
fn own_root(provider: &str, env: &Env, home: &Path) -> Option<PathBuf> {
    let at = |below: &str| home.join(below);
    let or = |variable: &str, below: &str| env.path(variable).unwrap_or_else(|| home.join(below));
    let base = match provider {
        "claude" => at(".claude"),
        "codebuddy" => at(".codebuddy"),
        "codex" => or("CODEX_HOME", ".codex"),
        "copilot" => at(".copilot"),
        "opencode" => at(".config/opencode"),
        "deveco" => at(".config/deveco"),
        "openclaw" => at(".openclaw"),
        "pi" => at(".pi/agent"),
        "omp" => at(".omp/agent"),
        "cursor" => at(".cursor"),
        "hermes" => at(".hermes"),
        "kimi" => at(".kimi"),
        "reasonix" => or("REASONIX_HOME", ".reasonix"),
        "dsh" => or("DSH_HOME", ".dsh"),
        "kiro" => at(".kiro"),
        "qoder" => at(".qoder"),
        "qoderclicn" => at(".qoder-cn"),
        "traecli" => at(".traecli"),
        "antigravity" => at(".gemini/antigravity-cli"),
        "grok" => or("GROK_HOME", ".grok"),
        "qwen" => or("QWEN_HOME", ".qwen"),
        "mcode" => at(".minimax"),
        "qwenpaw" => {
            let named = env.path("QWENPAW_WORKING_DIR").or_else(|| env.path("COPAW_WORKING_DIR"));
            let old = Some(at(".copaw")).filter(|old| old.is_dir());
            return Some(named.or(old).unwrap_or_else(|| at(".qwenpaw")).join("skill_pool"));
        }
        _ => return None,
    };
    Some(base.join("skills"))
}

/// The plugins of Claude Code that are in use, by name, and where they are installed.
fn claude_plugins(claude: &Path) -> Vec<(String, PathBuf)> {
    let settings = json(&claude.join("settings.json"));
    let installed = json(&claude.join("plugins/installed_plugins.json"));
    let Some(enabled) = settings["enabledPlugins"].as_object() else { return Vec::new() };
    let in_use = enabled.iter().filter(|(_, on)| on.as_bool() == Some(true));
    let place = |(full, _): (&String, &Value)| {
        let name = full.split('@').next().filter(|name| plain(name).is_some())?;
        let entry = &installed["plugins"][full.as_str()];
        // Newer versions have a list, with one entry for each place that it is installed for.
        let entries = entry.as_array().map_or(std::slice::from_ref(entry), Vec::as_slice);
        let users = entries.iter().find(|entry| entry["scope"] == "user").or_else(|| entries.first())?;
        let path = PathBuf::from(users["installPath"].as_str()?);
        path.is_absolute().then(|| (name.to_owned(), path))
    };
    in_use.filter_map(place).take(MAX_PLUGINS).collect()
}

/// A settings file; null if it is not there, too large or no JSON.
pub(super) fn json(path: &Path) -> Value {
    settings(path).and_then(|text| serde_json::from_str(&text).ok()).unwrap_or(Value::Null)
}

/// A settings file as a text; a FIFO or a device is none.
pub(super) fn settings(path: &Path) -> Option<String> {
    if !std::fs::metadata(path).ok()?.is_file() {
        return None;
    }
    let mut text = String::new();
    let read = File::open(path).ok()?.take(MAX_SETTINGS + 1).read_to_string(&mut text).ok()?;
    (read as u64 <= MAX_SETTINGS).then_some(text)
}
