//! Ends of runs that are too silent or too long.

use super::harness::{Tamper, has, hide, notice};
use longshore_core::effect::{ApiCall, Effect, EndReason, Fact};
use longshore_core::event::{Event, RunEvent};
use longshore_core::reason::FailReason;

/// States another reason for an end.
fn ending(effects: &mut [Effect], other: EndReason) -> bool {
    let why = effects.iter_mut().find_map(|e| match e {
        Effect::Fact { fact: Fact::Ending { why, .. } } if *why != other => Some(why),
        _ => None,
    });
    why.map(|why| *why = other).is_some()
}

const TAMPERS: &[(&str, Tamper)] = &[
    ("FORCED", |_, _, fx| {
        let fail = fx.iter_mut().find_map(|e| match e {
            Effect::Api { call: ApiCall::Fail { reason: reason @ FailReason::IdleWatchdog, .. }, .. } => {
                Some(reason)
            }
            _ => None,
        });
        fail.map(|reason| *reason = FailReason::Unknown).is_some()
    }),
    ("INV-111", |_, _, fx| hide(fx, "is ending 1 idle") || hide(fx, "is ending 2 idle")),
    ("INV-111", |_, event, _| match event {
        Event::Run { run: RunEvent::Progress { tools, .. }, .. } if *tools > 0 => {
            *tools = 0;
            true
        }
        _ => false,
    }),
    ("INV-112", |_, _, fx| ending(fx, EndReason::TooLong)),
    ("INV-112", |_, _, fx| hide(fx, "is ending") && has(fx, "end #")),
    ("RUN-LIMIT", |_, _, fx| hide(fx, "is ending 1 too long")),
];

#[test]
fn the_rules_about_watchdogs_notice_what_is_tampered_with() {
    notice(TAMPERS);
}
