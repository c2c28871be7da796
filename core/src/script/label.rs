//! Effects and events as short texts: what a test waits for, and what a failing script is printed as.

use super::Input;
use crate::effect::{
    ApiCall, ClaimScope, Effect, Fact, FsCall, Keep, KillStep, ReportKind, RuntimeChange, WsCmd,
};
use crate::event::{
    Action, ApiReply, Event, FsReply, Probed, Recovered, RunEnd, RunEvent, Standing, StopKind, WsEvent,
};
use crate::id::PathKey;
use crate::said::name;
use crate::story::Ending;

/// An effect as a short text without its number, such as `start 1` or `claim all 20`.
pub fn effect_label(effect: &Effect) -> String {
    match effect {
        Effect::Api { call, .. } => api_label(call),
        Effect::Fs { call, .. } => fs_label(call),
        Effect::Run { call, .. } => {
            let how = match call.attached() {
                Some(_) => " attached",
                None if call.fresh() => " fresh",
                None => "",
            };
            format!("run {}{how}", call.claim().0)
        }
        Effect::Kill { op, step } => match step {
            KillStep::CloseInput => format!("close-input #{}", op.0),
            KillStep::End { .. } => format!("end #{}", op.0),
            KillStep::Kill => format!("kill #{}", op.0),
        },
        Effect::Cancel { op } => format!("cancel #{}", op.0),
        Effect::Ws { conn, cmd } => match cmd {
            WsCmd::Connect { without, .. } => {
                let start = format!("connect {}", conn.0);
                without.iter().fold(start, |all, runtime| all + " without " + runtime.as_str())
            }
            WsCmd::Beat { runtime } => format!("ws-beat {runtime}"),
            WsCmd::Close => format!("close {}", conn.0),
        },
        Effect::Progress { claim, step } => format!("progress {} {step}", claim.0),
        Effect::Runtime { runtime, change, .. } => match change {
            RuntimeChange::Added { .. } => format!("added {runtime}"),
            RuntimeChange::Claimable => format!("claimable {runtime}"),
            RuntimeChange::Removed => format!("removed {runtime}"),
        },
        Effect::Keep { claim, entry } => match entry {
            Keep::Claimed { .. } => format!("keep {} claimed", claim.0),
            Keep::Launched { slot, path } => {
                format!("keep {} launched slot {}{}", claim.0, slot.0, inside(path.as_ref()))
            }
            Keep::Ended { report: kind, have, .. } => {
                format!("keep {} owes {} ..{have}", claim.0, kind.map_or("nothing".to_owned(), report))
            }
        },
        Effect::ForgetAction { action } => format!("forget-action {action}"),
        Effect::Gate { owner, answer } => format!("gate {} {}", name(owner), name(answer)),
        Effect::Forget { claim } => format!("forget {}", claim.0),
        Effect::DropIdleConnections => "drop-idle".into(),
        Effect::Fact { fact } => self::fact(fact),
        Effect::Exit { report } => format!("exit {}", name(&report.cause)),
    }
}

/// The same of what the server is asked.
pub(crate) fn api_label(call: &ApiCall) -> String {
    match call {
        ApiCall::Renew => "renew".into(),
        ApiCall::Workspaces => "workspaces".into(),
        ApiCall::Profiles { workspace } => format!("profiles {workspace}"),
        ApiCall::ActionResult { action, .. } => format!("result {action}"),
        ApiCall::Register { workspace, .. } => format!("register {workspace}"),
        ApiCall::RecoverOrphans { runtime } => format!("orphans {runtime}"),
        ApiCall::Deregister { runtimes, broken } => {
            let names = runtimes.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
            format!("deregister {names}{}", if broken.is_some() { " broken" } else { "" })
        }
        ApiCall::Beat { runtime } => format!("beat {runtime}"),
        ApiCall::Claim(call) => format!("claim {} {}", scope(call.scope()), call.max()),
        ApiCall::ClaimOver { claim, .. } => format!("claim-over {} {}", scope(claim.scope()), claim.max()),
        ApiCall::ClaimOne(call) => format!("one {}", call.runtime()),
        ApiCall::Lease { claim } => format!("lease {}", claim.0),
        ApiCall::WaitDirectory { claim, .. } => format!("wait-directory {}", claim.0),
        ApiCall::Collectable { root } => format!("collectable {root}"),
        ApiCall::Start(call) => format!("start {}", call.claim().0),
        ApiCall::Status { claim } => format!("status {}", claim.0),
        ApiCall::Messages { claim, after, upto } => format!("messages {} {after}..{upto}", claim.0),
        ApiCall::MessagesKnown { claim, after } => format!("known {} {after}", claim.0),
        ApiCall::Usage { claim } => format!("usage {}", claim.0),
        ApiCall::Pin { claim } => format!("pin {}", claim.0),
        ApiCall::Complete { claim } => format!("complete {}", claim.0),
        ApiCall::Fail { claim, reason } => format!("fail {} {}", claim.0, reason.as_str()),
        ApiCall::CancelAck { claim } => format!("cancel-ack {}", claim.0),
    }
}

