//! What a picture of a trace is made of, whatever the form of the picture: lanes with bars and marks, arrows, violations, and a table
//! of the steps. All times are milliseconds after the beginning of the picture.

use super::look::{ArrowKind, Kind, MarkKind};
use super::text::Text;

/// Position of a step in [`Drawing::steps`].
pub type StepIndex = u32;

/// A picture.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Drawing {
    /// What it is of.
    pub title: Text,
    /// What there is to say about the whole, as names and values.
    pub facts: Vec<(Text, Text)>,
    /// Wall time at 0, in milliseconds since 1970, if it is known.
    pub start: Option<i64>,
    /// Where the picture begins: at 0, unless it is a part of a longer one.
    pub begin: u64,
    /// Where it ends.
    pub end: u64,
    /// Lanes, from top to bottom.
    pub groups: Vec<Group>,
    /// What led to what.
    pub arrows: Vec<Arrow>,
    /// Steps that could be held to the rules, to all or to some.
    pub judged: u64,
    /// Rules that were broken, in the order of their steps.
    pub violations: Vec<Violation>,
    /// Times of which nothing is known, in order.
    pub unknown: Vec<Unknown>,
    /// All steps, in order.
    pub steps: Vec<Row>,
}

/// Lanes of one sort.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Group {
    /// What they are.
    pub name: Text,
    /// They themselves.
    pub lanes: Vec<Lane>,
}

/// What is drawn beside one label.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lane {
    /// Id or name.
    pub label: Text,
    /// What else is good to know about it.
    pub note: Text,
    /// Bars, in any order; those that overlap are put below each other.
    pub bars: Vec<Bar>,
    /// Marks, in any order.
    pub marks: Vec<Mark>,
}

/// Something that lasts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bar {
    /// What it is.
    pub kind: Kind,
    /// What is written on it.
    pub label: Text,
    /// When it begins.
    pub begin: u64,
    /// When it is over; not before it begins.
    pub end: u64,
    /// Which of its ends are not known.
    pub open: Open,
    /// Whether it ended badly.
    pub failed: bool,
    /// The step in which it began.
    pub first: Option<StepIndex>,
    /// The step in which it ended.
    pub last: Option<StepIndex>,
    /// More about it, as names and values.
    pub detail: Vec<(Text, Text)>,
}

/// Ends of a bar that are not known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Open {
    /// It began before what is known.
    pub begin: bool,
    /// It was not over at the end of what is known.
    pub end: bool,
}

/// Something that happens at one instant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark {
    /// What it is.
    pub kind: MarkKind,
    /// What it says.
    pub label: Text,
    /// When it is.
    pub at: u64,
    /// The step.
    pub step: Option<StepIndex>,
}

/// A point of a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Point {
    /// Number of the lane, counted through all groups.
    pub lane: u32,
    /// When.
    pub at: u64,
}

/// What led to what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrow {
    /// In which way.
    pub kind: ArrowKind,
    /// From here …
    pub from: Point,
    /// … to there.
    pub to: Point,
    /// The step that it led to.
    pub step: Option<StepIndex>,
}

/// A rule that was broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Its id.
    pub rule: Text,
    /// What it says.
    pub says: Text,
    /// What happened.
    pub story: Text,
    /// When.
    pub at: u64,
    /// In which step.
    pub step: Option<StepIndex>,
}

/// A time of which nothing is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unknown {
    /// When it begins.
    pub begin: u64,
    /// When it is over.
    pub end: u64,
    /// Why nothing is known.
    pub why: Text,
}

/// A step, as a row of the table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Row {
    /// Which life of the daemon it belongs to; the first is 0.
    pub life: u32,
    /// Its number in that life.
    pub n: u64,
    /// When it is.
    pub at: u64,
    /// What happened.
    pub event: Text,
    /// What was done about it.
    pub effects: Vec<Text>,
}

impl Drawing {
    /// All lanes with the names of their groups, in the order in which points count them.
    pub fn lanes(&self) -> impl Iterator<Item = (&Text, &Lane)> {
        self.groups.iter().flat_map(|group| group.lanes.iter().map(move |lane| (&group.name, lane)))
    }
}

impl Bar {
    /// A bar of which only kind and time are known yet.
    pub fn new(kind: Kind, label: impl Into<Text>, begin: u64, end: u64) -> Self {
        Self {
            kind,
            label: label.into(),
            begin,
            end: end.max(begin),
            open: Open::default(),
            failed: false,
            first: None,
            last: None,
            detail: Vec::new(),
        }
    }
}
