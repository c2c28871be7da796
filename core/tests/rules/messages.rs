//! What a run says: its messages, tokens and session.

use super::harness::{Tamper, ended, hide, notice, twice};
use longshore_core::effect::{ApiCall, Effect};
use longshore_core::event::{ApiReply, Event};

const TAMPERS: &[(&str, Tamper)] = &[
    ("INV-100", |_, _, fx| {
        let after = fx.iter_mut().find_map(|e| match e {
            Effect::Api { call: ApiCall::Messages { after, .. }, .. } => Some(after),
            _ => None,
        });
        after.map(|after| *after += 1).is_some()
    }),
    ("INV-102", |_, _, fx| twice(fx, "pin")),
    ("INV-103", |_, _, fx| twice(fx, "run ")),
    ("INV-98", |_, event, _| ended(event, |outcome| outcome.usage = true)),
    ("INV-99", |_, event, _| ended(event, |outcome| outcome.have += 5)),
    // What follows an answer that is about no task is of the late outbox.
    ("LATE-HURRY", |_, event, fx| {
        let elsewhere = matches!(
            event,
            Event::Api {
                r: Ok(ApiReply::Beaten { .. } | ApiReply::Workspaces { .. } | ApiReply::Claimed { .. }),
                ..
            }
        );
        elsewhere && ["complete ", "fail ", "messages ", "known "].into_iter().any(|call| hide(fx, call))
    }),
    ("MESSAGES-ASK", |_, _, fx| twice(fx, "messages")),
];

#[test]
fn the_rules_about_messages_notice_what_is_tampered_with() {
    notice(TAMPERS);
}
