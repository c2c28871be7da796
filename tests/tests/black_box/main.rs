//! Black-box scenarios: the real binary, or the real adapter, against the embedded control plane, with agents that do what they
//! are told. All in one program, as each one links the whole library.
//!
//! They look at processes by way of Linux.
#![cfg(target_os = "linux")]

mod access;
mod actions;
mod agent_clis;
mod answers;
mod bed;
mod broken_off;
mod cancel;
mod collected;
mod credential;
mod custom_runtimes;
mod directories;
mod endings;
mod escapees;
mod hostile;
mod leftovers;
mod on_sigterm;
mod over;
mod owner;
mod recorded;
mod reports;
mod runs;
mod secrets;
mod seeds;
mod service;
mod shareable;
mod silence;
mod skills;
mod starts;
mod stop_kinds;
mod streams;
mod tls;
mod unfit;
