//! Makes what is left of a failing script plain: default settings, no waiting, short ids; each as long as it fails.

use super::case::{Case, breaks};
use super::runner::Input;
use super::shrink::rebuilt;
use super::start::Start;
use crate::config::Config;
use crate::event::Event;
use crate::rng::Seed;
use crate::time::{Instant, Now, UnixMillis};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};

/// What times are rounded to, in milliseconds, the coarsest first.
const ROUND: [u64; 4] = [60_000, 1_000, 100, 10];

/// Makes a case plain, in place.
pub(super) fn simplify(case: &mut Case, stop: &dyn Fn() -> bool) {
    for pass in [seed, settings, clocks, waits, numbers, ids] {
        if stop() {
            return;
        }
        pass(case, stop);
    }
}

/// Takes the change if the same rule is still broken.
fn keep(case: &mut Case, start: Start, script: Vec<Input>, stop: &dyn Fn() -> bool) -> bool {
    if start == case.start && script == case.script {
        return false;
    }
    let Some(story) = breaks(&start, &script, &case.rule, case.healed, stop) else { return false };
    (case.start, case.script, case.story) = (start, script, story);
    true
}

/// The same for a change after which requests may have other numbers.
fn keep_rebuilt(case: &mut Case, start: Start, script: &[Input], stop: &dyn Fn() -> bool) -> bool {
    let script = rebuilt(&case.start, &case.script, &start, script, stop);
    keep(case, start, script, stop)
}

fn seed(case: &mut Case, stop: &dyn Fn() -> bool) {
    let (start, script) = (Start { seed: Seed(0), ..case.start.clone() }, case.script.clone());
    keep_rebuilt(case, start, &script, stop);
}

fn settings(case: &mut Case, stop: &dyn Fn() -> bool) {
    let script = case.script.clone();
    let start = Start { config: Config::default(), ..case.start.clone() };
    if keep_rebuilt(case, start, &script, stop) {
        return;
    }
    let (Ok(Value::Object(mine)), Ok(Value::Object(default))) =
        (serde_json::to_value(&case.start.config), serde_json::to_value(Config::default()))
    else {
        return;
    };
    let paths = mine.iter().flat_map(|(key, value)| match value {
        Value::Object(inner) if key == "timers" => {
            inner.keys().map(|inner| (key.clone(), Some(inner.clone()))).collect()
        }
        _ => vec![(key.clone(), None)],
    });
    for (key, inner) in paths {
        if stop() {
            return;
        }
        let Ok(Value::Object(mut now)) = serde_json::to_value(&case.start.config) else { return };
        match inner {
            None => drop(now.insert(key.clone(), default[&key].clone())),
            Some(inner) => now[&key][&inner] = default[&key][&inner].clone(),
        }
        if let Ok(config) = serde_json::from_value(now.into()) {
            let (start, script) = (Start { config, ..case.start.clone() }, case.script.clone());
            keep_rebuilt(case, start, &script, stop);
        }
    }
}

/// Both clocks begin at zero, and the machine never sleeps.
fn clocks(case: &mut Case, stop: &dyn Fn() -> bool) {
    let begun = case.start.now.mono;
    let plain = |now: Now| {
        let ms = now.mono.since(begun).as_millis();
        Now::new(
            Instant::from_millis(u64::try_from(ms).unwrap_or(u64::MAX)),
            UnixMillis(i64::try_from(ms).unwrap_or(0)),
        )
    };
    retimed(case, &plain, stop);
    // Or only both to zero, if sleep matters.
    let wall = case.start.now.wall.0;
    let awake = |now: Now| {
        let ms = u64::try_from(now.mono.since(begun).as_millis()).unwrap_or(u64::MAX);
        Now::new(Instant::from_millis(ms), UnixMillis(now.wall.0.saturating_sub(wall))).with_slept(now.slept)
    };
    retimed(case, &awake, stop);
}

fn retimed(case: &mut Case, change: &dyn Fn(Now) -> Now, stop: &dyn Fn() -> bool) -> bool {
    let start = Start { now: change(case.start.now), ..case.start.clone() };
    let script: Vec<Input> = case.script.iter().map(|input| at(input, change(input.now()))).collect();
    keep_rebuilt(case, start, &script, stop)
}

fn at(input: &Input, now: Now) -> Input {
    match input {
        Input::Event { event, .. } => Input::Event { now, event: event.clone() },
        Input::Crash { fate, .. } => Input::Crash { now, fate: *fate },
    }
}

