//! Counts what is in a trace while it passes by, without understanding more of it than that.

use longshore_core::time::UnixMillis;
use longshore_core::trace::{Header, Origin, StepNumber};
use serde::Deserialize;

/// How a line of a step begins, as it is recorded.
const STEP: &[u8] = br#"{"rec":"step","#;
const HEADER: &[u8] = br#"{"rec":"header","#;
const GAP: &[u8] = br#"{"rec":"gap","#;

/// The last step that passed by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub(super) struct Last {
    pub(super) n: StepNumber,
    #[serde(rename = "w")]
    pub(super) wall: UnixMillis,
}

/// What passed by.
#[derive(Debug, Default)]
pub(super) struct Tally {
    pub(super) segments: u64,
    pub(super) lives: u64,
    pub(super) steps: u64,
    pub(super) gaps: u64,
    /// Whether a gap was counted behind the last step.
    in_gap: bool,
    begun: Vec<u8>,
    header: Option<Header>,
    step: Vec<u8>,
}

impl Tally {
    /// Takes the next bytes, which may end within a line.
    pub(super) fn pass(&mut self, bytes: &[u8]) {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.begun.extend_from_slice(piece);
            if piece.ends_with(b"\n") {
                self.line();
                self.begun.clear();
            }
        }
    }

    fn line(&mut self) {
        if self.begun.starts_with(STEP) {
            self.steps += 1;
            self.in_gap = false;
            std::mem::swap(&mut self.step, &mut self.begun);
        } else if self.begun.starts_with(HEADER) {
            self.segments += 1;
            let header = serde_json::from_slice::<Header>(&self.begun).ok();
            let same = header.as_ref().zip(self.header.as_ref()).is_some_and(|(new, old)| new.same_life(old));
            self.lives += u64::from(!same);
            self.in_gap &= same;
            // Of a gap that is said on both sides of a cut the one before it may not have been written.
            if header.as_ref().and_then(|header| header.from).and_then(Origin::gap).is_some() {
                self.gap();
            }
            self.header = header;
        } else if self.begun.starts_with(GAP) {
            self.gap();
        }
    }

    fn gap(&mut self) {
        self.gaps += u64::from(!std::mem::replace(&mut self.in_gap, true));
    }

    /// The last step, if there is any.
    pub(super) fn last(&self) -> Option<Last> {
        serde_json::from_slice(&self.step).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace_sink::tests::life::Life;
    use crate::trace_sink::tests::{header, record};
    use crate::trace_sink::{Drawn, MIN_BUDGET, Sink, segments};
    use longshore_core::trace::encode;

    #[test]
    fn a_gap_that_is_said_before_and_behind_a_cut_is_one() {
        let first = header(&Life::new(3));
        let later = Header { from: Some(Origin { lost: 5, ..Origin::new(9, 0) }), ..first.clone() };
        let count = |with_gap: bool, after: &Header| {
            let mut lines = Vec::new();
            encode::header(&mut lines, &first).expect("encodes");
            if with_gap {
                encode::gap(&mut lines, 5, 5).expect("encodes");
            }
            encode::header(&mut lines, after).expect("encodes");
            let mut tally = Tally::default();
            tally.pass(&lines);
            (tally.lives, tally.gaps)
        };
        assert_eq!((count(true, &later), count(false, &later)), ((1, 1), (1, 1)));
        let other = Header { from: later.from, ..header(&Life::new(4)) };
        assert_eq!(count(true, &other), (2, 2));
    }

    #[test]
    fn segments_lives_and_steps_are_counted_however_the_bytes_are_cut() {
        let dir = tempfile::tempdir().expect("temp");
        for seed in [3, 4] {
            let mut life = Life::new(seed);
            let first = life.fx.as_slice();
            let mut sink = Sink::flight(dir.path(), MIN_BUDGET, header(&life), first).expect("starts");
            record(&mut sink, &mut life, 1500);
            sink.close("stopped", &life.daemon);
        }
        let count = segments(dir.path()).expect("lists").len() as u64;
        let all: Vec<u8> =
            Drawn::of_dir(dir.path()).expect("reads").flat_map(|p| p.expect("reads")).collect();
        for size in [1 << 20, 1000, 7] {
            let mut tally = Tally::default();
            all.chunks(size).for_each(|bytes| tally.pass(bytes));
            assert_eq!((tally.segments, tally.lives, tally.gaps), (count, 2, 0));
            assert_eq!((tally.steps, tally.last().map(|last| last.n)), (2 * 1501, Some(1500)));
        }
    }
}
