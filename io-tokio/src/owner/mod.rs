//! One daemon for each identity at each server. Two of them would take each other's tasks: which of them has a task depends on who claimed
//! first, and either takes the runtimes of the other off line when it stops.
//!
//! Whoever serves holds a lock that the kernel gives back when the process ends, however it ends. A look at the local port, at a process id in
//! a file, or at the server does not do: each is out of date by the time that it is acted upon.

mod lock;
pub mod unit;

pub use lock::{Holder, Owner, OwnerError};
