//! The commands of a daemon's life over the real binary: start in the background, stop, drain, restart, status, logs; and those about traces.
//!
//! They look at processes by way of Linux.
#![cfg(target_os = "linux")]

mod bed;
mod drain;
mod dump;
mod few_files;
mod foreign;
mod import;
mod interrupted;
mod logs;
mod restart;
mod standard_input;
mod start;
mod status;
mod stop;
mod traces;
mod unheard;
