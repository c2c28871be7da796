//! What has to be refused before the agent is started.

use thiserror::Error;

/// Claude Code would refuse to start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error(
    "claude does not run as root with its permission checks bypassed: run the daemon as another user, or set \
     IS_SANDBOX=1 in the agent's environment if this machine is a sandbox"
)]
pub struct BypassAsRoot;

/// Checks that Claude Code will start with `args`: as root it bypasses permissions only where the value of `IS_SANDBOX`
/// in its environment (the last one, if there are several) says that it is in a sandbox.
pub fn check_bypass(args: &[String], is_root: bool, is_sandbox: Option<&str>) -> Result<(), BypassAsRoot> {
    let mode = args.windows(2).any(|pair| pair == ["--permission-mode", "bypassPermissions"]);
    let bypass = mode
        || args.iter().any(|arg| {
            arg == "--permission-mode=bypassPermissions" || arg == "--dangerously-skip-permissions"
        });
    let sandbox = is_sandbox.is_some_and(|value| {
        ["1", "true", "yes", "on"].iter().any(|yes| value.trim().eq_ignore_ascii_case(yes))
    });
    if is_root && bypass && !sandbox { Err(BypassAsRoot) } else { Ok(()) }
}
