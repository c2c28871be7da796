//! Whether the server takes the credential, and what follows from it; and the sleep of the machine.

use super::harness::{Tamper, find, forged, has, hide, notice};
use longshore_core::effect::{ApiCall, Effect, WsCmd};
use longshore_core::event::Event;
use longshore_core::id::RuntimeId;

const LOST: &str = "is refused access";
const BACK: &str = "has access again";
const SLEPT: &str = "has slept";

const TAMPERS: &[(&str, Tamper)] = &[
    ("ACCESS-TOLD", |_, _, fx| hide(fx, LOST)),
    ("ACCESS-TOLD", |_, _, fx| hide(fx, BACK)),
    ("ACCESS-QUIET", |_, _, fx| {
        let lost = has(fx, LOST);
        if lost {
            fx.push(forged(ApiCall::Renew));
        }
        lost
    }),
    ("ACCESS-QUIET", |_, _, fx| {
        let lost = has(fx, LOST);
        if lost {
            fx.push(forged(ApiCall::Workspaces));
        }
        lost
    }),
    ("ACCESS-SLOW", |past, event, fx| {
        let Event::Api { op, r: Err(error) } = event else { return false };
        let Some(call) = past.calls.get(op).filter(|_| error.is_about_credential()) else { return false };
        let tried =
            matches!(call, ApiCall::Messages { .. } | ApiCall::Usage { .. } | ApiCall::Complete { .. });
        if tried {
            fx.push(forged(call.clone()));
        }
        tried
    }),
    ("ALL-BEAT", |_, _, fx| has(fx, BACK) && (hide(fx, "beat ") | hide(fx, "ws-beat "))),
    ("ALL-BEAT", |_, _, fx| has(fx, SLEPT) && hide(fx, "beat ")),
    ("WAKE", |_, _, fx| hide(fx, SLEPT)),
    ("WAKE", |_, _, fx| has(fx, SLEPT) && hide(fx, "connect")),
    ("LOOK-RATE", |_, _, fx| {
        let look = find(fx, "status ");
        fx.extend((0..6).filter_map(|_| look.clone()));
        look.is_some()
    }),
    ("INV-64", |_, _, fx| {
        let without = fx.iter_mut().find_map(|e| match e {
            Effect::Ws { cmd: WsCmd::Connect { without, .. }, .. } => Some(without),
            _ => None,
        });
        without.map(|without| without.push(RuntimeId::new("r-nobody-refuses"))).is_some()
    }),
];

#[test]
fn the_rules_about_access_and_sleep_notice_what_is_tampered_with() {
    notice(TAMPERS);
}
