//! What can go wrong in the simulated world, by name.

use std::fmt;

macro_rules! faults {
    ($($(#[$doc:meta])* $name:ident = $text:literal, $usual:literal;)*) => {
        /// One kind of trouble. Each has a name for the command line, and a rate of its own.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum Fault {
            $($(#[$doc])* $name,)*
        }

        impl Fault {
            /// Every kind.
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// The name.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }

            /// How many of 1 000 occasions it usually spoils while it is about.
            pub const fn usual(self) -> u16 {
                match self { $(Self::$name => $usual,)* }
            }
        }
    };
}

faults! {
    /// Server: answers take seconds.
    SlowServer = "slow-server", 100;
    /// Server: 500 or 503, and nothing was done.
    ServerError = "server-error", 80;
    /// Server: done, but a proxy says 502 or 504.
    BadGateway = "bad-gateway", 40;
    /// Server: 429, with or without a time to wait.
    Throttled = "throttled", 60;
    /// Server: the credential is refused.
    Unauthorized = "unauthorized", 100;
    /// Server: nobody can reach it; its connections break.
    Outage = "outage", 1000;
    /// Server: an old one, without claims for many runtimes, and without a list of known messages.
    OldServer = "old-server", 1000;
    /// Server: a success whose body cannot be read.
    Garbled = "garbled", 20;
    /// Server: takes only some of the messages of one request.
    PartialPost = "partial-post", 200;
    /// Server: a task that cannot be run, as its claim contradicts itself.
    BadOffer = "bad-offer", 60;
    /// Users: a task is cancelled.
    TaskCancelled = "task-cancelled", 120;
    /// Users: a task is deleted.
    TaskDeleted = "task-deleted", 40;
    /// Users: a task is taken away and put in the queue of another runtime.
    Reassigned = "reassigned", 40;
    /// Users: a runtime is deleted.
    RuntimeDeleted = "runtime-deleted", 15;
    /// Users: a workspace is removed, and another one is there.
    WorkspaceChanged = "workspace-changed", 8;
    /// Network: a request never leaves.
    NotSent = "not-sent", 80;
    /// Network: the request is acted upon, the answer is lost.
    LostReply = "lost-reply", 60;
    /// Network: a request hangs until it is cancelled, and was never seen.
    Stall = "stall", 30;
    /// Network: a request hangs until it is cancelled, and was acted upon.
    StallAfter = "stall-after", 30;
    /// Network: latencies so uneven that later requests overtake earlier ones.
    Reorder = "reorder", 200;
    /// Network: the control connection breaks.
    Disconnect = "disconnect", 60;
    /// Network: the control connection is dead and nobody notices for a minute.
    HalfOpen = "half-open", 30;
    /// Disk: full, so that no directory can be made.
    DiskFull = "disk-full", 200;
    /// Disk: preparation takes minutes.
    SlowDisk = "slow-disk", 60;
    /// Disk: preparation fails half way, and leaves a directory behind.
    PartialPrepare = "partial-prepare", 60;
    /// Disk: small work fails.
    DiskError = "disk-error", 60;
    /// Disk: somebody removes a task's directory.
    RootVanishes = "root-vanishes", 40;
    /// Agents: cannot be started.
    SpawnFails = "spawn-fails", 60;
    /// Agents: end at once, without a word.
    InstantExit = "instant-exit", 60;
    /// Agents: say that they failed.
    AgentFails = "agent-fails", 120;
    /// Agents: ignore the end of input and the polite signal.
    Stubborn = "stubborn", 150;
    /// Agents: say nothing and do not end.
    Silent = "silent", 30;
    /// Agents: refuse the session that they are to go on with.
    ResumeRejected = "resume-rejected", 150;
    /// Agents: end just when they are to be killed.
    ExitInKill = "exit-in-kill", 300;
    /// Agent CLIs: one takes its time to say its version.
    SlowCli = "slow-cli", 150;
    /// Agent CLIs: one says no version that can be read.
    UnreadableCli = "unreadable-cli", 100;
    /// Agent CLIs: one is too old, or cannot be executed, until it is mended.
    BrokenCli = "broken-cli", 200;
    /// Agent CLIs: one is not there, until it is installed again.
    MissingCli = "missing-cli", 100;
    /// Agent CLIs: one has another version.
    UpdatedCli = "updated-cli", 100;
    /// Agent CLIs: a look at them fails, or hangs until it is cancelled.
    LookFails = "look-fails", 150;
    /// Users: custom runtimes are made, changed or deleted.
    ProfilesChanged = "profiles-changed", 60;
    /// Clock: the machine sleeps.
    Suspend = "suspend", 20;
    /// Clock: an operator sets the wall clock.
    WallStep = "wall-step", 60;
    /// Clock: moves in steps of up to a second.
    CoarseClock = "coarse-clock", 1000;
    /// Clock: goes back a little.
    BackwardClock = "backward-clock", 50;
    /// Adapter: wakes the core late.
    LateTick = "late-tick", 200;
    /// Adapter: carries effects out late, in order.
    LateEffects = "late-effects", 100;
    /// Adapter: ignores a request to cancel.
    CancelIgnored = "cancel-ignored", 300;
    /// Adapter: completes something twice.
    Duplicate = "duplicate", 40;
    /// Daemon: is killed, between any two effects, and started again.
    Crash = "crash", 1;
    /// Daemon: is asked to stop, once or twice, in any of the ways, and started again.
    Stop = "stop", 10;
    /// Daemon: the gate is asked for.
    Gate = "gate", 30;
}

impl Fault {
    /// The fault of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|fault| fault.as_str() == name)
    }

    pub(super) const fn bit(self) -> u64 {
        1 << self as u32
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

const KINDS: usize = Fault::ALL.len();
const _: () = assert!(KINDS <= 64, "the weather is one word");

/// How often each fault spoils an occasion while it is about, in thousandths; 0 for never.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Faults {
    permille: [u16; KINDS],
}

impl Faults {
    /// Nothing goes wrong.
    pub const NONE: Self = Self { permille: [0; KINDS] };

    /// The rate of one kind.
    pub const fn rate(&self, fault: Fault) -> u16 {
        self.permille[fault as usize]
    }

    /// Sets the rate of one kind, at most 1 000.
    pub fn set(&mut self, fault: Fault, permille: u16) {
        self.permille[fault as usize] = permille.min(1000);
    }

    /// The kinds that can happen.
    pub fn possible(&self) -> impl Iterator<Item = Fault> + '_ {
        Fault::ALL.iter().copied().filter(|fault| self.rate(*fault) > 0)
    }
}
