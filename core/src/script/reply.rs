//! How the world answers, well or badly.

use super::Choose;
use super::world::World;
use crate::effect::{ApiCall, FsCall};
use crate::error::{ApiError, FsError, Refusal};
use crate::event::{
    ApiReply, ClaimKey, FsReply, Offer, Registered, RunEnd, RunEvent, RunOutcome, TaskStatus,
};
use crate::id::{EnvRoot, OpId, PathKey, Provider, RuntimeId, TaskId, WorkspaceId};
use crate::reason::FailReason;

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
                let list = if choose.one_in(5) { vec!["ws-1"] } else { vec!["ws-1", "ws-2"] };
                ApiReply::Workspaces {
                    list: list.into_iter().map(WorkspaceId::new).collect(),
                    legacy: choose.one_in(8),
                }
            }
            ApiCall::Register { workspace } => {
                let mut runtimes = registered(workspace);
                if choose.one_in(6) {
                    runtimes.remove(choose.below(runtimes.len() as u32) as usize);
                }
                ApiReply::Registered { runtimes }
            }
            ApiCall::Beat { .. } => ApiReply::Beaten { gone: choose.one_in(30) },
            ApiCall::Claim(claim) => self.claimed(choose, call, u32::from(claim.max())),
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
            ApiCall::Messages { after, upto, .. } if choose.one_in(8) => {
                ApiReply::Known { upto: after + choose.below(upto - after + 1) }
            }
            ApiCall::MessagesKnown { after, .. } => ApiReply::Known { upto: after + choose.below(4) },
            _ => ApiReply::Done,
        })
    }

    /// What the server has for the task of a claim.
    pub(super) fn status(&self, claim: ClaimKey) -> Option<TaskStatus> {
        self.tasks.get(self.claims.get(&claim)?).copied()
    }

    fn claimed(&mut self, choose: &mut dyn Choose, call: &ApiCall, max: u32) -> ApiReply {
        let scope = self.scope(call);
        let count = match choose.below(8) {
            0..3 => 0,
            3..6 => 1,
            6 => choose.below(max + 1),
            _ => max + choose.below(2),
        };
        let offers = (0..count).map(|_| self.offer(choose, &scope)).collect();
        ApiReply::Claimed { offers, unusable: u16::from(choose.one_in(20)) }
    }

    pub(super) fn offer(&mut self, choose: &mut dyn Choose, scope: &[RuntimeId]) -> Offer {
        self.next_claim += 1;
        let known = choose.one_in(8) && !self.tasks.is_empty();
        let task = if known {
            let nth = choose.below(self.tasks.len() as u32) as usize;
            self.tasks.keys().nth(nth).cloned()
        } else {
            None
        };
        let task = task.unwrap_or_else(|| {
            self.next_task += 1;
            TaskId::new(format!("t-{}", self.next_task))
        });
        let runtime = if scope.is_empty() || choose.one_in(15) {
            self.some_runtime(choose)
        } else {
            scope[choose.below(scope.len() as u32) as usize].clone()
        };
        let root = EnvRoot::new(format!("ws/{task}"));
        let prior = choose.one_in(4).then(|| EnvRoot::new(format!("ws/p-{}", choose.below(3))));
        let fault = choose.one_in(12).then_some(FailReason::InvalidTaskIdentity);
        Offer { claim: ClaimKey(self.next_claim), task, runtime, root, prior, fault, in_place: false }
    }

    pub(super) fn fs_reply(
        &self,
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
            } else {
                FsError::Failed { reason: FailReason::SkillBundleUnavailable }
            });
        }
        Ok(match call {
            FsCall::Prepare { root, .. } => {
                let root = if choose.one_in(8) { EnvRoot::new("ws/elsewhere") } else { root.clone() };
                FsReply::Prepared { root }
            }
            FsCall::Resolve { .. } => FsReply::Resolved { path: PathKey::new("dir-1") },
            FsCall::Scan => FsReply::Scanned { found: Vec::new() },
            _ => FsReply::Done,
        })
    }

    pub(super) fn run_event(&self, choose: &mut dyn Choose, op: OpId) -> RunEvent {
        let model = self.runs.get(&op).copied().unwrap_or_default();
        if self.cancelled.contains(&op) && choose.percent(60) {
            return ended(choose, model.have, RunEnd::Failed { reason: FailReason::Cancelled });
        }
        match choose.below(10) {
            _ if !model.launched && choose.percent(70) => RunEvent::Launched,
            0..5 => {
                RunEvent::Progress { have: model.have + choose.below(4), session: choose.one_in(4), tools: 0 }
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

/// What a workspace holds.
pub(super) fn registered(workspace: &WorkspaceId) -> Vec<Registered> {
    let named = |id: &str, provider: &str| Registered {
        id: RuntimeId::new(format!("{workspace}-{id}")),
        provider: Provider::new(provider),
    };
    vec![named("a", "claude"), named("b", "codex"), named("c", "claude")]
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
        9 => refused(401, Refusal::Unauthorized),
        10 => refused(400, Refusal::Other),
        _ => refused(
            404,
            match call {
                ApiCall::Register { .. } => Refusal::WorkspaceGone,
                ApiCall::Beat { .. } | ApiCall::ClaimOne(_) | ApiCall::RecoverOrphans { .. } => {
                    Refusal::RuntimeGone
                }
                ApiCall::Claim(_) | ApiCall::MessagesKnown { .. } => Refusal::RouteMissing,
                _ => Refusal::TaskGone,
            },
        ),
    }
}
