//! A damaged trace is read as far as it goes: in order, with a gap for each step that is missing, and without a panic.

use longshore_core::script::{Life, Mark};
use longshore_core::trace::{
    Audit, Damage, Mode, Place, Rebase, Record, Replay, ReplayError, Salvage, Troubles, encode,
};
use proptest::prelude::*;
use proptest::sample::Index;

fn lines(seed: u64, steps: usize) -> Vec<Vec<u8>> {
    let mut lines = Life::recorded(seed, steps, |n| match n % 20 {
        10 => Mark::Digest,
        0 => Mark::Checkpoint,
        _ => Mark::None,
    });
    encode::end(&mut lines, steps as u64, "stopped").expect("encodes");
    lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).map(<[u8]>::to_vec).collect()
}

fn read(lines: &[Vec<u8>]) -> (Vec<Record>, Troubles) {
    let (mut salvage, mut out) = (Salvage::default(), Vec::new());
    salvage.begin();
    for (line, text) in (1..).zip(lines) {
        salvage.line(Place { line, ..Place::default() }, text);
        out.extend(salvage.by_ref());
    }
    salvage.finish();
    out.extend(salvage.by_ref());
    (out.into_iter().map(|(_, record)| record).collect(), salvage.troubles().clone())
}

/// The text of all troubles.
fn said(troubles: &Troubles) -> String {
    let one = |trouble: &longshore_core::trace::Trouble| format!("{}: {}", trouble.at, trouble.what);
    troubles.first().iter().map(one).collect::<Vec<_>>().join("\n")
}

/// Step numbers grow by one, and gaps stand for those that are missing.
fn in_order(records: &[Record]) {
    let mut last: Option<u64> = None;
    for record in records {
        match record {
            Record::Header(header) => last = header.from.map(|from| from.n),
            Record::Step(step) => {
                let expected = last.map_or(0, |last| last.saturating_add(1));
                assert!(step.n == expected || (last.is_none() && step.n == 1), "{} after {last:?}", step.n);
                assert_eq!(step.n == 0, step.event.is_none());
                last = Some(step.n);
            }
            Record::Digest(at) => assert_eq!(at.n, last.unwrap_or(0)),
            Record::Checkpoint(point) => assert_eq!(point.n, last.unwrap_or(0)),
            Record::Gap(gap) => {
                assert_eq!(gap.n, last.map_or(0, |last| last.saturating_add(1)));
                assert!(gap.lost > 0);
                last = Some(gap.n.saturating_add(gap.lost - 1));
            }
            _ => {}
        }
    }
}

/// Everything that reads records does so to the end.
fn digested(records: &[Record]) {
    for mode in [Mode::Strict, Mode::EventsOnly] {
        let mut replay = Replay::new(mode);
        for (line, record) in (1..).zip(records) {
            match replay.record(line, record.clone(), &mut |_| {}) {
                Ok(()) | Err(ReplayError::Restore { .. } | ReplayError::Checkpoint { .. }) => {}
                Err(ReplayError::Config { .. } | ReplayError::Diverged(_)) => break,
                Err(error) => panic!("{error}"),
            }
        }
    }
    let mut audit = Audit::default();
    for record in records {
        // What is of no use is left out.
        let _ = audit.record(Place::default(), record.clone());
    }
    let (mut rebase, mut out) = (Rebase::default(), Vec::new());
    for record in records {
        if rebase.record(0, record.clone(), &mut out).is_err() {
            break;
        }
    }
}

#[derive(Clone, Debug)]
enum Mutation {
    Cut(Index, Index),
    Flip(Index, Index, u8),
    Insert(Index, Index, Vec<u8>),
    Twice(Index, Index),
    Swap(Index, Index),
    Leave(Index),
    Number(Index, u64),
}

fn mutation() -> impl Strategy<Value = Mutation> {
    let at = any::<Index>;
    prop_oneof![
        (at(), at()).prop_map(|(line, byte)| Mutation::Cut(line, byte)),
        (at(), at(), 0_u8..8).prop_map(|(line, byte, bit)| Mutation::Flip(line, byte, bit)),
        (at(), at(), prop::collection::vec(any::<u8>(), 1..4))
            .prop_map(|(line, byte, what)| Mutation::Insert(line, byte, what)),
        (at(), at()).prop_map(|(line, to)| Mutation::Twice(line, to)),
        (at(), at()).prop_map(|(one, other)| Mutation::Swap(one, other)),
        at().prop_map(Mutation::Leave),
        (at(), prop_oneof![any::<u64>(), 0_u64..200]).prop_map(|(line, n)| Mutation::Number(line, n)),
    ]
}

