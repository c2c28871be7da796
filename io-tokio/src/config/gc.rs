//! Settings of garbage collection; all of them come from the environment only.

use super::error::ConfigError;
use super::layers::{Layers, Places, Zero};
use std::time::Duration;

const HOUR: Duration = Duration::from_hours(1);
const DAY: Duration = Duration::from_hours(24);

/// When what is removed. `None` means "never".
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GcSettings {
    /// The master switch.
    pub enabled: bool,
    /// Time between two cycles, more than zero.
    pub interval: Duration,
    /// Age at which directories of done or cancelled issues go.
    pub ttl: Option<Duration>,
    /// Age at which finished tasks of issues go in full.
    pub completed_task_ttl: Option<Duration>,
    /// Age at which directories that nobody knows go.
    pub orphan_ttl: Option<Duration>,
    /// Age at which outputs that can be made again go.
    pub artifact_ttl: Option<Duration>,
    /// Base names of such outputs.
    pub artifact_patterns: Vec<String>,
    /// Time without use after which a cached repository goes.
    pub repo_ttl: Option<Duration>,
    /// Whether cached repositories are repacked.
    pub repo_maintenance: bool,
    /// Age at which Codex session stores go.
    pub codex_session_ttl: Option<Duration>,
    /// Age at which Hermes memory goes.
    pub hermes_memory_ttl: Option<Duration>,
    /// Age at which Hermes sessions go.
    pub hermes_session_ttl: Option<Duration>,
    /// Age at which temporary directories without a lock go.
    pub task_temp_legacy_ttl: Option<Duration>,
}

pub(super) fn load(layers: &mut Layers<'_>, hosted: bool) -> Result<GcSettings, ConfigError> {
    let at = |env| Places { env, ..Places::default() };
    let enabled = !matches!(layers.env.text("MULTICA_GC_ENABLED")?, Some("false" | "0"));
    let interval = at("MULTICA_GC_INTERVAL");
    let patterns = layers.env.text("MULTICA_GC_ARTIFACT_PATTERNS")?;
    Ok(GcSettings {
        enabled,
        artifact_patterns: artifact_patterns(patterns.unwrap_or_default()),
        repo_maintenance: loose_bool(layers.env.text("MULTICA_GC_REPO_MAINTENANCE_ENABLED")?).unwrap_or(true),
        interval: layers.positive("gc.interval", interval, Zero::Refused, 2 * HOUR)?,
        ttl: layers.or_off("gc.ttl", at("MULTICA_GC_TTL"), Some(DAY))?,
        completed_task_ttl: layers.or_off(
            "gc.completed_task_ttl",
            at("MULTICA_GC_COMPLETED_TASK_TTL"),
            hosted.then_some(14 * DAY),
        )?,
        orphan_ttl: layers.or_off("gc.orphan_ttl", at("MULTICA_GC_ORPHAN_TTL"), Some(72 * HOUR))?,
        artifact_ttl: layers.or_off("gc.artifact_ttl", at("MULTICA_GC_ARTIFACT_TTL"), Some(12 * HOUR))?,
        repo_ttl: layers.or_off("gc.repo_ttl", at("MULTICA_GC_REPO_TTL"), Some(30 * DAY))?,
        codex_session_ttl: layers.or_off(
            "gc.codex_session_ttl",
            at("MULTICA_GC_CODEX_SESSION_TTL"),
            Some(14 * DAY),
        )?,
        hermes_memory_ttl: layers.or_off(
            "gc.hermes_memory_ttl",
            at("MULTICA_GC_HERMES_MEMORY_TTL"),
            Some(90 * DAY),
        )?,
        hermes_session_ttl: layers.or_off(
            "gc.hermes_session_ttl",
            at("MULTICA_GC_HERMES_SESSION_TTL"),
            Some(14 * DAY),
        )?,
        task_temp_legacy_ttl: layers.or_off(
            "gc.task_temp_legacy_ttl",
            at("MULTICA_GC_TASK_TEMP_LEGACY_TTL"),
            None,
        )?,
    })
}

/// A comma list of base names: one with a separator is dropped, and an empty list is the default one.
fn artifact_patterns(list: &str) -> Vec<String> {
    if list.trim().is_empty() {
        return ["node_modules", ".next", ".turbo"].map(str::to_owned).to_vec();
    }
    let usable = |p: &&str| !p.is_empty() && !p.contains(['/', '\\']) && *p != "." && *p != "..";
    list.split(',').map(str::trim).filter(usable).map(str::to_owned).collect()
}

/// `true`, `1`, `yes`, `on` and their opposites in any case; anything else says nothing.
pub(super) fn loose_bool(text: Option<&str>) -> Option<bool> {
    match text?.to_ascii_lowercase().as_str() {
        "true" | "1" | "yes" | "on" => Some(true),
        "false" | "0" | "no" | "off" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cli_25_artifact_patterns_are_base_names() {
        assert_eq!(artifact_patterns("a, b/c ,d"), ["a", "d"]);
        assert_eq!(artifact_patterns("  "), ["node_modules", ".next", ".turbo"]);
        assert!(artifact_patterns("a/b,..").is_empty(), "the whole list is replaced, even by nothing");
    }

    #[test]
    fn cli_20_loose_booleans() {
        for (text, want) in [("TRUE", Some(true)), ("On", Some(true)), ("no", Some(false)), ("junk", None)] {
            assert_eq!(loose_bool(Some(text)), want, "{text}");
        }
    }
}
