//! Every variant of every event and effect, written and read again.

use crate::effect::*;
use crate::error::{ApiError, FsError, Refusal};
use crate::event::*;
use crate::id::{ConnGen, Generation, OpId, SlotIndex};
use crate::reason::FailReason;
use crate::time::{Instant, Now, UnixMillis};
use crate::token::{GcReservation, LeaseStopped, Prepared, SlotPermit};
use crate::trace::{Header, Reader, Record, Step, encode};
use std::collections::BTreeSet;

const OP: OpId = OpId(u64::MAX);
const CLAIM: ClaimKey = ClaimKey(u64::MAX - 1);

fn api_replies() -> Vec<ApiReply> {
    let fault = |fault| Offer {
        claim: CLAIM,
        task: "t \"1\"".into(),
        runtime: "r/ä\u{1f600}".into(),
        root: "w/t".into(),
        prior: Some("w/old".into()),
        fault,
        in_place: fault.is_some(),
    };
    let mut offers: Vec<Offer> = FailReason::ALL.iter().map(|reason| fault(Some(*reason))).collect();
    offers.push(Offer { prior: None, ..fault(None) });
    let statuses = [
        TaskStatus::Queued,
        TaskStatus::Dispatched,
        TaskStatus::WaitingLocalDirectory,
        TaskStatus::Running,
        TaskStatus::Completed,
        TaskStatus::Failed,
        TaskStatus::Cancelled,
        TaskStatus::Deferred,
        TaskStatus::Other,
    ];
    let runtimes = vec![
        Registered { id: "r".into(), provider: "claude".into(), profile: None },
        Registered { id: "q".into(), provider: "codex".into(), profile: Some("p".into()) },
    ];
    let mut all = vec![
        ApiReply::Done,
        ApiReply::Workspaces { list: vec!["w".into(), "".into()], legacy: true },
        ApiReply::Registered { runtimes },
        ApiReply::Profiles { signature: u64::MAX, count: 3 },
        ApiReply::Beaten { gone: true, actions: Vec::new() },
        ApiReply::Beaten { gone: false, actions: actions() },
        ApiReply::Claimed { offers, unusable: 3 },
        ApiReply::Known { upto: u32::MAX },
        ApiReply::Collectable { what: Collect::Artifacts },
    ];
    all.extend(statuses.map(|status| ApiReply::Task { status }));
    all
}

fn actions() -> Vec<Action> {
    [ActionKind::Update, ActionKind::Models, ActionKind::LocalSkills, ActionKind::ImportSkill]
        .map(|kind| Action { id: "a".into(), kind })
        .into()
}

fn offer() -> Offer {
    let Some(ApiReply::Claimed { offers, .. }) =
        api_replies().into_iter().find(|r| matches!(r, ApiReply::Claimed { .. }))
    else {
        unreachable!("one of the samples is a claim")
    };
    offers[0].clone()
}

fn api_errors() -> Vec<ApiError> {
    let refusals = [
        Refusal::TaskGone,
        Refusal::RuntimeGone,
        Refusal::WorkspaceGone,
        Refusal::RouteMissing,
        Refusal::Unauthorized,
        Refusal::ClockSkew,
        Refusal::Forbidden,
        Refusal::Other,
    ];
    let mut all = vec![
        ApiError::NotSent,
        ApiError::Unknown,
        ApiError::Throttled { retry_after_ms: None },
        ApiError::Throttled { retry_after_ms: Some(1) },
        ApiError::Server { status: 503 },
        ApiError::Undecodable,
    ];
    all.extend(refusals.map(|kind| ApiError::Refused { status: 404, kind }));
    all
}

fn probed() -> Vec<Probed> {
    [
        Standing::Works { version: u64::MAX },
        Standing::Slow,
        Standing::Unreadable,
        Standing::TooOld,
        Standing::NotExecutable,
    ]
    .map(|standing| Probed { provider: "claude".into(), standing })
    .into()
}