fn scope(scope: &ClaimScope) -> String {
    match scope {
        ClaimScope::All => "all".into(),
        ClaimScope::Only { provider } => format!("only {provider}"),
        ClaimScope::AllBut { providers } => {
            format!("all-but {}", providers.iter().map(ToString::to_string).collect::<Vec<_>>().join(","))
        }
        ClaimScope::Named { runtimes } => {
            format!("named {}", runtimes.iter().map(ToString::to_string).collect::<Vec<_>>().join(","))
        }
    }
}

/// The same of what the disk is asked.
pub(crate) fn fs_label(call: &FsCall) -> String {
    match call {
        FsCall::Prepare { claim, .. } => format!("prepare {}", claim.0),
        FsCall::Resolve { claim } => format!("resolve {}", claim.0),
        FsCall::Scan => "scan".into(),
        FsCall::Collect(call) => format!("collect {} {}", call.root(), name(&call.what())),
        FsCall::Maintain => "maintain".into(),
        FsCall::Probe { all } => format!("probe{}", if *all { " all" } else { "" }),
        FsCall::Act { runtime, action } => format!("act {runtime} {}", action.id),
        FsCall::Unwind { claim } => format!("unwind {}", claim.0),
        FsCall::Seal { claim, record } => format!("seal {}{}", claim.0, if *record { " record" } else { "" }),
    }
}

fn report(kind: ReportKind) -> String {
    match kind {
        ReportKind::Complete => "complete".to_owned(),
        ReportKind::Fail { reason } => format!("fail {}", reason.as_str()),
        ReportKind::CancelAck => "cancel-ack".to_owned(),
    }
}

fn fact(fact: &Fact) -> String {
    match fact {
        Fact::Ready => "is ready".into(),
        Fact::Admitted { claim, slot, .. } => format!("is admitted {} slot {}", claim.0, slot.0),
        Fact::Recovered { claim, slot, .. } => match slot {
            Some(slot) => format!("is recovered {} slot {}", claim.0, slot.0),
            None => format!("is recovered {}", claim.0),
        },
        Fact::Parked { claim, holder } => format!("is parked {} behind {}", claim.0, holder.0),
        Fact::Unparked { claim, slot } => format!("is unparked {} slot {}", claim.0, slot.0),
        Fact::HeldOff => "is held off".into(),
        Fact::Collected { root, what, ok } => {
            format!("is collected {root} {}{}", name(what), if *ok { "" } else { " badly" })
        }
        Fact::Uncollected { left } => format!("is uncollected {left}"),
        Fact::Duplicate { task } => format!("is duplicate {task}"),
        Fact::HandedBack { claim, reason, .. } => format!("is handed back {} {}", claim.0, reason.as_str()),
        Fact::Unusable { count } => format!("is unusable {count}"),
        Fact::Phase { claim, phase } => format!("is {} {}", name(phase), claim.0),
        Fact::Ending { claim, why } => format!("is ending {} {}", claim.0, name(why)),
        Fact::Reported { claim, report: kind, tries } => {
            format!("is reported {} {} after {tries}", claim.0, report(*kind))
        }
        Fact::ReportLate { claim } => format!("is late {}", claim.0),
        Fact::ReportSuperseded { claim, status } => {
            format!("is superseded {} {}", claim.0, name(status))
        }
        Fact::ReportRefused { claim, status } => format!("is refused {} {status}", claim.0),
        Fact::MessagesRefused { claim, upto, .. } => format!("is refused messages {} ..{upto}", claim.0),
        Fact::UsageLate { claim } => format!("is usage late {}", claim.0),
        Fact::UsageLost { claim } => format!("is usage lost {}", claim.0),
        Fact::Released { claim, .. } => format!("is released {}", claim.0),
        Fact::Unauthorized => "is unauthorized".into(),
        Fact::AccessLost => "is refused access".into(),
        Fact::AccessBack => "has access again".into(),
        Fact::Reconciled => "is reconciled".into(),
        Fact::Woke { slept } => format!("has slept {slept}"),
        Fact::Held { provider } => format!("is held {provider}"),
        Fact::Freed { provider } => format!("is freed {provider}"),
        Fact::ActionOver { action, taken } => {
            format!("is over {action}{}", if *taken { "" } else { " in vain" })
        }
        Fact::ActionDropped { action } => format!("is dropped {action}"),
        Fact::RuntimeGone { runtime } => format!("is gone {runtime}"),
        Fact::PerRuntimeClaims => "is per-runtime".into(),
        Fact::Stopping { phase } => format!("is stopping {}", name(phase)),
        Fact::Stray { .. } => "is stray".into(),
    }
}

