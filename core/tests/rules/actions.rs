//! What the server asks for in its answers to heartbeats.

use super::harness::{Tamper, find, forged, has, hide, notice, twice};
use longshore_core::effect::{ApiCall, Effect, Fact, FsCall};
use longshore_core::event::{ActionKind, Event, WsEvent};
use longshore_core::id::{ActionId, OpId};

/// Another action than all that a world asks for.
const NOBODYS: &str = "a-nobody";

fn begun(effects: &[Effect]) -> Option<(OpId, ActionId)> {
    effects.iter().find_map(|effect| match effect {
        Effect::Fs { op, call: FsCall::Act { action, .. } } => Some((*op, action.id.clone())),
        _ => None,
    })
}

fn is_given_up(effects: &[Effect]) -> bool {
    find(effects, "is over")
        .is_some_and(|fact| matches!(fact, Effect::Fact { fact: Fact::ActionOver { taken: false, .. } }))
}

const TAMPERS: &[(&str, Tamper)] = &[
    ("INV-57", |_, event, fx| {
        let acts = matches!(event, Event::Tick) && (has(fx, "beat ") || has(fx, "ws-beat "));
        acts && (hide(fx, "ws-beat") | hide(fx, "beat"))
    }),
    // A refusal that was none, and a report more than there may be.
    ("INV-59", |_, _, fx| {
        let Some(Effect::ForgetAction { action }) = find(fx, "forget-action").filter(|_| is_given_up(fx))
        else {
            return false;
        };
        fx.clear();
        let runtime = "r-unknown".into();
        fx.push(forged(ApiCall::ActionResult { runtime, action, kind: ActionKind::Models }));
        true
    }),
    ("INV-59", |_, _, fx| has(fx, "result ") && twice(fx, "result ")),
    ("ACTION-ONCE", |_, _, fx| twice(fx, "act ")),
    ("ACTION-ONCE", |_, _, fx| hide(fx, "forget-action")),
    ("ACTION-ONCE", |_, _, fx| twice(fx, "forget-action")),
    ("ACTION-ONCE", |_, _, fx| {
        fx.push(Effect::ForgetAction { action: ActionId::new(NOBODYS) });
        true
    }),
    ("ACTION-BOUND", |_, event, fx| {
        // More than fit are said to be kept.
        matches!(event, Event::Ws { ws: WsEvent::Ack { actions, .. }, .. } if actions.len() > 80)
            && hide(fx, "forget-action")
    }),
    ("ACTION-WAITS", |_, _, fx| hide(fx, "act ")),
    ("ACTION-LIMIT", |_, _, fx| {
        let Some((op, _)) = begun(fx) else { return false };
        fx.push(Effect::Cancel { op });
        true
    }),
    ("ACTION-ENDS", |_, event, fx| matches!(event, Event::Fs { .. }) && hide(fx, "result ")),
    ("ACTION-TOLD", |_, _, fx| {
        let Some(Effect::Fact { fact: Fact::ActionOver { taken, .. } }) =
            fx.iter_mut().find(|effect| matches!(effect, Effect::Fact { fact: Fact::ActionOver { .. } }))
        else {
            return false;
        };
        *taken = !*taken;
        true
    }),
    ("ACTION-STOP", |_, event, _| {
        // The stop is seen, and what is begun in the same step or later is not allowed any more.
        let asked =
            matches!(event, Event::Ws { ws: WsEvent::Ack { actions, .. }, .. } if !actions.is_empty());
        asked && std::mem::replace(event, Event::stop()) != Event::stop()
    }),
];

#[test]
fn the_rules_about_what_beats_ask_for_notice_what_is_tampered_with() {
    notice(TAMPERS);
}
