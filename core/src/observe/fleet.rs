//! Runtimes, their registration and heartbeats, and the control connection.

use super::actions::ActionBook;
use super::ops::{Closed, End, What};
use super::tasks::TaskBook;
use super::{At, Found, api_end};
use crate::effect::{ApiCall, Effect, FsCall, RuntimeChange, WsCmd};
use crate::error::Refusal;
use crate::event::{ApiReply, WsEvent};
use crate::id::{ConnGen, Generation, OpId, Provider, RuntimeId, WorkspaceId};
use crate::runtimes::{ORPHAN_TRIES, finds_nobody};
use crate::said::Said;
use crate::time::Instant;
use std::collections::BTreeMap;
use std::time::Duration;

/// Beats that hints ask for are at least this far apart.
const HINT_GAP: Duration = Duration::from_secs(1);

#[derive(Clone, Debug)]
struct Runtime {
    provider: Provider,
    claimable: bool,
    recovering: Option<OpId>,
    /// Whether leftovers were failed since it entered the set, or that was refused, or tried often enough.
    recovered: bool,
    /// How often that was tried in vain while the server was there.
    vain: u8,
    /// Whether the server has answered anything since the last of those.
    heard: bool,
    /// When it entered the set, or beat last.
    beat: Instant,
    beating: Option<OpId>,
    /// When it beat over HTTP, and the time before.
    http: [Option<Instant>; 2],
    first: bool,
    /// Its last beat was refused, and not because it is gone.
    refused: bool,
}

#[derive(Clone, Debug)]
struct Registration {
    open: Option<OpId>,
    sent: Instant,
    /// Whether the last one worked; `None` if the workspace was dropped since.
    worked: Option<bool>,
    /// Whether a look at the agent CLIs ended since it was sent, or custom runtimes were told: then another one may be due.
    news: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum LinkState {
    #[default]
    Off,
    Dialing(Generation),
    Up(Generation),
}

#[derive(Clone, Debug, Default)]
pub(super) struct FleetBook {
    runtimes: BTreeMap<RuntimeId, Runtime>,
    set: Generation,
    registrations: BTreeMap<WorkspaceId, Registration>,
    conn: ConnGen,
    link: LinkState,
    /// Those that the connection does not name.
    without: Vec<RuntimeId>,
    /// Whether one was ever dialled, and it is wanted.
    wanted: bool,
    /// When the connection was lost, until it is dialled again or the set changes.
    lost: Option<Instant>,
}

impl FleetBook {
    pub(super) fn ids(&self) -> impl Iterator<Item = &RuntimeId> {
        self.runtimes.keys()
    }

    pub(super) fn provider(&self, runtime: &RuntimeId) -> Option<&Provider> {
        self.runtimes.get(runtime).map(|r| &r.provider)
    }

    pub(super) fn is_claimable(&self, runtime: &RuntimeId) -> bool {
        self.runtimes.get(runtime).is_some_and(|r| r.claimable)
    }

    pub(super) fn is_current(&self, conn: ConnGen) -> bool {
        conn == self.conn && self.link != LinkState::Off
    }

    pub(super) fn is_up(&self, conn: ConnGen) -> bool {
        conn == self.conn && matches!(self.link, LinkState::Up(_))
    }

    /// Whether there is to be a connection.
    pub(super) const fn is_wanted(&self) -> bool {
        self.wanted
    }

    pub(super) fn ws(&mut self, at: &At<'_>, conn: ConnGen, ws: &WsEvent) {
        match (ws, self.link) {
            (WsEvent::Up, LinkState::Dialing(set)) if conn == self.conn => self.link = LinkState::Up(set),
            (WsEvent::Down | WsEvent::Refused { .. }, _) => {
                self.link = LinkState::Off;
                self.lost = Some(at.now);
                return;
            }
            _ => {}
        }
        self.heard();
    }

    /// The server answers something.
    fn heard(&mut self) {
        self.runtimes.values_mut().for_each(|runtime| runtime.heard = true);
    }