/// A line of a script as a short text.
pub fn input_label(input: &Input) -> String {
    match input {
        Input::Event { event, .. } => event_label(event),
        Input::Crash { fate, .. } => format!("crash {fate}"),
    }
}

/// The user's directory that something is about, if it is about one.
fn inside(path: Option<&PathKey>) -> String {
    path.map_or(String::new(), |path| format!(" in {path}"))
}

/// An event as a short text, with the number of what it answers.
pub fn event_label(event: &Event) -> String {
    match event {
        Event::Tick => "tick".into(),
        Event::Credential => "credential".into(),
        Event::Stop { how } => match how {
            StopKind::Now => "stop".into(),
            StopKind::Drain { within_ms: None } => "drain".into(),
            StopKind::Drain { within_ms: Some(ms) } => format!("drain within {ms}"),
            StopKind::Restart => "restart".into(),
        },
        Event::Recovered { offer, was, path, .. } => match was {
            Recovered::Claimed => format!("recovered {} claimed", offer.claim.0),
            Recovered::Launched { slot, acked } => {
                let inside = inside(path.as_ref());
                format!("recovered {} launched slot {} ..{acked}{inside}", offer.claim.0, slot.0)
            }
            Recovered::Ended { report: kind, have, .. } => {
                format!(
                    "recovered {} owes {} ..{have}{}",
                    offer.claim.0,
                    kind.map_or("nothing".to_owned(), report),
                    inside(path.as_ref())
                )
            }
        },
        Event::Gate { owner, ask } => format!("gate {} {}", name(owner), name(ask)),
        Event::Api { op, r: Ok(reply) } => format!("#{} ok {}", op.0, api_reply(reply)),
        Event::Api { op, r: Err(error) } => format!("#{} {}", op.0, Ending::Api(*error)),
        Event::Fs { op, r: Ok(FsReply::Prepared { root }) } => format!("#{} prepared {root}", op.0),
        Event::Fs { op, r: Ok(FsReply::Resolved { path }) } => format!("#{} resolved {path}", op.0),
        Event::Fs { op, r: Ok(FsReply::Probed { agents }) } => {
            let how = |agent: &Probed| format!("{} {}", agent.provider, standing(agent.standing));
            format!("#{} probed {}", op.0, agents.iter().map(how).collect::<Vec<_>>().join(", "))
        }
        Event::Fs { op, r: Ok(FsReply::Scanned { found }) } => format!("#{} scanned {}", op.0, found.len()),
        Event::Fs { op, r: Ok(FsReply::Done) } => format!("#{} done", op.0),
        Event::Fs { op, r: Err(error) } => format!("#{} {}", op.0, Ending::Fs(*error)),
        Event::Run { op, run } => match run {
            RunEvent::Launched => format!("#{} launched", op.0),
            RunEvent::Progress { have, session, tools } => {
                let session = if *session { " with session" } else { "" };
                let tools = if *tools > 0 { format!(" in {tools} tools") } else { String::new() };
                format!("#{} says ..{have}{session}{tools}", op.0)
            }
            RunEvent::Result => format!("#{} result", op.0),
            RunEvent::Ended { outcome } => {
                let end = match outcome.end {
                    RunEnd::Completed => "completed".into(),
                    RunEnd::Failed { reason } => format!("failed {}", reason.as_str()),
                };
                let usage = if outcome.usage { " usage" } else { "" };
                let rejected = if outcome.resume_rejected { " resume rejected" } else { "" };
                format!("#{} ended {end} ..{}{usage}{rejected}", op.0, outcome.have)
            }
        },
        Event::Ws { conn, ws } => {
            let what = match ws {
                WsEvent::Up => "up".into(),
                WsEvent::Down => "down".into(),
                WsEvent::TaskAvailable { runtime, task } => {
                    let runtime = runtime.as_ref().map_or("all", |r| r.as_str());
                    format!("hint {runtime} {}", task.as_ref().map_or("-", |t| t.as_str()))
                }
                WsEvent::Ack { runtime, gone, claims, actions } => {
                    let (gone, claims) =
                        (if *gone { " gone" } else { "" }, if *claims { " takes claims" } else { "" });
                    format!("ack {runtime}{gone}{claims}{}", asks(actions))
                }
                WsEvent::Refused { status, kind } => format!("refused {status} {}", name(kind)),
                WsEvent::ProfilesChanged { workspace } => format!("profiles of {workspace} changed"),
                WsEvent::WorkspacesChanged => "workspaces changed".into(),
                WsEvent::PendingWork { runtime } => format!("pending {runtime}"),
            };
            format!("link {} {what}", conn.0)
        }
    }
}

