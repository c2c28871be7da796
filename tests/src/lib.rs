//! The test bed of the black-box scenarios in `tests/`: a private home for a daemon, scripted agents in it, and the daemon itself, as
//! the real binary or as the real adapter inside of the test.
//!
//! Whoever waits, waits for an event: of the control plane, of a process, of a pipe. Everything that a daemon starts
//! carries its private home in its environment, so that nothing but it is ended with the home.
//!
//! Processes are looked at by way of Linux, so that elsewhere there is nothing here.
#![cfg(target_os = "linux")]

mod agents;
mod commands;
mod daemon;
mod driver;
mod gate;
mod home;
mod port;
mod processes;
mod traces;

pub use agents::{AGENT_WORK, CLAUDE_SESSION_LOST, Invocation};
pub use commands::{RunningCommand, Said};
pub use daemon::{DaemonUnderTest, Ended};
pub use driver::{DriverUnderTest, Finished};
pub use gate::{Gate, HeldReader};
pub use home::Home;
pub use port::ReservedPort;
pub use processes::{carrying, heed_interrupts, is_alive, signal, wait_for_end};
pub use traces::trace_text;
