//! Every invariant that this project knows, where it comes from, and what holds the code to it: data only. `docs/invariants.md` is made
//! from it, and a test compares it with the sources.

mod boot;
mod boundary;
mod claims;
mod connection;
mod disk;
mod incidents;
mod lease;
mod logged;
mod middle;
mod ours;
mod sim;
mod stop;
mod task;

pub use incidents::incidents;
pub use logged::needs_no_more_than_a_log;
pub use middle::{holds_from_the_middle, needs_rest};

/// What holds the code to an invariant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Check {
    /// The rule of this very id, over every script and every trace.
    Rule,
    /// The rule of this other id, which says at least as much.
    By(&'static str),
    /// A test: its file, from the root of the repository, and its function.
    Test(&'static str, &'static str),
    /// It cannot be written down otherwise, and why.
    Type(&'static str),
    /// Nothing yet, and why: the part that it is about does not exist.
    Later(&'static str),
}

/// One invariant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its id; never used again for something else.
    pub id: &'static str,
    /// What holds, in one sentence.
    pub says: &'static str,
    /// Where it comes from: a contract of the seed, a public report, what the Go daemon was observed to do, or our own decision.
    pub origin: &'static str,
    /// What holds the code to it.
    pub checks: &'static [Check],
    /// What we do in its place where a decision of ours overrules it, and why.
    pub overruled: Option<&'static str>,
}

const fn inv(id: &'static str, says: &'static str, origin: &'static str, checks: &'static [Check]) -> Entry {
    Entry { id, says, origin, checks, overruled: None }
}

impl Entry {
    const fn but(self, overruled: &'static str) -> Self {
        Self { overruled: Some(overruled), ..self }
    }
}

/// Invariants about one part of the daemon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Family {
    /// What they are about.
    pub name: &'static str,
    /// They themselves.
    pub entries: &'static [Entry],
}

/// Something that went wrong in a daemon of this kind, and what keeps it from going wrong here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Incident {
    /// Its id.
    pub id: &'static str,
    /// Where it was reported.
    pub report: &'static str,
    /// What went wrong.
    pub what: &'static str,
    /// What keeps it from happening: rules by id, tests, types, or why nothing does yet.
    pub checks: &'static [Check],
}

/// All invariants, by family.
pub const fn catalog() -> &'static [Family] {
    FAMILIES
}

/// The invariant of this id, with what family it is of.
pub fn entry(id: &str) -> Option<(&'static Family, &'static Entry)> {
    let of = |family: &'static Family| family.entries.iter().map(move |entry| (family, entry));
    catalog().iter().flat_map(of).find(|(_, entry)| entry.id == id)
}

/// The invariants that are rules, in the order of the catalogue: what is held to every step of a history.
pub fn rules() -> impl Iterator<Item = &'static Entry> {
    let all = catalog().iter().flat_map(|family| family.entries);
    all.filter(|entry| entry.checks.contains(&Check::Rule))
}

const FAMILIES: &[Family] = &[
    Family { name: "The boundary of the core", entries: boundary::ENTRIES },
    Family { name: "Start, registration and workspaces", entries: boot::ENTRIES },
    Family { name: "Slots, claims and the gate", entries: claims::ENTRIES },
    Family { name: "Heartbeats and the control connection", entries: connection::ENTRIES },
    Family { name: "Tasks", entries: task::ENTRIES },
    Family { name: "Lease, directories and the collector", entries: lease::ENTRIES },
    Family { name: "Skills, and what the collector frees", entries: disk::ENTRIES },
    Family { name: "Stop and background work", entries: stop::ENTRIES },
    Family { name: "Our own decisions", entries: ours::ENTRIES },
    Family { name: "What the simulator compares with the truth", entries: sim::ENTRIES },
];