fn mutate(lines: &mut Vec<Vec<u8>>, how: &Mutation) {
    if lines.is_empty() {
        return;
    }
    let count = lines.len();
    match how {
        Mutation::Cut(line, byte) => {
            let line = &mut lines[line.index(count)];
            line.truncate(byte.index(line.len().max(1)));
        }
        Mutation::Flip(line, byte, bit) => {
            let line = &mut lines[line.index(count)];
            if !line.is_empty() {
                let byte = byte.index(line.len());
                line[byte] ^= 1 << bit;
            }
        }
        Mutation::Insert(line, byte, what) => {
            let line = &mut lines[line.index(count)];
            let byte = byte.index(line.len() + 1);
            line.splice(byte..byte, what.iter().copied());
        }
        Mutation::Twice(line, to) => {
            let line = lines[line.index(count)].clone();
            lines.insert(to.index(count + 1), line);
        }
        Mutation::Swap(one, other) => lines.swap(one.index(count), other.index(count)),
        Mutation::Leave(line) => drop(lines.remove(line.index(count))),
        Mutation::Number(line, n) => {
            let line = &mut lines[line.index(count)];
            let text = String::from_utf8_lossy(line).into_owned();
            if let Some((head, tail)) = text.split_once("\"n\":") {
                let tail = tail.trim_start_matches(|c: char| c.is_ascii_digit());
                *line = format!("{head}\"n\":{n}{tail}").into_bytes();
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 192, ..ProptestConfig::default() })]

    #[test]
    fn any_damage_is_read_in_order_and_digested(
        seed in 0_u64..12,
        damage in prop::collection::vec(mutation(), 1..6),
    ) {
        let mut lines = lines(seed, 90);
        for how in &damage {
            mutate(&mut lines, how);
        }
        let (records, _) = read(&lines);
        in_order(&records);
        digested(&records);
    }

    /// One line that is lost costs no more than its step, up to the next checkpoint.
    #[test]
    fn one_line_that_is_lost_is_one_gap_at_most(seed in 0_u64..12, at in any::<Index>()) {
        let mut lines = lines(seed, 90);
        let nth = 1 + at.index(lines.len() - 1);
        let was = String::from_utf8_lossy(&lines[nth]).into_owned();
        lines[nth] = b"{\"rec\":\"st".to_vec();
        let (records, troubles) = read(&lines);
        in_order(&records);
        let gaps: Vec<_> = records.iter().filter(|record| matches!(record, Record::Gap(_))).collect();
        let step = was.starts_with("{\"rec\":\"step\"") && !was.starts_with("{\"rec\":\"step\",\"n\":0,");
        prop_assert_eq!(gaps.len(), usize::from(step), "{}", said(&troubles));
        let place = format!("line {} ", nth + 1);
        prop_assert!(said(&troubles).contains(&place), "{}", said(&troubles));
    }
}

#[test]
fn a_whole_trace_is_read_as_it_is() {
    let (records, troubles) = read(&lines(5, 90));
    assert!(troubles.is_empty(), "{}", said(&troubles));
    assert_eq!(records.iter().filter(|record| matches!(record, Record::Step(_))).count(), 91);
}

#[test]
fn what_a_segment_says_to_be_missing_before_it_is_a_gap_and_no_damage() {
    let whole = lines(5, 90);
    let at =
        |begin: &str| whole.iter().position(|line| line.starts_with(begin.as_bytes())).expect("is there");
    let (before, behind) = (at("{\"rec\":\"step\",\"n\":41,"), at("{\"rec\":\"checkpoint\",\"n\":60,"));
    for (lost, damage) in [
        (20, ""),
        (30, ""),
        (15, "steps 41 to 45 are missing; that is taken as a gap"),
        (0, "steps 41 to 60 are missing; that is taken as a gap"),
    ] {
        let from = format!("\"from\":{{\"n\":60,\"h\":\"0000000000000000\",\"lost\":{lost}}}");
        let header = String::from_utf8_lossy(&whole[0]).replacen("\"from\":null", &from, 1);
        let torn = [&whole[..before], &[header.into_bytes()], &whole[behind..]].concat();
        let (records, troubles) = read(&torn);
        assert!(said(&troubles).ends_with(damage), "{lost}: {}", said(&troubles));
        assert_eq!(troubles.is_empty(), damage.is_empty(), "{lost}: {}", said(&troubles));
        let mut replay = Replay::new(Mode::Strict);
        for record in records {
            replay.record(0, record, &mut |_| {}).expect("replays");
        }
        assert_eq!((replay.report().gaps, replay.report().lost), (1, 20), "{lost}");
    }
}

#[test]
fn two_lines_the_wrong_way_round_are_put_right_and_one_that_comes_twice_is_left_out() {
    let whole = lines(5, 60);
    let at =
        whole.iter().position(|line| line.starts_with(b"{\"rec\":\"step\",\"n\":33,")).expect("is there");
    let mut swapped = whole.clone();
    swapped.swap(at, at + 1);
    let (records, troubles) = read(&swapped);
    assert!(records == read(&whole).0, "{}", said(&troubles));
    assert!(said(&troubles).contains("step 34 stands one line too early; it was put in its place"));
    let mut twice = whole.clone();
    twice.insert(at, whole[at].clone());
    let (records, troubles) = read(&twice);
    assert!(records == read(&whole).0, "{}", said(&troubles));
    assert!(said(&troubles).contains("step 33 is here after step 33; it was left out"));
}

