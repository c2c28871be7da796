//! The laws of the boundary, on the whole daemon: time, deadlines, repetition and determinism.

use longshore_core::config::Config;
use longshore_core::daemon::Daemon;
use longshore_core::effect::{ApiCall, Effect, Effects, Fact, FsCall, WsCmd};
use longshore_core::event::{Event, RunEvent};
use longshore_core::rng::Seed;
use longshore_core::script::{Choose, Runner, Seeded, World};
use longshore_core::time::{Instant, Now};

const SEEDS: u64 = 60;
const STEPS: usize = 300;

/// Something that happened to a process.
struct Happened {
    now: Now,
    event: Event,
}

/// A history of one process: settings and what happened.
fn history(seed: u64) -> (Config, Vec<Happened>) {
    let mut choose = Seeded::new(seed);
    let cfg = World::config(&mut choose);
    let mut runner = Runner::new(cfg.clone(), Seed(seed)).expect("a world's settings are in bounds");
    let mut script = Vec::new();
    for _ in 0..STEPS {
        let wakeup = runner.daemon.next_wakeup().map(|(at, _)| at);
        let Some((now, event)) = runner.world.next(&mut choose, wakeup) else { break };
        runner.feed(now, event.clone());
        script.push(Happened { now, event });
    }
    (cfg, script)
}

struct Bare {
    daemon: Daemon,
    effects: Effects,
    now: Instant,
}

impl Bare {
    fn new(cfg: &Config, seed: u64) -> Self {
        let mut effects = Effects::new();
        let now = World::default().now();
        let daemon = Daemon::new(cfg.clone(), Seed(seed), now, &mut effects).expect("settings are in bounds");
        Self { daemon, effects, now: now.mono }
    }

    fn feed(&mut self, now: Now, event: &Event) -> Vec<Effect> {
        self.effects.clear();
        self.daemon.handle(now, event, &mut self.effects);
        self.now = self.now.max(now.mono);
        self.effects.drain().collect()
    }

    fn fork(&self) -> Self {
        let text = self.daemon.checkpoint().expect("a state can be written down");
        let daemon = Daemon::restore(&text).expect("what was written can be read");
        assert_eq!(daemon.digest(), self.daemon.digest());
        Self { daemon, effects: Effects::new(), now: self.now }
    }

    fn wakeup(&self) -> Option<Instant> {
        self.daemon.next_wakeup().map(|(at, _)| at)
    }
}

#[test]
fn l8_equal_histories_give_equal_effects_and_digests() {
    for seed in 0..SEEDS {
        let (cfg, script) = history(seed);
        let (mut a, mut b) = (Bare::new(&cfg, seed), Bare::new(&cfg, seed));
        for input in &script {
            assert_eq!(a.feed(input.now, &input.event), b.feed(input.now, &input.event));
            assert_eq!(a.daemon.digest(), b.daemon.digest());
        }
    }
}

#[test]
fn a_daemon_restored_at_any_step_goes_on_like_the_other() {
    for seed in 0..SEEDS {
        let (cfg, script) = history(seed);
        let mut choose = Seeded::new(seed);
        let mut a = Bare::new(&cfg, seed);
        let mut b = a.fork();
        for input in &script {
            if choose.one_in(20) {
                b = a.fork();
            }
            assert_eq!(a.feed(input.now, &input.event), b.feed(input.now, &input.event), "seed {seed}");
            assert_eq!(a.daemon.digest(), b.daemon.digest(), "seed {seed}");
            assert_eq!(a.daemon.next_wakeup(), b.daemon.next_wakeup());
        }
    }
}

#[test]
fn a_checkpoint_that_contradicts_itself_is_refused() {
    let (cfg, _) = history(1);
    let text = Bare::new(&cfg, 1).daemon.checkpoint().expect("a state can be written down");
    assert!(Daemon::restore(&text).is_ok());
    let lost = text.replacen("\"free\":[0", "\"free\":[9", 1);
    assert_ne!(lost, text, "the slots are in it");
    assert!(Daemon::restore(&lost).is_err());
    assert!(Daemon::restore("{}").is_err());
}

/// L1, L3: before the deadline nothing happens by itself, whether or not somebody looks; at the deadline the same happens.
#[test]
fn l1_l3_nothing_happens_before_the_deadline_and_an_early_tick_changes_nothing() {
    for seed in 0..SEEDS {
        let (cfg, script) = history(seed);
        let mut daemon = Bare::new(&cfg, seed);
        for (nth, input) in script.iter().enumerate() {
            daemon.feed(input.now, &input.event);
            let Some(at) = daemon.wakeup().filter(|at| nth % 11 == 0 && *at > daemon.now) else { continue };
            let (mut slept, mut looked) = (daemon.fork(), daemon.fork());
            let (from, wall) = (daemon.now.as_millis(), input.now.wall);
            let gap = at.as_millis() - from;
            for part in 1..10 {
                let early = Instant::from_millis(from + gap * part / 10)
                    .min(Instant::from_millis(at.as_millis() - 1));
                assert_eq!(looked.feed(Now::new(early, wall), &Event::Tick), [], "seed {seed}");
                assert_eq!(looked.wakeup(), Some(at));
            }
            let due = Now::new(at, wall);
            assert_eq!(slept.feed(due, &Event::Tick), looked.feed(due, &Event::Tick), "seed {seed}");
            assert_eq!(slept.daemon.digest(), looked.daemon.digest(), "seed {seed}");
        }
    }
}

