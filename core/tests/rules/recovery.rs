//! What is kept for the next process, and what that one makes of it.

use super::harness::{Tamper, has, hide, notice, twice};
use longshore_core::effect::{ApiCall, Effect, Fact, ReportKind, RuntimeChange};
use longshore_core::event::{ClaimKey, Event, Offer, Recovered};
use longshore_core::id::{EnvRoot, Generation, OpId, Provider, RuntimeId, SlotIndex, TaskId};
use longshore_core::ledger::{Ledger, Record};
use longshore_core::rng::Seed;
use longshore_core::script::{Runner, Seeded, World, effect_label};
use longshore_core::time::Instant;

/// Hides what is kept and says so.
fn hide_kept(effects: &mut Vec<Effect>, word: &str) -> bool {
    let before = effects.len();
    effects.retain(|effect| {
        let label = effect_label(effect);
        !(label.starts_with("keep ") && label.contains(word))
    });
    effects.len() < before
}

const TAMPERS: &[(&str, Tamper)] = &[
    ("ATTACH-NOT-LAUNCH", |_, _, fx| {
        let attached = |e: &&Effect| matches!(e, Effect::Run { call, .. } if call.attached().is_some());
        let Some(mut copy) = fx.iter().find(attached).cloned() else { return false };
        if let Effect::Run { op, .. } = &mut copy {
            *op = OpId(op.0 + 1_000_000);
        }
        fx.push(copy);
        true
    }),
    ("INV-09", |_, _, fx| hide(fx, "orphans")),
    ("INV-10", |_, _, fx| {
        let admitted = fx.iter().find_map(|e| match e {
            Effect::Fact { fact: Fact::Admitted { runtime, .. } } => Some(runtime.clone()),
            _ => None,
        });
        let Some(runtime) = admitted else { return false };
        let deadline = Instant::from_millis(u64::MAX);
        fx.push(Effect::Api { op: OpId(8_000_000), call: ApiCall::RecoverOrphans { runtime }, deadline });
        true
    }),
    ("LEDGER-BEFORE-STEP", |_, _, fx| hide_kept(fx, "claimed")),
    ("LEDGER-BEFORE-STEP", |_, _, fx| hide_kept(fx, "launched")),
    ("LEDGER-BEFORE-STEP", |_, _, fx| hide_kept(fx, "owes complete")),
    ("LEDGER-BEFORE-STEP", |_, _, fx| hide_kept(fx, "owes nothing")),
    ("ORPHANS-FIRST", |_, _, fx| hide(fx, "claimable")),
    ("RECOVERED-FIRST", |_, _, fx| {
        let owing = fx.iter().find_map(|e| match e {
            Effect::Fact { fact: Fact::Recovered { runtime, slot: None, .. } } => Some(runtime.clone()),
            _ => None,
        });
        let reports = has(fx, "is settling");
        let Some(runtime) = owing.filter(|_| reports) else { return false };
        fx.push(Effect::Runtime { set: Generation(0), runtime, change: RuntimeChange::Claimable });
        true
    }),
    ("RECOVERED-ONCE", |_, _, fx| hide(fx, "is recovered")),
    ("RECOVERED-ONCE", |_, _, fx| twice(fx, "is recovered")),
    ("RECOVERED-ONCE", |_, event, _| match event {
        Event::Recovered { was: Recovered::Ended { report: Some(report), .. }, .. }
            if *report == ReportKind::Complete =>
        {
            *report = ReportKind::CancelAck;
            true
        }
        _ => false,
    }),
    ("RECOVERED-SLOT", |_, _, fx| {
        let slot = fx.iter_mut().find_map(|e| match e {
            Effect::Fact { fact: Fact::Recovered { slot: slot @ None, .. } } => Some(slot),
            _ => None,
        });
        slot.map(|slot| *slot = Some(SlotIndex(0))).is_some()
    }),
];

#[test]
fn the_rules_about_recovery_notice_what_is_tampered_with() {
    notice(TAMPERS);
}

#[test]
fn what_a_killed_process_had_and_nobody_hears_of_again_is_noticed() {
    let mut noticed = 0;
    for seed in 0..60 {
        let mut choose = Seeded::new(seed);
        let cfg = World::config(&mut choose);
        let mut runner = Runner::new(cfg, Seed(seed)).expect("settings are in bounds");
        runner.play(&mut choose, 200);
        // What is told already is owed to nobody, and one that its process has reported is forgiven.
        let owed = |record: &Record| matches!(record.was, Recovered::Claimed | Recovered::Launched { .. });
        if runner.world.has_exited() || !runner.ledger.iter().any(owed) {
            continue;
        }
        runner.ledger = Ledger::default();
        runner.crash(&mut choose);
        runner.heal();
        assert_eq!(runner.violations()[0].rule, "NOTHING-LOST", "seed {seed}");
        noticed += 1;
    }
    assert!(noticed > 3);
}

#[test]
fn what_is_kept_of_nothing_is_noticed() {
    let mut runner =
        Runner::new(World::config(&mut Seeded::new(1)), Seed(1)).expect("settings are in bounds");
    let offer = Offer {
        claim: ClaimKey(7_000),
        task: TaskId::new("t-7000"),
        runtime: RuntimeId::new("r-1"),
        root: EnvRoot::new("ws/t-7000"),
        prior: None,
        fault: None,
        in_place: false,
    };
    runner.ledger.add(Record {
        offer,
        provider: Provider::new("claude"),
        path: None,
        was: Recovered::Claimed,
    });
    runner.heal();
    let broken: Vec<_> = runner.violations().iter().map(|violation| violation.rule).collect();
    assert_eq!(broken, ["LEDGER-AT-REST"]);
}
