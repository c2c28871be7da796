//! The rules themselves: each notices the history that it is there for. A history is true up to one change; the rule that the change is
//! meant for has to be broken by it, first or together with others.

mod access;
mod actions;
mod boundary;
mod claims;
mod collector;
mod corners;
mod fleet;
mod harness;
mod lease;
mod link;
mod logged;
mod messages;
mod middle;
mod paths;
mod recovery;
mod stops;
mod tasks;
mod watchdog;
