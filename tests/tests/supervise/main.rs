//! The process layer as a black box: supervisor, helper and agents are real processes; agents are shell texts.
#![cfg(target_os = "linux")]

mod bench;
mod cgroup;
mod daemon;
mod end;
mod escapees;
mod gone;
mod launches;
mod prepare;
mod raw;
mod records;
mod start;
mod streams;
mod takeover;
