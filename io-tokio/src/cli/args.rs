//! The grammar of the command line.

use super::command::{
    Command, DaemonLogs, DaemonStart, DaemonStatus, DaemonStop, Demo, DrainFor, Local, LogTarget,
    VersionOutput, Which,
};
use crate::config::Flags;
use crate::config::duration::{self, Days};
use crate::trace::TraceCommand;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Args, Parser, Subcommand, ValueEnum};
use std::ffi::OsString;
use std::path::PathBuf;

/// Reads the command line; `args` begins with the program's name. Values of settings are not looked at yet: they
/// are read together with the environment and the config file.
///
/// # Errors
/// Help was asked for, or the command line is not one of ours.
pub fn parse(args: impl IntoIterator<Item = OsString>) -> Result<Command, clap::Error> {
    let cli = Cli::try_parse_from(args)?;
    let Cli { version, global, command } = cli;
    if version {
        return Ok(Command::Version(VersionOutput::Text));
    }
    let debug = global.debug;
    Ok(match command {
        None => {
            let mut grammar = <Cli as clap::CommandFactory>::command();
            return Err(grammar.error(ErrorKind::MissingSubcommand, "a command is missing, see --help"));
        }
        Some(Top::Version { output }) => Command::Version(output),
        Some(Top::Daemon(Daemon::Start(start))) => Command::DaemonStart(Box::new(start.into_command(global))),
        Some(Top::Daemon(Daemon::Restart(start))) => {
            Command::DaemonRestart(Box::new(start.into_command(global)))
        }
        Some(Top::Daemon(Daemon::Stop { drain, health_port })) => {
            Command::DaemonStop(DaemonStop { which: global.which(health_port), drain, debug })
        }
        Some(Top::Daemon(Daemon::Status { output, exit_code, health_port })) => {
            let json = output == StatusOutput::Json;
            Command::DaemonStatus(DaemonStatus { which: global.which(health_port), json, exit_code, debug })
        }
        Some(Top::Daemon(Daemon::Logs { follow, lines })) => {
            Command::DaemonLogs(DaemonLogs { profile: global.profile, follow, lines, debug })
        }
        Some(Top::Demo { record }) => Command::Demo(Demo { record, flags: global.into_flags(), debug }),
        Some(Top::Local { prompt, dir, resume, record }) => {
            let prompt = prompt.unwrap_or_default();
            Command::Local(Local { prompt, dir, resume, record, flags: global.into_flags(), debug })
        }
        Some(Top::Trace(trace)) => Command::Trace(trace.of_profile(global.profile)),
    })
}

/// Whether a form of output was asked for that there is not.
pub(super) fn is_about_form(error: &clap::Error) -> bool {
    let is_output =
        |arg: &ContextValue| matches!(arg, ContextValue::String(arg) if arg.starts_with("--output "));
    error.kind() == ErrorKind::InvalidValue && error.get(ContextKind::InvalidArg).is_some_and(is_output)
}

/// Whether the command line, right or wrong, asks for one of the `trace` commands.
pub(super) fn is_of_trace(args: impl IntoIterator<Item = OsString>) -> bool {
    let grammar = <Cli as clap::CommandFactory>::command().ignore_errors(true);
    grammar.try_get_matches_from(args).is_ok_and(|matches| matches.subcommand_name() == Some("trace"))
}

/// Runs coding agents for a control plane.
#[derive(Parser)]
#[command(
    name = "longshore",
    bin_name = "longshore",
    disable_version_flag = true,
    disable_help_subcommand = true
)]
#[command(arg_required_else_help = true)]
struct Cli {
    /// Print the version
    #[arg(short = 'v', long)]
    version: bool,
    #[command(flatten)]
    global: Global,
    #[command(subcommand)]
    command: Option<Top>,
}

const EVERYWHERE: &str = "Options of every command";

#[derive(Args)]
struct Global {
    /// Address of the server
    #[arg(long, global = true, help_heading = EVERYWHERE, value_name = "URL")]
    server_url: Option<String>,
    /// Accepted for compatibility; the daemon serves every workspace that its token can see
    #[arg(long, global = true, help_heading = EVERYWHERE, hide = true, value_name = "ID")]
    workspace_id: Option<String>,
    /// Profile with state, settings and port of its own
    #[arg(long, global = true, help_heading = EVERYWHERE, value_name = "NAME", default_value = "", hide_default_value = true)]
    profile: String,
    /// Show the causes of errors
    #[arg(long, global = true, help_heading = EVERYWHERE)]
    debug: bool,
    /// Least important events that are logged: debug, info, warn or error
    #[arg(long, global = true, help_heading = EVERYWHERE, value_name = "LEVEL")]
    log_level: Option<String>,
    /// Form of log lines: text or json
    #[arg(long, global = true, help_heading = EVERYWHERE, value_name = "FORMAT")]
    log_format: Option<String>,
}

