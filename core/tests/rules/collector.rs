//! The collector.

use super::harness::{FORGED, Tamper, has, hide, instead, notice};
use longshore_core::effect::{Effect, FsCall};
use longshore_core::event::{ApiReply, Event, FsReply};
use longshore_core::id::EnvRoot;

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
    ("I11", |_, event, fx| {
        // A task that waits for one directory is shown with others, which the collector may turn to next.
        let waits = has(fx, "is awaitingroot") && !has(fx, "prepare");
        match event {
            Event::Api { r: Ok(ApiReply::Claimed { offers, .. }), .. } if waits && offers.len() == 1 => {
                offers[0].root = EnvRoot::new("ws/p-1");
                offers[0].prior = Some(EnvRoot::new("ws/p-2"));
                true
            }
            _ => false,
        }
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
        // A task that is given up before anything was prepared for it.
        let given_up = has(fx, "is ending") && !has(fx, "unwind");
        given_up && (hide(fx, "fail ") | hide(fx, "cancel-ack"))
    }),
    ("INV-143", |_, _, fx| hide(fx, "is ready")),
    ("INV-144", |_, event, fx| instead(event, fx, "scan", Event::stop())),
    ("INV-147", |_, _, fx| has(fx, "is admitted") && hide(fx, "cancel #")),
];

#[test]
fn the_rules_about_the_collector_notice_what_is_tampered_with() {
    notice(TAMPERS);
}
