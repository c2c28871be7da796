//! How the core's own vocabulary is said to a person.

use crate::effect::{
    ApiCall, Effect, ExitCause, FsCall, GateAnswer, ReportKind, RuntimeChange, StopPhase, WsCmd,
};
use crate::event::{ClaimKey, Collect, Event, GateOwner, Recovered, RunEnd, StopKind};
use crate::id::{ActionId, PathKey, Provider, RuntimeId, SlotIndex};
use crate::reason::FailReason;
use crate::script::{api_label, effect_label, event_label, fs_label};
use crate::story::RequestKind;
use serde::Serialize;
use std::collections::BTreeSet;
use std::time::Duration;

/// The name that a trace has for a plain value, with spaces: `awaiting root`.
pub fn name(of: &impl Serialize) -> String {
    match serde_json::to_value(of) {
        Ok(serde_json::Value::String(name)) => name.replace('_', " "),
        Ok(other) => other.to_string(),
        Err(_) => "unknown".to_owned(),
    }
}

/// Says a number of times as an ordinal: `2nd`.
pub(crate) fn nth(n: u32) -> String {
    let end = match (n % 10, n % 100) {
        (_, 11..=13) => "th",
        (1, _) => "st",
        (2, _) => "nd",
        (3, _) => "rd",
        _ => "th",
    };
    format!("{n}{end}")
}

/// What a person reads in place of the value.
pub(crate) trait Said {
    /// In words.
    fn said(&self) -> String;
}

/// A request about a claim, which is named so that what has to do with it can be found.
fn of_claim(kind: RequestKind, claim: Option<ClaimKey>) -> Option<String> {
    claim.map(|claim| format!("{} of {}", kind.as_str(), claim.said()))
}

/// What is written down of a claim whose agent was launched.
pub(crate) fn launched(slot: SlotIndex) -> String {
    format!("launched in slot {}", slot.0)
}

/// What is written down of a claim whose run has ended.
pub(crate) fn ended(report: Option<ReportKind>) -> String {
    report.map_or_else(
        || "ended, with nothing to be reported".to_owned(),
        |report| format!("ended, to be reported as {}", report.said()),
    )
}

macro_rules! said {
    ($($of:ty: $it:ident => $said:expr;)*) => {$(
        impl Said for $of {
            fn said(&self) -> String {
                let $it = self;
                $said
            }
        }
    )*};
}

said! {
    ClaimKey: it => format!("claim {}", it.0);
    RuntimeId: it => format!("runtime {it}");
    Provider: it => it.to_string();
    ActionId: it => format!("action {it}");
    PathKey: it => it.to_string();
    ApiCall: it => of_claim(RequestKind::from(it), it.claim()).unwrap_or_else(|| api_label(it));
    FsCall: it => of_claim(RequestKind::from(it), it.claim()).unwrap_or_else(|| fs_label(it));
    Effect: it => match it {
        Self::Api { call, .. } => call.said(),
        Self::Fs { call, .. } => call.said(),
        Self::Run { call, .. } => format!("run of {}", call.claim().said()),
        other => effect_label(other),
    };
    Event: it => event_label(it);
    WsCmd: it => match it {
        WsCmd::Connect { .. } => "a connection is dialled".to_owned(),
        WsCmd::Beat { runtime } => format!("a heartbeat of {runtime} is sent"),
        WsCmd::Close => "the connection is closed".to_owned(),
    };
    FailReason: it => it.as_str().to_owned();
    Collect: it => name(it);
    StopPhase: it => name(it);
    ExitCause: it => name(it);
    GateOwner: it => format!("a {}", name(it));
    GateAnswer: it => name(it);
    StopKind: it => event_label(&Event::Stop { how: *it });
    Duration: it => format!("{}.{:03} s", it.as_secs(), it.subsec_millis());
    ReportKind: it => match it {
        ReportKind::Complete => "completed".to_owned(),
        ReportKind::Fail { reason } => format!("failed ({})", reason.as_str()),
        ReportKind::CancelAck => "cancelled".to_owned(),
    };
    RunEnd: it => match it {
        RunEnd::Completed => "completed".to_owned(),
        RunEnd::Failed { reason } => format!("failed ({})", reason.as_str()),
    };
    RuntimeChange: it => match it {
        RuntimeChange::Added { .. } => "being added".to_owned(),
        RuntimeChange::Claimable => "being asked for tasks".to_owned(),
        RuntimeChange::Removed => "being removed".to_owned(),
    };
    Recovered: it => match it {
        Recovered::Claimed => "claimed".to_owned(),
        Recovered::Launched { slot, .. } => launched(*slot),
        Recovered::Ended { report, .. } => ended(*report),
    };
}

impl<T: Said + ?Sized> Said for &T {
    fn said(&self) -> String {
        (**self).said()
    }
}

impl<T: Said> Said for Option<T> {
    fn said(&self) -> String {
        self.as_ref().map_or_else(|| "none".to_owned(), Said::said)
    }
}

fn all<'a, T: Said + 'a>(list: impl Iterator<Item = &'a T>) -> String {
    let all: Vec<String> = list.map(Said::said).collect();
    if all.is_empty() { "none".to_owned() } else { all.join(", ") }
}

impl<T: Said> Said for [T] {
    fn said(&self) -> String {
        all(self.iter())
    }
}

impl<T: Said> Said for Vec<T> {
    fn said(&self) -> String {
        all(self.iter())
    }
}

impl<T: Said> Said for BTreeSet<T> {
    fn said(&self) -> String {
        all(self.iter())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::effect::PhaseName;
    use crate::id::OpId;
    use crate::time::Instant;

    #[test]
    fn values_are_said_as_a_person_would() {
        assert_eq!(name(&PhaseName::AwaitingRoot), "awaiting root");
        assert_eq!([ClaimKey(1), ClaimKey(3)].said(), "claim 1, claim 3");
        assert_eq!((None::<ClaimKey>.said(), Vec::<ClaimKey>::new().said()), ("none".into(), "none".into()));
        assert_eq!(Some(ReportKind::Fail { reason: FailReason::Timeout }).said(), "failed (timeout)");
        assert_eq!(Recovered::Launched { slot: SlotIndex(2), acked: 0 }.said(), "launched in slot 2");
        assert_eq!(Duration::from_millis(2_050).said(), "2.050 s");
        assert_eq!(GateOwner::ServerUpdate.said(), "a server update");
        assert_eq!(ApiCall::Lease { claim: ClaimKey(4) }.said(), "lease of claim 4");
        assert_eq!(FsCall::Resolve { claim: ClaimKey(4) }.said(), "resolve of claim 4");
        let effect = Effect::Api { op: OpId(1), call: ApiCall::Renew, deadline: Instant::default() };
        assert_eq!((effect.said(), FsCall::Scan.said()), ("renew".into(), "scan".into()));
    }

    #[test]
    fn ordinals_have_their_endings() {
        assert_eq!(
            [1, 2, 3, 4, 11, 12, 13, 21, 102, 111].map(nth).join(" "),
            "1st 2nd 3rd 4th 11th 12th 13th 21st 102nd 111th"
        );
    }
}
