//! Rare situations that a sweep must have met somewhere: if it never does, the world is too tame.

macro_rules! marks {
    ($($(#[$doc:meta])* $name:ident = $text:literal,)*) => {
        /// A rare situation.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum Mark {
            $($(#[$doc])* $name,)*
        }

        impl Mark {
            /// Every one.
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// In words.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }
        }
    };
}

marks! {
    /// One claim for many runtimes filled every slot.
    AllSlots = "a batch claim filled all slots",
    /// A claim brought a task of a runtime that is not in the daemon's set any more.
    RemovedRuntime = "a claim returned a task for a removed runtime",
    /// A task waited until the collector let its directory go.
    CollectorYielded = "the collector yielded to a waiting task",
    /// `/start` was accepted while a refresh of the lease was on its way.
    LeaseWaited = "a lease stop had to wait for an open request",
    /// The second request to stop came while a report was on its way.
    HurriedReport = "a second stop came during reporting",
    /// The control connection came up during a claim.
    ReconnectInClaim = "the control connection came back during an open claim",
    /// A report that one process of the daemon had sent was sent by the next one.
    ReportThroughRestart = "a report was retried through a restart",
    /// A `/start` was acted upon, and its answer lost.
    StartInDoubt = "an accepted start lost its answer",
    /// A run went on while the daemon was dead, and was followed again.
    Attached = "a run outlived the daemon and was followed again",
    /// A run ended while the daemon was dead.
    EndedUnseen = "a run ended while the daemon was dead",
    /// The server cancelled a task whose agent was at work.
    CancelledAtWork = "a task was cancelled while its agent worked",
    /// An agent CLI that could not be used any more was taken off line.
    HeldBack = "an unfit agent was taken off line",
    /// It came back.
    Freed = "an agent that was held back worked again",
    /// A custom runtime joined the set.
    Custom = "a custom runtime was registered",
    /// A task was handed out a second time.
    HandedOutAgain = "the server handed a task out again",
}

/// How often each was met.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Marks {
    count: [u64; Mark::ALL.len()],
}

impl Marks {
    pub(super) fn hit(&mut self, mark: Mark) {
        self.count[mark as usize] += 1;
    }

    /// How often it was met.
    pub const fn count(&self, mark: Mark) -> u64 {
        self.count[mark as usize]
    }

    /// Adds what another simulation met.
    pub fn add(&mut self, other: &Self) {
        for (mine, theirs) in self.count.iter_mut().zip(&other.count) {
            *mine += theirs;
        }
    }

    /// Those that were never met.
    pub fn missing(&self) -> impl Iterator<Item = Mark> + '_ {
        Mark::ALL.iter().copied().filter(|mark| self.count(*mark) == 0)
    }
}
