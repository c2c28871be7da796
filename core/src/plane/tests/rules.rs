use super::*;
use std::slice::from_ref as one;

#[test]
fn registering_again_gives_the_same_ids_and_a_deleted_runtime_a_new_one() {
    let (mut plane, id) = plane();
    assert_eq!(plane.register(at(1), registration("d", &[" Claude "])).expect("ok"), one(&id));
    assert_ne!(plane.register(at(1), registration("other", &["claude"])).expect("ok"), one(&id));
    assert!(plane.delete_runtime(at(2), &id));
    assert_eq!(plane.heartbeat(at(2), &id), Err(Refusal::RuntimeNotFound));
    assert_ne!(plane.register(at(3), registration("d", &["claude"])).expect("ok"), one(&id));
}

#[test]
fn a_registration_needs_a_known_workspace_a_daemon_and_a_runtime() {
    let (mut plane, _) = plane();
    let mut foreign = registration("d", &["claude"]);
    foreign.workspace = "ws-2".into();
    assert_eq!(plane.register(at(0), foreign).expect_err("unknown").status(), 404);
    assert_eq!(plane.register(at(0), registration(" ", &["claude"])).expect_err("no daemon").status(), 400);
    assert_eq!(plane.register(at(0), registration("d", &[])).expect_err("no runtime").status(), 400);
}

#[test]
fn a_runtime_that_is_silent_for_150_s_gets_no_work_until_its_next_beat() {
    let (mut plane, id) = plane();
    plane.enqueue(at(0), issue(&id, "a", "i")).expect("enqueued");
    assert!(plane.claim(at(151), "d", one(&id), 1).expect("ok").is_empty());
    plane.sweep(at(151));
    assert!(!plane.runtime(&id).expect("there").online);
    plane.heartbeat(at(152), &id).expect("ok");
    assert_eq!(plane.claim(at(152), "d", one(&id), 1).expect("ok").len(), 1);
}

#[test]
fn deregistering_stops_work_and_leaves_tasks_alone() {
    let (mut plane, id) = plane();
    let task = plane.running(at(0), &id);
    plane.enqueue(at(0), issue(&id, "b", "j")).expect("enqueued");
    plane.deregister(&[id.clone(), "nobody".into()]).expect("ok");
    assert!(plane.claim(at(1), "d", one(&id), 1).expect("ok").is_empty());
    assert_eq!(plane.state(&task), State::Running);
    assert_eq!(plane.deregister(&[]).expect_err("empty").status(), 400);
}

#[test]
fn a_claim_skips_runtimes_of_others_and_gives_no_more_than_asked_for() {
    let (mut plane, id) = plane();
    for n in 0..3 {
        plane.enqueue(at(0), issue(&id, &format!("a{n}"), &format!("i{n}"))).expect("enqueued");
    }
    assert!(plane.claim(at(0), "other", one(&id), 9).expect("ok").is_empty());
    assert!(plane.claim(at(0), "d", &["unknown".into()], 9).expect("ok").is_empty());
    assert!(plane.claim(at(0), "d", one(&id), 0).expect("ok").is_empty());
    assert_eq!(plane.claim(at(0), "d", &[id.clone(), id.clone()], 2).expect("ok").len(), 2);
    assert_eq!(plane.claim_one(at(0), &id).expect("ok").into_iter().count(), 1);
    assert_eq!(plane.claim_one(at(0), &id).expect("ok"), None);
    assert_eq!(plane.claim(at(0), "", one(&id), 2).expect_err("no daemon").status(), 400);
}

#[test]
fn a_claim_gives_at_most_32_tasks() {
    let (mut plane, id) = plane();
    for n in 0..40 {
        plane.enqueue(at(0), issue(&id, &format!("a{n}"), &format!("i{n}"))).expect("enqueued");
    }
    assert_eq!(plane.claim(at(0), "d", one(&id), 100).expect("ok").len(), limits::CLAIM_BATCH);
    assert_eq!(plane.claim(at(0), "d", one(&id), 100).expect("ok").len(), 8);
}

