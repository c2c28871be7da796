//! What the server does with a request that reaches it: the model of `plane`, with the wire's errors.

use super::clis::custom_count;
use super::fault::Fault;
use super::marks::Mark;
use super::world::{DAEMON, PROVIDERS, World};
use crate::effect::{ApiCall, ClaimCall, ClaimScope, ReportKind};
use crate::error::{ApiError, Refusal};
use crate::event::{Action, ApiReply, ClaimKey, Collect, Offer, Registered, TaskStatus};
use crate::id::{EnvRoot, ProfileId, Provider, RuntimeId, TaskId, WorkspaceId};
use crate::plane::{
    self, Ask, CancelAck, Claimed, Completion, Failure, Message, Registration, RuntimeEntry, State, Text,
    Usage,
};
use crate::reason::FailReason;
use crate::script::Choose;
use std::sync::LazyLock;

static TEXT: LazyLock<Text> = LazyLock::new(|| Text::from("text"));

impl World {
    pub(super) fn add_workspace(&mut self, n: u32) {
        // There are far fewer than the bound.
        let _ = self.plane.add_workspace(WorkspaceId::new(format!("ws-{n}")), "a workspace");
    }

    /// Does what is asked. What it says may still be lost.
    pub(super) fn commit(&mut self, call: &ApiCall) -> Result<ApiReply, ApiError> {
        let reply = self.act(call);
        self.log(|| format!("the server: {call:?} -> {reply:?}"));
        self.push_hints();
        reply
    }

    fn act(&mut self, call: &ApiCall) -> Result<ApiReply, ApiError> {
        let now = self.server_now();
        match call {
            ApiCall::Renew => Ok(ApiReply::Done),
            ApiCall::Workspaces => Ok(ApiReply::Workspaces {
                list: self.plane.workspaces().map(|(id, _)| id.clone()).collect(),
                legacy: self.is_about(Fault::OldServer),
            }),
            ApiCall::ActionResult { runtime, action, kind } => {
                let completed = !self.chance.one_in(4);
                let taken = self.plane.finish(now, runtime, (action, *kind), completed);
                taken.map(|_| ApiReply::Done).map_err(|e| refused(&e))
            }
            ApiCall::Register { workspace, agents, profiles } => self.register(workspace, agents, *profiles),
            ApiCall::RecoverOrphans { runtime } => {
                self.plane.recover_orphans(now, runtime).map(|_| ApiReply::Done).map_err(|e| refused(&e))
            }
            ApiCall::Deregister { runtimes, .. } => {
                self.plane.deregister(runtimes).map(|()| ApiReply::Done).map_err(|e| refused(&e))
            }
            ApiCall::Beat { runtime } => match self.plane.heartbeat(now, runtime) {
                Ok(()) => Ok(ApiReply::Beaten { gone: false, actions: self.hand_out(runtime) }),
                Err(_) if self.chance.one_in(2) => Ok(ApiReply::Beaten { gone: true, actions: Vec::new() }),
                Err(error) => Err(refused(&error)),
            },
            ApiCall::Profiles { .. }
            | ApiCall::Claim(_)
            | ApiCall::ClaimOver { .. }
            | ApiCall::MessagesKnown { .. }
                if self.is_about(Fault::OldServer) =>
            {
                Err(ApiError::Refused { status: 404, kind: Refusal::RouteMissing })
            }
            ApiCall::Profiles { workspace } => {
                let signature = self.clis.custom(workspace);
                Ok(ApiReply::Profiles { signature, count: custom_count(signature) })
            }
            ApiCall::Claim(claim) | ApiCall::ClaimOver { claim, .. } => {
                let scope = self.scope(claim);
                let given = self.plane.claim(now, DAEMON, &scope, usize::from(claim.max()));
                given.map(|given| self.offers(given)).map_err(|e| refused(&e))
            }
            ApiCall::ClaimOne(claim) => {
                let given = self.plane.claim_one(now, claim.runtime());
                given.map(|given| self.offers(given.into_iter().collect())).map_err(|e| refused(&e))
            }
            ApiCall::Collectable { .. } => {
                let what = [Collect::Keep, Collect::Artifacts, Collect::All][self.chance.below(3) as usize];
                Ok(ApiReply::Collectable { what })
            }
            ApiCall::Lease { claim } => self.about(*claim, |plane, now, offer| {
                plane.prepare_lease(now, &offer.runtime, &offer.task).map(|_| ())
            }),
            ApiCall::WaitDirectory { claim, .. } => self.about(*claim, |plane, now, offer| {
                plane.wait_local_directory(now, &offer.task, "another task").map(|_| ())
            }),
            ApiCall::Start(start) => {
                self.about(start.claim(), |plane, now, offer| plane.start(now, &offer.task).map(|_| ()))
            }
            ApiCall::Pin { claim } => self.about(*claim, |plane, _, offer| {
                plane.pin_session(&offer.task, "session", offer.root.as_str())
            }),
            ApiCall::Usage { claim } => self.about(*claim, |plane, _, offer| {
                let row = Usage { input_tokens: 1, ..Usage::default() };
                plane.report_usage(&offer.task, vec![row])
            }),
            ApiCall::Status { claim } => {
                let Some(claim) = self.claims.get(claim) else { return Err(gone()) };
                let state = self.plane.status(&claim.offer.task).map_err(|e| refused(&e))?;
                Ok(ApiReply::Task { status: status(state) })
            }
            ApiCall::Messages { claim, after, upto } => self.post(*claim, *after, *upto),
            ApiCall::MessagesKnown { claim, after } => {
                let Some(claim) = self.claims.get(claim) else { return Err(gone()) };
                let since = self.plane.messages_since(&claim.offer.task, i64::from(*after));
                let upto = since.map_err(|e| refused(&e))?.last().map_or(0, |last| last.seq.unsigned_abs());
                Ok(ApiReply::Known { upto })
            }
            ApiCall::Complete { claim } => self.report(*claim, ReportKind::Complete),
            ApiCall::Fail { claim, reason } => self.report(*claim, ReportKind::Fail { reason: *reason }),
            ApiCall::CancelAck { claim } => self.report(*claim, ReportKind::CancelAck),
        }
    }