    pub(super) fn closed(&mut self, at: &At<'_>, closed: &Closed<'_>) {
        if matches!((&closed.what, closed.end), (What::Fs(FsCall::Probe { .. }), End::Fs(Ok(_)))) {
            self.registrations.values_mut().for_each(|registration| registration.news = true);
        }
        let What::Api(call) = &closed.what else { return };
        let Some(result) = api_end(&closed.end) else { return };
        if result.is_ok() {
            self.heard();
        }
        match call {
            ApiCall::Workspaces => {
                if let Ok(ApiReply::Workspaces { list, .. }) = result {
                    for (workspace, registration) in &mut self.registrations {
                        if !list.contains(workspace) {
                            registration.worked = None;
                            registration.open = None;
                        }
                    }
                }
            }
            ApiCall::Register { workspace, .. } => {
                let Some(registration) = self.registrations.get_mut(workspace) else { return };
                if registration.open != Some(closed.op) {
                    return;
                }
                registration.open = None;
                registration.worked = match result {
                    Err(error) if error.refusal() == Some(Refusal::WorkspaceGone) => None,
                    Ok(ApiReply::Registered { .. }) => Some(true),
                    _ => Some(false),
                };
            }
            ApiCall::Profiles { workspace } => {
                if let Some(registration) = self.registrations.get_mut(workspace) {
                    registration.news = true;
                }
            }
            ApiCall::RecoverOrphans { runtime } => {
                if let Some(r) = self.runtimes.get_mut(runtime).filter(|r| r.recovering == Some(closed.op)) {
                    r.recovering = None;
                    let passing = result.as_ref().err().filter(|error| error.is_passing());
                    let counts = passing.is_some_and(|error| r.heard || !finds_nobody(*error));
                    r.vain = r.vain.saturating_add(u8::from(counts));
                    r.heard &= !counts;
                    r.recovered = passing.is_none() || r.vain >= ORPHAN_TRIES;
                }
            }
            ApiCall::Beat { runtime } => {
                if let Some(r) = self.runtimes.get_mut(runtime).filter(|r| r.beating == Some(closed.op)) {
                    r.beating = None;
                    r.beat = at.now;
                    match result {
                        Ok(_) => r.refused = false,
                        Err(error) => r.refused |= !error.is_passing(),
                    }
                }
            }
            _ => {}
        }
    }

    pub(super) fn effect(&mut self, at: &At<'_>, effect: &Effect, tasks: &TaskBook, found: &mut Found) {
        match effect {
            Effect::Runtime { set, runtime, change } => {
                self.changed(at, *set, runtime, change, found);
                if *change == RuntimeChange::Claimable {
                    self.asked_for(runtime, tasks, found);
                }
            }
            Effect::Api { op, call: ApiCall::RecoverOrphans { runtime }, .. } => {
                found.require(!tasks.is_busy(runtime), "INV-10", || {
                    format!("leftovers of {runtime} are failed although a task of it is here")
                });
                let r = self.runtimes.get_mut(runtime);
                let fits = r.is_some_and(|r| !r.claimable && r.recovering.replace(*op).is_none());
                found.require(fits, "ORPHANS-FIRST", || {
                    format!("leftovers of {runtime} are failed twice, or while it is asked for")
                });
            }
            Effect::Api { op, call: ApiCall::Beat { runtime }, .. } => {
                let r = self.runtimes.get_mut(runtime);
                let fits = r.is_some_and(|r| {
                    // One on the grid and one for a hint.
                    let floor = r.http[1].is_none_or(|before| at.now.since(before) >= HINT_GAP);
                    found.require(floor, "INV-58", || format!("{runtime} beats three times in a second"));
                    r.http = [Some(at.now), r.http[0]];
                    r.beat = at.now;
                    r.first = false;
                    r.beating.replace(*op).is_none()
                });
                found.require(fits, "I15", || format!("{runtime} beats twice at once, or is not in the set"));
            }
            Effect::Api { op, call: ApiCall::Register { workspace, .. }, .. } => {
                self.register(at, *op, workspace, found);
            }
            Effect::Ws { conn, cmd } => self.link_cmd(at, *conn, cmd, found),
            _ => {}
        }
    }

    fn changed(
        &mut self,
        at: &At<'_>,
        set: Generation,
        runtime: &RuntimeId,
        change: &RuntimeChange,
        found: &mut Found,
    ) {
        let fits = match change {
            RuntimeChange::Added { provider, .. } => {
                let added = Runtime {
                    provider: provider.clone(),
                    claimable: false,
                    recovering: None,
                    recovered: false,
                    vain: 0,
                    heard: false,
                    beat: at.now,
                    beating: None,
                    http: [None; 2],
                    first: true,
                    refused: false,
                };
                self.runtimes.insert(runtime.clone(), added).is_none() && set > self.set
            }
            RuntimeChange::Claimable => {
                let r = self.runtimes.get_mut(runtime);
                r.is_some_and(|r| !std::mem::replace(&mut r.claimable, true) && r.recovering.is_none())
                    && set == self.set
            }
            RuntimeChange::Removed => self.runtimes.remove(runtime).is_some() && set > self.set,
        };
        found.require(fits, "RUNTIME-SET", || {
            format!("{runtime}: {change} does not fit", change = change.said())
        });
        if *change != RuntimeChange::Claimable {
            self.lost = None;
        }
        self.set = self.set.max(set);
    }

