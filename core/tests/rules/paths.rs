//! Users' directories and their lines.

use super::harness::{Tamper, has, hide, instead, notice, twice};
use longshore_core::effect::{ApiCall, Effect, EndReason, Fact, Keep};
use longshore_core::event::{Event, FsReply, Recovered};
use longshore_core::id::{OpId, PathKey};
use longshore_core::reason::FailReason;
use longshore_core::script::effect_label;
use longshore_core::time::Instant;

/// Names another claim in a fact where it comes.
fn another(effects: &mut [Effect], prefix: &str) -> bool {
    let found = effects.iter_mut().find(|effect| effect_label(effect).starts_with(prefix));
    match found {
        Some(Effect::Fact {
            fact:
                Fact::Phase { claim, .. } | Fact::Parked { holder: claim, .. } | Fact::Unparked { claim, .. },
        }) => {
            claim.0 += 1;
            true
        }
        _ => false,
    }
}

const TAMPERS: &[(&str, Tamper)] = &[
    ("INV-122", |_, _, fx| hide(fx, "lease")),
    ("INV-135", |_, event, fx| instead(event, fx, "resolve", Event::stop())),
    ("INV-89", |_, _, fx| has(fx, "prepare") && hide(fx, "is awaiting root")),
    ("INV-90", |_, event, fx| match event {
        Event::Fs { r: Ok(FsReply::Resolved { path }), .. } if has(fx, "prepare") => {
            let change = path.as_str() != "dir-1";
            *path = PathKey::new("dir-1");
            change
        }
        _ => false,
    }),
    ("INV-90", |_, _, fx| another(fx, "is parked")),
    ("INV-91", |_, _, fx| twice(fx, "resolve")),
    ("INV-92", |_, event, fx| {
        let unwound = matches!(event, Event::Fs { .. }) && has(fx, "is awaiting slot");
        if unwound {
            *event = Event::Tick;
        }
        unwound
    }),
    ("LEDGER-PATH", |_, _, fx| {
        let launched = fx.iter_mut().find_map(|effect| match effect {
            Effect::Keep { entry: Keep::Launched { path, .. }, .. } => path.take(),
            _ => None,
        });
        launched.is_some()
    }),
    ("LEDGER-PATH", |_, _, fx| has(fx, "is awaiting slot") && hide(fx, "keep ")),
    ("LEDGER-PATH", |_, event, _| match event {
        Event::Recovered { path: Some(path), was: Recovered::Launched { .. }, .. } => {
            *path = PathKey::new("dir-9");
            true
        }
        _ => false,
    }),
    ("INV-93", |_, _, fx| {
        let ended = fx
            .iter()
            .any(|e| matches!(e, Effect::Fact { fact: Fact::Ending { why: EndReason::Server, .. } }));
        let claim = fx.iter().find_map(|e| match e {
            Effect::Fact { fact: Fact::Released { claim, .. } } => Some(*claim),
            _ => None,
        });
        let Some(claim) = claim.filter(|_| ended) else { return false };
        let call = ApiCall::Fail { claim, reason: FailReason::Cancelled };
        fx.insert(0, Effect::Api { op: OpId(9_000_000), call, deadline: Instant::from_millis(u64::MAX) });
        true
    }),
    ("LDR-2", |_, _, fx| twice(fx, "wait-directory")),
    ("LDR-2", |_, _, fx| hide(fx, "wait-directory")),
    ("PARK-BOUND", |_, _, fx| hide(fx, "is parked")),
    ("PARK-BOUND", |_, _, fx| has(fx, "wait-directory") && hide(fx, "is parked")),
    ("PATH-FIFO", |_, _, fx| another(fx, "is awaiting slot")),
    ("PATH-GRANT", |_, _, fx| {
        // Who gets it mostly goes on at once.
        hide(fx, "is awaiting slot") && (hide(fx, "is unparked") | hide(fx, "is awaiting root"))
    }),
    ("PATH-LEFT", |_, _, fx| has(fx, "prepare") && hide(fx, "is awaiting root")),
    ("UNPARK-FIRST", |_, _, fx| hide(fx, "is unparked")),
    ("UNPARK-ORDER", |_, _, fx| another(fx, "is unparked")),
];

#[test]
fn the_rules_about_directories_notice_what_is_tampered_with() {
    notice(TAMPERS);
}