    /// What people have asked the runtime for, and perhaps do at this moment.
    pub(super) fn hand_out(&mut self, runtime: &RuntimeId) -> Vec<Action> {
        let now = self.server_now();
        if self.healed_at.is_none() && self.chance.one_in(8) {
            let asks = [Ask::Models, Ask::LocalSkills, Ask::ImportSkill { skill_key: Text::default() }];
            for ask in asks.into_iter().take(1 + self.chance.below(3) as usize) {
                // The bound is far, and nobody waits for it.
                let _ = self.plane.ask(now, runtime, ask);
            }
        }
        let given = self.plane.answer_beat(now, runtime, true);
        given.into_iter().map(|(id, ask)| Action { id, kind: ask.kind() }).collect()
    }

    fn about(
        &mut self,
        claim: ClaimKey,
        act: impl FnOnce(&mut plane::Plane, crate::time::Now, &Offer) -> Result<(), plane::Refusal>,
    ) -> Result<ApiReply, ApiError> {
        let now = self.server_now();
        let Some(claim) = self.claims.get(&claim) else { return Err(gone()) };
        act(&mut self.plane, now, &claim.offer).map(|()| ApiReply::Done).map_err(|e| refused(&e))
    }

    /// A custom runtime has a row of its own, by a family that no agent CLI has.
    fn register(
        &mut self,
        workspace: &WorkspaceId,
        agents: &[Provider],
        profiles: Option<u64>,
    ) -> Result<ApiReply, ApiError> {
        if profiles.is_some_and(|signature| signature != self.clis.custom(workspace)) {
            // One of them was turned off since they were fetched.
            return Err(ApiError::Refused { status: 409, kind: Refusal::Other });
        }
        let custom = (0..profiles.map_or(0, custom_count)).map(|n| ProfileId::new(format!("profile-{n}")));
        let named = agents.iter().map(|agent| (agent.clone(), None));
        let named: Vec<(Provider, Option<ProfileId>)> =
            named.chain(custom.map(|profile| (Provider::new(PROVIDERS[0]), Some(profile)))).collect();
        let entry = |(provider, profile): &(Provider, Option<ProfileId>)| RuntimeEntry {
            provider: Text::from(profile.as_ref().map_or(provider.as_str(), ProfileId::as_str)),
            online: true,
            ..RuntimeEntry::default()
        };
        let from = Registration {
            runtimes: named.iter().map(entry).collect(),
            ..Registration::new(workspace.clone(), DAEMON)
        };
        let ids = self.plane.register(self.server_now(), from).map_err(|e| refused(&e))?;
        let rows = ids.into_iter().zip(named);
        let row = |(id, (provider, profile))| Registered { id, provider, profile };
        Ok(ApiReply::Registered { runtimes: rows.map(row).collect() })
    }

    /// The runtimes that a claim is for, from the set that the adapter keeps.
    fn scope(&self, claim: &ClaimCall) -> Vec<RuntimeId> {
        let claimable = self.hosted.iter().filter(|(_, it)| it.claimable);
        match claim.scope() {
            ClaimScope::All => claimable.map(|(id, _)| id.clone()).collect(),
            ClaimScope::Only { provider } => {
                claimable.filter(|(_, it)| it.provider == *provider).map(|(id, _)| id.clone()).collect()
            }
            ClaimScope::AllBut { providers } => claimable
                .filter(|(_, it)| !providers.contains(&it.provider))
                .map(|(id, _)| id.clone())
                .collect(),
            ClaimScope::Named { runtimes } => runtimes.clone(),
        }
    }

