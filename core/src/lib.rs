//! The pure, deterministic core of longshore.

pub mod codec;
pub mod id;
pub mod plane;
pub mod reason;
pub mod time;
pub mod trace;
