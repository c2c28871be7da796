//! The agent CLIs of the machine and custom runtimes: when they are looked at or asked for, what goes off line because of them, and that what is held back
//! stays away.

use super::ops::{Closed, End, What};
use super::seen::Seen;
use super::{At, Found, api_end, is_claim};
use crate::effect::{ApiCall, Effect, Fact, FsCall, RuntimeChange};
use crate::error::Refusal;
use crate::event::{ApiReply, FsReply, Standing, WsEvent};
use crate::id::{OpId, ProfileId, Provider, RuntimeId, WorkspaceId};
use crate::said::Said;
use crate::time::Instant;
use std::collections::{BTreeMap, BTreeSet};

#[derive(Clone, Debug)]
struct Row {
    workspace: WorkspaceId,
    provider: Provider,
    profile: Option<ProfileId>,
}

/// What the server said of a workspace's custom runtimes last; without a signature if it has no such thing.
type Told = (Option<u64>, u16);

#[derive(Clone, Debug, Default)]
struct Space {
    asking: Option<OpId>,
    /// When they were last asked for.
    asked: Option<Instant>,
    /// Something says that they changed, or the last answer was none.
    news: bool,
    /// A registration that they are asked for is to come.
    lost: bool,
    told: Option<Told>,
    /// The same when the last registration was sent.
    named: Option<Told>,
}

#[derive(Clone, Debug, Default)]
pub(super) struct AgentBook {
    look: Option<OpId>,
    begun: u64,
    ended: Option<Instant>,
    seen: BTreeMap<Provider, Standing>,
    /// Since when each was found unfit, with no look between that found it fit or gone.
    unfit: BTreeMap<Provider, Instant>,
    /// How many looks had begun when it was taken off line.
    held: BTreeMap<Provider, u64>,
    rows: BTreeMap<RuntimeId, Row>,
    spaces: BTreeMap<WorkspaceId, Space>,
    claims: BTreeSet<OpId>,
    /// Tasks at the end of the last step.
    tasks: usize,
    /// What the server has forgotten, and what is held back, as of this step.
    gone_now: BTreeSet<RuntimeId>,
    held_now: BTreeSet<Provider>,
}

const fn is_unfit(standing: Standing) -> bool {
    matches!(standing, Standing::TooOld | Standing::NotExecutable)
}

impl AgentBook {
    /// Whether a look at the agent CLIs ended, well or not.
    pub(super) const fn has_looked(&self) -> bool {
        self.ended.is_some()
    }

    /// Whether there is nothing that could be registered in a workspace, as far as is known.
    pub(super) fn has_nothing_for(&self, workspace: &WorkspaceId) -> bool {
        let fit = |(of, standing): (&Provider, &Standing)| {
            matches!(standing, Standing::Works { .. }) && !self.held.contains_key(of)
        };
        let custom = self.spaces.get(workspace).and_then(|space| space.told).is_some_and(|told| told.1 > 0);
        self.has_looked() && !custom && !self.seen.iter().any(fit)
    }

    /// Whether a registration of a workspace may wait for its custom runtimes: they were asked for a moment ago.
    pub(super) fn may_wait(&self, workspace: &WorkspaceId, at: &At<'_>) -> bool {
        let most = at.timing.profiles_patience + at.timing.reconcile_gap;
        let asked = self.spaces.get(workspace).and_then(|space| space.asked);
        asked.is_some_and(|asked| at.now <= asked.after(most))
    }

    pub(super) fn step(&mut self, seen: &Seen<'_>, found: &mut Found) {
        let looked = seen.closed.is_some_and(|closed| self.looked(seen.at.now, closed));
        if let Some((op, call)) = seen.ended() {
            self.claims.remove(&op);
            self.answered(seen, op, call);
        }
        if let Some((_, WsEvent::ProfilesChanged { workspace })) = seen.ws()
            && let Some(space) = self.spaces.get_mut(workspace)
        {
            space.news = true;
        }
        self.gone_now.clear();
        self.held_now.clear();
        for effect in seen.effects {
            match effect {
                Effect::Fact { fact: Fact::RuntimeGone { runtime } } => {
                    self.gone_now.insert(runtime.clone());
                }
                Effect::Fact { fact: Fact::Held { provider } } => {
                    self.held_now.insert(provider.clone());
                }
                _ => {}
            }
        }
        for effect in seen.effects {
            self.effect(seen, effect, looked, found);
        }
        if !self.held_now.is_empty() {
            let left = |row: &Row| row.profile.is_none() && self.held.contains_key(&row.provider);
            let left = self.rows.iter().find(|(_, row)| left(row)).map(|(id, _)| id);
            found.require(left.is_none(), "INV-12", || {
                format!("{left} stays in the set, and its agent is held back", left = left.said())
            });
        }
        self.tasks = seen.view.task_count();
    }

