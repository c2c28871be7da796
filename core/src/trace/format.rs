//! The records of a trace, as they are written: one JSON object a line, told apart by `rec`.

use crate::config::Config;
use crate::effect::Effect;
use crate::event::Event;
use crate::rng::Seed;
use crate::time::{Instant, Now, UnixMillis};
use serde::{Deserialize, Serialize};
use std::fmt;

/// A version of the format. Another major version cannot be read; a reader knows everything of its own and lower minor versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Version {
    /// Grows when old readers would misunderstand.
    pub major: u32,
    /// Grows when there are new record kinds, or variants of events and effects. A field that may be left out, and without which a reader knows less
    /// and nothing wrong, needs no new one: so [`Origin::lost`] came to 1.3, and who does not know it takes the steps for missing, as
    /// where nobody says why.
    pub minor: u32,
}

/// The version that is written here.
pub const FORMAT: Version = Version { major: 1, minor: 3 };

impl Version {
    /// Whether this reader understands a file of that version.
    pub const fn reads(self, file: Self) -> bool {
        self.major == file.major && self.minor >= file.minor
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// Source of a trace that no core of this project recorded: it was made from the log of another daemon. Its events are what that log says. Its
/// effects are what the log says too, and no requests: [`Effect::Fact`],
/// [`Effect::Runtime`], [`Effect::Keep`] for what was to be reported, and
/// [`Effect::Forget`]. What the log does not say is not in it, so no core can be fed with it, and there is nothing to
/// replay or to compare.
pub const IMPORTED: &str = "imported";

/// Number of a step in one life of a daemon: 0 is its creation, 1 its first event.
pub type StepNumber = u64;

/// The first line: what the core was created with. Also the first line of every later segment of the same life.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    /// Version of the format.
    pub format: Version,
    /// Version of the core that decided.
    pub core: String,
    /// What kind of program recorded: `daemon`, `simulator`, … or [`IMPORTED`].
    pub source: String,
    /// Seed of the core's generator.
    #[serde(with = "hex_seed")]
    pub seed: Seed,
    /// Both clocks at the creation of the daemon, also in a later segment: with the seed it names the life.
    pub start: Now,
    /// Settings of the core.
    pub config: Config,
    /// Where this segment goes on; `None` if it begins with the life.
    #[serde(default)]
    pub from: Option<Origin>,
}

/// The version of this core in a program that was built from this commit, which is what semantic versioning calls build metadata:
/// `0.1.0+0123456789ab`. Without one, the version alone.
pub fn version_of(commit: Option<&str>) -> String {
    let own = env!("CARGO_PKG_VERSION");
    commit.map_or_else(|| own.to_owned(), |commit| format!("{own}+{commit}"))
}

impl Header {
    /// The header of a life that begins now, recorded by this version.
    pub fn new(source: impl Into<String>, config: Config, seed: Seed, start: Now) -> Self {
        let core = env!("CARGO_PKG_VERSION").to_owned();
        Self { format: FORMAT, core, source: source.into(), seed, start, config, from: None }
    }

    /// With the commit that the program was built from in the version of the core, see [`version_of`].
    #[must_use]
    pub fn built_from(mut self, commit: Option<&str>) -> Self {
        self.core = version_of(commit);
        self
    }

    /// Whether it was recorded by this release of the core, of whatever commit.
    pub fn is_of_this_release(&self) -> bool {
        self.core.split('+').next() == Some(env!("CARGO_PKG_VERSION"))
    }

    /// Whether the trace was made from the log of another daemon, see [`IMPORTED`].
    pub fn is_imported(&self) -> bool {
        self.source == IMPORTED
    }

    /// Whether the number of slots is that of the daemon. A log that does not say it becomes a trace with the most there can be.
    pub fn knows_slots(&self) -> bool {
        !self.is_imported() || self.config.slots < Config::MAX_SLOTS
    }

