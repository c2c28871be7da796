//! How the world answers, well or badly.

use super::Choose;
use super::swarm::Size;
use super::world::{CLIS, Call, World, all_well};
use crate::effect::{ApiCall, FsCall};
use crate::error::{ApiError, FsError, Refusal};
use crate::event::{
    Action, ActionKind, ApiReply, ClaimKey, Collect, Found, FsReply, Offer, Probed, Registered, RunEnd,
    RunEvent, RunOutcome, Standing, TaskStatus,
};
use crate::id::{ActionId, EnvRoot, OpId, PathKey, ProfileId, Provider, RuntimeId, TaskId, WorkspaceId};
use crate::reason::FailReason;
use std::collections::BTreeMap;

impl World {
    pub(super) fn api_reply(
        &mut self,
        choose: &mut dyn Choose,
        op: OpId,
        call: &ApiCall,
    ) -> Result<ApiReply, ApiError> {
        if self.cancelled.contains(&op) && choose.percent(80) {
            return Err(if choose.one_in(2) { ApiError::Unknown } else { ApiError::NotSent });
        }
        if choose.percent(self.faults) {
            return Err(error(choose, call));
        }
        Ok(match call {
            ApiCall::Workspaces => {
                let list = match choose.below(20) {
                    0 => vec![],
                    1..5 => vec!["ws-1"],
                    _ => vec!["ws-1", "ws-2"],
                };
                ApiReply::Workspaces {
                    list: list.into_iter().map(WorkspaceId::new).collect(),
                    legacy: choose.one_in(8),
                }
            }
            ApiCall::Profiles { .. } => {
                if choose.one_in(3) {
                    self.custom += 1;
                }
                ApiReply::Profiles { signature: self.custom, count: custom_count(self.custom) }
            }
            ApiCall::Register { workspace, agents, profiles } => {
                let mut runtimes = registered(workspace, self.size);
                // An odd server names all that it knows.
                if !choose.one_in(20) {
                    runtimes.retain(|r| agents.contains(&r.provider));
                }
                runtimes.extend(profiles.iter().flat_map(|signature| custom(workspace, *signature)));
                if choose.one_in(6) && !runtimes.is_empty() {
                    runtimes.remove(choose.below(runtimes.len() as u32) as usize);
                }
                ApiReply::Registered { runtimes }
            }
            ApiCall::Beat { .. } => {
                ApiReply::Beaten { gone: choose.one_in(30), actions: self.asked_for(choose) }
            }
            ApiCall::Claim(claim) | ApiCall::ClaimOver { claim, .. } => {
                self.claimed(choose, call, u32::from(claim.max()))
            }
            ApiCall::ClaimOne(_) => self.claimed(choose, call, 1),
            ApiCall::Status { claim } => {
                let known = self.status(*claim).unwrap_or(TaskStatus::Other);
                let status = if choose.one_in(8) {
                    [
                        TaskStatus::Cancelled,
                        TaskStatus::Queued,
                        TaskStatus::Running,
                        TaskStatus::Dispatched,
                        TaskStatus::WaitingLocalDirectory,
                        TaskStatus::Failed,
                    ][choose.below(6) as usize]
                } else {
                    known
                };
                ApiReply::Task { status }
            }
            // The row as it is, whatever the server did or did not do.
            ApiCall::Complete { .. } | ApiCall::Fail { .. } if choose.one_in(6) => {
                let status = [
                    TaskStatus::Running,
                    TaskStatus::Running,
                    TaskStatus::Dispatched,
                    TaskStatus::Queued,
                    TaskStatus::Cancelled,
                    TaskStatus::Failed,
                ][choose.below(6) as usize];
                ApiReply::Task { status }
            }
            ApiCall::Messages { after, upto, .. } if choose.one_in(8) => {
                ApiReply::Known { upto: after + choose.below(upto - after + 1) }
            }
            ApiCall::Collectable { .. } => {
                let what = [Collect::Keep, Collect::Artifacts, Collect::All][choose.below(3) as usize];
                ApiReply::Collectable { what }
            }
            ApiCall::MessagesKnown { after, .. } => ApiReply::Known { upto: after + choose.below(4) },
            _ => ApiReply::Done,
        })
    }

    /// What a beat's answer asks for: mostly nothing; sometimes what was asked for before, seldom more than anybody can do.
    pub(super) fn asked_for(&mut self, choose: &mut dyn Choose) -> Vec<Action> {
        if !choose.one_in(12) {
            return Vec::new();
        }
        let count = match choose.below(12) {
            0..8 => 1,
            8..11 => 1 + choose.below(10),
            _ => 90,
        };
        let kinds =
            [ActionKind::Update, ActionKind::Models, ActionKind::LocalSkills, ActionKind::ImportSkill];
        let some = |_| {
            let again = self.next_action > 0 && choose.one_in(5);
            let nth = if again {
                1 + u64::from(choose.below(self.next_action as u32))
            } else {
                self.next_action + 1
            };
            self.next_action = self.next_action.max(nth);
            Action { id: ActionId::new(format!("a-{nth}")), kind: kinds[choose.below(4) as usize] }
        };
        (0..count).map(some).collect()
    }