    /// Takes note of a look that ended.
    fn looked(&mut self, now: Instant, closed: &Closed<'_>) -> bool {
        let (What::Fs(FsCall::Probe { .. }), End::Fs(result)) = (&closed.what, closed.end) else {
            return false;
        };
        self.look = None;
        self.ended = Some(now);
        let Ok(FsReply::Probed { agents }) = result else { return false };
        self.seen = agents.iter().map(|agent| (agent.provider.clone(), agent.standing)).collect();
        let Self { seen, unfit, .. } = self;
        unfit.retain(|of, _| seen.get(of).is_some_and(|is| !matches!(is, Standing::Works { .. })));
        for (of, _) in seen.iter().filter(|(_, standing)| is_unfit(**standing)) {
            unfit.entry(of.clone()).or_insert(now);
        }
        true
    }

    fn answered(&mut self, seen: &Seen<'_>, op: OpId, call: &ApiCall) {
        let Some(result) = seen.closed.and_then(|closed| api_end(&closed.end)) else { return };
        let refusal = result.as_ref().err().and_then(|error| error.refusal());
        match (call, result) {
            (ApiCall::Workspaces, Ok(ApiReply::Workspaces { list, .. })) => {
                self.spaces.retain(|id, _| list.contains(id));
                for id in list {
                    let bare = !self.rows.values().any(|row| row.workspace == *id);
                    self.spaces.entry(id.clone()).or_default().lost |= bare;
                }
            }
            (ApiCall::Register { workspace, profiles, .. }, _) => match refusal {
                Some(Refusal::WorkspaceGone) => {
                    self.spaces.remove(workspace);
                }
                Some(Refusal::Other) if profiles.is_some() => {
                    if let Some(space) = self.spaces.get_mut(workspace) {
                        space.news = true;
                    }
                }
                _ => {}
            },
            (ApiCall::Profiles { workspace }, _) => {
                let Some(space) = self.spaces.get_mut(workspace).filter(|s| s.asking == Some(op)) else {
                    return;
                };
                space.asking = None;
                match result {
                    Ok(ApiReply::Profiles { signature, count }) => {
                        space.told = Some((Some(*signature), *count));
                    }
                    Err(_) if refusal == Some(Refusal::RouteMissing) => space.told = Some((None, 0)),
                    _ => space.news = true,
                }
            }
            _ => {}
        }
    }

    fn effect(&mut self, seen: &Seen<'_>, effect: &Effect, looked: bool, found: &mut Found) {
        let now = seen.at.now;
        match effect {
            Effect::Fs { op, call: FsCall::Probe { .. } } => {
                let rest = seen.at.timing.probe_again * 4 / 5;
                let apart = self.ended.is_none_or(|ended| now >= ended.after(rest));
                let listed = matches!(seen.ended(), Some((_, ApiCall::Workspaces))) && !seen.at.was_due;
                found.require(self.look.is_none() && apart && !listed, "INV-15", || {
                    "agents are looked at twice at once, again and again, or because of a list".into()
                });
                self.look = Some(*op);
                self.begun += 1;
            }
            Effect::Api { op, call, .. } => self.sent(now, *op, call, found),
            // In its turn: what was asked for earlier in the same step was for the news of before.
            Effect::Fact { fact: Fact::Reconciled } => {
                self.spaces.values_mut().for_each(|space| space.news = true);
            }
            Effect::Fact { fact: Fact::Held { provider } } => self.hold(seen, provider, looked, found),
            Effect::Fact { fact: Fact::Freed { provider } } => {
                let works = looked && matches!(self.seen.get(provider), Some(Standing::Works { .. }));
                let later = self.held.remove(provider).is_some_and(|begun| self.begun > begun);
                found.require(works && later, "INV-12", || {
                    format!("{provider} is not held back any more, and no later look found that it works")
                });
            }
            Effect::Fact { fact: Fact::RuntimeGone { runtime } } => {
                let workspace = self.rows.get(runtime).map(|row| &row.workspace);
                if let Some(space) = workspace.and_then(|workspace| self.spaces.get_mut(workspace)) {
                    space.lost = true;
                }
            }
            Effect::Runtime { runtime, change, .. } => match change {
                RuntimeChange::Added { workspace, provider, profile } => {
                    found.require(profile.is_some() || !self.held.contains_key(provider), "INV-12", || {
                        format!("{runtime} joins the set, and {provider} is held back")
                    });
                    let (workspace, provider) = (workspace.clone(), provider.clone());
                    self.rows.insert(runtime.clone(), Row { workspace, provider, profile: profile.clone() });
                }
                RuntimeChange::Removed => {
                    if let Some(row) = self.rows.remove(runtime) {
                        self.removed(seen, runtime, &row, found);
                    }
                }
                RuntimeChange::Claimable => {}
            },
            _ => {}
        }
    }

