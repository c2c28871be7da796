//! The rows.

use super::Reaction::{
    self, Again, AsksMessages, AsksStatus, BeatsAll, BelievedLater, DropsRuntime, DropsWorkspace,
    FailsInstead, FailsTask, FewTries, Frees, GoesOn, Halves, LetGo, LosesAccess, NextTime, OtherRoute, Over,
    Skips,
};
use super::Trouble::{
    self, Forbidden, Garbled, Gateway, Gone, NoAnswer, NoRoute, NotSent, Refused, Server, Throttled,
    Unauthorized,
};
use crate::wire::routes::{self, Route};

/// One row: these answers to this request, and what follows.
#[derive(Debug)]
pub struct Row {
    /// The request.
    pub route: Route,
    /// The answers.
    pub troubles: &'static [Trouble],
    /// What follows.
    pub reaction: Reaction,
    /// More about it, for people.
    pub note: &'static str,
}

const fn row(route: Route, troubles: &'static [Trouble], reaction: Reaction, note: &'static str) -> Row {
    Row { route, troubles, reaction, note }
}

/// What may pass although nothing changes here.
const PASSING: &[Trouble] = &[NotSent, NoAnswer, Throttled, Server, Gateway, Garbled];
/// The credential is not good enough.
const CREDENTIAL: &[Trouble] = &[Unauthorized, Forbidden];
/// What will not pass.
const FINAL: &[Trouble] = &[NoRoute, Gone, Refused];

const STATUS_DECIDES: &str = "see below";
const EVERY_SERVER: &str = "as for a 5xx: every server has this route, so something before it said so";
const ASKED_ON: &str =
    "said once in the daemon's life; asked with the next task again, as the server may be newer by then";
const WAITS: &str = "the request itself waits as for a 5xx";

