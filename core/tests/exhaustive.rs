//! Every history of a small daemon, to a depth, from where things are most entangled: no rule is broken on any way, and from a sample of
//! where they end the daemon comes to rest. And a fork of a daemon is that daemon.

use longshore_core::config::{Config, Timing};
use longshore_core::effect::Effect;
use longshore_core::event::{ApiReply, ClaimKey, Event, FsReply, Offer, RunEvent};
use longshore_core::id::{EnvRoot, OpId, RuntimeId, TaskId, WorkspaceId};
use longshore_core::rng::Seed;
use longshore_core::script::{Bounds, Choose, Runner, Seeded, World, effect_label, input_label};
use std::fmt::Write;
use std::time::Duration;

/// One slot; what only goes on beside tasks happens seldom, as it is another request on its way in every state.
fn settings() -> Config {
    let hour = Duration::from_hours(1);
    let timers = Timing {
        beat: hour,
        watch: Duration::from_mins(1),
        discover: hour,
        versions: hour,
        ..Timing::default()
    };
    Config { slots: 1, timers, ..Config::default() }
}

/// A daemon with two runtimes of one workspace, with nothing to do.
fn idle() -> Runner {
    let mut runner = Runner::new(settings(), Seed(7)).expect("settings are in bounds");
    while !(runner.daemon.view().is_ready() && runner.daemon.view().is_linked()) {
        step(&mut runner, false);
    }
    while runner.daemon.view().open_ops() > 0 {
        step(&mut runner, false);
    }
    assert_eq!(runner.daemon.view().runtime_count(), 2);
    runner
}

/// Lets the next thing go well. A claim brings a task if `give`.
fn step(runner: &mut Runner, give: bool) {
    let wakeup = runner.daemon.next_wakeup().map(|(at, _)| at);
    let (now, mut event) = runner.world.healthy(wakeup);
    if let Event::Fs { r: Ok(FsReply::Probed { agents }), .. } = &mut event {
        // What two runtimes are enough for: nothing is missing.
        agents.retain(|agent| ["claude", "codex"].contains(&agent.provider.as_str()));
    }
    if let Event::Api { r: Ok(reply), .. } = &mut event {
        match reply {
            ApiReply::Workspaces { list, .. } => *list = vec![WorkspaceId::new("ws-1")],
            ApiReply::Registered { runtimes } => runtimes.truncate(2),
            ApiReply::Claimed { offers, .. } if give => offers.push(offer()),
            _ => {}
        }
    }
    runner.feed(now, event);
    assert_eq!(runner.violations(), []);
}

fn offer() -> Offer {
    Offer {
        claim: ClaimKey(1),
        task: TaskId::new("t-1"),
        runtime: RuntimeId::new("ws-1-a"),
        root: EnvRoot::new("ws/t-1"),
        prior: None,
        fault: None,
        in_place: false,
    }
}

/// Goes on until the daemon wants this done. Returns the request's number.
fn until(runner: &mut Runner, wanted: &str) -> OpId {
    for _ in 0..200 {
        let give = runner.daemon.view().tasks().next().is_none();
        step(runner, give);
        if let Some(effect) = runner.effects().iter().find(|e| effect_label(e).starts_with(wanted)) {
            return match effect {
                Effect::Api { op, .. } | Effect::Fs { op, .. } | Effect::Run { op, .. } => *op,
                _ => OpId(0),
            };
        }
    }
    panic!("{wanted} never comes");
}

/// A task whose directory is being prepared.
fn preparing() -> Runner {
    let mut runner = idle();
    until(&mut runner, "prepare 1");
    runner
}

/// A task that runs and has said all that it says in this world.
fn running() -> Runner {
    let mut runner = idle();
    let op = until(&mut runner, "run 1");
    for run in [RunEvent::Launched, RunEvent::Progress { have: 2, session: false, tools: 0 }] {
        runner.feed(runner.world.now(), Event::Run { op, run });
    }
    runner
}

/// A stop while the report of a task is on its way.
fn stopping() -> Runner {
    let mut runner = idle();
    until(&mut runner, "complete 1");
    runner.feed(runner.world.now(), Event::stop());
    runner
}

/// Explores to a depth of `depth`, with at most `faults` things that go wrong; at least `least` states must be there to be found.
fn explore(name: &str, start: &Runner, (depth, faults): (usize, u8), least: usize) {
    let bounds = Bounds { depth, faults, heal_one_in: 200 };
    let found = start.explore(&bounds).expect("each state can be written down");
    #[expect(clippy::disallowed_macros, reason = "a test's figures")]
    {
        println!("{name}: {} states, {} steps, {} healed", found.states, found.edges, found.healed);
    }
    if let Some((script, story)) = found.broken {
        let mut text = format!("{name}: {story}\n");
        for input in &script {
            writeln!(text, "{:>9} ms  {}", input.now().mono.as_millis(), input_label(input))
                .expect("a String takes everything");
        }
        panic!("{text}");
    }
    assert!(found.states >= least, "{name}: only {} states were reached", found.states);
    assert!(found.healed > 0, "{name}: nothing was healed");
}

#[test]
fn every_history_of_two_idle_runtimes_is_sound() {
    explore("idle", &idle(), (8, 1), 5_000);
}

#[test]
fn every_history_of_a_task_that_is_prepared_is_sound() {
    explore("preparing", &preparing(), (8, 1), 5_000);
}

#[test]
fn every_history_of_a_task_that_runs_is_sound() {
    explore("running", &running(), (8, 1), 20_000);
}

#[test]
fn every_history_of_a_stop_within_a_report_is_sound() {
    explore("stopping", &stopping(), (8, 1), 5_000);
}

#[test]
#[ignore = "takes minutes"]
fn every_history_with_two_faults_is_sound() {
    explore("idle", &idle(), (8, 2), 100_000);
    explore("stopping", &stopping(), (8, 2), 100_000);
    explore("preparing", &preparing(), (7, 2), 100_000);
}

/// Forks at random steps of 200 histories: the same effects and the same digest from there on, with the same rules and in the same world.
#[test]
fn a_fork_does_what_its_origin_does() {
    for seed in 0..200 {
        let mut choose = Seeded::new(seed);
        let cfg = World::config(&mut choose);
        let mut runner = Runner::new(cfg, Seed(seed)).expect("a world's settings are in bounds");
        for _ in 0..3 {
            let before = 1 + choose.below(80) as usize;
            runner.play(&mut choose, before);
            let mut fork = runner.fork().expect("each state can be written down");
            let mut same = choose.clone();
            for _ in 0..40 {
                let wakeup = runner.daemon.next_wakeup().map(|(at, _)| at);
                let next = runner.world.next(&mut choose, wakeup);
                assert_eq!(next, fork.world.next(&mut same, wakeup), "seed {seed}");
                let Some((now, event)) = next else { break };
                let effects = runner.feed(now, event.clone()).to_vec();
                assert_eq!(effects, fork.feed(now, event), "seed {seed}");
                assert_eq!(runner.daemon.digest(), fork.daemon.digest(), "seed {seed}");
                assert_eq!(runner.violations(), fork.violations(), "seed {seed}");
            }
        }
    }
}