/// How an agent CLI is. Which version it has is a number that says nothing to anybody.
const fn standing(of: Standing) -> &'static str {
    match of {
        Standing::Works { .. } => "works",
        Standing::Slow => "slow",
        Standing::Unreadable => "unreadable",
        Standing::TooOld => "too old",
        Standing::NotExecutable => "not executable",
    }
}

/// What a beat's answer asks for.
fn asks(actions: &[Action]) -> String {
    match actions {
        [] => String::new(),
        [one] => format!(" asks {}", one.id),
        [first, rest @ ..] => format!(" asks {} and {} more", first.id, rest.len()),
    }
}

fn api_reply(reply: &ApiReply) -> String {
    match reply {
        ApiReply::Done => "done".into(),
        ApiReply::Collectable { what } => format!("collectable {}", name(what)),
        ApiReply::Workspaces { list, .. } => {
            format!("workspaces {}", list.iter().map(ToString::to_string).collect::<Vec<_>>().join(","))
        }
        ApiReply::Registered { runtimes } => {
            let names: Vec<String> = runtimes.iter().map(|r| format!("{}:{}", r.id, r.provider)).collect();
            format!("registered {}", names.join(","))
        }
        ApiReply::Beaten { gone, actions } => {
            format!("beaten{}{}", if *gone { " gone" } else { "" }, asks(actions))
        }
        ApiReply::Claimed { offers, unusable } => {
            let names: Vec<String> = offers
                .iter()
                .map(|o| {
                    let fault = if o.fault.is_some() { " faulty" } else { "" };
                    let place = if o.in_place { " in place" } else { "" };
                    format!("{}={} for {}{fault}{place}", o.claim.0, o.task, o.runtime)
                })
                .collect();
            format!("claimed [{}]{}", names.join(", "), if *unusable > 0 { " and unusable" } else { "" })
        }
        ApiReply::Task { status } => format!("status {}", name(status)),
        ApiReply::Known { upto } => format!("known ..{upto}"),
        ApiReply::Profiles { count, .. } => format!("profiles {count}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::effect::PhaseName;
    use crate::error::{ApiError, FsError};
    use crate::event::ClaimKey;
    use crate::id::{OpId, Provider};

    #[test]
    fn labels_are_words() {
        let phase = Fact::Phase { claim: ClaimKey(1), phase: PhaseName::AwaitingRoot };
        assert_eq!(effect_label(&Effect::Fact { fact: phase }), "is awaiting root 1");
        let api = |error| event_label(&Event::Api { op: OpId(36), r: Err(error) });
        assert_eq!(api(ApiError::NotSent), "#36 server not reached");
        assert_eq!(api(ApiError::Server { status: 502 }), "#36 server failed with 502");
        assert_eq!(event_label(&Event::Fs { op: OpId(3), r: Err(FsError::TimedOut) }), "#3 timed out");
        let probed = |standing| Probed { provider: Provider::new("claude"), standing };
        let agents = vec![probed(Standing::Works { version: 0x5bd1_e995 }), probed(Standing::TooOld)];
        let probed = event_label(&Event::Fs { op: OpId(4), r: Ok(FsReply::Probed { agents }) });
        assert_eq!(probed, "#4 probed claude works, claude too old");
    }
}