/// As little time passes as possible, and in round numbers.
fn waits(case: &mut Case, stop: &dyn Fn() -> bool) {
    for round in ROUND {
        let up = |now: Now| {
            let ms = now.mono.as_millis().div_ceil(round).saturating_mul(round);
            let more = i64::try_from(ms - now.mono.as_millis().min(ms)).unwrap_or(0);
            Now { mono: Instant::from_millis(ms), wall: UnixMillis(now.wall.0.saturating_add(more)), ..now }
        };
        if stop() || retimed(case, &up, stop) {
            break;
        }
    }
    for nth in 0..case.script.len() {
        if stop() {
            return;
        }
        let before = nth.checked_sub(1).map_or(case.start.now, |before| case.script[before].now());
        let Some(input) = case.script.get(nth) else { return };
        let passed = u64::try_from(input.now().mono.since(before.mono).as_millis()).unwrap_or(0);
        if passed == 0 {
            continue;
        }
        // All of what follows comes sooner.
        let sooner = |now: Now| {
            let wall = UnixMillis(now.wall.0.saturating_sub(i64::try_from(passed).unwrap_or(0)));
            Now { mono: Instant::from_millis(now.mono.as_millis().saturating_sub(passed)), wall, ..now }
        };
        let inputs = case.script.iter().enumerate();
        let script: Vec<Input> = inputs
            .map(|(at_, input)| if at_ < nth { input.clone() } else { at(input, sooner(input.now())) })
            .collect();
        let start = case.start.clone();
        keep_rebuilt(case, start, &script, stop);
    }
}

/// Keys under which numbers stand that mean nothing by themselves.
const NUMBERS: [&str; 3] = ["claim", "version", "signature"];

/// Numbers from 1 on, in their order.
fn numbers(case: &mut Case, stop: &dyn Fn() -> bool) {
    for key in NUMBERS {
        if stop() {
            return;
        }
        let mut found = BTreeSet::new();
        for value in events(case).iter().flatten() {
            visit(value, &mut |at, value| {
                if at == key {
                    found.extend(value.as_u64());
                }
            });
        }
        let to: BTreeMap<u64, u64> = found.into_iter().zip(1..).collect();
        let script = changed(case, &mut |at, value| {
            if at == key
                && let Some(new) = value.as_u64().and_then(|old| to.get(&old))
            {
                *value = (*new).into();
            }
        });
        if let Some(script) = script {
            let start = case.start.clone();
            keep(case, start, script, stop);
        }
    }
}

/// Short ids, in the order of the long ones, as the core goes by their order.
fn ids(case: &mut Case, stop: &dyn Fn() -> bool) {
    let mut found: BTreeMap<String, &'static str> = BTreeMap::new();
    for value in events(case).iter().flatten() {
        visit(value, &mut |at, value| {
            if let (Some(kind), Some(text)) = (kind(at), value.as_str()) {
                found.entry(text.to_owned()).or_insert(kind);
            }
        });
    }
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    let total: BTreeMap<&str, usize> = found.values().fold(BTreeMap::new(), |mut all, kind| {
        *all.entry(*kind).or_default() += 1;
        all
    });
    let mut short = BTreeMap::new();
    for (text, kind) in &found {
        let count = counts.entry(kind).or_default();
        *count += 1;
        let width = total[kind].to_string().len();
        short.insert(text.clone(), format!("{kind}{count:0width$}"));
    }
    if rename(case, &short, stop) {
        return;
    }
    for (from, to) in &short {
        if stop() {
            return;
        }
        if !found.contains_key(to) {
            rename(case, &BTreeMap::from([(from.clone(), to.clone())]), stop);
        }
    }
}

fn rename(case: &mut Case, to: &BTreeMap<String, String>, stop: &dyn Fn() -> bool) -> bool {
    let script = changed(case, &mut |at, value| {
        if kind(at).is_some()
            && let Some(new) = value.as_str().and_then(|old| to.get(old))
        {
            *value = new.as_str().into();
        }
    });
    let start = case.start.clone();
    script.is_some_and(|script| keep(case, start, script, stop))
}

/// How an id under this key is called.
fn kind(key: &str) -> Option<&'static str> {
    match key {
        "task" => Some("t"),
        "runtime" | "id" => Some("r"),
        "workspace" | "list" => Some("w"),
        "root" | "prior" => Some("d"),
        "path" => Some("p"),
        "profile" => Some("c"),
        _ => None,
    }
}

fn events(case: &Case) -> Vec<Option<Value>> {
    let value = |input: &Input| match input {
        Input::Event { event, .. } => serde_json::to_value(event).ok(),
        Input::Crash { .. } => None,
    };
    case.script.iter().map(value).collect()
}

/// The script with each event changed; `None` if something comes out that is no event.
fn changed(case: &Case, change: &mut dyn FnMut(&str, &mut Value)) -> Option<Vec<Input>> {
    let mut script = Vec::with_capacity(case.script.len());
    for (input, value) in case.script.iter().zip(events(case)) {
        script.push(match (input, value) {
            (Input::Event { now, .. }, Some(mut value)) => {
                visit_mut(&mut value, "", change);
                let event: Event = serde_json::from_value(value).ok()?;
                Input::Event { now: *now, event }
            }
            _ => input.clone(),
        });
    }
    Some(script)
}

fn visit(value: &Value, see: &mut dyn FnMut(&str, &Value)) {
    visit_mut(&mut value.clone(), "", &mut |key, value| see(key, value));
}

/// Each value that is no object and no list, with the key that it stands under.
fn visit_mut(value: &mut Value, key: &str, change: &mut dyn FnMut(&str, &mut Value)) {
    match value {
        Value::Object(all) => {
            let all: &mut Map<String, Value> = all;
            for (key, value) in all {
                visit_mut(value, key, change);
            }
        }
        Value::Array(all) => {
            for value in all {
                visit_mut(value, key, change);
            }
        }
        _ => change(key, value),
    }
}
