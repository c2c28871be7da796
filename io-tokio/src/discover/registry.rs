//! The agent CLIs that the daemon knows: names, commands, and the oldest version that works.

/// A version of three numbers; the order is the order of releases.
pub type Version = (u32, u32, u32);

/// One agent CLI.
#[derive(Debug, PartialEq, Eq)]
pub struct AgentCli {
    /// The key on the wire and in `/health`, lower case.
    pub provider: &'static str,
    /// What people call it.
    pub display: &'static str,
    /// The command that is looked for when nothing else is configured.
    pub command: &'static str,
    /// The environment variable that names another command or a path.
    pub path_var: &'static str,
    /// The environment variable with the model used when neither the task nor the agent names one.
    pub model_var: Option<&'static str>,
    /// The environment variable with arguments for every run.
    pub args_var: Option<&'static str>,
    /// Arguments that make it print its version.
    pub version_args: &'static [&'static str],
    /// Arguments that make it say, in one JSON line, that it speaks the daemon's protocol; `None` if it just does.
    pub gate_args: Option<&'static [&'static str]>,
    /// The oldest version that works; `None` accepts every one.
    pub min_version: Option<Version>,
}

macro_rules! cli {
    ($provider:literal, $display:literal, $command:literal, $x:literal) => {
        AgentCli {
            provider: $provider,
            display: $display,
            command: $command,
            path_var: concat!("MULTICA_", $x, "_PATH"),
            model_var: Some(concat!("MULTICA_", $x, "_MODEL")),
            args_var: None,
            version_args: &["--version"],
            gate_args: None,
            min_version: None,
        }
    };
}

/// Every agent CLI known, in the order in which they are listed to people.
pub static AGENT_CLIS: &[AgentCli] = &[
    AgentCli {
        args_var: Some("MULTICA_CLAUDE_ARGS"),
        min_version: Some((2, 0, 0)),
        ..cli!("claude", "Claude", "claude", "CLAUDE")
    },
    AgentCli {
        args_var: Some("MULTICA_CODEBUDDY_ARGS"),
        ..cli!("codebuddy", "Codebuddy", "codebuddy", "CODEBUDDY")
    },
    AgentCli {
        args_var: Some("MULTICA_CODEX_ARGS"),
        min_version: Some((0, 100, 0)),
        ..cli!("codex", "Codex", "codex", "CODEX")
    },
    AgentCli { min_version: Some((1, 0, 0)), ..cli!("copilot", "Copilot", "copilot", "COPILOT") },
    cli!("opencode", "Opencode", "opencode", "OPENCODE"),
    cli!("deveco", "Deveco", "deveco", "DEVECO"),
    cli!("openclaw", "Openclaw", "openclaw", "OPENCLAW"),
    cli!("hermes", "Hermes", "hermes", "HERMES"),
    cli!("pi", "Pi", "pi", "PI"),
    cli!("omp", "Oh-My-Pi", "omp", "OMP"),
    cli!("cursor", "Cursor", "cursor-agent", "CURSOR"),
    cli!("kimi", "Kimi", "kimi", "KIMI"),
    cli!("reasonix", "Reasonix", "reasonix", "REASONIX"),
    AgentCli {
        gate_args: Some(&["--profile", "multica", "--probe"]),
        ..cli!("dsh", "DeepSeek Harness", "dsh", "DSH")
    },
    cli!("kiro", "Kiro", "kiro-cli", "KIRO"),
    cli!("antigravity", "Antigravity", "agy", "ANTIGRAVITY"),
    cli!("qoder", "Qoder", "qodercli", "QODER"),
    cli!("qoderclicn", "Qoder CN", "qoderclicn", "QODERCLICN"),
    cli!("traecli", "Trae", "traecli", "TRAECLI"),
    AgentCli { min_version: Some((0, 2, 89)), ..cli!("grok", "Grok", "grok", "GROK") },
    AgentCli {
        args_var: Some("MULTICA_QWEN_ARGS"),
        min_version: Some((0, 20, 0)),
        ..cli!("qwen", "Qwen Code", "qwen", "QWEN")
    },
    AgentCli {
        args_var: Some("MULTICA_QWENPAW_ARGS"),
        model_var: None,
        ..cli!("qwenpaw", "QwenPaw", "qwenpaw", "QWENPAW")
    },
    AgentCli {
        model_var: None,
        min_version: Some((0, 1, 2)),
        ..cli!("mcode", "MiniMax Code", "mcode", "MCODE")
    },
    AgentCli { min_version: Some((0, 3, 10)), ..cli!("dim", "Dim", "dim", "DIM") },
];

/// The agent CLI with this provider key.
pub fn agent_cli(provider: &str) -> Option<&'static AgentCli> {
    AGENT_CLIS.iter().find(|cli| cli.provider == provider)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn provider_keys_are_unique_and_what_the_desktop_app_accepts() {
        let keys: BTreeSet<_> = AGENT_CLIS.iter().map(|cli| cli.provider).collect();
        assert_eq!(keys.len(), AGENT_CLIS.len());
        let good = |k: &str| k.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
        assert!(keys.iter().all(|k| good(k) && k.len() <= 64), "{keys:?}");
    }

    #[test]
    fn lookup_is_by_provider_not_by_command() {
        assert_eq!(agent_cli("cursor").map(|cli| cli.command), Some("cursor-agent"));
        assert_eq!(agent_cli("agy"), None);
        assert_eq!(agent_cli("claude").map(|cli| cli.path_var), Some("MULTICA_CLAUDE_PATH"));
    }
}
