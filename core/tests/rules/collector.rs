//! The collector.

use super::harness::{FORGED, Tamper, find, has, hide, instead, notice};
use longshore_core::effect::{Effect, EndReason, Fact, FsCall};
use longshore_core::event::{ClaimKey, Event, FsReply};

/// A task that begins to wait until its directory is freed.
fn waits(effects: &[Effect]) -> Option<ClaimKey> {
    match find(effects, "is awaiting root") {
        Some(Effect::Fact { fact: Fact::Phase { claim, .. } }) if !has(effects, "prepare") => Some(claim),
        _ => None,
    }
}

const TAMPERS: &[(&str, Tamper)] = &[
    ("GC-OFF", |_, _, fx| {
        let ready = has(fx, "is ready");
        if ready {
            fx.push(Effect::Fs { op: FORGED, call: FsCall::Scan });
        }
        ready
    }),
    ("GC-PAUSE", |_, _, fx| {
        let freed = has(fx, "is collected");
        if freed {
            fx.push(Effect::Fs { op: FORGED, call: FsCall::Scan });
        }
        freed
    }),
    ("I11", |past, _, fx| {
        let call = fx.iter_mut().find_map(|e| match e {
            Effect::Fs { call: FsCall::Collect(call), .. } => Some(call),
            _ => None,
        });
        let (Some(call), Some(root)) = (call, past.prepared.last()) else { return false };
        let other = format!(r#"{{"root":"{root}","what":"all"}}"#);
        *call = serde_json::from_str(&other).expect("a directory to be freed");
        true
    }),
    ("I23", |_, event, _| match event {
        Event::Fs { r: Ok(FsReply::Scanned { found }), .. } if !found.is_empty() => {
            found.clear();
            true
        }
        _ => false,
    }),
    ("INV-128", |_, event, fx| instead(event, fx, "is collected", Event::Tick)),
    ("INV-129", |_, event, fx| instead(event, fx, "is collected", Event::Tick)),
    ("INV-130", |_, event, fx| instead(event, fx, "is collected", Event::Tick)),
    ("INV-132", |_, _, fx| {
        let waiting =
            waits(fx).map(|claim| Effect::Fact { fact: Fact::Ending { claim, why: EndReason::Server } });
        fx.extend(waiting.clone());
        waiting.is_some()
    }),
    ("INV-143", |_, _, fx| hide(fx, "is ready")),
    ("INV-144", |_, event, fx| instead(event, fx, "scan", Event::stop())),
    ("INV-147", |_, _, fx| has(fx, "is admitted") && hide(fx, "cancel #")),
];

#[test]
fn the_rules_about_the_collector_notice_what_is_tampered_with() {
    notice(TAMPERS);
}