#[test]
fn higher_priority_and_then_older_tasks_go_first() {
    let (mut plane, id) = plane();
    let ids: Vec<_> = [0, 5, 5]
        .iter()
        .enumerate()
        .map(|(n, priority)| {
            let task = NewTask { priority: *priority, ..issue(&id, &format!("a{n}"), &format!("i{n}")) };
            plane.enqueue(at(0), task).expect("enqueued")
        })
        .collect();
    let got: Vec<_> =
        plane.claim(at(0), "d", one(&id), 3).expect("ok").into_iter().map(|it| it.task).collect();
    assert_eq!(got, [ids[1].clone(), ids[2].clone(), ids[0].clone()]);
}

#[test]
fn one_fresh_task_per_agent_and_claim_up_to_the_agents_cap() {
    let (mut plane, id) = plane();
    plane.set_agent_cap("a", 2);
    for n in 0..3 {
        plane.enqueue(at(0), issue(&id, "a", &format!("i{n}"))).expect("enqueued");
    }
    let mut got = Vec::new();
    for want in [1, 1, 0] {
        let batch = plane.claim(at(0), "d", one(&id), 9).expect("ok");
        assert_eq!(batch.len(), want);
        got.extend(batch);
    }
    plane.cancel(at(1), &got[0].task).expect("there");
    assert_eq!(plane.claim(at(1), "d", one(&id), 9).expect("ok").len(), 1);
}

#[test]
fn tasks_of_one_issue_and_agent_or_of_one_chat_run_one_at_a_time() {
    let (mut plane, id) = plane();
    let first = plane.enqueue(at(0), issue(&id, "a", "i")).expect("enqueued");
    assert_eq!(plane.enqueue(at(0), issue(&id, "a", "i")).expect_err("one waits").status(), 409);
    plane.claim(at(0), "d", one(&id), 9).expect("ok");
    plane.start(at(0), &first).expect("started");
    plane.enqueue(at(0), issue(&id, "a", "i")).expect("the first one runs");
    for agent in ["b", "c"] {
        plane
            .enqueue(at(0), NewTask::new(id.clone(), agent, Subject::Chat("chat".into())))
            .expect("enqueued");
    }
    // Of the two chat turns one; the second task of the issue not at all.
    assert_eq!(plane.claim(at(0), "d", one(&id), 9).expect("ok").len(), 1);
    assert_eq!(plane.claim(at(0), "d", one(&id), 9).expect("ok").len(), 0);
    plane.complete(at(1), &first, Completion::default()).expect("ok");
    assert_eq!(plane.claim(at(1), "d", one(&id), 9).expect("ok").len(), 1);
}

#[test]
fn a_claim_whose_answer_was_lost_is_delivered_again_after_90_s() {
    let (mut plane, id) = plane();
    let task = plane.claimed(at(0), &id);
    plane.heartbeat(at(89), &id).expect("ok");
    assert!(plane.claim(at(89), "d", one(&id), 9).expect("ok").is_empty());
    let got = plane.claim(at(90), "d", one(&id), 9).expect("ok");
    assert_eq!(got, [Claimed { task: task.clone(), again: true }]);
    assert!(plane.claim(at(91), "d", one(&id), 9).expect("ok").is_empty(), "a new lease");
    assert_eq!(plane.task(&task).expect("there").deliveries, 2);
}

#[test]
fn a_renewed_lease_keeps_a_task_from_being_delivered_again() {
    let (mut plane, id) = plane();
    let task = plane.claimed(at(0), &id);
    for s in [15, 30, 45, 60, 75, 90] {
        plane.prepare_lease(at(s), &id, &task).expect("preparing");
    }
    plane.heartbeat(at(134), &id).expect("ok");
    assert!(plane.claim(at(134), "d", one(&id), 9).expect("ok").is_empty());
    assert_eq!(plane.claim(at(135), "d", one(&id), 9).expect("ok").len(), 1);
}

