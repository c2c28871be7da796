//! Users' directories and their lines.

use super::harness::{Tamper, has, hide, instead, notice, twice};
use longshore_core::effect::{ApiCall, Effect, EndReason, Fact};
use longshore_core::event::{Event, FsReply};
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
    ("INV-89", |_, _, fx| has(fx, "prepare") && hide(fx, "is awaitingroot")),
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
    ("INV-92", |_, _, fx| has(fx, "is awaitingslot") && hide(fx, "is released")),
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
    ("PARK-BOUND", |_, _, fx| twice(fx, "claim ") || twice(fx, "one ")),
    ("PATH-FIFO", |_, _, fx| another(fx, "is awaitingslot")),
    ("PATH-GRANT", |_, _, fx| {
        // Who gets it mostly goes on at once.
        hide(fx, "is awaitingslot") && (hide(fx, "is unparked") | hide(fx, "is awaitingroot"))
    }),
    ("PATH-LEFT", |_, _, fx| has(fx, "prepare") && hide(fx, "is awaitingroot")),
    ("UNPARK-FIRST", |_, _, fx| has(fx, "claim") && hide(fx, "is unparked")),
    ("UNPARK-ORDER", |_, _, fx| another(fx, "is unparked")),
];

#[test]
fn the_rules_about_directories_notice_what_is_tampered_with() {
    notice(TAMPERS);
}