#[test]
fn a_number_that_jumps_costs_its_line_and_not_what_follows() {
    let mut all = lines(5, 60);
    let at = all.iter().position(|line| line.starts_with(b"{\"rec\":\"step\",\"n\":33,")).expect("is there");
    let text = String::from_utf8(all[at].clone()).expect("text").replacen("\"n\":33", "\"n\":933333", 1);
    all[at] = text.into_bytes();
    let (records, troubles) = read(&all);
    assert!(said(&troubles).contains("step 933333 does not fit what comes before and after it"));
    let gaps = records.iter().filter_map(|record| match record {
        Record::Gap(gap) => Some((gap.n, gap.lost)),
        _ => None,
    });
    assert_eq!(gaps.collect::<Vec<_>>(), [(33, 1)]);
}

#[test]
fn effects_of_a_kind_that_is_not_known_cost_the_comparison_and_not_the_event() {
    let mut all = lines(5, 60);
    let text =
        String::from_utf8(all[9].clone()).expect("text").replace("\"fx\":[", "\"fx\":[{\"fx\":\"dance\"},");
    all[9] = text.into_bytes();
    let (records, troubles) = read(&all);
    assert!(said(&troubles).contains("its event was used"), "{}", said(&troubles));
    let bare = |record: &&Record| matches!(record, Record::Step(step) if step.effects.is_none());
    assert_eq!(records.iter().filter(bare).count(), 1);
    let (mut replay, mut audit) = (Replay::new(Mode::Strict), Audit::default());
    for record in records {
        audit.record(Place::default(), record.clone()).expect("judged");
        replay.record(0, record, &mut |_| {}).expect("replays");
    }
    assert_eq!((replay.report().steps, replay.report().compared), (61, 60));
    let audited = audit.audited();
    assert_eq!((audited.whole, audited.unrecorded), (61, 1), "of one it is this core that was judged");
}

#[test]
fn digests_behind_a_line_that_is_left_out_are_not_said_to_be_compared() {
    let all = lines(5, 60);
    let without = |line: &str| {
        let at = all.iter().position(|text| text.starts_with(line.as_bytes())).expect("is there");
        let kept = [&all[..at], &[b"{damaged".to_vec()], &all[at + 1..]].concat();
        let mut replay = Replay::new(Mode::Strict);
        for record in read(&kept).0 {
            replay.record(0, record, &mut |_| {}).expect("replays");
        }
        (replay.report().digests, replay.report().digests_skipped, replay.report().gaps)
    };
    // There are digests after the steps 10, 30 and 50, and checkpoints after 20, 40 and 60.
    assert_eq!(without("{\"rec\":\"end\""), (6, 0, 0));
    assert_eq!(without("{\"rec\":\"digest\",\"n\":30,"), (5, 0, 0), "what is left out is not counted");
    assert_eq!(without("{\"rec\":\"step\",\"n\":30,"), (4, 1, 1), "the state is known again after step 40");
    assert_eq!(without("{\"rec\":\"step\",\"n\":31,"), (5, 0, 1));
}

#[test]
fn a_trouble_names_the_life_that_it_is_in() {
    let lost = |seed| {
        let mut all = lines(seed, 30);
        all.retain(|line| !line.starts_with(b"{\"rec\":\"step\",\"n\":7,"));
        all
    };
    let (_, troubles) = read(&[vec![b"{}".to_vec()], lost(5), lost(6), lost(7)].concat());
    let told: Vec<_> = troubles.first().iter().map(|trouble| (trouble.life, &trouble.what)).collect();
    let missing = &Damage::Missing { from: 7, lost: 1 };
    assert!(matches!(told[0], (0, Damage::NoHeader { .. })), "{told:?}");
    assert_eq!(told[1..], [(1, missing), (2, missing), (3, missing)]);
}

#[test]
fn versions_are_told_apart() {
    let all = lines(5, 20);
    let header = String::from_utf8(all[0].clone()).expect("text");
    let with = |format: &str, more: &[u8]| {
        let mut all = all.clone();
        all[0] = header.replacen("{\"major\":1,\"minor\":3}", format, 1).into_bytes();
        all.insert(3, more.to_vec());
        read(&all)
    };
    let (records, troubles) = with("{\"major\":2,\"minor\":0}", b"");
    assert!(records.is_empty());
    assert!(said(&troubles).contains("has format 2.0, and this program reads 1.x"), "{}", said(&troubles));
    assert_eq!(troubles.first().len(), 1, "said once");
    let (records, troubles) = with("{\"major\":1,\"minor\":99}", b"{\"rec\":\"poem\",\"n\":1}");
    assert_eq!(records.iter().filter(|record| matches!(record, Record::Step(_))).count(), 21);
    let said = said(&troubles);
    assert!(said.contains("has format 1.99, and this program knows 1.3"), "{said}");
    assert!(said.contains("`poem` is no kind of record in format 1.3; it was left out"), "{said}");
}

#[test]
fn what_has_no_header_is_nothing_and_is_said_once() {
    let all = lines(5, 20);
    let (records, troubles) = read(&all[1..]);
    assert!(records.is_empty());
    assert_eq!(troubles.first().len(), 1);
    assert!(matches!(troubles.first()[0].what, Damage::NoHeader { .. }));
}
