//! What is seen of each reaction.

use super::scenes::{Stage, WITHIN, is_of};
use longshore_core::id::TaskId;
use longshore_core::plane::{Plane, Task};
use longshore_io_tokio::answers::{Reaction, Row, Trouble};
use longshore_io_tokio::plane::{Action, Request, Rule, State};
use longshore_io_tokio::wire::routes::{self, Route};
use std::collections::BTreeSet;
use std::time::Duration;
use tokio::time::timeout;

type Seen = Result<(), String>;

/// Lets the request be made and badly answered, and looks at what follows.
pub(super) async fn follows(stage: &Stage, row: &Row, trouble: Trouble) -> Seen {
    let task = set_up(stage).await?;
    happens(stage, &task).await?;
    match row.reaction {
        Reaction::Again | Reaction::FewTries | Reaction::NextTime => {
            comes(stage, 2, stage.route).await?;
            if [routes::CLAIM_BATCH, routes::CLAIM_ONE].contains(&stage.route) {
                // What the lost answer gave out is given out again after 90 s.
                stage.plane.advance(Duration::from_secs(100));
            }
            ends(stage, &task, State::Completed).await
        }
        Reaction::LetGo | Reaction::GoesOn => {
            ends(stage, &task, State::Completed).await?;
            if stage.is_about_tasks() { nothing_twice(stage) } else { Ok(()) }
        }
        Reaction::AsksStatus => {
            later(stage, routes::STATUS).await?;
            // A refusal leaves the task as it was: nobody else has it, so its end is told.
            let refused = [Trouble::Gone, Trouble::Refused].contains(&trouble);
            let fails = refused && stage.route == routes::START;
            ends(stage, &task, if fails { State::Failed } else { State::Completed }).await
        }
        Reaction::AsksMessages => {
            later(stage, routes::MESSAGES_READ).await?;
            ends(stage, &task, State::Completed).await?;
            said_once(stage, &task)
        }
        Reaction::OtherRoute => {
            let other = match stage.route {
                routes::WORKSPACES => routes::WORKSPACES_LEGACY,
                routes::GC_ISSUES => routes::GC_ISSUE,
                _ => routes::CLAIM_ONE,
            };
            later(stage, other).await?;
            ends(stage, &task, State::Completed).await
        }
        Reaction::DropsRuntime => {
            later(stage, routes::REGISTER).await?;
            is_done(stage, &task).await
        }
        Reaction::DropsWorkspace => {
            later(stage, routes::WORKSPACES).await?;
            later(stage, routes::REGISTER).await?;
            is_done(stage, &task).await
        }
        Reaction::BelievedLater => forgotten(stage, &task).await,
        Reaction::FailsInstead | Reaction::FailsTask => ends(stage, &task, State::Failed).await,
        Reaction::Halves => {
            ends(stage, &task, State::Completed).await?;
            said_once(stage, &task)
        }
        Reaction::Frees => freed(stage, &task).await,
        Reaction::Skips => ends(stage, &task, State::Completed).await,
        Reaction::Over => over(stage, &task).await,
        Reaction::LosesAccess => access(stage, &task).await,
        Reaction::BeatsAll => {
            later(stage, routes::HEARTBEAT).await?;
            comes(stage, 2, routes::LINK).await?;
            ends(stage, &task, State::Completed).await
        }
    }
}

/// Brings the daemon to where the request is made.
async fn set_up(stage: &Stage) -> Result<TaskId, String> {
    if stage.route == routes::WAIT_LOCAL_DIRECTORY {
        runtime(stage).await?;
        // The first one has the directory for as long as it takes the second one to be told to wait.
        let held = stage.plane.fault(Rule::new("POST", "/api/daemon/tasks/*/start", Action::Hold).first(1));
        let first = stage.enqueue();
        wait("the first task to start", held.reached(1)).await?;
        let second = stage.enqueue();
        happens(stage, &second).await?;
        held.remove();
        ends(stage, &first, State::Completed).await?;
        return Ok(second);
    }
    if stage.route == routes::RECOVER_ORPHANS || stage.route == routes::REGISTER {
        // Nothing can be enqueued before there is a runtime, which these bring.
        happens(stage, &TaskId::new("none")).await?;
    }
    runtime(stage).await?;
    if stage.route == routes::DEREGISTER {
        let task = stage.enqueue();
        ends(stage, &task, State::Completed).await?;
        stage.daemon.stop().await;
        return Ok(task);
    }
    stage.ask().await?;
    let task = stage.enqueue();
    if stage.route == routes::CANCEL_ACK {
        use_of(stage, &task, "/messages").await?;
        stage.plane.cancel(&task).map_err(|refusal| format!("it cannot be cancelled: {refusal:?}"))?;
    }
    Ok(task)
}

