//! The recorded server played again: a daemon that is given the answers of a real server says what the recorded daemon said to it, field by
//! field, but for the differences that are listed here with their reasons.

mod differences;
mod player;
mod shape;
mod stories;
mod tape;