#[test]
fn a_lease_is_extended_only_while_preparing_and_only_by_its_runtime() {
    let (mut plane, id) = plane();
    let other = plane.register(at(0), registration("d", &["codex"])).expect("ok").remove(0);
    let task = plane.claimed(at(0), &id);
    assert_eq!(plane.prepare_lease(at(1), &other, &task).expect_err("foreign"), Refusal::TaskNotFound);
    assert_eq!(plane.prepare_lease(at(1), &"x".into(), &task).expect_err("gone"), Refusal::RuntimeNotFound);
    plane.wait_local_directory(at(1), &task, "repo").expect("dispatched");
    plane.prepare_lease(at(1), &id, &task).expect("waiting");
    plane.start(at(2), &task).expect("waiting");
    assert_eq!(plane.prepare_lease(at(3), &id, &task).expect_err("running").status(), 400);
}

#[test]
fn start_is_taken_once_and_only_while_preparing() {
    let (mut plane, id) = plane();
    let queued = plane.enqueue(at(0), issue(&id, "q", "q")).expect("enqueued");
    assert_eq!(plane.start(at(0), &queued).expect_err("queued").status(), 400);
    let task = plane.claimed(at(0), &id);
    assert_eq!(plane.start(at(1), &task).expect("dispatched").state, State::Running);
    let again = plane.start(at(2), &task).expect_err("running");
    assert_eq!(again.status(), 400);
    assert!(again.to_string().contains("running"), "{again}");
    assert_eq!(plane.task(&task).expect("there").started_at, Some(at(1)));
    assert_eq!(plane.start(at(2), &"x".into()).expect_err("unknown"), Refusal::TaskNotFound);
}

#[test]
fn waiting_is_entered_from_dispatched_only() {
    let (mut plane, id) = plane();
    let task = plane.claimed(at(0), &id);
    plane.wait_local_directory(at(1), &task, "repo").expect("dispatched");
    assert_eq!(plane.wait_local_directory(at(2), &task, "repo").expect_err("waits already").status(), 400);
    assert_eq!(plane.task(&task).expect("there").wait_reason.as_deref(), Some("repo"));
}

#[test]
fn a_dispatched_task_that_nobody_prepares_is_failed_and_retried_after_300_s() {
    let (mut plane, id) = plane();
    let task = plane.claimed(at(0), &id);
    plane.heartbeat(at(300), &id).expect("ok");
    plane.sweep(at(300));
    assert_eq!(plane.state(&task), State::Dispatched);
    plane.sweep(at(301));
    let row = plane.task(&task).expect("there");
    assert_eq!((row.state, row.failure_reason.as_deref()), (State::Failed, Some("timeout")));
    let child = plane.tasks().find(|it| it.parent.as_ref() == Some(&task)).expect("a retry");
    assert_eq!((child.state, child.attempt), (State::Queued, 2));
}

#[test]
fn a_sweep_leaves_waiting_and_running_tasks_of_a_live_runtime_alone() {
    let (mut plane, id) = plane();
    let (waiting, running) = (plane.claimed(at(0), &id), plane.running(at(0), &id));
    plane.wait_local_directory(at(0), &waiting, "repo").expect("dispatched");
    plane.heartbeat(at(20_000), &id).expect("ok");
    plane.sweep(at(20_000));
    assert_eq!(
        (plane.state(&waiting), plane.state(&running)),
        (State::WaitingLocalDirectory, State::Running)
    );
}

#[test]
fn tasks_of_a_runtime_that_does_not_come_back_fail_after_the_grace_and_retry_when_it_does() {
    let (mut plane, id) = plane();
    let task = plane.running(at(0), &id);
    plane.sweep(at(10_800));
    assert_eq!(plane.state(&task), State::Running);
    plane.sweep(at(10_801));
    assert_eq!(plane.task(&task).expect("there").failure_reason.as_deref(), Some("timeout"));
    let child = plane.tasks().find(|it| it.parent.is_some()).expect("a retry").id.clone();
    plane.heartbeat(at(10_802), &id).expect("ok");
    assert_eq!(plane.claim(at(10_802), "d", one(&id), 9).expect("ok")[0].task, child);
}