    /// Whether both headers are about the same life of a daemon.
    pub fn same_life(&self, other: &Self) -> bool {
        self.seed == other.seed && self.start == other.start && self.config == other.config
    }
}

/// The step after which a segment goes on. A [`Checkpoint`] of the same step follows, unless it was too large to keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// The last step before the segment.
    pub n: StepNumber,
    /// Digest of the state after it.
    #[serde(rename = "h", with = "hex")]
    pub digest: u64,
    /// So many steps up to that one were not recorded, and no segment has them: the creation is one of them if it was not either. Whoever
    /// recorded says it here, too, as the [`Gap`] before it may be in a segment that could not be written.
    #[serde(default, skip_serializing_if = "crate::time::is_zero")]
    pub lost: u64,
}

impl Origin {
    /// After step `n`, with what is before it recorded.
    pub const fn new(n: StepNumber, digest: u64) -> Self {
        Self { n, digest, lost: 0 }
    }

    /// The steps before the segment that were not recorded, if it says so.
    pub fn gap(self) -> Option<Gap> {
        let upto = self.n.saturating_add(1);
        let lost = self.lost.min(upto);
        (lost > 0).then_some(Gap { n: upto - lost, lost })
    }
}

/// One step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// Its number.
    pub n: StepNumber,
    /// Monotonic time.
    #[serde(rename = "t")]
    pub mono: Instant,
    /// Wall time.
    #[serde(rename = "w")]
    pub wall: UnixMillis,
    /// How long the machine has slept, in milliseconds. Since 1.1.
    #[serde(rename = "s", default, skip_serializing_if = "crate::time::is_zero")]
    pub slept: u64,
    /// What happened; `None` only for step 0, the creation.
    #[serde(rename = "ev", default, skip_serializing_if = "Option::is_none")]
    pub event: Option<Event>,
    /// What the core did about it; `None` if nobody recorded that.
    #[serde(rename = "fx", default, skip_serializing_if = "Option::is_none")]
    pub effects: Option<Vec<Effect>>,
}

impl Step {
    /// All clocks.
    pub const fn now(&self) -> Now {
        Now::new(self.mono, self.wall).with_slept(self.slept)
    }
}

/// Digest of the state after a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DigestAt {
    /// The step.
    pub n: StepNumber,
    /// The digest.
    #[serde(rename = "h", with = "hex")]
    pub digest: u64,
}

/// The whole state after a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checkpoint {
    /// The step.
    pub n: StepNumber,
    /// Digest of the state.
    pub digest: u64,
    /// What [`crate::daemon::Daemon::checkpoint`] gave: JSON without line ends.
    pub state: Box<str>,
}

/// A remark of a person or of the recorder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Note {
    /// It was made after this step.
    pub n: StepNumber,
    /// The text.
    pub text: String,
}

/// Steps that were not recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gap {
    /// The first of them.
    pub n: StepNumber,
    /// How many.
    pub lost: u64,
}

/// The recording ended in good order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct End {
    /// The last step.
    pub n: StepNumber,
    /// Why: `rotated` if another segment goes on.
    pub why: String,
}

/// One line of a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Record {
    /// Another segment begins, in the same file.
    Header(Box<Header>),
    /// A step.
    Step(Step),
    /// A digest.
    Digest(DigestAt),
    /// A checkpoint.
    Checkpoint(Checkpoint),
    /// A remark.
    Note(Note),
    /// Lost steps.
    Gap(Gap),
    /// The end.
    End(End),
}

/// Numbers of 64 bits as 16 hexadecimal digits: many readers of JSON keep only 53 bits of a number.
pub(super) mod hex {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};
    use std::borrow::Cow;

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes fields by reference")]
    pub(in crate::trace) fn serialize<S: Serializer>(n: &u64, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(&format_args!("{n:016x}"))
    }

    pub(in crate::trace) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
        let text = Cow::<str>::deserialize(from)?;
        let digits = text.len() == 16 && text.bytes().all(|b| b.is_ascii_hexdigit());
        let number = u64::from_str_radix(&text, 16).ok().filter(|_| digits);
        number.ok_or_else(|| D::Error::custom(format!("`{text}` is not 16 hexadecimal digits")))
    }
}

mod hex_seed {
    use crate::rng::Seed;
    use serde::{Deserializer, Serializer};

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes fields by reference")]
    pub(super) fn serialize<S: Serializer>(seed: &Seed, to: S) -> Result<S::Ok, S::Error> {
        super::hex::serialize(&seed.0, to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Seed, D::Error> {
        super::hex::deserialize(from).map(Seed)
    }
}