    /// What the server has for the task of a claim.
    pub(super) fn status(&self, claim: ClaimKey) -> Option<TaskStatus> {
        self.tasks.get(self.claims.get(&claim)?).copied()
    }

    fn claimed(&mut self, choose: &mut dyn Choose, call: &ApiCall, max: u32) -> ApiReply {
        let count = match choose.below(8) {
            0..3 => 0,
            3..6 => 1,
            6 => choose.below(max + 1),
            _ => max + choose.below(2),
        };
        let offers = (0..count).map(|_| self.offer(choose, call)).collect();
        ApiReply::Claimed { offers, unusable: u16::from(choose.one_in(20)) }
    }

    fn offer(&mut self, choose: &mut dyn Choose, call: &ApiCall) -> Offer {
        let scope = self.scope(call);
        let meant = if scope.len() == 0 || choose.one_in(15) {
            None
        } else {
            scope.nth(choose.below(scope.len() as u32) as usize).cloned()
        };
        let runtime = meant.unwrap_or_else(|| self.some_runtime(choose));
        self.offer_for(choose, runtime)
    }

    pub(super) fn offer_for(&mut self, choose: &mut dyn Choose, runtime: RuntimeId) -> Offer {
        self.next_claim += 1;
        let known = choose.one_in(8) && !self.tasks.is_empty();
        let task = if known {
            let nth = choose.below(self.known.len() as u32) as usize;
            self.known.get(nth).cloned()
        } else {
            None
        };
        let task = task.unwrap_or_else(|| {
            self.next_task += 1;
            TaskId::new(format!("t-{}", self.next_task))
        });
        let root = EnvRoot::new(format!("ws/{task}"));
        let prior = match self.freeing() {
            Some(root) if choose.one_in(2) => Some(root),
            _ => choose.one_in(4).then(|| EnvRoot::new(format!("ws/p-{}", choose.below(3)))),
        };
        let fault = choose.one_in(12).then_some(FailReason::InvalidTaskIdentity);
        let in_place = choose.one_in(3);
        Offer { claim: ClaimKey(self.next_claim), task, runtime, root, prior, fault, in_place }
    }

    pub(super) fn fs_reply(
        &mut self,
        choose: &mut dyn Choose,
        op: OpId,
        call: &FsCall,
    ) -> Result<FsReply, FsError> {
        if self.cancelled.contains(&op) && choose.percent(80) {
            return Err(if choose.one_in(2) { FsError::Cancelled } else { FsError::TimedOut });
        }
        if choose.percent(self.faults) {
            return Err(if choose.one_in(3) {
                FsError::TimedOut
            } else if matches!(call, FsCall::Resolve { .. }) {
                FsError::Failed { reason: FailReason::LocalDirectoryError }
            } else {
                FsError::Failed { reason: FailReason::SkillBundleUnavailable }
            });
        }
        Ok(match call {
            FsCall::Prepare { root, .. } => {
                let root = if choose.one_in(8) { EnvRoot::new("ws/elsewhere") } else { root.clone() };
                FsReply::Prepared { root }
            }
            FsCall::Resolve { .. } if choose.one_in(20) => FsReply::Done,
            FsCall::Resolve { .. } => {
                let nth = 1 + choose.below(3).min(choose.below(3));
                FsReply::Resolved { path: PathKey::new(format!("dir-{nth}")) }
            }
            FsCall::Scan => FsReply::Scanned { found: self.found(choose) },
            FsCall::Probe { .. } => FsReply::Probed { agents: self.probed(choose) },
            _ => FsReply::Done,
        })
    }

    /// What a look finds. Now and then an agent CLI has changed since the last one, or all of them are well again.
    fn probed(&mut self, choose: &mut dyn Choose) -> Vec<Probed> {
        match choose.below(8) {
            0..2 => self.clis = all_well(),
            2..4 => {
                let which = Provider::new(CLIS[choose.below(CLIS.len() as u32) as usize]);
                let standing = match choose.below(8) {
                    0 => None,
                    1 => Some(Standing::Slow),
                    2 => Some(Standing::Unreadable),
                    3 => Some(Standing::TooOld),
                    4 | 5 => Some(Standing::NotExecutable),
                    version => Some(Standing::Works { version: u64::from(version) }),
                };
                match standing {
                    Some(standing) => self.clis.insert(which, standing),
                    None => self.clis.remove(&which),
                };
            }
            _ => {}
        }
        listed(&self.clis)
    }

    /// A directory that is being freed.
    fn freeing(&self) -> Option<EnvRoot> {
        self.open.values().find_map(|call| match call {
            Call::Fs(FsCall::Collect(call)) => Some(call.root().clone()),
            _ => None,
        })
    }

