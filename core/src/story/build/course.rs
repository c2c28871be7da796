//! What is kept of a life while it is read: what is open, under which number, and since when it was heard of.

use crate::event::{ClaimKey, Offer};
use crate::id::{EnvRoot, OpId, PathKey, Provider, RuntimeId, SlotIndex};
use crate::story::{At, ClaimIx, End, Ending, LifeIx, RequestIx, RuntimeIx, Span, TaskIx};
use crate::time::{Instant, Now};
use crate::trace::{Header, StepNumber};
use std::collections::{BTreeMap, BTreeSet};

/// How it is known that something is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum How {
    /// This step has ended it.
    Now,
    /// It is over in this step: if steps are missing since it began, one of those may have ended it.
    Over,
    /// Nothing more is told of it: it is over or goes on if steps are missing since it began, else it goes on.
    Lost,
}

/// A task that is not forgotten.
#[derive(Clone, Debug, Default)]
pub(super) struct Held {
    /// The last step that says that it is here.
    pub(super) heard: StepNumber,
    /// Its slot: which one, and its place among the slots of the story.
    pub(super) slot: Option<(SlotIndex, usize)>,
    /// The directories that it will mark.
    pub(super) roots: Vec<EnvRoot>,
    /// Its marks, by their place in the story.
    pub(super) marks: Vec<usize>,
    /// The user's directory that it wants or has.
    pub(super) path: Option<PathKey>,
    /// Its place among the paths of the story, while it has that directory.
    pub(super) path_use: Option<usize>,
    /// Whether it waits without a slot, and for whom.
    pub(super) parked: Option<ClaimKey>,
    /// The wait that goes with its phase, by its place in the task.
    pub(super) phase_wait: Option<usize>,
    /// What is tried again later: the open wait of each kind, by its place in the task.
    pub(super) retry_waits: BTreeMap<Tried, usize>,
    /// What did not succeed in this step, and was not tried again in it.
    pub(super) failed: Vec<(Tried, RequestIx, Ending)>,
    /// The look at the status that is to settle a `/start`.
    pub(super) asking: Option<RequestIx>,
    /// The last `/start` that did not succeed.
    pub(super) start_failed: Option<(RequestIx, Ending)>,
    /// Whether its `/start` was accepted in this step.
    pub(super) accepted: bool,
    /// When its prepare lease runs out; none if that is not known.
    pub(super) expiry: Option<Instant>,
}

/// What a task tries again until it succeeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Tried {
    Start,
    Messages,
    Usage,
    Pin,
    Report,
}

/// Hints that no claim has followed yet, by the place of the hint.
#[derive(Clone, Debug, Default)]
pub(super) struct Pending {
    pub(super) any: Vec<usize>,
    pub(super) of: BTreeMap<RuntimeIx, Vec<usize>>,
}

/// One life, while it is read.
#[derive(Clone, Debug)]
pub(super) struct Course {
    pub(super) life: LifeIx,
    pub(super) header: Header,
    /// The clocks, as the core takes them.
    pub(super) now: Now,
    /// The last step.
    pub(super) last: Option<StepNumber>,
    /// The last steps before those of which something was not recorded, in order.
    pub(super) doubts: Vec<At>,
    /// The last step after which a checkpoint told what was there.
    pub(super) confirmed: StepNumber,
    /// Whether the next steps are the first after a gap.
    pub(super) in_gap: bool,
    /// Whether nothing is missing so far.
    pub(super) is_whole: bool,
    /// Every request of this life.
    pub(super) ops: BTreeMap<OpId, RequestIx>,
    /// Those that are on their way.
    pub(super) open: BTreeSet<OpId>,
    pub(super) claims: BTreeMap<ClaimKey, TaskIx>,
    pub(super) alive: BTreeMap<TaskIx, Held>,
    /// Requests that are claims.
    pub(super) claim_of: BTreeMap<RequestIx, ClaimIx>,
    pub(super) claims_open: u32,
    /// The last claim that ended, if it did not work and none was sent since.
    pub(super) claim_failed: Option<(RequestIx, Ending)>,
    pub(super) held_off: bool,
    pub(super) gate: bool,
    pub(super) stopping: bool,
    /// The daemon has ended: what is recorded after that changed nothing.
    pub(super) exited: bool,
    pub(super) pending: Pending,
    /// Who has which slot.
    pub(super) slots: BTreeMap<SlotIndex, TaskIx>,
    /// Who has which directory of a user.
    pub(super) paths: BTreeMap<PathKey, TaskIx>,
    /// Directories that are being freed, and who waits for that, in order.
    pub(super) freeing: BTreeMap<EnvRoot, Vec<TaskIx>>,
    /// Runtimes that are registered, with the place of that in the runtime.
    pub(super) online: BTreeMap<RuntimeIx, usize>,
    /// Within a step.
    pub(super) step: InStep,
}