fn events() -> Vec<Event> {
    let outcome =
        |end| RunEvent::Ended { outcome: RunOutcome { end, have: 9, usage: true, resume_rejected: true } };
    let runs = [
        RunEvent::Launched,
        RunEvent::Progress { have: 4, session: true, tools: 0 },
        RunEvent::Progress { have: 4, session: false, tools: 2 },
        RunEvent::Result,
        outcome(RunEnd::Completed),
        outcome(RunEnd::Failed { reason: FailReason::ContextOverflow }),
    ];
    let links = [
        WsEvent::Up,
        WsEvent::Down,
        WsEvent::TaskAvailable { runtime: None, task: None },
        WsEvent::TaskAvailable { runtime: Some("r".into()), task: Some("t".into()) },
        WsEvent::Refused { status: 404, kind: Refusal::RuntimeGone },
        WsEvent::ProfilesChanged { workspace: "w".into() },
        WsEvent::Ack { runtime: "r".into(), gone: true, claims: false, actions: Vec::new() },
        WsEvent::Ack { runtime: "r".into(), gone: false, claims: true, actions: actions() },
        WsEvent::WorkspacesChanged,
        WsEvent::PendingWork { runtime: "r".into() },
    ];
    let disk = [
        Ok(FsReply::Prepared { root: "w/t".into() }),
        Ok(FsReply::Resolved { path: "/home/me/x".into() }),
        Ok(FsReply::Scanned {
            found: vec![
                Found { root: "w/t".into(), what: None },
                Found { root: "w/u".into(), what: Some(Collect::All) },
            ],
        }),
        Ok(FsReply::Probed { agents: probed() }),
        Ok(FsReply::Done),
        Err(FsError::TimedOut),
        Err(FsError::Cancelled),
        Err(FsError::Failed { reason: FailReason::LocalDirectoryError }),
    ];
    let stops = [
        StopKind::Now,
        StopKind::Drain { within_ms: None },
        StopKind::Drain { within_ms: Some(1) },
        StopKind::Restart,
    ];
    let slot = SlotIndex(3);
    let was = [
        Recovered::Claimed,
        Recovered::Ended { report: None, acked: 1, have: 2, usage: false, ran: false },
        Recovered::Launched { slot, acked: 4 },
        Recovered::Ended { report: Some(ReportKind::CancelAck), acked: 1, have: 2, usage: true, ran: true },
    ];
    let owners = [GateOwner::ServerUpdate, GateOwner::SelfUpdate, GateOwner::Reload, GateOwner::Demotion];
    let asks = [GateAsk::Try, GateAsk::Wait, GateAsk::Release];
    let mut all = vec![Event::Tick, Event::Credential];
    all.extend(stops.map(|how| Event::Stop { how }));
    let paths = [None, None, Some("dir-1".into()), None];
    let recovered = |(was, path)| Event::Recovered { offer: offer(), provider: "claude".into(), was, path };
    all.extend(was.into_iter().zip(paths).map(recovered));
    all.extend(
        owners.into_iter().zip(asks.into_iter().cycle()).map(|(owner, ask)| Event::Gate { owner, ask }),
    );
    all.extend(api_replies().into_iter().map(|reply| Event::Api { op: OP, r: Ok(reply) }));
    all.extend(api_errors().into_iter().map(|error| Event::Api { op: OP, r: Err(error) }));
    all.extend(disk.into_iter().map(|r| Event::Fs { op: OP, r }));
    all.extend(runs.into_iter().map(|run| Event::Run { op: OP, run }));
    all.extend(links.into_iter().map(|ws| Event::Ws { conn: ConnGen(u32::MAX), ws }));
    all
}

fn api_calls() -> Vec<ApiCall> {
    let hold = [SlotPermit::mint(SlotIndex(0)), SlotPermit::mint(SlotIndex(1))];
    let scopes = [
        ClaimScope::All,
        ClaimScope::Only { provider: "claude".into() },
        ClaimScope::AllBut { providers: vec!["claude".into(), "codex".into()] },
        ClaimScope::Named { runtimes: vec!["r".into()] },
    ];
    let prepared = Prepared::mint("w/t".into());
    let mut all = vec![
        ApiCall::Renew,
        ApiCall::Workspaces,
        ApiCall::Profiles { workspace: "w".into() },
        ApiCall::Register { workspace: "w".into(), agents: Vec::new(), profiles: None },
        ApiCall::Register { workspace: "w".into(), agents: vec!["claude".into()], profiles: Some(u64::MAX) },
        ApiCall::RecoverOrphans { runtime: "r".into() },
        ApiCall::Deregister { runtimes: vec!["r".into()], broken: None },
        ApiCall::Deregister { runtimes: vec!["r".into()], broken: Some("claude".into()) },
        ApiCall::ActionResult { runtime: "r".into(), action: "a".into(), kind: ActionKind::Models },
        ApiCall::Beat { runtime: "r".into() },
        ApiCall::ClaimOne(ClaimOneCall::new("r".into(), &hold[0])),
        ApiCall::Lease { claim: CLAIM },
        ApiCall::Start(StartCall::new(CLAIM, &prepared)),
        ApiCall::Status { claim: CLAIM },
        ApiCall::Messages { claim: CLAIM, after: 1, upto: 2 },
        ApiCall::MessagesKnown { claim: CLAIM, after: 1 },
        ApiCall::Usage { claim: CLAIM },
        ApiCall::Pin { claim: CLAIM },
        ApiCall::Complete { claim: CLAIM },
        ApiCall::Fail { claim: CLAIM, reason: FailReason::Timeout },
        ApiCall::CancelAck { claim: CLAIM },
        ApiCall::WaitDirectory { claim: CLAIM, holder: None },
        ApiCall::WaitDirectory { claim: CLAIM, holder: Some(ClaimKey(1)) },
        ApiCall::Collectable { root: "w/t".into() },
        ApiCall::ClaimOver { conn: ConnGen(3), claim: ClaimCall::new(Generation(7), ClaimScope::All, &hold) },
    ];
    all.extend(scopes.map(|scope| ApiCall::Claim(ClaimCall::new(Generation(7), scope, &hold))));
    all
}