impl Global {
    fn which(self, health_port: Option<String>) -> Which {
        Which { profile: self.profile, health_port }
    }

    fn into_flags(self) -> Flags {
        Flags {
            profile: self.profile,
            server_url: self.server_url,
            log_level: self.log_level,
            log_format: self.log_format,
            ..Flags::default()
        }
    }
}

#[derive(Subcommand)]
enum Top {
    /// The daemon that claims tasks and runs agents
    #[command(subcommand, arg_required_else_help = true)]
    Daemon(Daemon),
    /// Show a whole run with a control plane and an agent of its own; needs nothing else
    Demo {
        /// Record the run as a trace
        #[arg(long, value_name = "FILE")]
        record: Option<PathBuf>,
    },
    /// Run one prompt with the claude of this machine, without a server
    #[command(
        override_usage = "longshore local [OPTIONS] <PROMPT>\n       longshore local [OPTIONS] --resume <PATH>"
    )]
    Local {
        /// What the agent is to do
        #[arg(value_parser = clap::builder::NonEmptyStringValueParser::new(), required_unless_present = "resume")]
        prompt: Option<String>,
        /// Directory below which the agent's work directory is made, in PATH/.longshore; the agent is told of PATH, but does not
        /// work in PATH itself. Default: ~/.multica/longshore/local
        #[arg(long, value_name = "PATH")]
        dir: Option<PathBuf>,
        /// Go on with a run that was cut off, by a kill or a power cut: PATH is the run's directory (local-…) below --dir or
        /// ~/.multica/longshore/local
        #[arg(long, value_name = "PATH", conflicts_with_all = ["prompt", "dir"])]
        resume: Option<PathBuf>,
        /// Record the whole run as a trace, in a file that is not there yet
        #[arg(long, value_name = "FILE")]
        record: Option<PathBuf>,
    },
    /// Recorded runs (traces): save them, read them, draw them, check them
    #[command(subcommand, arg_required_else_help = true)]
    Trace(TraceCommand),
    /// Print the version
    Version {
        /// Form of the output
        #[arg(long, value_enum, default_value_t)]
        output: VersionOutput,
    },
}

#[derive(Subcommand)]
enum Daemon {
    /// Start the daemon, in the background unless told otherwise
    Start(Box<Start>),
    /// Stop the daemon: runs are ended, and the server tries their tasks again. Said a second time it hurries
    Stop {
        /// Claim nothing more, and let runs end by themselves; with a time, as in --drain=30m, runs that are left then are ended. Ctrl-C
        /// ends the waiting, not the drain
        #[arg(long, value_name = "DURATION", num_args = 0..=1, require_equals = true, default_missing_value = "", value_parser = drain)]
        drain: Option<DrainFor>,
        /// The daemon's port, if it was started with one of its own
        #[arg(long, value_name = "PORT")]
        health_port: Option<String>,
    },
    /// Replace the daemon by a new one, started with what is said here; its runs go on
    Restart(Box<Start>),
    /// Show whether the daemon runs, and what it does
    Status {
        /// Form of the output
        #[arg(long, value_enum, default_value_t)]
        output: StatusOutput,
        /// Tell by the exit code: 0 running, 3 stopped, 4 starting, draining or stopping, 5 something else is at its port
        #[arg(long)]
        exit_code: bool,
        /// The daemon's port, if it was started with one of its own
        #[arg(long, value_name = "PORT")]
        health_port: Option<String>,
    },
    /// Show the log of a daemon in the background
    Logs {
        /// Go on with what comes
        #[arg(short, long)]
        follow: bool,
        /// Number of lines from the end
        #[arg(short = 'n', long, value_name = "N", default_value_t = 50)]
        lines: usize,
    },
}

/// How the state of a daemon is printed.
#[derive(Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
enum StatusOutput {
    /// Lines for people
    #[default]
    Table,
    /// A JSON object
    Json,
}

fn drain(text: &str) -> Result<DrainFor, String> {
    if text.is_empty() {
        return Ok(DrainFor::Ever);
    }
    let nanos = duration::parse(text, Days::Refused)?;
    let time = nanos.non_negative().ok_or("it is negative")?;
    Ok(DrainFor::Within(time))
}

