//! Writes records. Each function appends one whole line, or, if it fails, nothing.
//!
//! Nothing is cloned: a step is written straight from the event and the effects of the driver.
//!
//! # Errors
//! Every function fails only if serialisation fails, which no record is known to make it do.

use super::format::{DigestAt, End, Gap, Header, Note, Record, StepNumber};
use crate::daemon::Daemon;
use crate::effect::Effect;
use crate::event::Event;
use crate::time::{Instant, Now, UnixMillis};
use serde::Serialize;
use serde_json::Error;
use serde_json::value::RawValue;
use std::io;

#[derive(Serialize)]
#[serde(tag = "rec", rename_all = "snake_case")]
enum Line<'a> {
    Header(&'a Header),
    Step {
        n: StepNumber,
        t: Instant,
        w: UnixMillis,
        #[serde(skip_serializing_if = "crate::time::is_zero")]
        s: u64,
        #[serde(skip_serializing_if = "Option::is_none")]
        ev: Option<&'a Event>,
        #[serde(skip_serializing_if = "Option::is_none")]
        fx: Option<&'a [Effect]>,
    },
    Digest(DigestAt),
    Checkpoint {
        n: StepNumber,
        #[serde(rename = "h", with = "super::format::hex")]
        digest: u64,
        state: &'a RawValue,
    },
    Note(&'a Note),
    Gap(Gap),
    End {
        n: StepNumber,
        why: &'a str,
    },
}

/// Takes what the serialiser writes. Most of it is one byte at a time, and a recorder does this with every step: a byte that is pushed costs a
/// fraction of a slice that is appended.
struct Bytes<'a>(&'a mut Vec<u8>);

impl io::Write for Bytes<'_> {
    #[inline]
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_all(bytes).map(|()| bytes.len())
    }

    #[inline]
    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        match bytes {
            [byte] => self.0.push(*byte),
            bytes => self.0.extend_from_slice(bytes),
        }
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn line(out: &mut Vec<u8>, line: &Line<'_>) -> Result<(), Error> {
    let before = out.len();
    match serde_json::to_writer(Bytes(out), line) {
        Ok(()) => {
            out.push(b'\n');
            Ok(())
        }
        Err(error) => {
            out.truncate(before);
            Err(error)
        }
    }
}

/// The first line of a segment.
pub fn header(out: &mut Vec<u8>, header: &Header) -> Result<(), Error> {
    line(out, &Line::Header(header))
}

/// Step 0: the creation of the daemon, with the effects that [`Daemon::new`] wrote.
pub fn start(out: &mut Vec<u8>, now: Now, effects: &[Effect]) -> Result<(), Error> {
    line(out, &Line::Step { n: 0, t: now.mono, w: now.wall, s: now.slept, ev: None, fx: Some(effects) })
}

/// A step, with the time, the event and the effects of one call of [`Daemon::handle`].
pub fn step(
    out: &mut Vec<u8>,
    n: StepNumber,
    now: Now,
    event: &Event,
    effects: &[Effect],
) -> Result<(), Error> {
    line(out, &Line::Step { n, t: now.mono, w: now.wall, s: now.slept, ev: Some(event), fx: Some(effects) })
}

/// The digest of the state after step `n`.
pub fn digest(out: &mut Vec<u8>, n: StepNumber, digest: u64) -> Result<(), Error> {
    line(out, &Line::Digest(DigestAt { n, digest }))
}

/// The whole state after step `n`. O(state), in time and in size.
pub fn checkpoint(out: &mut Vec<u8>, n: StepNumber, daemon: &Daemon) -> Result<(), Error> {
    let state = RawValue::from_string(daemon.checkpoint()?)?;
    line(out, &Line::Checkpoint { n, digest: daemon.digest(), state: &state })
}

/// A remark, after step `n`.
pub fn note(out: &mut Vec<u8>, n: StepNumber, text: &str) -> Result<(), Error> {
    line(out, &Line::Note(&Note { n, text: text.to_owned() }))
}

/// `lost` steps from `n` on are missing.
pub fn gap(out: &mut Vec<u8>, n: StepNumber, lost: u64) -> Result<(), Error> {
    line(out, &Line::Gap(Gap { n, lost }))
}

/// The recording ends after step `n`.
pub fn end(out: &mut Vec<u8>, n: StepNumber, why: &str) -> Result<(), Error> {
    line(out, &Line::End { n, why })
}

/// Any record, as it was read. Fails also if a checkpoint's state is no JSON.
pub fn record(out: &mut Vec<u8>, record: &Record) -> Result<(), Error> {
    match record {
        Record::Header(head) => header(out, head),
        Record::Step(step) => {
            let (ev, fx) = (step.event.as_ref(), step.effects.as_deref());
            line(out, &Line::Step { n: step.n, t: step.mono, w: step.wall, s: step.slept, ev, fx })
        }
        Record::Digest(at) => line(out, &Line::Digest(*at)),
        Record::Checkpoint(point) => {
            let state: &RawValue = serde_json::from_str(&point.state)?;
            line(out, &Line::Checkpoint { n: point.n, digest: point.digest, state })
        }
        Record::Note(note) => line(out, &Line::Note(note)),
        Record::Gap(gap) => line(out, &Line::Gap(*gap)),
        Record::End(End { n, why }) => end(out, *n, why),
    }
}