async fn runtime(stage: &Stage) -> Seen {
    stage
        .plane
        .wait_for_runtime("claude", WITHIN)
        .await
        .map(drop)
        .map_err(|_| "no runtime is registered".into())
}

async fn wait<T>(what: &str, event: impl Future<Output = T>) -> Result<T, String> {
    timeout(WITHIN, event).await.map_err(|_| format!("waited in vain for {what}"))
}

/// The bad answer was given.
async fn happens(stage: &Stage, task: &TaskId) -> Seen {
    wait("the request", stage.fault.reached(1))
        .await
        .map_err(|why| format!("{why}; {}", requests(stage, task)))
}

async fn use_of(stage: &Stage, task: &TaskId, call: &str) -> Seen {
    let path = format!("/{task}{call}");
    let seen = stage.plane.wait_for_request(WITHIN, |request: &Request| request.path.ends_with(&path)).await;
    seen.map(drop).map_err(|_| format!("no {call}; {}", requests(stage, task)))
}

/// The route is used so often.
async fn comes(stage: &Stage, times: usize, route: Route) -> Seen {
    let seen = stage.plane.wait_for_requests(times, WITHIN, |request: &Request| is_of(request, route)).await;
    seen.map(drop).map_err(|_| {
        format!("{} is not used {times} times; {}", route.template, requests(stage, &TaskId::new("")))
    })
}

/// Another route is used after the bad answer.
async fn later(stage: &Stage, route: Route) -> Seen {
    let first = stage.uses().first().map_or(0, |request| request.number);
    let seen = stage
        .plane
        .wait_for_request(WITHIN, |request: &Request| request.number > first && is_of(request, route))
        .await;
    seen.map(drop)
        .map_err(|_| format!("{} is not used; {}", route.template, requests(stage, &TaskId::new(""))))
}

/// The task ends as it must; where the agent fails or hangs, as that.
async fn ends(stage: &Stage, task: &TaskId, state: State) -> Seen {
    let state = match (stage.route, state) {
        (routes::FAIL, State::Completed) => State::Failed,
        (routes::CANCEL_ACK, State::Completed) => State::Cancelled,
        (routes::STATUS, State::Completed) => {
            // The agent hangs: it is ended once the answers are good again. A task that is cancelled before it has started is dropped in silence.
            use_of(stage, task, "/messages").await?;
            stage.plane.cancel(task).map_err(|refusal| format!("it cannot be cancelled: {refusal:?}"))?;
            use_of(stage, task, "/cancel-ack").await?;
            State::Cancelled
        }
        (_, state) => state,
    };
    let ended = stage.plane.wait_for(task, state, WITHIN).await;
    ended.map(drop).map_err(|_| {
        format!(
            "the task is not {state:?} but {:?}; {}",
            stage.plane.task(task).map(|row| row.state),
            requests(stage, task)
        )
    })
}

/// The work is done: by this try, or by the next one if this one was on its way for the runtime that was taken for gone.
async fn is_done(stage: &Stage, task: &TaskId) -> Seen {
    let completed = |plane: &Plane| {
        let done = |row: &&Task| row.state == State::Completed;
        let is_it = |row: &Task| row.id == *task || row.parent.as_ref() == Some(task);
        plane.tasks().filter(done).any(is_it).then_some(())
    };
    let seen = stage.plane.wait_until(WITHIN, completed).await;
    seen.map_err(|_| format!("neither the task nor its retry completes; {}", requests(stage, task)))
}

/// No request of the route has the same path and body as another one.
fn nothing_twice(stage: &Stage) -> Seen {
    let mut seen = BTreeSet::new();
    match stage.uses().iter().find(|request| !seen.insert((request.path.clone(), request.body.to_string()))) {
        Some(twice) => Err(format!("sent twice: {twice}")),
        None => Ok(()),
    }
}