#[derive(Args)]
struct Start {
    /// Stay in the foreground and log to standard error, as a service manager wants it
    #[arg(long)]
    foreground: bool,
    /// Said by a start in the background to the process that it starts
    #[arg(long, hide = true)]
    detached: bool,
    /// Where the log goes: stderr, file (daemon.log in the profile's directory) or both. Default: stderr in the foreground, else file
    #[arg(long, value_enum, hide_possible_values = true, value_name = "TARGET")]
    log_target: Option<LogTarget>,
    /// Id of this daemon, in place of the one that is kept
    #[arg(long, value_name = "ID")]
    daemon_id: Option<String>,
    /// Label of this machine
    #[arg(long, value_name = "NAME")]
    device_name: Option<String>,
    /// Accepted for compatibility, without effect
    #[arg(long, hide = true, value_name = "NAME")]
    runtime_name: Option<String>,
    /// Directory below which tasks get theirs
    #[arg(long, value_name = "PATH")]
    workspaces_root: Option<PathBuf>,
    /// Time between two claims of an idle daemon
    #[arg(long, value_name = "DURATION", allow_hyphen_values = true)]
    poll_interval: Option<String>,
    /// Time between two heartbeats
    #[arg(long, value_name = "DURATION", allow_hyphen_values = true)]
    heartbeat_interval: Option<String>,
    /// Longest time of a run, without the machine's sleep; 0 is no limit
    #[arg(long, value_name = "DURATION", allow_hyphen_values = true)]
    agent_timeout: Option<String>,
    /// Longest time without progress of Codex (without effect in this version)
    #[arg(long, value_name = "DURATION", allow_hyphen_values = true)]
    codex_semantic_inactivity_timeout: Option<String>,
    /// Longest time of the calls that start a Codex session (without effect in this version)
    #[arg(long, value_name = "DURATION", allow_hyphen_values = true)]
    codex_handshake_timeout: Option<String>,
    /// Tasks that may run at a time
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    max_concurrent_tasks: Option<String>,
    /// Accepted for compatibility: this daemon does not update itself
    #[arg(long, hide = true)]
    no_auto_update: bool,
    /// Accepted for compatibility: this daemon does not update itself
    #[arg(long, hide = true, value_name = "DURATION", allow_hyphen_values = true)]
    auto_update_interval: Option<String>,
    /// Accepted for compatibility: this daemon does not reload itself
    #[arg(long, hide = true)]
    no_auto_reload: bool,
    /// Port of the local HTTP server, in place of the one that follows from the profile
    #[arg(long, value_name = "PORT")]
    health_port: Option<String>,
    /// How tasks are claimed: auto, per-runtime or batch
    #[arg(long, value_name = "MODE")]
    claim_mode: Option<String>,
    /// Space that the daemon's own state may take, such as 4GiB; 0 is no limit
    #[arg(long, value_name = "SIZE")]
    disk_budget: Option<String>,
    /// Space that the flight recorder may take, from 1MiB; 0 turns it off. Default: a sixteenth of the disk budget, at most 64MiB
    #[arg(long, value_name = "SIZE")]
    trace_budget: Option<String>,
    /// Space that must be free for a task to be prepared, such as 256MiB; 0 is no limit
    #[arg(long, value_name = "SIZE")]
    min_free_space: Option<String>,
    /// What SIGTERM does: stop ends the runs and reports them as to be tried again, drain claims nothing more and waits for as long
    /// as they take, detach leaves them to the next daemon. A second signal leaves a second for what is left. Default: stop
    #[arg(long, value_name = "ACTION")]
    on_sigterm: Option<String>,
    /// Record the whole run as a trace, in a file that is not there yet
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
}

impl Start {
    fn into_command(self, global: Global) -> DaemonStart {
        let (foreground, detached, log_target) = (self.foreground, self.detached, self.log_target);
        let (record, debug) = (self.record.clone(), global.debug);
        let flags = self.into_flags(global.into_flags());
        DaemonStart { flags, foreground, detached, log_target, record, debug }
    }

    fn into_flags(self, global: Flags) -> Flags {
        Flags {
            daemon_id: self.daemon_id,
            device_name: self.device_name,
            runtime_name: self.runtime_name,
            workspaces_root: self.workspaces_root,
            poll_interval: self.poll_interval,
            heartbeat_interval: self.heartbeat_interval,
            agent_timeout: self.agent_timeout,
            codex_semantic_inactivity_timeout: self.codex_semantic_inactivity_timeout,
            codex_handshake_timeout: self.codex_handshake_timeout,
            max_concurrent_tasks: self.max_concurrent_tasks,
            no_auto_update: self.no_auto_update,
            auto_update_interval: self.auto_update_interval,
            no_auto_reload: self.no_auto_reload,
            health_port: self.health_port,
            claim_mode: self.claim_mode,
            disk_budget: self.disk_budget,
            trace_budget: self.trace_budget,
            min_free_space: self.min_free_space,
            on_sigterm: self.on_sigterm,
            ..global
        }
    }
}
