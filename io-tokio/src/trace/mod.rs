//! `longshore trace`: what people do with recorded histories. One file for each command.

pub mod replay;