/// What is known only within a step.
#[derive(Clone, Debug, Default)]
pub(super) struct InStep {
    /// The claim that ended.
    pub(super) claim: Option<ClaimIx>,
    /// Tasks that are written down as taken.
    pub(super) taken: BTreeMap<ClaimKey, (Offer, Provider)>,
    /// Tasks about which something has happened.
    pub(super) touched: BTreeSet<TaskIx>,
    /// The `/start` that ended, and whose task has not asked about it yet.
    pub(super) start_of: Option<TaskIx>,
    /// A hint that came.
    pub(super) hint: Option<usize>,
    /// Whether nobody recorded what the core did.
    pub(super) unrecorded: bool,
    /// Whether the event fitted nothing.
    pub(super) stray: bool,
}

impl Course {
    pub(super) fn new(life: LifeIx, header: &Header) -> Self {
        Self {
            life,
            header: header.clone(),
            now: header.start,
            last: None,
            doubts: Vec::new(),
            confirmed: 0,
            in_gap: false,
            is_whole: header.from.is_none() && !header.is_imported(),
            ops: BTreeMap::new(),
            open: BTreeSet::new(),
            claims: BTreeMap::new(),
            alive: BTreeMap::new(),
            claim_of: BTreeMap::new(),
            claims_open: 0,
            claim_failed: None,
            held_off: false,
            gate: false,
            stopping: false,
            exited: false,
            pending: Pending::default(),
            slots: BTreeMap::new(),
            paths: BTreeMap::new(),
            freeing: BTreeMap::new(),
            online: BTreeMap::new(),
            step: InStep::default(),
        }
    }

    /// The end of something that goes on, as this step tells it.
    pub(super) fn end(&self, span: Span, at: At, how: How) -> End {
        let doubt = self.doubt(span.begin.first().n).map(End::After);
        match how {
            How::Now => End::Seen(at),
            How::Over => doubt.unwrap_or(End::Seen(at)),
            How::Lost => doubt.unwrap_or(End::Open),
        }
    }

    /// The last step before the first that is missing since step `heard`.
    pub(super) fn doubt(&self, heard: StepNumber) -> Option<At> {
        let heard = heard.max(self.confirmed);
        let next = self.doubts.partition_point(|before| before.n < heard);
        self.doubts.get(next).copied()
    }

    /// Whether a checkpoint would tell something.
    pub(super) fn is_in_doubt(&self) -> bool {
        let from_the_middle = self.header.from.is_some() && self.confirmed == 0;
        self.in_gap || from_the_middle || self.doubt(0).is_some()
    }

    /// Something of what follows after this step was not recorded.
    pub(super) fn doubt_after(&mut self, at: At) {
        self.is_whole = false;
        if self.doubts.last().is_none_or(|last| last.n < at.n) {
            self.doubts.push(at);
        }
    }

    /// What is kept of a task, about which something happens in this step.
    pub(super) fn held(&mut self, task: TaskIx) -> &mut Held {
        self.step.touched.insert(task);
        self.alive.entry(task).or_default()
    }

    /// The same; and the task is here in this step.
    pub(super) fn hear(&mut self, task: TaskIx, at: At) -> &mut Held {
        let held = self.held(task);
        held.heard = held.heard.max(at.n);
        held
    }
}

/// Names of runtimes, over all lives.
pub(super) type RuntimeNames = BTreeMap<RuntimeId, RuntimeIx>;