/// What the agent said is there, each text once.
fn said_once(stage: &Stage, task: &TaskId) -> Seen {
    let said: String =
        stage.plane.transcript(task).iter().filter_map(|message| message.content.as_deref()).collect();
    let once = |text: &str| said.matches(text).count() == 1;
    if once("one") && once("two") { Ok(()) } else { Err(format!("said: {said:?}")) }
}

/// The run is ended, and nobody is told.
async fn forgotten(stage: &Stage, task: &TaskId) -> Seen {
    use_of(stage, task, "/messages").await?;
    let gone = async {
        while !stage.home.processes_of(task).is_empty() {
            another(stage).await;
        }
    };
    wait("the end of the run", gone).await?;
    reported(stage, task, 0)
}

/// The directory of the task goes.
async fn freed(stage: &Stage, task: &TaskId) -> Seen {
    ends(stage, task, State::Completed).await?;
    let row = stage.plane.task(task).ok_or("the task is not there")?;
    let root = stage.home.env_root(&row.workspace, task);
    let gone = async {
        while root.exists() {
            another(stage).await;
        }
    };
    wait("the directory to go", gone).await
}

/// The route's next use, or a moment.
async fn another(stage: &Stage) {
    let uses = stage.uses().len() + 1;
    let _ = stage
        .plane
        .wait_for_requests(uses, Duration::from_millis(100), |r: &Request| is_of(r, stage.route))
        .await;
}

/// The one report was the last word.
async fn over(stage: &Stage, task: &TaskId) -> Seen {
    // The daemon goes on with other work.
    let other = stage.enqueue();
    if stage.route == routes::CANCEL_ACK {
        use_of(stage, &other, "/messages").await?;
    } else {
        ends(stage, &other, State::Completed).await?;
    }
    if stage.route == routes::USAGE { Ok(()) } else { reported(stage, task, 1) }
}

fn reported(stage: &Stage, task: &TaskId, times: usize) -> Seen {
    let ends = ["/complete", "/fail", "/cancel-ack"].map(|end| format!("/{task}{end}"));
    let reports = stage
        .plane
        .requests_where(|request: &Request| ends.iter().any(|end| request.path.ends_with(end.as_str())));
    if reports.len() == times {
        Ok(())
    } else {
        Err(format!("{} reports: {}", reports.len(), requests(stage, task)))
    }
}

/// Nothing but the list of workspaces is asked for, and work goes on when the credential is taken again.
async fn access(stage: &Stage, task: &TaskId) -> Seen {
    if stage.route == routes::DEREGISTER {
        return Ok(());
    }
    let refusal = Action::error(401, "invalid token");
    let refused = stage.plane.fault(Rule::new("*", "/api/**", refusal));
    wait("a refused request", refused.reached(1)).await?;
    let from = stage.plane.requests_where(|_: &Request| true).len();
    let is_list =
        |request: &Request| is_of(request, routes::WORKSPACES) || is_of(request, routes::WORKSPACES_LEGACY);
    let lists = stage.plane.requests_where(is_list).len();
    let seen = stage.plane.wait_for_requests(lists + 2, WITHIN, is_list).await;
    seen.map_err(|_| {
        format!("nobody looks whether the credential is still refused; {}", requests(stage, task))
    })?;
    let since = stage.plane.requests_where(is_list)[lists].number;
    for route in [routes::CLAIM_BATCH, routes::CLAIM_ONE, routes::HEARTBEAT, routes::REGISTER] {
        let asked =
            stage.plane.requests_where(|request: &Request| request.number > since && is_of(request, route));
        // One may have been on its way when the refusals began.
        if let Some(asked) = asked.get(1) {
            return Err(format!("asked although the credential is refused ({from}): {asked}"));
        }
    }
    refused.remove();
    ends(stage, task, State::Completed).await
}

/// The last requests, for a failure's text.
fn requests(stage: &Stage, task: &TaskId) -> String {
    let all = stage.plane.requests_where(|_: &Request| true);
    let last: Vec<String> = all.iter().rev().take(25).rev().map(ToString::to_string).collect();
    format!("task {task}, the last requests:\n  {}", last.join("\n  "))
}
