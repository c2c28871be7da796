//! What a log tells of a sound life breaks no rule, and each rule notices the log that it is there for.

use PhaseName::{Preparing, Reporting, Running, Settling, Starting};
use longshore_core::config::Config;
use longshore_core::effect::{Effect, Fact, Keep, PhaseName, ReportKind};
use longshore_core::event::{ApiReply, ClaimKey, Event, Offer, Registered, RunEnd, RunEvent, RunOutcome};
use longshore_core::id::{EnvRoot, OpId, Provider, RuntimeId, TaskId};
use longshore_core::observe::{LogRules, Step, Violation, catalog, needs_no_more_than_a_log};
use longshore_core::reason::FailReason;
use longshore_core::rng::Seed;
use longshore_core::script::{Runner, Seeded, World};
use longshore_core::time::Now;
use longshore_core::trace::{self, Audit, Gap, Header, IMPORTED, Origin, Place, Record};
use proptest::prelude::{ProptestConfig, any, prop_assert, proptest};
use std::collections::BTreeSet;

/// What a log has of the effects of a step: no requests.
fn told(effects: &[Effect]) -> Vec<Effect> {
    let is_told = |effect: &&Effect| {
        matches!(
            effect,
            Effect::Fact { .. } | Effect::Keep { .. } | Effect::Forget { .. } | Effect::Runtime { .. }
        )
    };
    effects.iter().filter(is_told).cloned().collect()
}

/// How much a life told, and what was found in it.
#[derive(Default)]
struct Life {
    launched: usize,
    reported: usize,
    /// Claims that came after a stop.
    late: usize,
    found: Vec<Violation>,
}

/// A sound life as a log tells it. Steps up to `from` are not told.
fn life(seed: u64, steps: usize, from: u64) -> Life {
    let mut choose = Seeded::new(seed);
    let cfg = World::config(&mut choose);
    let mut runner = Runner::new(cfg.clone(), Seed(seed)).expect("settings are in bounds");
    if seed % 4 == 3 {
        runner.world.swarm(&mut choose);
    }
    let (mut life, mut rules, mut n, mut stopping) = (Life::default(), LogRules::new(&cfg), 0, false);
    for _ in 0..steps {
        let Some(input) = runner.next(&mut choose) else { break };
        runner.take_with(&input, &mut |step: Option<&Step<'_>>| {
            let Some(step) = step else {
                // Another process: another life.
                life.found.extend_from_slice(rules.violations());
                (rules, stopping) = (LogRules::new(&cfg), false);
                return;
            };
            n += 1;
            let effects = told(step.effects);
            for effect in &effects {
                match effect {
                    Effect::Fact { fact: Fact::Phase { phase: Running, .. } } => life.launched += 1,
                    Effect::Fact { fact: Fact::Reported { .. } } => life.reported += 1,
                    _ => {}
                }
            }
            match step.event {
                Some(Event::Stop { .. }) => stopping = true,
                Some(Event::Api { r: Ok(ApiReply::Claimed { offers, .. }), .. }) if stopping => {
                    life.late += offers.len();
                }
                _ => {}
            }
            if n > from {
                rules.observe(n, step.event, &effects);
            }
        });
    }
    life.found.extend_from_slice(rules.violations());
    life
}

