//! What a daemon of the small world went through, as the records of a trace.

use crate::daemon::View;
use crate::effect::Effect;
use crate::event::Event;
use crate::observe;
use crate::rng::Seed;
use crate::script::{Runner, Seeded, World};
use crate::story::{Builder, Story};
use crate::time::Now;
use crate::trace::{Checkpoint, Header, Origin, Record, Step};

/// Events of one history at most.
const STEPS: usize = 300;

/// One life: its header, its steps, and checkpoints of it.
#[derive(Clone, Debug)]
pub(super) struct Lived {
    pub(super) header: Header,
    pub(super) steps: Vec<Step>,
    pub(super) checkpoints: Vec<Checkpoint>,
}

impl Lived {
    /// The header of a segment that goes on after a checkpoint.
    pub(super) fn header_from(&self, point: &Checkpoint) -> Header {
        Header { from: Some(Origin::new(point.n, point.digest)), ..self.header.clone() }
    }

    /// The steps from number `n` on.
    pub(super) fn from(&self, n: u64) -> &[Step] {
        &self.steps[usize::try_from(n).expect("fits").min(self.steps.len())..]
    }
}

/// Lives, one after the other.
#[derive(Clone, Debug)]
pub(super) struct History {
    pub(super) seed: u64,
    pub(super) lives: Vec<Lived>,
}

impl History {
    /// Plays a seed, and shows what is told so far after each step, with the daemon.
    pub(super) fn of(seed: u64, see: &mut dyn FnMut(&Story, View<'_>)) -> Self {
        let mut choose = Seeded::new(seed);
        let cfg = World::config(&mut choose);
        let mut runner = Runner::new(cfg.clone(), Seed(seed)).expect("a world's settings are in bounds");
        if seed % 2 == 1 {
            runner.world.swarm(&mut choose);
        }
        let start = runner.world.now();
        let header = |life: usize, start: Now| {
            Header::new("script", cfg.clone(), Seed(seed + 1_000_000 * life as u64), start)
        };
        let mut builder = Builder::default();
        let mut lives = Vec::new();
        begin(&mut lives, &mut builder, header(0, start));
        take(&mut lives, &mut builder, (start, None, runner.effects()));
        see(builder.so_far(), runner.daemon.view());
        for nth in 0..STEPS {
            let Some(input) = runner.next(&mut choose) else { break };
            runner.take_with(&input, &mut |step: Option<&observe::Step<'_>>| {
                let Some(step) = step else { return };
                if step.event.is_none() {
                    let header = header(lives.len(), step.now);
                    begin(&mut lives, &mut builder, header);
                }
                take(&mut lives, &mut builder, (step.now, step.event, step.effects));
                see(builder.so_far(), step.view);
            });
            if nth % 16 == 15 {
                let daemon = &runner.daemon;
                let lived = lives.last_mut().expect("one has begun");
                let n = lived.steps.last().expect("it was created").n;
                let state = daemon.checkpoint().expect("it can be written").into();
                lived.checkpoints.push(Checkpoint { n, digest: daemon.digest(), state });
            }
        }
        Self { seed, lives }
    }

    /// The story of all of it.
    pub(super) fn story(&self) -> Story {
        let mut builder = Builder::default();
        for lived in &self.lives {
            builder.header(&lived.header);
            tell(&mut builder, &lived.steps);
        }
        builder.finish()
    }
}

fn begin(lives: &mut Vec<Lived>, builder: &mut Builder, header: Header) {
    builder.header(&header);
    lives.push(Lived { header, steps: Vec::new(), checkpoints: Vec::new() });
}

fn take(lives: &mut [Lived], builder: &mut Builder, (now, event, effects): (Now, Option<&Event>, &[Effect])) {
    let steps = &mut lives.last_mut().expect("one has begun").steps;
    let last = steps.last().and_then(|step: &Step| step.effects.as_deref()).and_then(<[Effect]>::last);
    if matches!(last, Some(Effect::Exit { .. })) {
        // The process has ended: nothing is recorded any more.
        return;
    }
    let (event, effects) = (event.cloned(), Some(effects.to_vec()));
    let Now { mono, wall, slept } = now;
    steps.push(Step { n: steps.len() as u64, mono, wall, slept, event, effects });
    tell(builder, &steps[steps.len() - 1..]);
}

/// Feeds steps.
pub(super) fn tell(builder: &mut Builder, steps: &[Step]) {
    for step in steps {
        builder.record(&Record::Step(step.clone()));
    }
}
