//! Claims that go on from one life to the next.

use longshore_core::effect::PhaseName;
use longshore_core::story::{Fate, Story, Task};

/// Each claim with its task in each of its lives, in order.
pub(super) fn claims(story: &Story) -> Vec<Vec<&Task>> {
    let mut claims: Vec<Vec<&Task>> = Vec::new();
    let mut places: Vec<usize> = Vec::with_capacity(story.tasks.len());
    for task in &story.tasks {
        let place = task.before.and_then(|before| places.get(before.get()).copied());
        let place = place.unwrap_or(claims.len());
        places.push(place);
        match claims.get_mut(place) {
            Some(claim) => claim.push(task),
            None => claims.push(vec![task]),
        }
    }
    claims
}

/// What became of a claim. A life that has only the rest of one does not always know that its end was told before.
pub(super) fn outcome(claim: &[&Task]) -> Fate {
    let is_told = |fate: &Fate| {
        matches!(fate, Fate::Reported { .. } | Fate::Superseded { .. } | Fate::Refused { .. } | Fate::Silent)
    };
    let last = claim.last().map_or(Fate::Unknown, |task| task.fate);
    match last {
        Fate::Unknown | Fate::Open | Fate::Kept => {
            claim.iter().rev().map(|task| task.fate).find(is_told).unwrap_or(last)
        }
        _ => last,
    }
}

/// The phase that each task is in at the beginning of its next life, if it goes on there.
pub(super) fn gone_on(story: &Story) -> Vec<Option<PhaseName>> {
    let mut all = vec![None; story.tasks.len()];
    for task in story.tasks.iter().filter(|task| task.goes_on_in(0)) {
        if let (Some(before), Some(phase)) = (task.before, task.phases.first()) {
            all[before.get()] = Some(phase.name);
        }
    }
    all
}
