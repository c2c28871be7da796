//! Why a task did not complete: the `failure_reason` texts of the wire.

use serde::{Deserialize, Serialize};

macro_rules! reasons {
    ($($(#[$doc:meta])* $name:ident = $text:literal,)*) => {
        /// Why a task did not complete. The texts are the server's vocabulary; it decides by them whether to try again.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[non_exhaustive]
        pub enum FailReason {
            $($(#[$doc])* #[serde(rename = $text)] $name,)*
        }

        impl FailReason {
            /// Every reason.
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// The text for the wire.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }
        }
    };
}

reasons! {
    /// The daemon or its runtime went away; the server tries again.
    RuntimeOffline = "runtime_offline",
    /// The daemon was restarted and the run is not there any more; the server tries again.
    RuntimeRecovery = "runtime_recovery",
    /// A deadline passed; the server tries again.
    Timeout = "timeout",
    /// Nothing came from the agent for too long.
    IdleWatchdog = "idle_watchdog",
    /// The run was ended by somebody.
    Cancelled = "cancelled",
    /// The claim named no agent, or two different ones, or ids that cannot name a directory.
    InvalidTaskIdentity = "invalid_task_identity",
    /// The user's directory cannot be used.
    LocalDirectoryError = "local_directory_error",
    /// A skill could not be fetched; the server tries again.
    SkillBundleUnavailable = "skill_bundle_unavailable",
    /// The task's directory could not be prepared. A word of ours: the server's list has none for it, and does not try again.
    PrepareFailed = "prepare_failed",
    /// The server refused to let the run start. A word of ours, as above.
    StartRefused = "start_refused",
    /// The run ended well, and the server refused to hear so. A word of ours, as above.
    ReportRefused = "report_refused",
    /// The agent CLI's own helper command took too long.
    RuntimeCliTimeout = "runtime_cli_timeout",
    /// The agent gave up at its iteration limit.
    IterationLimit = "iteration_limit",
    /// The agent's answer is a canned fallback.
    AgentFallbackMessage = "agent_fallback_message",
    /// The provider refused the request as invalid.
    ApiInvalidRequest = "api_invalid_request",
    /// Codex stopped making progress; the server tries again.
    CodexSemanticInactivity = "codex_semantic_inactivity",
    /// A resumed codex session is too large to read.
    CodexResumeOversized = "codex_resume_oversized",
    /// The conversation no longer fits the model.
    ContextOverflow = "agent_error.context_overflow",
    /// The provider refused the credential.
    ProviderAuth = "agent_error.provider_auth_or_access",
    /// The account's quota is used up.
    ProviderQuota = "agent_error.provider_quota_limit",
    /// The provider has no capacity now, or limits the rate.
    ProviderCapacity = "agent_error.provider_capacity_or_rate_limit",
    /// The provider answered with a server error.
    ProviderServerError = "agent_error.provider_server_error",
    /// The provider could not be reached; the server tries again.
    ProviderNetwork = "agent_error.provider_network",
    /// The agent's process ended badly.
    ProcessFailure = "agent_error.process_failure",
    /// The agent ended without an answer that can be read.
    EmptyOutput = "agent_error.empty_or_unparseable_output",
    /// The agent itself ran out of time.
    AgentTimeout = "agent_error.agent_timeout",
    /// The agent CLI is not set up.
    MissingConfig = "agent_error.missing_config",
    /// The model does not exist or may not be used.
    ModelNotFound = "agent_error.model_not_found_or_unavailable",
    /// The agent CLI is too old.
    UnsupportedVersion = "agent_error.runtime_version_unsupported",
    /// The executable is not there.
    MissingExecutable = "agent_error.runtime_missing_executable",
    /// None of the above.
    Unknown = "agent_error.unknown",
}
