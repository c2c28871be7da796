//! What an agent reads: the runtime brief in its work directory, the pointer file, and the prompt of a turn.
//!
//! The brief is a prefix that CLIs cache, so it is the same bytes for every turn of one conversation (MUL-5377): nothing
//! about the trigger is in it. What is about one turn is in the prompt. Texts that people or other agents wrote are
//! fenced, so that they cannot pass for the daemon's.

pub mod block;
mod facts;
mod fence;
mod notices;
mod pointer;
mod prompt;
mod reply;
mod runtime;

pub use facts::{Facts, Surface};
pub use pointer::pointer;
pub use prompt::{Turn, prompt};
pub use runtime::runtime;

/// The file at the top of the work directory from which a provider's CLI reads the brief; `None` for providers that
/// nobody knows.
pub fn file_name(provider: &str) -> Option<&'static str> {
    Some(match provider {
        "claude" => "CLAUDE.md",
        "codebuddy" => "CODEBUDDY.md",
        "qwen" => "QWEN.md",
        "codex" | "copilot" | "opencode" | "deveco" | "openclaw" | "hermes" | "pi" | "omp" | "cursor"
        | "kimi" | "reasonix" | "dsh" | "kiro" | "antigravity" | "qoder" | "qoderclicn" | "traecli"
        | "grok" | "qwenpaw" | "mcode" | "dim" => "AGENTS.md",
        _ => return None,
    })
}

/// Whether the provider's CLI reads that file so unreliably that the brief is also handed over as a system prompt.
pub fn is_inline(provider: &str) -> bool {
    matches!(provider, "openclaw" | "kimi" | "traecli" | "qwenpaw")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ctx_1_each_provider_has_its_file() {
        assert_eq!(file_name("claude"), Some("CLAUDE.md"));
        assert_eq!(file_name("codex"), Some("AGENTS.md"));
        assert_eq!(file_name("unheard-of"), None);
        assert!(is_inline("kimi") && !is_inline("claude"));
    }
}