fn facts() -> Vec<Fact> {
    let task = || "t".into();
    let mut all = vec![
        Fact::Ready,
        Fact::Admitted { claim: CLAIM, task: task(), runtime: "r".into(), slot: SlotIndex(999) },
        Fact::Duplicate { task: task() },
        Fact::Recovered { claim: CLAIM, task: task(), runtime: "r".into(), slot: None },
        Fact::Parked { claim: CLAIM, holder: ClaimKey(0) },
        Fact::Unparked { claim: CLAIM, slot: SlotIndex(0) },
        Fact::HeldOff,
        Fact::Collected { root: "w/t".into(), what: Collect::All, ok: false },
        Fact::Uncollected { left: 7 },
        Fact::HandedBack { claim: CLAIM, task: task(), reason: FailReason::Unknown },
        Fact::Unusable { count: 1 },
        Fact::ReportLate { claim: CLAIM },
        Fact::ReportSuperseded { claim: CLAIM, status: TaskStatus::Dispatched },
        Fact::ReportRefused { claim: CLAIM, status: 422 },
        Fact::MessagesRefused { claim: CLAIM, upto: 1, status: 413 },
        Fact::UsageLate { claim: CLAIM },
        Fact::UsageLost { claim: CLAIM },
        Fact::Released { claim: CLAIM, slot: None },
        Fact::Released { claim: CLAIM, slot: Some(SlotIndex(1)) },
        Fact::Unauthorized,
        Fact::AccessLost,
        Fact::AccessBack,
        Fact::Reconciled,
        Fact::Woke { slept: 1 },
        Fact::Held { provider: "claude".into() },
        Fact::Freed { provider: "claude".into() },
        Fact::ActionOver { action: "a".into(), taken: true },
        Fact::ActionDropped { action: "a".into() },
        Fact::RuntimeGone { runtime: "r".into() },
        Fact::PerRuntimeClaims,
        Fact::Stray { total: u64::MAX },
    ];
    let phases = [
        PhaseName::Resolving,
        PhaseName::AwaitingDirectory,
        PhaseName::AwaitingSlot,
        PhaseName::AwaitingRoot,
        PhaseName::Preparing,
        PhaseName::Starting,
        PhaseName::Running,
        PhaseName::Settling,
        PhaseName::Reporting,
        PhaseName::Sealing,
    ];
    all.extend(phases.map(|phase| Fact::Phase { claim: CLAIM, phase }));
    let ends =
        [EndReason::Stop, EndReason::Idle, EndReason::TooLong, EndReason::PrepareTimeout, EndReason::Server];
    all.extend(ends.map(|why| Fact::Ending { claim: CLAIM, why }));
    let reports =
        [ReportKind::Complete, ReportKind::Fail { reason: FailReason::Timeout }, ReportKind::CancelAck];
    all.extend(reports.map(|report| Fact::Reported { claim: CLAIM, report, tries: 2 }));
    let stops = [
        StopPhase::Serving,
        StopPhase::Claims,
        StopPhase::Tasks,
        StopPhase::Deregistering,
        StopPhase::Exited,
    ];
    all.extend(stops.map(|phase| Fact::Stopping { phase }));
    all
}

