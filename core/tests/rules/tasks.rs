//! Tasks, from claim to seal.

use super::harness::{Tamper, answers, cut_short, ended, fails, find, has, hide, instead, notice, twice};
use longshore_core::effect::{ApiCall, Effect, EndReason, Fact};
use longshore_core::error::ApiError;
use longshore_core::event::{ApiReply, ClaimKey, Event, RunEnd, RunEvent, TaskStatus};
use longshore_core::id::EnvRoot;
use longshore_core::reason::FailReason;

const TAMPERS: &[(&str, Tamper)] = &[
    ("I13", |_, _, fx| hide(fx, "seal")),
    ("I20", |_, _, fx| hide(fx, "run ")),
    ("I22", |_, event, _| {
        answers(
            event,
            |r| matches!(r, ApiReply::Task { status: TaskStatus::Running }),
            Ok(ApiReply::Task { status: TaskStatus::Cancelled }),
        )
    }),
    ("I5", |_, _, fx| hide(fx, "prepare")),
    ("I5", |_, _, fx| hide(fx, "start")),
    ("I6", |_, event, fx| instead(event, fx, "run ", Event::Tick)),
    ("I8", |_, _, fx| twice(fx, "complete")),
    ("I8", |_, _, fx| twice(fx, "forget")),
    ("TRUE-REASON", |_, event, _| {
        ended(event, |outcome| {
            if let RunEnd::Failed { reason } = &mut outcome.end {
                *reason = FailReason::ContextOverflow;
            }
        })
    }),
    ("INV-106", |_, event, _| {
        if let Event::Run { run: RunEvent::Ended { outcome }, .. } = event
            && outcome.end == RunEnd::Completed
        {
            outcome.end = RunEnd::Failed { reason: FailReason::Unknown };
            return true;
        }
        false
    }),
    ("INV-107", |_, event, fx| {
        has(fx, "fail") && fails(event, |e| !e.is_passing(), ApiError::Server { status: 500 })
    }),
    ("INV-109", |_, _, fx| cut_short(fx, "complete") || cut_short(fx, "fail")),
    ("INV-114", |_, _, fx| twice(fx, "seal")),
    ("INV-116", |_, event, _| match event {
        Event::Api { r: Ok(ApiReply::Claimed { offers, .. }), .. } if offers.len() == 1 => {
            offers.clear();
            true
        }
        _ => false,
    }),
    ("INV-124", |_, event, _| match event {
        Event::Api { r: Ok(ApiReply::Claimed { offers, .. }), .. } if !offers.is_empty() => {
            offers[0].root = EnvRoot::new("ws/another");
            true
        }
        _ => false,
    }),
    ("INV-125", |_, _, fx| match find(fx, "run ") {
        Some(Effect::Run { call, .. }) => {
            fx.push(Effect::Fact { fact: Fact::Released { claim: call.claim(), slot: Some(call.slot()) } });
            true
        }
        _ => false,
    }),
    ("INV-131", |_, _, fx| twice(fx, "prepare")),
    ("INV-72", |_, _, fx| {
        fx.push(Effect::Progress { claim: ClaimKey(999_999), step: 1 });
        true
    }),
    ("INV-73", |_, _, fx| twice(fx, "start")),
    ("INV-77", |_, _, fx| hide(fx, "unwind")),
    ("INV-79", |_, _, fx| match find(fx, "start") {
        Some(Effect::Api { call: ApiCall::Start(call), .. }) => {
            let why = EndReason::PrepareTimeout;
            fx.insert(0, Effect::Fact { fact: Fact::Ending { claim: call.claim(), why } });
            true
        }
        _ => false,
    }),
    ("INV-80", |_, _, fx| twice(fx, "unwind")),
    ("INV-94", |_, event, _| {
        answers(
            event,
            |r| matches!(r, ApiReply::Task { status: TaskStatus::Cancelled | TaskStatus::Failed }),
            Ok(ApiReply::Task { status: TaskStatus::Running }),
        )
    }),
    ("INV-95", |_, _, fx| hide(fx, "status")),
    ("INV-96", |_, _, fx| twice(fx, "is settling")),
    ("LOST", |_, event, _| {
        answers(
            event,
            |r| matches!(r, ApiReply::Task { status: TaskStatus::Running }),
            Ok(ApiReply::Task { status: TaskStatus::Queued }),
        )
    }),
];

#[test]
fn the_rules_about_tasks_notice_what_is_tampered_with() {
    notice(TAMPERS);
}
