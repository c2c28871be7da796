//! The process layer as a black box: supervisor, helper and agents are real processes; agents are shell texts.
#![cfg(target_os = "linux")]

mod bench;
mod daemon;
mod end;
mod prepare;
mod start;
mod streams;
