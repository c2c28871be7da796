//! The arguments of a run.

use crate::codec::arg_filter::{Blocked, FlagKind, add_allowed, add_prefix};
use crate::codec::options::{Args, Options};

/// Flags that carry the protocol itself.
const BLOCKED: &[Blocked] = &[
    ("-p", FlagKind::Standalone),
    ("--output-format", FlagKind::Value),
    ("--input-format", FlagKind::Value),
    ("--permission-mode", FlagKind::Value),
    ("--mcp-config", FlagKind::Value),
    ("--effort", FlagKind::Value),
];

/// Blocked too where the task has a settings file of its own.
const SETTINGS: Blocked = ("--settings", FlagKind::Value);

/// Those of a custom runtime's arguments that may come before all others, for whatever the program is started for.
pub fn launch_prefix(prefix: &[String]) -> Args {
    let mut args = Args::default();
    add_prefix(&mut args, prefix, BLOCKED);
    args
}

/// The arguments that start a run. Nobody is there to answer, so asking the user is switched off; the prompt is not
/// among them, as it goes to stdin.
pub fn argv(options: &Options) -> Args {
    let mut blocked = BLOCKED.to_vec();
    if !options.settings_path.is_empty() {
        blocked.push(SETTINGS);
    }
    let mut args = Args::default();
    add_prefix(&mut args, &options.launch_prefix, &blocked);
    args.fixed(&[
        "-p",
        "--output-format",
        "stream-json",
        "--input-format",
        "stream-json",
        "--verbose",
        "--permission-mode",
        "bypassPermissions",
        "--disallowedTools",
        "AskUserQuestion",
    ]);
    if !options.mcp_config_path.is_empty() {
        args.args.push("--strict-mcp-config".to_owned());
    }
    args.value("--model", &options.model);
    args.value("--effort", &options.thinking_level);
    if options.max_turns > 0 {
        args.value("--max-turns", &options.max_turns.to_string());
    }
    args.value("--resume", &options.resume_session);

    add_allowed(&mut args, &options.extra_args, &blocked);
    add_allowed(&mut args, &options.custom_args, &blocked);

    args.value("--settings", &options.settings_path);
    args.value("--mcp-config", &options.mcp_config_path);
    args
}
