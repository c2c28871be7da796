//! What a daemon went through, read from a trace in one pass: lives, runtimes, tasks with their phases and waits, slots, requests, leases,
//! directories, and which hint led to which claim and that to which task.
//!
//! Feed a [`Builder`] with the header and the records of a trace, in order; the work for a step is bounded by what the step says, and the memory
//! by what the trace says. What the trace does not have (a gap, a beginning at a checkpoint, effects that nobody recorded) is marked as
//! unknown and never made up: see [`Begin::Before`], [`End::After`] and the `Unknown` variants.
//!
//! All things of one kind are in one list of the [`Story`], in the order in which they began, and name each other by typed indexes.

mod build;
mod flow;
mod held;
mod life;
mod request;
mod task;
mod when;

#[cfg(test)]
mod tests;

pub use build::Builder;
pub use flow::{Claim, Hint};
pub use held::{Online, PathUse, RootMark, Runtime, SlotUse};
pub use life::{Begins, Gap, Life, LifeEnd, Moment, What};
pub use request::{Domain, Ending, Request, RequestKind};
pub use task::{Fate, Grant, Launch, Lease, Origin, Phase, Task, Wait, WaitReason};
pub use when::{At, Begin, End, Span};

use std::ops::{Index, IndexMut};

/// What a trace tells.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Story {
    /// Lives of the daemon, one after the other.
    pub lives: Vec<Life>,
    /// Runtimes, over all lives.
    pub runtimes: Vec<Runtime>,
    /// Tasks: one for each claim in each life.
    pub tasks: Vec<Task>,
    /// Which task held which slot.
    pub slots: Vec<SlotUse>,
    /// Which task had marked which directory.
    pub marks: Vec<RootMark>,
    /// Which task had which directory of the user.
    pub paths: Vec<PathUse>,
    /// Requests.
    pub requests: Vec<Request>,
    /// Hints of the server.
    pub hints: Vec<Hint>,
    /// Claims.
    pub claims: Vec<Claim>,
    /// Everything else that a person may want to know.
    pub moments: Vec<Moment>,
}

impl Story {
    /// Begins to read a trace.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// Steps that are known to be missing, of all lives.
    pub fn missing(&self) -> u64 {
        self.lives.iter().map(Life::missing).fold(0, u64::saturating_add)
    }

    /// The index of the life at a place, if there is one.
    pub fn life(&self, nth: usize) -> Option<LifeIx> {
        u32::try_from(nth).ok().filter(|_| nth < self.lives.len()).map(LifeIx)
    }
}

macro_rules! indexes {
    ($($(#[$doc:meta])* $name:ident: $list:ident of $of:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(u32);

        impl $name {
            /// The place in the list, from 0.
            pub const fn get(self) -> usize {
                self.0 as usize
            }

            /// That of the next one that is added; at most 4 294 967 295 are told apart.
            fn next(list: &[$of]) -> Self {
                Self(u32::try_from(list.len()).unwrap_or(u32::MAX))
            }
        }

        impl Index<$name> for Story {
            type Output = $of;

            fn index(&self, index: $name) -> &$of {
                &self.$list[index.get()]
            }
        }

        impl IndexMut<$name> for Story {
            fn index_mut(&mut self, index: $name) -> &mut $of {
                &mut self.$list[index.get()]
            }
        }
    )*};
}

indexes! {
    /// A life of the story.
    LifeIx: lives of Life;
    /// A runtime of the story.
    RuntimeIx: runtimes of Runtime;
    /// A task of the story.
    TaskIx: tasks of Task;
    /// A request of the story.
    RequestIx: requests of Request;
    /// A claim of the story.
    ClaimIx: claims of Claim;
}