    /// What an earlier process left is dealt with before anything is asked for.
    fn asked_for(&self, runtime: &RuntimeId, tasks: &TaskBook, found: &mut Found) {
        let dealt_with = self.runtimes.get(runtime).is_some_and(|r| r.recovered) || tasks.is_busy(runtime);
        found.require(dealt_with, "INV-09", || {
            format!("{runtime} can be asked for, and its leftovers are not failed")
        });
        found.require(!tasks.is_untried(runtime), "RECOVERED-FIRST", || {
            format!("{runtime} can be asked for before a report of an earlier process was tried")
        });
    }

    /// I16: one registration of a workspace at a time, and one for a wave of lost runtimes.
    fn register(&mut self, at: &At<'_>, op: OpId, workspace: &WorkspaceId, found: &mut Found) {
        if let Some(old) = self.registrations.get(workspace) {
            found.require(old.open.is_none(), "I16", || {
                format!("two registrations of {workspace} are on their way")
            });
            let gap = match old.worked {
                Some(true) if old.news => Duration::ZERO,
                Some(true) => at.timing.register_coalesce,
                Some(false) => at.timing.register_retry.min(Duration::from_secs(2)) * 4 / 5,
                None => Duration::ZERO,
            };
            found.require(at.now >= old.sent.after(gap), "I16", || {
                format!(
                    "{workspace} is registered again {} ms too early",
                    old.sent.after(gap).since(at.now).as_millis()
                )
            });
        }
        let new = Registration { open: Some(op), sent: at.now, worked: Some(false), news: false };
        self.registrations.insert(workspace.clone(), new);
    }

    fn link_cmd(&mut self, at: &At<'_>, conn: ConnGen, cmd: &WsCmd, found: &mut Found) {
        match cmd {
            WsCmd::Connect { set, without } => {
                found.require(conn > self.conn && self.link == LinkState::Off, "I17", || {
                    format!("connection {} is dialled beside {}", conn.0, self.conn.0)
                });
                found.require(*set == self.set, "INV-64", || "a connection is dialled for an old set".into());
                let least = at.timing.link_backoff.base * 4 / 5;
                let fits = without.iter().all(|id| self.runtimes.get(id).is_some_and(|r| r.refused));
                found.require(fits, "INV-64", || {
                    format!(
                        "a connection leaves out {without}, and not each of them is one that is refused",
                        without = without.said()
                    )
                });
                let another = *without != self.without;
                self.without.clone_from(without);
                self.wanted = true;
                let early = self.lost.take().is_some_and(|lost| at.now < lost.after(least));
                let early = early && !another && !at.woke;
                found.require(!early, "INV-62", || "the connection is dialled again without a wait".into());
                (self.conn, self.link) = (conn, LinkState::Dialing(*set));
            }
            WsCmd::Close => {
                found.require(self.is_current(conn), "I17", || format!("connection {} is not there", conn.0));
                self.link = LinkState::Off;
                self.lost = None;
            }
            WsCmd::Beat { runtime } => {
                let up = conn == self.conn && matches!(self.link, LinkState::Up(_));
                let r = self.runtimes.get_mut(runtime);
                found.require(up && r.is_some(), "I15", || {
                    format!("{runtime} beats over a connection that is not up, or is not in the set")
                });
                if let Some(r) = r {
                    r.beat = at.now;
                    r.first = false;
                }
            }
        }
    }

    pub(super) fn settle(&mut self, at: &At<'_>, beats: bool, actions: &ActionBook, found: &mut Found) {
        if let LinkState::Up(set) = self.link {
            found.require(set == self.set, "INV-64", || "the connection is up for an old set".into());
            let taken = self.without.iter().find(|id| self.runtimes.get(*id).is_some_and(|r| !r.refused));
            found.require(taken.is_none(), "INV-64", || {
                format!(
                    "the connection leaves out {taken}, which the server takes by now",
                    taken = taken.said()
                )
            });
        }
        if at.barred {
            self.runtimes.values_mut().for_each(|runtime| runtime.beat = at.now);
        }
        if at.due || !beats {
            return;
        }
        for (id, runtime) in &self.runtimes {
            let most = at.timing.beat * if runtime.first { 1 } else { 2 };
            let silent = at.now.since(runtime.beat);
            let beats = runtime.beating.is_some() || silent <= most;
            found.require(beats, "I15", || format!("{id} has not beaten for {} ms", silent.as_millis()));
            found.require(beats || !actions.is_busy(id), "INV-57", || {
                format!("{id} does not beat while it does what was asked of it")
            });
        }
    }

    pub(super) fn finish(&self, found: &mut Found) {
        for (id, runtime) in &self.runtimes {
            found.require(runtime.claimable, "I26", || format!("{id} can never be asked for"));
        }
        found.require(!self.runtimes.is_empty(), "I26", || "no runtime is registered".into());
    }
}