#[test]
fn l2_a_tick_at_the_deadline_moves_it() {
    for seed in 0..SEEDS {
        let (cfg, script) = history(seed);
        let mut daemon = Bare::new(&cfg, seed);
        for (nth, input) in script.iter().enumerate() {
            daemon.feed(input.now, &input.event);
            let Some(at) = daemon.wakeup().filter(|_| nth % 11 == 0) else { continue };
            let mut fork = daemon.fork();
            let at = at.max(daemon.now);
            fork.feed(Now::new(at, input.now.wall), &Event::Tick);
            assert!(fork.wakeup().is_none_or(|next| next > at), "seed {seed}: still due");
        }
    }
}

#[test]
fn l4_a_clock_that_goes_back_is_counted_and_changes_nothing() {
    for seed in 0..SEEDS {
        let (cfg, script) = history(seed);
        let mut daemon = Bare::new(&cfg, seed);
        for (nth, pair) in script.windows(2).enumerate() {
            daemon.feed(pair[0].now, &pair[0].event);
            let ahead = daemon.wakeup().is_none_or(|at| at > daemon.now);
            if nth % 11 != 0 || !ahead || daemon.now == Instant::ZERO {
                continue;
            }
            let (mut steady, mut jumped) = (daemon.fork(), daemon.fork());
            let back = Now::new(Instant::from_millis(daemon.now.as_millis() - 1), pair[0].now.wall);
            let before = daemon.daemon.view().backward_clocks();
            assert_eq!(jumped.feed(back, &Event::Tick), []);
            assert_eq!(jumped.daemon.view().backward_clocks(), before + 1);
            let next = &pair[1];
            assert_eq!(steady.feed(next.now, &next.event), jumped.feed(next.now, &next.event), "seed {seed}");
        }
    }
}

#[test]
fn l5_an_answer_that_comes_twice_is_taken_once() {
    for seed in 0..SEEDS {
        let (cfg, script) = history(seed);
        let mut daemon = Bare::new(&cfg, seed);
        for input in &script {
            daemon.feed(input.now, &input.event);
            let answers = matches!(
                input.event,
                Event::Api { .. } | Event::Fs { .. } | Event::Run { run: RunEvent::Ended { .. }, .. }
            );
            if !answers || daemon.wakeup().is_none_or(|at| at <= daemon.now) {
                continue;
            }
            let again = daemon.fork().feed(input.now, &input.event);
            let strays = |e: &Effect| matches!(e, Effect::Fact { fact: Fact::Stray { .. } });
            assert!(again.iter().all(strays), "seed {seed}: {:?} led to {again:?}", input.event);
        }
    }
}

/// L6: what a plain stop still asks for is only about ending what is there, and about telling the server.
#[test]
fn l6_after_a_stop_only_reports_and_the_deregistration_are_asked_for() {
    let mut stopped = 0;
    for seed in 0..SEEDS {
        let (cfg, script) = history(seed);
        let mut daemon = Bare::new(&cfg, seed);
        let half = script.len() / 2;
        for input in &script[..half] {
            daemon.feed(input.now, &input.event);
        }
        let Some(last) = script[..half].last() else { continue };
        let mut asked = daemon.feed(last.now, &Event::stop());
        for input in &script[half..] {
            asked.extend(daemon.feed(input.now, &input.event));
        }
        stopped += asked.len();
        for effect in asked {
            let ends = match &effect {
                Effect::Api { call, .. } => matches!(
                    call,
                    ApiCall::Deregister { .. }
                        | ApiCall::Complete { .. }
                        | ApiCall::Fail { .. }
                        | ApiCall::CancelAck { .. }
                        | ApiCall::Messages { .. }
                        | ApiCall::MessagesKnown { .. }
                        | ApiCall::Usage { .. }
                        | ApiCall::Pin { .. }
                        | ApiCall::Status { .. }
                ),
                Effect::Fs { call, .. } => matches!(call, FsCall::Unwind { .. } | FsCall::Seal { .. }),
                Effect::Run { .. } => false,
                Effect::Ws { cmd, .. } => *cmd == WsCmd::Close,
                _ => true,
            };
            let began_otherwise =
                script[..half].iter().any(|input| matches!(input.event, Event::Stop { .. }));
            assert!(ends || began_otherwise, "seed {seed}: {effect:?}");
        }
    }
    assert!(stopped > 0);
}

/// L7: with everything answered and no input, the daemon comes to rest.
#[test]
fn l7_without_input_the_daemon_comes_to_rest() {
    let mut rested = 0;
    for seed in 0..SEEDS {
        let mut choose = Seeded::new(seed);
        let mut runner = Runner::new(World::config(&mut choose), Seed(seed)).expect("settings are in bounds");
        runner.play(&mut choose, STEPS);
        runner.heal();
        assert_eq!(runner.violations(), [], "seed {seed}");
        if runner.daemon.next_wakeup().is_none() {
            // It has ended: what it left is named in its exit report, which a rule compares.
            continue;
        }
        rested += 1;
        let view = runner.daemon.view();
        assert_eq!(view.tasks().count(), 0, "seed {seed}");
        assert!(!view.has_late_reports(), "seed {seed}");
        assert_eq!((view.free_slots(), view.open_ops()), (view.total_slots(), 0), "seed {seed}");
    }
    assert!(rested > 5, "some daemons were not stopped");
}