    /// What a scan finds: directories of tasks, also of those that are at work, and others; sometimes one twice.
    fn found(&self, choose: &mut dyn Choose) -> Vec<Found> {
        let count = choose.below(5);
        let some = |_| {
            let root = match choose.below(4) {
                0 => EnvRoot::new("ws/elsewhere"),
                1 if !self.tasks.is_empty() => {
                    let nth = choose.below(self.tasks.len() as u32) as usize;
                    let task = self.tasks.keys().nth(nth).cloned().unwrap_or_else(|| TaskId::new("t-none"));
                    EnvRoot::new(format!("ws/{task}"))
                }
                _ => EnvRoot::new(format!("ws/p-{}", choose.below(3))),
            };
            let what = [None, None, Some(Collect::Keep), Some(Collect::Artifacts), Some(Collect::All)]
                [choose.below(5) as usize];
            Found { root, what }
        };
        (0..count).map(some).collect()
    }

    pub(super) fn run_event(&self, choose: &mut dyn Choose, op: OpId) -> RunEvent {
        let model = self.runs.get(&op).copied().unwrap_or_default();
        if self.cancelled.contains(&op) && choose.percent(60) {
            return ended(choose, model.have, RunEnd::Failed { reason: FailReason::Cancelled });
        }
        match choose.below(10) {
            _ if !model.launched && choose.percent(70) => RunEvent::Launched,
            0..5 => {
                let tools = [model.tools, model.tools, 0, 1, model.tools + 1][choose.below(5) as usize];
                RunEvent::Progress { have: model.have + choose.below(4), session: choose.one_in(4), tools }
            }
            5..7 => RunEvent::Result,
            7 => ended(choose, model.have, RunEnd::Failed { reason: FailReason::ProcessFailure }),
            _ => {
                let have = model.have + choose.below(2);
                ended(choose, have, RunEnd::Completed)
            }
        }
    }
}

fn ended(choose: &mut dyn Choose, have: u32, end: RunEnd) -> RunEvent {
    let resume_rejected = end != RunEnd::Completed && choose.one_in(4);
    RunEvent::Ended { outcome: RunOutcome { end, have, usage: choose.one_in(2), resume_rejected } }
}

/// What a look at these agent CLIs says.
pub(super) fn listed(clis: &BTreeMap<Provider, Standing>) -> Vec<Probed> {
    clis.iter().map(|(of, standing)| Probed { provider: of.clone(), standing: *standing }).collect()
}

/// How many custom runtimes there are after so many changes.
pub(super) const fn custom_count(signature: u64) -> u16 {
    (signature % 3) as u16
}

/// The custom runtimes of a workspace after so many changes.
pub(super) fn custom(workspace: &WorkspaceId, signature: u64) -> impl Iterator<Item = Registered> {
    (0..custom_count(signature)).map(move |n| Registered {
        id: RuntimeId::new(format!("{workspace}-p{n}")),
        provider: Provider::new("claude"),
        profile: Some(ProfileId::new(format!("p-{n}"))),
    })
}

/// What a workspace holds.
pub(super) fn registered(workspace: &WorkspaceId, size: Size) -> Vec<Registered> {
    let named = |id: &str, provider: &str| Registered {
        id: RuntimeId::new(format!("{workspace}-{id}")),
        provider: Provider::new(provider),
        profile: None,
    };
    let few = [("a", "claude"), ("b", "codex"), ("c", "claude")].map(|(id, provider)| named(id, provider));
    let more =
        (3..size.fleet).map(|n| named(&format!("r{n}"), ["claude", "codex", "opencode"][n as usize % 3]));
    few.into_iter().chain(more).collect()
}

fn error(choose: &mut dyn Choose, call: &ApiCall) -> ApiError {
    let refused = |status, kind| ApiError::Refused { status, kind };
    match choose.below(12) {
        0 | 1 => ApiError::NotSent,
        2..5 => ApiError::Unknown,
        5 => ApiError::Throttled {
            retry_after_ms: choose.one_in(2).then(|| [0, 2_000, 900_000][choose.below(3) as usize]),
        },
        6 | 7 => ApiError::Server { status: 500 },
        8 => ApiError::Undecodable,
        9 if choose.one_in(3) => {
            let kinds = [Refusal::Unauthorized, Refusal::ClockSkew, Refusal::Forbidden];
            let kind = kinds[choose.below(3) as usize];
            refused(if kind == Refusal::Forbidden { 403 } else { 401 }, kind)
        }
        9 => ApiError::Server { status: 502 },
        10 => refused(400, Refusal::Other),
        _ => refused(404, refusal(call)),
    }
}

/// What a server that has not what a request is about says.
pub(super) const fn refusal(call: &ApiCall) -> Refusal {
    match call {
        ApiCall::Register { .. } => Refusal::WorkspaceGone,
        ApiCall::Beat { .. } | ApiCall::ClaimOne(_) | ApiCall::RecoverOrphans { .. } => Refusal::RuntimeGone,
        ApiCall::Claim(_)
        | ApiCall::ClaimOver { .. }
        | ApiCall::MessagesKnown { .. }
        | ApiCall::Profiles { .. } => Refusal::RouteMissing,
        _ => Refusal::TaskGone,
    }
}
