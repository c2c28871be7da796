//! A trace that is rebased: this core decides anew, and what an event answers is found again.

use longshore_core::effect::Effect;
use longshore_core::event::{Event, GateAsk, GateOwner};
use longshore_core::id::{ConnGen, OpId};
use longshore_core::script::{Life, Mark};
use longshore_core::trace::{Mode, Reader, Rebase, Rebased, Record, Replay, StepNumber};
use proptest::prelude::*;

/// A recorded life, record by record.
fn recorded(seed: u64, steps: usize) -> Vec<Record> {
    let mark = |n: StepNumber| match (n % 70, n % 50) {
        (0, _) => Mark::Checkpoint,
        (_, 0) => Mark::Digest,
        _ => Mark::None,
    };
    records(&Life::recorded(seed, steps, mark))
}

fn records(lines: &[u8]) -> Vec<Record> {
    let reader = Reader::new(lines).expect("a header");
    let header = Record::Header(Box::new(reader.header().clone()));
    std::iter::once(header).chain(reader.map(|record| record.expect("a record"))).collect()
}

fn rebased(of: &[Record]) -> (Vec<Record>, Rebased) {
    let (mut rebase, mut lines) = (Rebase::default(), Vec::new());
    for record in of {
        rebase.record(0, record.clone(), &mut lines).expect("rebases");
    }
    let report = rebase.finish();
    let replayed = Replay::new(Mode::Strict).run(Reader::new(lines.as_slice()).expect("a header"));
    let replayed = replayed.expect("what comes out is a trace of this core");
    assert_eq!(replayed.compared, replayed.steps);
    // What says where it comes from.
    let records = records(&lines).into_iter().filter(|record| !matches!(record, Record::Note(_)));
    (records.collect(), report)
}

/// The same history, as a core has it that numbers otherwise.
fn renumbered(of: &[Record], ops: u64, conns: u32) -> Vec<Record> {
    let event = |event: &mut Event| match event {
        Event::Api { op, .. } | Event::Fs { op, .. } | Event::Run { op, .. } => *op = OpId(op.0 + ops),
        Event::Ws { conn, .. } => *conn = ConnGen(conn.0 + conns),
        _ => {}
    };
    let effect = |effect: &mut Effect| match effect {
        Effect::Api { op, .. }
        | Effect::Fs { op, .. }
        | Effect::Run { op, .. }
        | Effect::Kill { op, .. }
        | Effect::Cancel { op } => *op = OpId(op.0 + ops),
        Effect::Ws { conn, .. } => *conn = ConnGen(conn.0 + conns),
        _ => {}
    };
    let mut all = of.to_vec();
    for record in &mut all {
        if let Record::Step(step) = record {
            step.event.iter_mut().for_each(event);
            step.effects.iter_mut().flatten().for_each(effect);
        }
    }
    all
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn a_trace_of_this_core_comes_out_as_it_is(seed in 0_u64..1_000) {
        let all = recorded(seed, 200);
        let (same, report) = rebased(&all);
        prop_assert_eq!(report.differ + report.left_out + report.put_in + report.skipped, 0);
        prop_assert!(same == all);
    }

    #[test]
    fn answers_are_found_again_whatever_their_numbers(seed in 0_u64..1_000, ops in 0_u64..2_000, conns in 0_u32..9) {
        let all = recorded(seed, 200);
        let (same, report) = rebased(&renumbered(&all, ops, conns));
        prop_assert_eq!((report.left_out, report.put_in), (0, 0));
        prop_assert!(same == all);
    }

    /// Events that the recorded core never got: the history goes another way, and is still one that this core makes.
    #[test]
    fn another_history_goes_on_as_far_as_it_can(seed in 0_u64..1_000, at in 1_usize..150) {
        let mut all = recorded(seed, 200);
        let steps = all.iter().filter(|record| matches!(record, Record::Step(_))).count() as u64;
        let nth = all.iter().position(|record| matches!(record, Record::Step(step) if step.n == at as u64));
        if let Some(Record::Step(step)) = nth.and_then(|nth| all.get_mut(nth)) {
            step.event = Some(Event::Gate { owner: GateOwner::Reload, ask: GateAsk::Wait });
        }
        let (out, report) = rebased(&all);
        prop_assert_eq!(report.steps, steps);
        let kept = out.iter().filter(|record| matches!(record, Record::Step(_))).count() as u64;
        prop_assert_eq!(kept + report.left_out, steps);
    }
}

#[test]
fn behind_a_gap_it_goes_on_at_a_checkpoint() {
    let mut all = recorded(4, 200);
    all.retain(|record| !matches!(record, Record::Step(step) if (31..=40).contains(&step.n)));
    let at = all.iter().position(|record| matches!(record, Record::Step(step) if step.n == 41));
    all.insert(at.expect("is there"), Record::Gap(longshore_core::trace::Gap { n: 31, lost: 10 }));
    let (out, report) = rebased(&all);
    assert_eq!((report.restored, report.skipped, report.differ), (1, 30, 0));
    let gap = out.iter().find_map(|record| match record {
        Record::Gap(gap) => Some((gap.n, gap.lost)),
        _ => None,
    });
    assert_eq!(gap, Some((31, 40)));
}