fn effects() -> Vec<Effect> {
    let (prepared, lease) = (Prepared::mint("w/t".into()), LeaseStopped::mint());
    let launch = LaunchCall::new(CLAIM, SlotIndex(2), true, &prepared, &lease);
    let disk = [
        FsCall::Prepare { claim: CLAIM, root: "w/t".into(), slot: SlotIndex(0) },
        FsCall::Unwind { claim: CLAIM },
        FsCall::Seal { claim: CLAIM, record: true },
        FsCall::Resolve { claim: CLAIM },
        FsCall::Scan,
        FsCall::Collect(CollectCall::new(&GcReservation::mint("w/t".into()), Collect::All)),
        FsCall::Maintain,
        FsCall::Probe { all: true },
        FsCall::Act { runtime: "r".into(), action: actions()[0].clone() },
    ];
    let kills = [KillStep::CloseInput, KillStep::End { grace_ms: 5000 }, KillStep::Kill];
    let links = [
        WsCmd::Connect { set: Generation(3), without: Vec::new() },
        WsCmd::Connect { set: Generation(3), without: vec!["r".into()] },
        WsCmd::Beat { runtime: "r".into() },
        WsCmd::Close,
    ];
    let changes = [
        RuntimeChange::Added { workspace: "w".into(), provider: "claude".into(), profile: None },
        RuntimeChange::Added { workspace: "w".into(), provider: "claude".into(), profile: Some("p".into()) },
        RuntimeChange::Claimable,
        RuntimeChange::Removed,
    ];
    let exits = [ExitCause::Stopped, ExitCause::Restarting, ExitCause::Unauthorized];
    let deadline = Instant::from_millis(u64::MAX);
    let mut all = vec![
        Effect::Run { op: OP, call: launch },
        Effect::Run { op: OP, call: LaunchCall::attach(CLAIM, SlotIndex(0), 7) },
        Effect::Keep { claim: CLAIM, entry: Keep::Claimed { offer: offer(), provider: "claude".into() } },
        Effect::Keep { claim: CLAIM, entry: Keep::Launched { slot: SlotIndex(0), path: None } },
        Effect::Keep {
            claim: CLAIM,
            entry: Keep::Launched { slot: SlotIndex(0), path: Some("dir-1".into()) },
        },
        Effect::Keep {
            claim: CLAIM,
            entry: Keep::Ended {
                report: Some(ReportKind::Complete),
                have: 3,
                usage: false,
                ran: true,
                path: None,
            },
        },
        Effect::Keep {
            claim: CLAIM,
            entry: Keep::Ended { report: None, have: 3, usage: true, ran: false, path: None },
        },
        Effect::Gate { owner: GateOwner::Reload, answer: GateAnswer::Granted },
        Effect::Gate { owner: GateOwner::Reload, answer: GateAnswer::Busy },
        Effect::Cancel { op: OP },
        Effect::Progress { claim: CLAIM, step: 2 },
        Effect::Forget { claim: CLAIM },
        Effect::ForgetAction { action: "a".into() },
        Effect::DropIdleConnections,
    ];
    all.extend(api_calls().into_iter().map(|call| Effect::Api { op: OP, call, deadline }));
    all.extend(disk.map(|call| Effect::Fs { op: OP, call }));
    all.extend(kills.map(|step| Effect::Kill { op: OP, step }));
    all.extend(links.map(|cmd| Effect::Ws { conn: ConnGen(1), cmd }));
    let set = Generation(4);
    all.extend(changes.map(|change| Effect::Runtime { set, runtime: "r".into(), change }));
    all.extend(facts().into_iter().map(|fact| Effect::Fact { fact }));
    all.extend(exits.map(|cause| Effect::Exit {
        report: ExitReport { cause, abandoned: vec!["t".into()], kept: vec!["u".into()] },
    }));
    all
}

/// Numbers the variants, so that a new one does not compile until it is here, and is missed until it is in the samples.
macro_rules! numbered {
    ($of:ty: $($variant:pat),* $(,)?) => {{
        fn number(of: &$of) -> usize {
            let mut n = 0;
            $(n += 1; if matches!(of, $variant) { return n; })*
            #[allow(unreachable_patterns, reason = "one arm for each variant")]
            match of { $($variant => {})* }
            n
        }
        (number as fn(&$of) -> usize, [$(stringify!($variant)),*].len())
    }};
}

fn covers<T>(what: &str, samples: &[T], (number, variants): (fn(&T) -> usize, usize)) {
    let seen: BTreeSet<usize> = samples.iter().map(number).collect();
    assert_eq!(seen, (1..=variants).collect(), "{what}: a variant has no sample");
}