/// Every request of the daemon with every answer that is none.
pub static ANSWERS: &[Row] = &[
    row(routes::RENEW, PASSING, NextTime, "in 3 days"),
    row(routes::RENEW, CREDENTIAL, LosesAccess, "the list of workspaces tells at once"),
    row(routes::RENEW, FINAL, NextTime, "in 3 days; 400 is the answer for tokens that cannot be renewed"),
    row(routes::WORKSPACES, PASSING, Again, "2 s to 5 min before the first list, then 30 s to 30 min"),
    row(
        routes::WORKSPACES,
        CREDENTIAL,
        LosesAccess,
        "a 401 to the first list ends the daemon, unless the clocks differ by more than 5 min",
    ),
    row(
        routes::WORKSPACES,
        &[NoRoute],
        OtherRoute,
        "`GET /api/workspaces`, at once and for good, every 5 min",
    ),
    row(routes::WORKSPACES, &[Gone, Refused], Again, "as for a 5xx"),
    row(routes::WORKSPACES_LEGACY, PASSING, Again, "30 s to 5 min"),
    row(routes::WORKSPACES_LEGACY, CREDENTIAL, LosesAccess, ""),
    row(routes::WORKSPACES_LEGACY, FINAL, Again, "30 s to 5 min"),
    row(
        routes::RUNTIME_PROFILES,
        PASSING,
        GoesOn,
        "what was known of them stays; asked again at the next change or connection",
    ),
    row(routes::RUNTIME_PROFILES, CREDENTIAL, LosesAccess, ""),
    row(routes::RUNTIME_PROFILES, &[NoRoute], GoesOn, "there are none"),
    row(routes::RUNTIME_PROFILES, &[Gone, Refused], GoesOn, "what was known of them stays"),
    row(routes::REGISTER, PASSING, Again, "2 s to 60 s, each workspace for itself"),
    row(routes::REGISTER, CREDENTIAL, LosesAccess, WAITS),
    row(
        routes::REGISTER,
        &[NoRoute, Refused],
        Again,
        "2 s to 60 s; custom runtimes are fetched anew before, as one may be gone",
    ),
    row(routes::REGISTER, &[Gone], DropsWorkspace, ""),
    row(routes::DEREGISTER, PASSING, LetGo, "the server notices by itself after 150 s"),
    row(routes::DEREGISTER, CREDENTIAL, LosesAccess, "not sent again"),
    row(routes::DEREGISTER, FINAL, LetGo, ""),
    row(
        routes::RECOVER_ORPHANS,
        PASSING,
        FewTries,
        "3 tries in 3 s, then its tasks are asked for all the same; while the server is out of reach they are not, and it is tried on, 1 s to 30 s, at once when that answers anything",
    ),
    row(routes::RECOVER_ORPHANS, CREDENTIAL, LosesAccess, WAITS),
    row(routes::RECOVER_ORPHANS, &[Gone], DropsRuntime, ""),
    row(routes::RECOVER_ORPHANS, &[NoRoute, Refused], GoesOn, "its tasks are asked for"),
    row(routes::HEARTBEAT, PASSING, NextTime, "15 s; after the 2nd in a row idle connections are dropped"),
    row(routes::HEARTBEAT, CREDENTIAL, LosesAccess, ""),
    row(routes::HEARTBEAT, &[Gone], DropsRuntime, "also after a 200 with `runtime_gone`"),
    row(
        routes::HEARTBEAT,
        &[NoRoute, Refused],
        NextTime,
        "a bare \"not found\" is no word about the runtime",
    ),
    row(
        routes::CLAIM_BATCH,
        PASSING,
        Again,
        "1 s to 30 s; a wakeup resets, but not what `Retry-After` says; unreadable: one poll interval",
    ),
    row(routes::CLAIM_BATCH, &[Unauthorized], LosesAccess, ""),
    row(
        routes::CLAIM_BATCH,
        &[Forbidden, Gone, Refused],
        Again,
        "1 s to 30 s: 403 is said of another daemon's runtimes too",
    ),
    row(
        routes::CLAIM_BATCH,
        &[NoRoute],
        OtherRoute,
        "one poller for each runtime, until the control connection comes up again",
    ),
    row(routes::CLAIM_ONE, PASSING, Again, "1 s to 30 s, this runtime alone"),
    row(routes::CLAIM_ONE, &[Unauthorized], LosesAccess, ""),
    row(routes::CLAIM_ONE, &[Forbidden, NoRoute, Refused], Again, "1 s to 30 s, this runtime alone"),
    row(routes::CLAIM_ONE, &[Gone], DropsRuntime, ""),
    row(routes::PREPARE_LEASE, PASSING, NextTime, "15 s"),
    row(routes::PREPARE_LEASE, CREDENTIAL, LosesAccess, "the status is asked for as well"),
    row(routes::PREPARE_LEASE, FINAL, AsksStatus, "what has ended, is queued or gone is dropped silently"),
    row(routes::START, &[NotSent], Again, "0.5 s to 8 s, within the 5 min of preparation, the lease kept"),
    row(routes::START, &[NoAnswer, Throttled, Server, Gateway, Garbled, NoRoute], AsksStatus, STATUS_DECIDES),
    row(routes::START, CREDENTIAL, LosesAccess, "the status decides about the task"),
    row(routes::START, &[Gone, Refused], AsksStatus, STATUS_DECIDES),
    row(routes::STATUS, PASSING, NextTime, "5 s; before a report: it goes out"),
    row(routes::STATUS, CREDENTIAL, LosesAccess, "looked at every 30 s"),
    row(routes::STATUS, &[NoRoute, Refused], NextTime, "5 s"),
    row(routes::STATUS, &[Gone], BelievedLater, ""),
    row(routes::PROGRESS, PASSING, LetGo, ""),
    row(routes::PROGRESS, CREDENTIAL, LetGo, "what is said of it by others counts"),
    row(routes::PROGRESS, FINAL, LetGo, ""),
    row(routes::WAIT_LOCAL_DIRECTORY, PASSING, LetGo, "the task waits all the same"),
    row(routes::WAIT_LOCAL_DIRECTORY, CREDENTIAL, LosesAccess, "the task waits all the same"),
    row(routes::WAIT_LOCAL_DIRECTORY, FINAL, LetGo, "the task waits all the same"),
    row(routes::MESSAGES, &[NotSent, Throttled, Server, NoRoute], Again, "0.5 s to 30 s, in order"),
    row(routes::MESSAGES, &[NoAnswer, Gateway, Garbled], AsksMessages, "0.5 s to 30 s"),
    row(routes::MESSAGES, CREDENTIAL, LosesAccess, WAITS),
    row(routes::MESSAGES, &[Gone], Skips, "409 and a bare \"not found\" as well"),
    row(routes::MESSAGES, &[Refused], Halves, ""),
    row(routes::MESSAGES_READ, PASSING, Again, "0.5 s to 30 s"),
    row(routes::MESSAGES_READ, CREDENTIAL, LosesAccess, WAITS),
    row(routes::MESSAGES_READ, FINAL, GoesOn, "all are sent again: rather twice than not at all"),
    row(routes::SESSION, &[NotSent, NoAnswer, Throttled, Server, Gateway], FewTries, "0.5 s to 30 s"),
    row(routes::SESSION, &[Garbled], GoesOn, "any 2xx is enough"),
    row(routes::SESSION, CREDENTIAL, LosesAccess, "4 tries"),
    row(routes::SESSION, FINAL, LetGo, "`complete` and `fail` name the session again"),
    row(
        routes::USAGE,
        PASSING,
        FewTries,
        "then in the background until it is taken; the report does not wait",
    ),
    row(routes::USAGE, CREDENTIAL, LosesAccess, WAITS),
    row(routes::USAGE, &[NoRoute], Over, ASKED_ON),
    row(routes::USAGE, &[Gone, Refused], Over, ""),
    row(
        routes::COMPLETE,
        PASSING,
        Again,
        "4 s to 64 s; after 6 tries or 6 min in the background, 1 s to 5 min, until it is taken; sooner if the server was out of reach and answers anything",
    ),
    row(routes::COMPLETE, CREDENTIAL, LosesAccess, WAITS),
    row(routes::COMPLETE, &[NoRoute], Again, EVERY_SERVER),
    row(routes::COMPLETE, &[Refused], FailsInstead, ""),
    row(routes::COMPLETE, &[Gone], Over, ""),
    row(routes::FAIL, PASSING, Again, "as `complete`"),
    row(routes::FAIL, CREDENTIAL, LosesAccess, WAITS),
    row(routes::FAIL, &[NoRoute], Again, EVERY_SERVER),
    row(routes::FAIL, &[Gone, Refused], Over, ""),
    row(routes::CANCEL_ACK, PASSING, Again, "as `complete`"),
    row(routes::CANCEL_ACK, CREDENTIAL, LosesAccess, WAITS),
    row(routes::CANCEL_ACK, &[NoRoute], Over, ASKED_ON),
    row(routes::CANCEL_ACK, &[Gone, Refused], Over, ""),
    row(
        routes::LINK,
        &[NotSent, NoAnswer, Throttled, Server, Gateway, Garbled],
        Again,
        "1 s to 30 s; polling goes on",
    ),
    row(routes::LINK, CREDENTIAL, LosesAccess, ""),
    row(routes::LINK, &[NoRoute], Again, "1 s to 30 s; everything works by polling"),
    row(routes::LINK, &[Gone], BeatsAll, "a 404 in any other words but \"404 page not found\" as well"),
    row(routes::LINK, &[Refused], Again, "1 s to 30 s"),
    row(
        routes::SKILL_BUNDLES,
        PASSING,
        FewTries,
        "3 tries in 3 s; then the task fails with `skill_bundle_unavailable`, which the server tries again",
    ),
    row(routes::SKILL_BUNDLES, &[Unauthorized], FewTries, "as for a 5xx"),
    row(routes::SKILL_BUNDLES, &[Forbidden], FailsTask, "`skill_bundle_unavailable`"),
    row(routes::SKILL_BUNDLES, FINAL, FailsTask, "`skill_bundle_unavailable`"),
    row(routes::MODELS_RESULT, PASSING, FewTries, "after 0.5, 2 and 4 s"),
    row(routes::MODELS_RESULT, CREDENTIAL, LosesAccess, "not sent again"),
    row(routes::MODELS_RESULT, FINAL, LetGo, ""),
    row(routes::LOCAL_SKILLS_RESULT, PASSING, FewTries, "after 0.5, 2 and 4 s"),
    row(routes::LOCAL_SKILLS_RESULT, CREDENTIAL, LosesAccess, "not sent again"),
    row(routes::LOCAL_SKILLS_RESULT, FINAL, LetGo, ""),
    row(routes::IMPORT_RESULT, PASSING, FewTries, "after 0.5, 2 and 4 s"),
    row(routes::IMPORT_RESULT, CREDENTIAL, LosesAccess, "not sent again"),
    row(routes::IMPORT_RESULT, FINAL, LetGo, ""),
    row(routes::UPDATE_RESULT, PASSING, FewTries, "after 0.5, 2 and 4 s"),
    row(routes::UPDATE_RESULT, CREDENTIAL, LosesAccess, "not sent again"),
    row(routes::UPDATE_RESULT, FINAL, LetGo, ""),
    row(routes::GC_ISSUES, PASSING, NextTime, "the directories stay until the next round"),
    row(routes::GC_ISSUES, CREDENTIAL, LosesAccess, "the directories stay"),
    row(routes::GC_ISSUES, &[NoRoute], OtherRoute, "each issue is asked about for itself, for good"),
    row(routes::GC_ISSUES, &[Gone, Refused], NextTime, "no access: the directories stay"),
    row(routes::GC_CHAT, PASSING, NextTime, "the directory stays"),
    row(routes::GC_CHAT, CREDENTIAL, LosesAccess, "the directory stays"),
    row(
        routes::GC_CHAT,
        &[Gone],
        Frees,
        "a bare \"not found\" as well: a chat that is not there has been deleted",
    ),
    row(routes::GC_CHAT, &[NoRoute, Refused], NextTime, "the directory stays"),
    row(routes::GC_ISSUE, PASSING, NextTime, "the directory stays"),
    row(routes::GC_ISSUE, CREDENTIAL, LosesAccess, "the directory stays"),
    row(routes::GC_ISSUE, FINAL, NextTime, "the directory stays until it is as old as one that nobody knows"),
    row(routes::GC_AUTOPILOT_RUN, PASSING, NextTime, "the directory stays"),
    row(routes::GC_AUTOPILOT_RUN, CREDENTIAL, LosesAccess, "the directory stays"),
    row(
        routes::GC_AUTOPILOT_RUN,
        FINAL,
        NextTime,
        "the directory stays until it is as old as one that nobody knows",
    ),
    row(routes::GC_TASK, PASSING, NextTime, "the directory stays"),
    row(routes::GC_TASK, CREDENTIAL, LosesAccess, "the directory stays"),
    row(routes::GC_TASK, FINAL, NextTime, "the directory stays until it is as old as one that nobody knows"),
];