    fn sent(&mut self, now: Instant, op: OpId, call: &ApiCall, found: &mut Found) {
        match call {
            ApiCall::Profiles { workspace } => {
                let space = self.spaces.get_mut(workspace);
                let due = space.is_some_and(|space| {
                    space.asked = Some(now);
                    let due = std::mem::take(&mut space.news) || space.lost;
                    due && space.asking.replace(op).is_none()
                });
                found.require(due, "INV-22", || {
                    format!("custom runtimes of {workspace} are asked for twice at once, or for no reason")
                });
            }
            ApiCall::Register { workspace, agents, profiles } => {
                let space = self.spaces.get_mut(workspace);
                let told = space.and_then(|space| {
                    space.lost = false;
                    space.named = space.told;
                    space.told
                });
                let known = profiles.is_none() || told.is_some_and(|told| told.0 == *profiles);
                found.require(known, "INV-25", || {
                    format!("{workspace} is registered with custom runtimes that nobody told of last")
                });
                let held = agents.iter().find(|of| self.held.contains_key(*of));
                found.require(held.is_none(), "INV-12", || {
                    format!("{held} is registered although it is held back", held = held.said())
                });
            }
            call if is_claim(call) => {
                self.claims.insert(op);
            }
            _ => {}
        }
    }

    /// INV-14: taken off line only while nothing is about. What is unfit must have been found so twice.
    fn hold(&mut self, seen: &Seen<'_>, provider: &Provider, looked: bool, found: &mut Found) {
        found.require(self.tasks == 0 && self.claims.is_empty(), "INV-14", || {
            format!(
                "{provider} is taken off line beside {} tasks and {} claims",
                self.tasks,
                self.claims.len()
            )
        });
        let confirmed = self.unfit.get(provider).is_some_and(|since| {
            let unfit = self.seen.get(provider).copied().is_some_and(is_unfit);
            looked && unfit && seen.at.now >= since.after(seen.at.timing.demote_confirm)
        });
        found.require(confirmed, "HELD-CONFIRMED", || {
            format!("{provider} is taken off line, and was not found unfit twice")
        });
        self.held.insert(provider.clone(), self.begun);
    }

    /// INV-11, INV-25: why a runtime left the set.
    fn removed(&self, seen: &Seen<'_>, runtime: &RuntimeId, row: &Row, found: &mut Found) {
        if !self.spaces.contains_key(&row.workspace) || self.gone_now.contains(runtime) {
            return;
        }
        // What was named in the registration that was answered, if one was.
        let registered = seen.ended().and_then(|(_, call)| match call {
            ApiCall::Register { workspace, agents, profiles } if *workspace == row.workspace => {
                Some((agents, profiles))
            }
            _ => None,
        });
        if row.profile.is_none() {
            let held = self.held_now.contains(&row.provider);
            let named = registered.is_some_and(|(agents, _)| agents.contains(&row.provider));
            found.require(held || named, "INV-11", || {
                format!(
                    "{runtime} of {} leaves the set, and nothing says that it cannot be used",
                    row.provider
                )
            });
        } else {
            let space = &self.spaces[&row.workspace];
            let named_none = space.named.filter(|_| registered.is_some());
            let none = [space.told, named_none].into_iter().flatten().any(|known| known.1 == 0);
            let named = registered.is_some_and(|(_, profiles)| profiles.is_some());
            found.require(none || named, "INV-25", || {
                format!("{runtime} leaves the set, and nobody knows that it is not there any more")
            });
        }
    }
}