    fn offers(&mut self, given: Vec<Claimed>) -> ApiReply {
        let mut offers = Vec::with_capacity(given.len());
        for Claimed { task, again } in given {
            if again {
                self.marks.hit(Mark::HandedOutAgain);
            }
            let Some(row) = self.plane.task(&task) else { continue };
            let (runtime, payload) = (row.runtime.clone(), row.payload.0);
            let prior = row.prior_work_dir.as_deref().map(EnvRoot::new);
            let bad = self.hit(Fault::BadOffer);
            self.next_claim += 1;
            let claim = ClaimKey(self.next_claim);
            let root = root_of(&task);
            let fault = bad.then_some(FailReason::InvalidTaskIdentity);
            let in_place = payload.is_multiple_of(5);
            let offer = Offer { claim, task, runtime, root, prior, fault, in_place };
            offers.push(offer);
        }
        ApiReply::Claimed { offers, unusable: 0 }
    }

    fn post(&mut self, claim: ClaimKey, after: u32, upto: u32) -> Result<ApiReply, ApiError> {
        let part = self.hit(Fault::PartialPost) && upto > after + 1;
        let end = if part { after + 1 + self.chance.below(upto - after - 1) } else { upto };
        let at = self.server_now();
        let Some(claim) = self.claims.get(&claim) else { return Err(gone()) };
        let message = |seq: u32| Message {
            seq: i32::try_from(seq).unwrap_or(i32::MAX),
            kind: TEXT.clone(),
            tool: None,
            content: None,
            input: None,
            output: None,
            at,
        };
        let batch = (after + 1..=end).map(message).collect();
        self.plane.post_messages(&claim.offer.task, batch).map_err(|e| refused(&e))?;
        Ok(if part { ApiReply::Known { upto: end } } else { ApiReply::Done })
    }

    fn report(&mut self, key: ClaimKey, kind: ReportKind) -> Result<ApiReply, ApiError> {
        let now = self.server_now();
        let Some(claim) = self.claims.get_mut(&key) else { return Err(gone()) };
        let (task, root) = (claim.offer.task.clone(), &claim.offer.root);
        let before = self.plane.status(&task).map_err(|e| refused(&e))?;
        let done = match kind {
            ReportKind::Complete => {
                let with = Completion { work_dir: root.as_str().into(), ..Completion::default() };
                self.plane.complete(now, &task, with).map(|_| ())
            }
            ReportKind::Fail { reason } => {
                let with = Failure {
                    failure_reason: reason.as_str().into(),
                    work_dir: root.as_str().into(),
                    ..Failure::default()
                };
                self.plane.fail(now, &task, &with).map(|_| ())
            }
            ReportKind::CancelAck => self.plane.ack_cancel(&task, &CancelAck::default()),
        };
        done.map_err(|e| refused(&e))?;
        claim.heard = true;
        let after = self.plane.status(&task).map_err(|e| refused(&e))?;
        if before != after {
            claim.taken = Some(kind);
        }
        Ok(if kind == ReportKind::CancelAck {
            ApiReply::Done
        } else {
            ApiReply::Task { status: status(after) }
        })
    }

    /// What the daemon wrote down and was told again at its start must not be failed as orphaned.
    pub(super) fn orphans_are_orphans(&mut self, runtime: &RuntimeId) {
        let lost = self.claims.values().find(|claim| {
            let told = !claim.cut && !claim.forgotten && claim.offer.runtime == *runtime;
            let row = self.plane.task(&claim.offer.task);
            told && self.lives > 1
                && claim.run.is_some()
                && row.is_some_and(|row| row.state == State::Running)
        });
        if let Some(claim) = lost {
            let story =
                format!("claim {} is known to the daemon, and is failed as orphaned", claim.offer.claim.0);
            self.require(false, "ORPHANS", || story);
        }
    }
}

pub(super) fn root_of(task: &TaskId) -> EnvRoot {
    EnvRoot::new(format!("ws/{}", task.as_str().get(..8).unwrap_or(task.as_str())))
}

const fn gone() -> ApiError {
    ApiError::Refused { status: 404, kind: Refusal::TaskGone }
}

fn refused(error: &plane::Refusal) -> ApiError {
    let kind = match error {
        plane::Refusal::TaskNotFound => Refusal::TaskGone,
        plane::Refusal::RuntimeNotFound => Refusal::RuntimeGone,
        plane::Refusal::WorkspaceNotFound => Refusal::WorkspaceGone,
        _ => Refusal::Other,
    };
    ApiError::Refused { status: error.status(), kind }
}

pub(super) const fn status(state: State) -> TaskStatus {
    match state {
        State::Deferred => TaskStatus::Deferred,
        State::Queued => TaskStatus::Queued,
        State::Dispatched => TaskStatus::Dispatched,
        State::WaitingLocalDirectory => TaskStatus::WaitingLocalDirectory,
        State::Running => TaskStatus::Running,
        State::Completed => TaskStatus::Completed,
        State::Failed => TaskStatus::Failed,
        State::Cancelled => TaskStatus::Cancelled,
    }
}