#[test]
fn the_retry_of_an_offline_runtime_is_deferred_and_promoted_inside_a_claim() {
    let (mut plane, id) = plane();
    let task = plane.running(at(0), &id);
    plane.fail(at(1), &task, &failure("runtime_offline")).expect("running");
    let child = plane.tasks().find(|it| it.parent.is_some()).expect("a retry").id.clone();
    assert_eq!(plane.state(&child), State::Deferred);
    plane.sweep(at(60));
    assert_eq!(plane.state(&child), State::Deferred, "time alone promotes nothing");
    assert!(plane.claim(at(1), "d", one(&id), 9).expect("ok").is_empty(), "not due");
    assert_eq!(plane.claim(at(2), "d", one(&id), 9).expect("ok")[0].task, child);
}

#[test]
fn a_deferred_retry_whose_runtime_stays_away_is_given_up_after_the_grace() {
    let (mut plane, id) = plane();
    let task = plane.running(at(0), &id);
    plane.fail(at(1), &task, &failure("runtime_offline")).expect("running");
    let child = plane.tasks().find(|it| it.parent.is_some()).expect("a retry").id.clone();
    plane.sweep(at(10_803));
    assert_eq!(
        plane.task(&child).expect("there").failure_reason.as_deref(),
        Some("runtime_reconnect_timeout")
    );
}

#[test]
fn a_queued_task_expires_after_two_hours() {
    let (mut plane, id) = plane();
    let task = plane.enqueue(at(0), issue(&id, "a", "i")).expect("enqueued");
    plane.sweep(at(7200));
    assert_eq!(plane.state(&task), State::Queued);
    plane.sweep(at(7201));
    assert_eq!(plane.task(&task).expect("there").failure_reason.as_deref(), Some("queued_expired"));
    assert_eq!(plane.tasks().count(), 1, "no retry");
}

#[test]
fn a_runtime_that_is_offline_and_idle_for_seven_days_is_forgotten() {
    let (mut plane, id) = plane();
    plane.sweep(at(7 * 24 * 3600));
    assert!(plane.runtime(&id).is_some());
    plane.sweep(at(7 * 24 * 3600 + 1));
    assert!(plane.runtime(&id).is_none());
    assert_ne!(plane.register(at(8 * 24 * 3600), registration("d", &["claude"])).expect("ok"), one(&id));
}

#[test]
fn retryable_reasons_make_one_child_until_the_tries_are_used_up() {
    let (mut plane, id) = plane();
    let task = plane.running(at(0), &id);
    plane.pin_session(&task, "s-1", "/w").expect("running");
    plane.fail(at(1), &task, &failure("timeout")).expect("running");
    plane.fail(at(1), &task, &failure("timeout")).expect("a repeated call");
    let children: Vec<_> = plane.tasks().filter(|it| it.parent.as_ref() == Some(&task)).cloned().collect();
    assert_eq!(children.len(), 1);
    let child = &children[0];
    assert_eq!(
        (child.attempt, child.prior_session.as_deref(), child.prior_work_dir.as_deref()),
        (2, Some("s-1"), Some("/w"))
    );
    plane.claim(at(2), "d", one(&id), 9).expect("ok");
    plane.fail(at(3), &child.id.clone(), &failure("timeout")).expect("dispatched");
    assert_eq!(plane.tasks().count(), 2, "two tries are all");
}

#[test]
fn network_trouble_has_a_third_try_that_waits_5_s() {
    let (mut plane, id) = plane();
    let mut task = plane.running(at(0), &id);
    let network = failure("agent_error.provider_network");
    for (attempt, state) in [(2, State::Queued), (3, State::Deferred)] {
        plane.fail(at(10), &task, &network).expect("active");
        let child = plane.tasks().find(|it| it.parent.as_ref() == Some(&task)).expect("a retry");
        assert_eq!((child.attempt, child.state), (attempt, state));
        task = child.id.clone();
        let due = if state == State::Deferred { 15 } else { 10 };
        assert_eq!(plane.claim(at(due), "d", one(&id), 9).expect("ok")[0].task, task);
    }
    plane.fail(at(20), &task, &network).expect("active");
    assert_eq!(plane.tasks().count(), 3);
}

