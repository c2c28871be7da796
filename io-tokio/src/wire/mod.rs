//! What travels between daemon and server, as types.

pub mod lenient;
pub mod task;
