//! Counts what is in a trace while it passes by, as its readers count.

use longshore_core::time::UnixMillis;
use longshore_core::trace::{MAX_LINE, Mode, Place, Record, Replay, Report, Salvage, StepNumber};

/// The last step that passed by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Last {
    pub(super) n: StepNumber,
    pub(super) wall: UnixMillis,
}

/// What passed by. It is read as a reader of the whole trace would: a gap that no record tells of, but a number that does not follow, is one too.
#[derive(Debug)]
pub(super) struct Tally {
    salvage: Salvage,
    /// Its core does nothing: the state is forgotten wherever it would be known.
    replay: Replay,
    at: Place,
    begun: Vec<u8>,
    last: Option<Last>,
}

impl Default for Tally {
    fn default() -> Self {
        Self {
            salvage: Salvage::default(),
            replay: Replay::new(Mode::EventsOnly),
            at: Place { source: 0, line: 1, byte: 0 },
            begun: Vec::new(),
            last: None,
        }
    }
}

impl Tally {
    /// Takes the next bytes, which may end within a line.
    pub(super) fn pass(&mut self, bytes: &[u8]) {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.begun.extend_from_slice(piece);
            if piece.ends_with(b"\n") {
                let mut line = std::mem::take(&mut self.begun);
                if line.len() <= MAX_LINE {
                    self.salvage.line(self.at, &line);
                    self.count();
                }
                self.at.line += 1;
                self.at.byte += line.len() as u64;
                line.clear();
                self.begun = line;
            }
        }
    }

    /// Nothing comes any more.
    pub(super) fn finish(&mut self) {
        self.salvage.finish();
        self.count();
    }

    fn count(&mut self) {
        for (at, record) in self.salvage.by_ref() {
            match &record {
                Record::Step(step) => self.last = Some(Last { n: step.n, wall: step.wall }),
                Record::Header(_) | Record::Gap(_) => {}
                // They say something of a state, and none is known here.
                _ => continue,
            }
            // What comes out of the salvage is in order; settings that are none are the reader's to tell.
            let _ = self.replay.record(at.line, record, &mut |_| {});
            self.replay.lose_state();
        }
    }

    const fn report(&self) -> &Report {
        self.replay.report()
    }

    pub(super) const fn segments(&self) -> u64 {
        self.report().segments
    }

    pub(super) const fn all_lives(&self) -> u64 {
        self.report().all_lives
    }

    pub(super) const fn steps(&self) -> u64 {
        self.report().steps
    }

    pub(super) const fn gaps(&self) -> u64 {
        self.report().gaps
    }

    /// Steps that are missing in the gaps.
    pub(super) const fn lost(&self) -> u64 {
        self.report().lost
    }

    /// Whether something is missing that nobody has said to be.
    pub(super) const fn is_damaged(&self) -> bool {
        self.salvage.troubles().lose()
    }

    /// The last step, if there is any.
    pub(super) const fn last(&self) -> Option<Last> {
        self.last
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace_sink::tests::life::Life;
    use crate::trace_sink::tests::{header, record};
    use crate::trace_sink::{Drawn, MIN_BUDGET, Sink, segments};
    use longshore_core::trace::{Header, Origin, encode};

    #[test]
    fn a_gap_that_is_said_before_and_behind_a_cut_is_one() {
        let first = Header { from: Some(Origin::new(4, 0)), ..header(&Life::new(3)) };
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
            tally.finish();
            (tally.all_lives(), tally.gaps())
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
            tally.finish();
            assert_eq!((tally.segments(), tally.all_lives(), tally.gaps()), (count, 2, 0));
            assert_eq!((tally.steps(), tally.last().map(|last| last.n)), (2 * 1501, Some(1500)));
        }
    }

    /// What a reader of the same bytes counts.
    fn read(bytes: &[u8]) -> String {
        let dir = tempfile::tempdir().expect("temp");
        let file = dir.path().join("dump.jsonl");
        std::fs::write(&file, bytes).expect("writes");
        let asked = crate::trace::replay::Replay { file, ..crate::trace::replay::Replay::default() };
        let mut out = Vec::new();
        crate::trace::replay::replay(&asked, dir.path(), &mut out, &mut Vec::new()).expect("replays");
        String::from_utf8(out).expect("text")
    }

    #[test]
    fn gaps_are_counted_as_a_reader_of_the_dump_counts_them() {
        let dir = tempfile::tempdir().expect("temp");
        let mut life = Life::new(4);
        let first = life.fx.as_slice();
        let mut sink = Sink::flight(dir.path(), MIN_BUDGET, header(&life), first).expect("starts");
        while segments(dir.path()).map_or(0, |all| all.len()) < 4 {
            record(&mut sink, &mut life, 200);
        }
        sink.close("stopped", &life.daemon);
        let all: Vec<Vec<u8>> = segments(dir.path())
            .expect("lists")
            .iter()
            .map(|path| std::fs::read(path).expect("reads"))
            .collect();
        let cut = |bytes: &[u8]| {
            let upto = bytes[..bytes.len() / 2].iter().rposition(|byte| *byte == b'\n').expect("lines");
            bytes[..=upto].to_vec()
        };
        let torn = |bytes: &[u8]| bytes[..bytes.len() / 2].to_vec();
        let whole = [all[0].clone(), all[1].clone(), all[2].clone()];
        for (gaps, pieces) in [
            (0, whole.to_vec()),
            (1, vec![all[0].clone(), all[2].clone()]),
            (1, vec![cut(&all[0]), all[1].clone(), all[2].clone()]),
            (2, vec![cut(&all[0]), cut(&all[1]), all[2].clone()]),
            (1, vec![all[0].clone(), cut(&all[1]), all[3].clone()]),
            (1, vec![[torn(&all[0]), b"\n".to_vec()].concat(), all[1].clone()]),
        ] {
            let bytes = pieces.concat();
            let mut tally = Tally::default();
            tally.pass(&bytes);
            tally.finish();
            let (read, lost) = (read(&bytes), tally.lost());
            let said = format!("gaps        {gaps}, with {lost} steps;");
            assert_eq!(tally.gaps(), gaps);
            assert_eq!(read.contains(&said), gaps > 0, "{said}\n{read}");
            assert_eq!(read.contains("gaps  "), gaps > 0, "{read}");
            assert!(read.contains(&format!("steps       {}: ", tally.steps())), "{read}");
            assert!(read.contains(&format!("segments    {}, ", tally.segments())), "{read}");
        }
    }

    #[test]
    fn a_gap_that_nobody_told_of_is_one_and_the_dump_is_said_to_be_damaged() {
        let mut life = Life::new(3);
        let mut lines = Vec::new();
        encode::header(&mut lines, &header(&life)).expect("encodes");
        encode::start(&mut lines, life.start, life.fx.as_slice()).expect("encodes");
        for n in 1..=9 {
            let (now, event) = life.step();
            if !(4..=6).contains(&n) {
                encode::step(&mut lines, n, now, &event, life.fx.as_slice()).expect("encodes");
            }
        }
        let mut tally = Tally::default();
        tally.pass(&lines);
        tally.finish();
        assert_eq!((tally.gaps(), tally.lost(), tally.steps(), tally.is_damaged()), (1, 3, 7, true));
    }
}