#[test]
fn nothing_else_is_tried_again() {
    let (mut plane, id) = plane();
    for reason in ["", "agent_error.unknown", "cancelled", "local_directory_error", "made_up"] {
        let task = plane.running(at(0), &id);
        plane.fail(at(1), &task, &failure(reason)).expect("running");
        let row = plane.task(&task).expect("there");
        let stored = if reason.is_empty() { "agent_error.unknown" } else { reason };
        assert_eq!(row.failure_reason.as_deref(), Some(stored));
    }
    let auto =
        plane.enqueue(at(0), NewTask::new(id.clone(), "x", Subject::Autopilot("r".into()))).expect("ok");
    plane.claim(at(0), "d", one(&id), 9).expect("ok");
    plane.fail(at(1), &auto, &failure("timeout")).expect("dispatched");
    assert!(plane.tasks().all(|task| task.parent.is_none()));
}

#[test]
fn a_session_that_is_retired_or_cannot_be_resumed_is_not_offered_to_the_retry() {
    let (mut plane, id) = plane();
    for (with, unavailable) in [
        (Failure { retired_session_id: "s".into(), ..failure("timeout") }, false),
        (Failure { session_rollout_missing: true, ..failure("timeout") }, true),
        (failure("codex_semantic_inactivity"), false),
    ] {
        let task = plane.running(at(0), &id);
        plane.pin_session(&task, "s", "").expect("running");
        plane.fail(at(1), &task, &with).expect("running");
        let child = plane.tasks().find(|it| it.parent.as_ref() == Some(&task)).expect("a retry");
        assert_eq!((child.prior_session.as_ref(), child.prior_session_unavailable), (None, unavailable));
    }
}

#[test]
fn terminal_calls_on_an_ended_task_give_its_row_and_change_nothing() {
    let (mut plane, id) = plane();
    let task = plane.running(at(0), &id);
    let with = Completion { output: "done".into(), ..Completion::default() };
    let first = plane.complete(at(1), &task, with.clone()).expect("running").clone();
    assert_eq!(first.state, State::Completed);
    let second = Completion { output: "other".into(), ..with };
    assert_eq!(plane.complete(at(2), &task, second).expect("ended"), &first);
    assert_eq!(plane.fail(at(3), &task, &failure("timeout")).expect("ended"), &first);
    assert_eq!(plane.cancel(at(4), &task).expect("ended"), &first);
}

#[test]
fn complete_of_a_task_that_does_not_run_is_answered_and_changes_nothing() {
    let (mut plane, id) = plane();
    let task = plane.claimed(at(0), &id);
    assert_eq!(plane.complete(at(1), &task, Completion::default()).expect("there").state, State::Dispatched);
    let queued = plane.enqueue(at(0), issue(&id, "q", "q")).expect("enqueued");
    assert_eq!(plane.fail(at(1), &queued, &failure("timeout")).expect("there").state, State::Queued);
}

#[test]
fn complete_replaces_the_pinned_session_and_fail_keeps_it() {
    let (mut plane, id) = plane();
    let (done, failed) = (plane.running(at(0), &id), plane.running(at(0), &id));
    for task in [&done, &failed] {
        plane.pin_session(task, "s", "/w").expect("running");
    }
    let row = plane
        .complete(at(1), &done, Completion { work_dir: "/v".into(), ..Completion::default() })
        .expect("ok");
    assert_eq!((row.session_id.as_deref(), row.work_dir.as_deref()), (None, Some("/v")));
    let row = plane.fail(at(1), &failed, &failure("")).expect("ok");
    assert_eq!((row.session_id.as_deref(), row.work_dir.as_deref()), (Some("s"), Some("/w")));
}

