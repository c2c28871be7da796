//! What the server is like when the next daemon starts.

use crate::rig::{Rig, WITHIN, until, within};
use longshore_io_tokio::plane::{Action, Fault, Rule};
use std::time::Duration;

/// How long a daemon is given to end itself because its credential is refused.
const GIVES_UP: Duration = Duration::from_secs(10);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outage {
    None,
    /// Its listener is closed; it knows all that it knew.
    Down,
    Busy,
    Unauthorised,
}

impl Outage {
    pub(crate) const ALL: [Self; 4] = [Self::None, Self::Down, Self::Busy, Self::Unauthorised];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::None => "up",
            Self::Down => "down",
            Self::Busy => "answers 503",
            Self::Unauthorised => "answers 401",
        }
    }

    pub(crate) async fn begin(self, rig: &Rig) -> Begun {
        let answer = |status, text| rig.plane.fault(Rule::new("*", "/api/**", Action::error(status, text)));
        let fault = match self {
            Self::None => None,
            Self::Down => {
                rig.plane.pause().await;
                None
            }
            Self::Busy => Some(answer(503, "the database is restarting")),
            Self::Unauthorised => Some(answer(401, "invalid token")),
        };
        Begun { outage: self, fault, gave_up: false }
    }
}

pub(crate) struct Begun {
    outage: Outage,
    fault: Option<Fault>,
    /// Whether a daemon ended because of it.
    pub(crate) gave_up: bool,
}

impl Begun {
    /// Waits until the present daemon has met it; one that ends because of it has ended by then.
    pub(crate) async fn met(&mut self, rig: &Rig) {
        if self.outage == Outage::Down {
            until("a refused connection", || rig.log().contains("Connection refused").then_some(())).await;
        }
        if let Some(fault) = &self.fault {
            tokio::time::timeout(WITHIN, fault.reached(1)).await.expect("the daemon asks the server");
        }
        if self.outage == Outage::Unauthorised {
            self.gave_up = within(GIVES_UP, || rig.daemon().has_ended().then_some(())).await.is_some();
        }
    }

    /// The server is as it should be again. A daemon that had ended is started again, as whoever watches over it does.
    pub(crate) async fn end(&self, rig: &mut Rig) {
        if self.outage == Outage::Down {
            rig.plane.resume().await;
        }
        if let Some(fault) = &self.fault {
            fault.remove();
        }
        if self.gave_up {
            rig.start_next();
        }
    }
}