#[test]
fn the_samples_have_every_variant() {
    covers("events", &events(), {
        use Event::{Api, Credential, Fs, Gate, Recovered, Run, Stop, Tick, Ws};
        numbered!(Event: Tick, Api { .. }, Fs { .. }, Run { .. }, Ws { .. }, Stop { .. }, Recovered { .. }, Gate { .. }, Credential)
    });
    covers("replies", &api_replies(), {
        use ApiReply::{Beaten, Claimed, Collectable, Done, Known, Profiles, Registered, Task, Workspaces};
        numbered!(ApiReply: Done, Workspaces { .. }, Registered { .. }, Beaten { .. }, Claimed { .. }, Task { .. }, Known { .. },
            Collectable { .. }, Profiles { .. })
    });
    covers("errors", &api_errors(), {
        use ApiError::{NotSent, Refused, Server, Throttled, Undecodable, Unknown};
        numbered!(ApiError: NotSent, Unknown, Throttled { .. }, Server { .. }, Refused { .. }, Undecodable)
    });
    covers("effects", &effects(), {
        use Effect::{
            Api, Cancel, DropIdleConnections, Exit, Fact, Forget, ForgetAction, Fs, Gate, Keep, Kill,
            Progress, Run, Runtime, Ws,
        };
        numbered!(Effect: Api { .. }, Fs { .. }, Run { .. }, Kill { .. }, Cancel { .. }, Ws { .. }, Progress { .. },
            Runtime { .. }, Keep { .. }, Gate { .. }, Forget { .. }, ForgetAction { .. }, DropIdleConnections, Fact { .. }, Exit { .. })
    });
    covers("calls", &api_calls(), {
        use ApiCall::{
            ActionResult, Beat, CancelAck, Claim, ClaimOne, ClaimOver, Collectable, Complete, Deregister,
            Fail, Lease, Messages, MessagesKnown, Pin, Profiles, RecoverOrphans, Register, Renew, Start,
            Status, Usage, WaitDirectory, Workspaces,
        };
        numbered!(ApiCall: Renew, Workspaces, Register { .. }, RecoverOrphans { .. }, Deregister { .. }, Beat { .. }, Claim(_),
            ClaimOne(_), Lease { .. }, Start(_), Status { .. }, Messages { .. }, MessagesKnown { .. }, Usage { .. }, Pin { .. },
            Complete { .. }, Fail { .. }, CancelAck { .. }, ClaimOver { .. }, WaitDirectory { .. }, Collectable { .. }, Profiles { .. }, ActionResult { .. })
    });
    covers("facts", &facts(), {
        use Fact::{
            AccessBack, AccessLost, ActionDropped, ActionOver, Admitted, Collected, Duplicate, Ending, Freed,
            HandedBack, Held, HeldOff, MessagesRefused, Parked, PerRuntimeClaims, Phase, Ready, Reconciled,
            Recovered, Released, ReportLate, ReportRefused, ReportSuperseded, Reported, RuntimeGone,
            Stopping, Stray, Unauthorized, Uncollected, Unparked, Unusable, UsageLate, UsageLost, Woke,
        };
        numbered!(Fact: Ready, Reconciled, Admitted { .. }, Duplicate { .. }, HandedBack { .. }, Unusable { .. }, Phase { .. }, Ending { .. },
            Reported { .. }, ReportLate { .. }, ReportSuperseded { .. }, ReportRefused { .. }, MessagesRefused { .. }, UsageLate { .. }, UsageLost { .. }, Released { .. },
            Unauthorized, RuntimeGone { .. }, PerRuntimeClaims, Stopping { .. }, Stray { .. },
            Recovered { .. }, Parked { .. }, Unparked { .. }, HeldOff, Collected { .. },
            Uncollected { .. }, AccessLost, AccessBack, Woke { .. }, Held { .. }, Freed { .. }, ActionOver { .. }, ActionDropped { .. })
    });
}

#[test]
fn every_event_and_effect_is_read_as_it_was_written() {
    let (events, effects) = (events(), effects());
    let now = Now::new(Instant::from_millis(u64::MAX), UnixMillis(i64::MIN)).with_slept(u64::MAX);
    let mut lines = Vec::new();
    let header = Header::new("test", crate::config::Config::default(), crate::rng::Seed(u64::MAX), now);
    encode::header(&mut lines, &header).expect("encodes");
    for (n, event) in (1..).zip(&events) {
        encode::step(&mut lines, n, now, event, &effects).expect("encodes");
    }
    let reader = Reader::new(lines.as_slice()).expect("reads");
    assert_eq!(*reader.header(), header);
    let read: Vec<Record> = reader.collect::<Result<_, _>>().expect("reads");
    let step = |(n, event)| {
        let Now { mono, wall, slept } = now;
        Record::Step(Step { n, mono, wall, slept, event: Some(event), effects: Some(effects.clone()) })
    };
    assert_eq!(read, (1..).zip(events).map(step).collect::<Vec<_>>());
}