#[test]
fn a_session_is_pinned_while_active_and_late_only_where_none_is() {
    let (mut plane, id) = plane();
    let task = plane.running(at(0), &id);
    assert_eq!(plane.pin_session(&task, "", "").expect_err("empty").status(), 400);
    plane.cancel(at(1), &task).expect("running");
    for given in ["first", "second"] {
        plane.pin_session(&task, given, "").expect("silent");
    }
    assert_eq!(plane.task(&task).expect("there").session_id.as_deref(), Some("first"));
    let done = plane.running(at(0), &id);
    plane.complete(at(1), &done, Completion::default()).expect("running");
    plane.pin_session(&done, "late", "").expect("silent");
    assert_eq!(plane.task(&done).expect("there").session_id, None);
}

#[test]
fn orphan_recovery_fails_every_active_task_of_the_runtime_and_retries_it() {
    let (mut plane, id) = plane();
    let ended = plane.running(at(0), &id);
    plane.cancel(at(0), &ended).expect("running");
    let active = [plane.claimed(at(0), &id), plane.running(at(0), &id)];
    let queued = plane.enqueue(at(0), issue(&id, "q", "q")).expect("enqueued");
    let done = plane.recover_orphans(at(1), &id).expect("there");
    assert_eq!(done, Recovered { orphaned: 2, retried: 2 });
    for task in &active {
        assert_eq!(plane.task(task).expect("there").failure_reason.as_deref(), Some("runtime_recovery"));
    }
    assert_eq!((plane.state(&queued), plane.state(&ended)), (State::Queued, State::Cancelled));
    assert_eq!(plane.recover_orphans(at(1), &"x".into()), Err(Refusal::RuntimeNotFound));
}

#[test]
fn deleting_a_runtime_cancels_its_open_tasks() {
    let (mut plane, id) = plane();
    let tasks = [plane.running(at(0), &id), plane.enqueue(at(0), issue(&id, "q", "q")).expect("enqueued")];
    assert!(plane.delete_runtime(at(1), &id));
    assert!(tasks.iter().all(|task| plane.state(task) == State::Cancelled));
}

#[test]
fn every_end_hints_the_runtime_and_a_retry_is_hinted_before_it() {
    let (mut plane, id) = plane();
    let task = plane.enqueue(at(0), issue(&id, "a", "i")).expect("enqueued");
    let new = |task: &TaskId| Hint::TaskAvailable { runtime: id.clone(), task: Some(task.clone()) };
    let end = Hint::TaskAvailable { runtime: id.clone(), task: None };
    assert_eq!(plane.take_hints(), [new(&task)]);
    plane.claim(at(0), "d", one(&id), 1).expect("ok");
    plane.fail(at(1), &task, &failure("timeout")).expect("dispatched");
    let child = plane.tasks().find(|it| it.parent.is_some()).expect("a retry").id.clone();
    assert_eq!(plane.take_hints(), [new(&child), end.clone()]);
    plane.cancel(at(2), &child).expect("queued");
    assert_eq!(plane.take_hints(), [end]);
}

#[test]
fn a_cancellation_is_acknowledged_without_replacing_anything() {
    let (mut plane, id) = plane();
    let task = plane.running(at(0), &id);
    let ack = CancelAck { branch_name: "b".into(), error_message: "kept".into(), ..CancelAck::default() };
    plane.ack_cancel(&task, &ack).expect("there");
    assert!(!plane.task(&task).expect("there").cancel_acked, "it runs");
    plane.cancel(at(1), &task).expect("running");
    plane.ack_cancel(&task, &ack).expect("there");
    plane.ack_cancel(&task, &CancelAck { branch_name: "c".into(), ..ack }).expect("there");
    let row = plane.task(&task).expect("there");
    assert_eq!(
        (row.cancel_acked, row.branch_name.as_deref(), row.error.as_deref()),
        (true, Some("b"), Some("kept"))
    );
}

fn message(seq: i32, content: &str) -> Message {
    Message {
        seq,
        kind: "text".into(),
        tool: None,
        content: Some(content.into()),
        input: None,
        output: None,
        at: at(0),
    }
}