#[test]
fn many_sound_lives_are_clean_and_have_what_the_rules_are_about() {
    let mut all = Life::default();
    for seed in 0..400 {
        let life = life(seed, 400, 0);
        assert!(life.found.is_empty(), "seed {seed}: {:?}", life.found);
        all.launched += life.launched;
        all.reported += life.reported;
        all.late += life.late;
    }
    assert!(
        all.launched > 500 && all.reported > 500 && all.late > 20,
        "{} {} {}",
        all.launched,
        all.reported,
        all.late
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn a_sound_life_is_clean_from_whichever_step_on(seed in any::<u64>(), from in 0..300_u64) {
        let found = life(seed, 400, from).found;
        prop_assert!(found.is_empty(), "{found:?}");
    }
}

type Line = (Option<Event>, Vec<Effect>);

const FAILED: ReportKind = ReportKind::Fail { reason: FailReason::Timeout };

fn came(claim: u64, task: &str) -> Line {
    let offer = Offer {
        claim: ClaimKey(claim),
        task: TaskId::new(task),
        runtime: RuntimeId::new(""),
        root: EnvRoot::new(""),
        prior: None,
        fault: None,
        in_place: false,
    };
    let reply = ApiReply::Claimed { offers: vec![offer], unusable: 0 };
    (Some(Event::Api { op: OpId(1), r: Ok(reply) }), Vec::new())
}

fn is(claim: u64, phase: PhaseName) -> Line {
    (Some(Event::Tick), vec![Effect::Fact { fact: Fact::Phase { claim: ClaimKey(claim), phase } }])
}

fn ended(claim: u64, end: RunEnd) -> Line {
    let outcome = RunOutcome { end, have: 0, usage: false, resume_rejected: false };
    (Some(Event::Run { op: OpId(2), run: RunEvent::Ended { outcome } }), is(claim, Settling).1)
}

fn over(claim: u64) -> Line {
    let claim = ClaimKey(claim);
    let released = Effect::Fact { fact: Fact::Released { claim, slot: None } };
    (Some(Event::Tick), vec![released, Effect::Forget { claim }])
}

fn owed(claim: u64, report: ReportKind) -> Line {
    let entry = Keep::Ended { report: Some(report), have: 0, usage: false, ran: true, path: None };
    (Some(Event::Tick), vec![Effect::Keep { claim: ClaimKey(claim), entry }])
}

fn reported(claim: u64, report: ReportKind) -> Line {
    let fact = Fact::Reported { claim: ClaimKey(claim), report, tries: 1 };
    let (event, mut effects) = owed(claim, report);
    effects.push(Effect::Fact { fact });
    effects.extend(over(claim).1);
    (event, effects)
}

fn registered() -> Line {
    let (id, provider) = (RuntimeId::new("r"), Provider::new("claude"));
    let reply = ApiReply::Registered { runtimes: vec![Registered { id, provider, profile: None }] };
    (Some(Event::Api { op: OpId(3), r: Ok(reply) }), Vec::new())
}

fn stop() -> Line {
    (Some(Event::stop()), Vec::new())
}

/// What is found in a log of a daemon with two slots: rule and line, from 1.
fn found(lines: &[Line]) -> Vec<(&'static str, u64)> {
    let mut rules = LogRules::new(&Config { slots: 2, ..Config::default() });
    for ((event, effects), n) in lines.iter().zip(1..) {
        rules.observe(n, event.as_ref(), effects);
    }
    rules.violations().iter().map(|broken| (broken.rule, broken.step)).collect()
}

/// One log for each rule, which breaks that rule alone, in its last line.
fn breaches() -> Vec<(&'static str, Vec<Line>)> {
    use ReportKind::Complete;
    let run = |claim, task| vec![came(claim, task), is(claim, Preparing), is(claim, Running)];
    let with = |mut lines: Vec<Line>, more: Vec<Line>| {
        lines.extend(more);
        lines
    };
    let done = with(run(1, "a"), vec![ended(1, RunEnd::Completed), reported(1, Complete)]);
    let timed_out = RunEnd::Failed { reason: FailReason::Timeout };
    vec![
        (
            "I1",
            [
                run(1, "a"),
                run(2, "b"),
                run(3, "c"),
                vec![ended(1, RunEnd::Completed), ended(2, RunEnd::Completed)],
            ]
            .concat(),
        ),
        ("I8", with(done.clone(), vec![reported(1, Complete)])),
        ("I8", with(done.clone(), vec![reported(1, FAILED)])),
        ("I13", with(done.clone(), vec![over(1)])),
        ("INV-96", with(run(1, "a"), vec![reported(1, Complete), ended(1, RunEnd::Completed)])),
        ("INV-106", with(run(1, "a"), vec![ended(1, timed_out), reported(1, Complete)])),
        ("INV-107", with(run(1, "a"), vec![ended(1, timed_out), owed(1, FAILED), owed(1, Complete)])),
        ("INV-116", [run(1, "a"), run(2, "a"), vec![ended(2, timed_out), ended(1, timed_out)]].concat()),
        ("INV-116", [run(1, "a"), run(2, "a"), vec![ended(2, timed_out), ended(2, timed_out)]].concat()),
        (
            "INV-116",
            with(
                run(1, "a"),
                vec![is(1, Preparing), is(1, Running), ended(1, timed_out), ended(1, timed_out)],
            ),
        ),
        ("INV-135", vec![stop(), came(1, "a"), is(1, Preparing)]),
        ("INV-135", vec![stop(), came(1, "a"), is(1, Running)]),
    ]
}

#[test]
fn each_rule_notices_the_log_that_it_is_there_for() {
    let mut noticed = BTreeSet::new();
    for (rule, lines) in breaches() {
        assert_eq!(found(&lines), [(rule, lines.len() as u64)]);
        assert_eq!(found(&lines[..lines.len() - 1]), [], "{rule}: it is the last line that breaks it");
        noticed.insert(rule);
    }
    let all: BTreeSet<&str> =
        catalog::rules().map(|entry| entry.id).filter(|id| needs_no_more_than_a_log(id)).collect();
    assert_eq!(noticed, all);
}

#[test]
fn a_broken_rule_is_said_once_and_later_tasks_are_judged_as_before() {
    let end = |claim| ended(claim, RunEnd::Completed);
    let twice = [came(1, "a"), is(1, Running), came(2, "a"), is(2, Running), end(2), end(2), end(2)];
    assert_eq!(found(&twice), [("INV-116", 6)]);
    let after = [came(3, "a"), is(3, Running), end(3), reported(3, ReportKind::Complete)];
    assert_eq!(found(&[&twice[..], &after[..]].concat()), [("INV-116", 6)]);
    // Three at a time with two slots are found when the second of them ends, and not again.
    let crowd = [is(4, Running), is(5, Running), is(6, Running), end(4), end(5), end(6)];
    assert_eq!(found(&crowd), [("I1", 5)]);
}

#[test]
fn what_a_log_may_leave_out_is_not_blamed() {
    use ReportKind::Complete;
    let unknown = RunEnd::Failed { reason: FailReason::Unknown };
    for lines in [
        // It came before the log begins: whether it came again cannot be told.
        vec![is(1, Running), ended(1, RunEnd::Completed), reported(1, Complete), is(1, Preparing)],
        // What was at work may have ended, and what was over may have come again.
        vec![came(1, "a"), is(1, Running), came(2, "a"), is(2, Preparing), is(2, Running)],
        vec![came(1, "a"), is(1, Running), is(1, Preparing), is(1, Running), reported(1, Complete)],
        vec![came(1, "a"), is(1, Running), reported(1, FAILED), is(1, Running), reported(1, Complete)],
        vec![came(1, "a"), reported(1, Complete), is(1, Starting), is(1, Running), reported(1, Complete)],
        vec![came(1, "a"), is(1, Running), reported(1, Complete), came(2, "a"), is(2, Running)],
        vec![
            came(1, "a"),
            is(1, Running),
            came(2, "a"),
            is(2, Running),
            ended(2, unknown),
            came(3, "a"),
            is(3, Running),
            ended(3, unknown),
        ],
        // Which of the runs ended first is not known.
        vec![is(1, Running), is(2, Running), is(3, Running), ended(3, unknown), over(1), over(2)],
        // A runtime that is registered again may be so in another process.
        vec![registered(), stop(), registered(), came(1, "a"), is(1, Running)],
        // A task that is offered again and ignored, and ends by its name.
        vec![
            came(1, "a"),
            is(1, Running),
            came(2, "a"),
            ended(2, RunEnd::Completed),
            came(3, "a"),
            is(3, Running),
        ],
        // It was never said how it ended.
        vec![came(1, "a"), is(1, Running), ended(1, unknown), reported(1, Complete)],
        // It failed without a word of its run's end.
        vec![came(1, "a"), is(1, Running), is(1, Reporting), reported(1, FAILED)],
        // A refused completion is followed by a failure.
        vec![
            came(1, "a"),
            is(1, Running),
            ended(1, RunEnd::Completed),
            owed(1, Complete),
            reported(1, FAILED),
        ],
        // What came before the stop goes on, and what came after it is left alone.
        vec![came(1, "a"), stop(), came(2, "b"), is(1, Preparing), is(1, Running), over(2)],
    ] {
        assert_eq!(found(&lines), [], "{lines:?}");
    }
}

#[test]
fn how_many_tasks_may_be_at_work_is_judged_only_where_it_is_known() {
    let unknown = Config { slots: Config::MAX_SLOTS, ..Config::default() };
    let mut rules = LogRules::new(&unknown);
    assert!(!rules.is_bounded() && LogRules::new(&Config::default()).is_bounded());
    for claim in 1..=u64::from(Config::MAX_SLOTS) + 1 {
        let (event, effects) = is(claim, Running);
        rules.observe(claim, event.as_ref(), &effects);
    }
    assert_eq!(rules.violations(), []);
}

/// What an audit says of an imported trace with these records: the rules that are broken, each with life and step; and how many steps were judged.
fn audited(lives: &[Vec<Record>]) -> (Vec<(&'static str, u64, u64)>, u64) {
    let mut audit = Audit::default();
    for (seed, records) in (0..).zip(lives) {
        let config = Config { slots: 2, ..Config::default() };
        let mut header = Header::new(IMPORTED, config, Seed(seed), Now::default());
        header.from = Some(Origin::new(0, 0));
        audit.record(Place::default(), Record::Header(Box::new(header))).expect("a header");
        for record in records {
            audit.record(Place::default(), record.clone()).expect("in order");
        }
    }
    let found = |found: &trace::Finding| (found.violation.rule, found.life, found.violation.step);
    assert!(audit.blind().all(|id| !needs_no_more_than_a_log(id)));
    (audit.findings().iter().map(found).collect(), audit.audited().logged)
}

fn records(lines: &[Line], first: u64) -> Vec<Record> {
    let record = |((event, effects), n): (&Line, u64)| {
        let (event, effects) = (event.clone(), Some(effects.clone()));
        let Now { mono, wall, slept } = Now::default();
        Record::Step(trace::Step { n, mono, wall, slept, event, effects })
    };
    lines.iter().zip(first..).map(record).collect()
}

#[test]
fn an_audit_judges_what_was_imported_and_forgets_what_was_on_where_something_is_missing() {
    let begun = [came(1, "a"), is(1, Running), came(2, "a"), is(2, Running)];
    let end = [ended(2, RunEnd::Completed), ended(2, RunEnd::Completed)];
    let all = [&begun[..], &end[..]].concat();
    assert_eq!(audited(&[records(&all, 1)]), (vec![("INV-116", 1, 6)], 6));
    // In another life it is another run, and what is broken there is said to be there.
    let [first, second] = [records(&begun, 1), records(&end, 1)];
    assert_eq!(audited(&[first.clone(), second]), (Vec::new(), 6));
    assert_eq!(audited(&[first.clone(), records(&all, 1)]).0, [("INV-116", 2, 6)]);
    // What was on may have ended in the gap, or among effects that cannot be read.
    let gap = vec![Record::Gap(Gap { n: 5, lost: 5 })];
    assert_eq!(audited(&[[first.clone(), gap, records(&end, 10)].concat()]), (Vec::new(), 6));
    let mut unread = records(&[stop()], 5);
    if let Some(Record::Step(step)) = unread.first_mut() {
        step.effects = None;
    }
    let late = [came(3, "c"), is(3, Running)];
    assert_eq!(audited(&[[first, unread, records(&late, 6)].concat()]).0, [("INV-135", 1, 7)]);
}
