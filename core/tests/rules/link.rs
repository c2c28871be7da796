//! The control connection and what it brings.

use super::harness::{Tamper, find, forged, hide, notice};
use longshore_core::effect::{ApiCall, Effect, Fact, WsCmd};
use longshore_core::event::{Event, WsEvent};
use longshore_core::id::{ConnGen, Generation};

/// Dials again at once when a connection is lost.
fn dials_at_once(event: &Event, effects: &mut Vec<Effect>) -> bool {
    let Event::Ws { conn, ws: WsEvent::Down } = event else { return false };
    let set = Generation(0);
    effects.push(Effect::Ws { conn: ConnGen(conn.0 + 1), cmd: WsCmd::Connect { set, without: Vec::new() } });
    true
}

fn is_up(event: &Event) -> bool {
    matches!(event, Event::Ws { ws: WsEvent::Up, .. })
}

const TAMPERS: &[(&str, Tamper)] = &[
    ("INV-54", |_, event, fx| match event {
        Event::Ws { ws: WsEvent::Ack { runtime, gone: false, .. }, .. } => {
            fx.push(forged(ApiCall::Beat { runtime: runtime.clone() }));
            true
        }
        _ => false,
    }),
    ("INV-55", |_, _, fx| hide(fx, "beat ")),
    ("INV-56", |_, event, fx| {
        if *event != Event::Tick {
            return false;
        }
        fx.push(Effect::DropIdleConnections);
        true
    }),
    ("INV-58", |_, _, fx| {
        let beat = find(fx, "beat ");
        fx.extend(beat.iter().cloned());
        fx.extend(beat.iter().cloned());
        beat.is_some()
    }),
    ("INV-60", |_, event, fx| is_up(event) && hide(fx, "workspaces")),
    ("INV-61", |_, event, fx| {
        let quiet = is_up(event) && find(fx, "is reconciled").is_none() && find(fx, "ws-beat").is_some();
        if quiet {
            fx.push(Effect::Fact { fact: Fact::Reconciled });
        }
        quiet
    }),
    ("INV-62", |_, event, fx| dials_at_once(event, fx)),
    ("INV-63", |_, event, fx| dials_at_once(event, fx)),
    ("INV-64", |_, _, fx| {
        let set = fx.iter_mut().find_map(|e| match e {
            Effect::Ws { cmd: WsCmd::Connect { set, .. }, .. } => Some(set),
            _ => None,
        });
        set.map(|set| *set = Generation(9_999)).is_some()
    }),
];

#[test]
fn the_rules_about_the_connection_notice_what_is_tampered_with() {
    notice(TAMPERS);
}