#[test]
fn messages_are_stored_as_often_as_they_are_sent_and_listed_after_a_number() {
    let (mut plane, id) = plane();
    let task = plane.running(at(0), &id);
    plane.post_messages(&task, vec![message(1, "a"), message(2, "b")]).expect("ok");
    plane.post_messages(&task, vec![message(2, "b")]).expect("ok");
    plane.cancel(at(1), &task).expect("running");
    plane.post_messages(&task, vec![message(3, "c")]).expect("also when ended");
    let seqs = |since| -> Vec<i32> {
        plane.messages_since(&task, since).expect("there").iter().map(|it| it.seq).collect()
    };
    assert_eq!((seqs(0), seqs(1), seqs(9)), (vec![1, 2, 2, 3], vec![2, 2, 3], vec![]));
    assert_eq!(plane.messages_since(&"x".into(), 0).expect_err("unknown"), Refusal::TaskNotFound);
    plane.post_messages(&"x".into(), Vec::new()).expect("an empty batch is not looked at");
}

#[test]
fn usage_is_replaced_per_provider_and_model() {
    let (mut plane, id) = plane();
    let task = plane.running(at(0), &id);
    let row = |provider: &str, model: &str, n| Usage {
        provider: provider.into(),
        model: model.into(),
        input_tokens: n,
        ..Usage::default()
    };
    plane.report_usage(&task, vec![row("Claude", "m", 1), row("", "n", 2)]).expect("ok");
    plane.report_usage(&task, vec![row("claude", "m", 5)]).expect("ok");
    assert_eq!(plane.task(&task).expect("there").usage, [row("claude", "m", 5), row("claude", "n", 2)]);
}

#[test]
fn memory_is_bounded() {
    let limits = Limits {
        workspaces: 1,
        runtimes: 1,
        profiles: 1,
        repos: 1,
        open_tasks: 2,
        ended_tasks: 1,
        task_messages: 3,
        transcript_bytes: 400,
        task_usage: 1,
    };
    let mut plane = Plane::with_limits(1, limits);
    plane.add_workspace("ws-1".into(), "one").expect("room");
    assert_eq!(plane.add_workspace("ws-2".into(), "two"), Err(Refusal::Full("workspaces")));
    assert_eq!(plane.register(at(0), registration("d", &["a", "b"])).expect_err("too many").status(), 413);
    let id = plane.register(at(0), registration("d", &["claude"])).expect("room").remove(0);
    plane.register(at(0), registration("d", &["claude"])).expect("it is there already");
    let first = plane.running(at(0), &id);
    let second = plane.running(at(0), &id);
    assert_eq!(plane.enqueue(at(0), issue(&id, "z", "z")), Err(Refusal::Full("open tasks")));
    plane.post_messages(&first, vec![message(1, "x"); 3]).expect("room");
    assert_eq!(plane.post_messages(&first, vec![message(4, "x")]).expect_err("too many").status(), 413);
    assert_eq!(
        plane.post_messages(&second, vec![message(1, &"x".repeat(300))]).expect_err("bytes").status(),
        413
    );
    plane.complete(at(1), &first, Completion::default()).expect("running");
    plane.post_messages(&second, vec![message(1, &"x".repeat(300))]).expect("the ended one's are forgotten");
    assert!(plane.transcript(&first).is_empty());
    plane.complete(at(2), &second, Completion::default()).expect("running");
    assert!(plane.task(&first).is_none(), "the one that ended first is forgotten");
    assert!(plane.task(&second).is_some());
}

#[test]
fn a_removed_workspace_takes_its_runtimes_with_it() {
    let (mut plane, id) = plane();
    let task = plane.running(at(0), &id);
    assert!(plane.remove_workspace(at(1), &"ws-1".into()));
    assert_eq!(plane.state(&task), State::Cancelled);
    assert_eq!(plane.heartbeat(at(1), &id), Err(Refusal::RuntimeNotFound));
    assert!(plane.take_hints().contains(&Hint::WorkspacesChanged));
}

#[test]
fn a_deleted_task_is_not_found() {
    let (mut plane, id) = plane();
    let task = plane.running(at(0), &id);
    assert!(plane.delete_task(&task));
    assert_eq!(plane.status(&task), Err(Refusal::TaskNotFound));
    assert!(!plane.delete_task(&task));
}
