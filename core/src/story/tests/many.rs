//! Traces of very many lives.

use crate::config::Config;
use crate::event::{ApiReply, ClaimKey, Event, Offer};
use crate::id::{EnvRoot, OpId, RuntimeId, TaskId};
use crate::rng::Seed;
use crate::story::Story;
use crate::time::Now;
use crate::trace::{Header, IMPORTED, Record, Step};

/// Lives, and tasks of each. If the work for a life grew with what was before it, this would take minutes.
const LIVES: u64 = 10_000;
const TASKS: u64 = 20;

#[test]
fn a_life_takes_no_more_work_for_the_lives_before_it() {
    let offer = |claim: u64| Offer {
        claim: ClaimKey(claim),
        task: TaskId::new(format!("t-{claim}")),
        runtime: RuntimeId::new("rt-1"),
        root: EnvRoot::new(""),
        prior: None,
        fault: None,
        in_place: false,
    };
    let now = Now::default();
    let mut builder = Story::builder();
    for life in 0..LIVES {
        builder.header(&Header::new(IMPORTED, Config::default(), Seed(life), now));
        let offers = (life * TASKS..(life + 1) * TASKS).map(offer).collect();
        let claimed = Event::Api { op: OpId(1), r: Ok(ApiReply::Claimed { offers, unusable: 0 }) };
        for (n, event) in [(0, None), (1, Some(claimed))] {
            let (mono, wall, slept) = (now.mono, now.wall, now.slept);
            builder.record(&Record::Step(Step { n, mono, wall, slept, event, effects: Some(Vec::new()) }));
        }
    }
    let story = builder.finish();
    assert_eq!((story.lives.len() as u64, story.tasks.len() as u64), (LIVES, LIVES * TASKS));
    assert!(story.tasks.iter().all(|task| task.before.is_none()), "each is another one");
}
