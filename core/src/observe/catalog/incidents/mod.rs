//! What went wrong in daemons of this kind.

mod around;
mod claims;
mod runtimes;
mod tasks;

use super::Incident;

/// Incidents of daemons of this kind, by number, and what keeps them from happening here.
pub fn incidents() -> impl Iterator<Item = &'static Incident> {
    [claims::INCIDENTS, runtimes::INCIDENTS, tasks::INCIDENTS, around::INCIDENTS].into_iter().flatten()
}
