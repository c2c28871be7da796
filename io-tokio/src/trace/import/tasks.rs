//! What the log says of each task, wherever it says it: a line may name only a part, and an earlier step needs what a later line says.

use super::heard::Heard;
use super::said::Said;
use longshore_core::event::RunEnd;
use longshore_core::id::{EnvRoot, Provider, RuntimeId, is_safe_component};
use longshore_core::reason::FailReason;
use std::collections::HashMap;
use std::path::Path;

/// One claim of a task.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct About {
    /// As the log shortens it.
    pub(super) task: String,
    /// Whether the log has the line that says that it came.
    pub(super) received: bool,
    pub(super) runtime: Option<RuntimeId>,
    pub(super) provider: Option<Provider>,
    pub(super) root: Option<EnvRoot>,
    /// The word of the daemon for how its agent ended.
    status: Option<String>,
    reason: Option<FailReason>,
    /// Whether tokens were counted.
    pub(super) usage: bool,
    failing: bool,
    /// Whether its success was reported, too.
    completed: bool,
    /// Whether its turn has come.
    picked: bool,
    /// Whether its run has ended.
    finished: bool,
    /// Whether the task is over.
    over: bool,
    /// Whether something went wrong about it after its failure was to be reported.
    pub(super) report_in_doubt: bool,
}

impl About {
    /// How the run ended: as it was reported, else as the daemon put it. Two reports say nothing of it.
    pub(super) fn end(&self) -> RunEnd {
        match (self.reason.filter(|_| !self.completed), self.status.as_deref()) {
            (Some(reason), _) => RunEnd::Failed { reason },
            (None, Some("completed")) => RunEnd::Completed,
            (None, Some("cancelled" | "aborted")) => RunEnd::Failed { reason: FailReason::Cancelled },
            (None, Some("timeout")) => RunEnd::Failed { reason: FailReason::Timeout },
            (None, _) => RunEnd::Failed { reason: FailReason::Unknown },
        }
    }

    /// Why it failed.
    pub(super) fn reason(&self) -> FailReason {
        self.reason.unwrap_or(FailReason::Unknown)
    }

    /// Whether a line begins it anew: it has come again, and the line that says so is missing.
    fn is_begun_again_by(&self, said: Option<Said>) -> bool {
        match said {
            Some(Said::Picked) => self.over || (self.picked && self.finished),
            Some(Said::Context | Said::Prepared | Said::Reading) => self.over,
            _ => false,
        }
    }

    fn hear(&mut self, said: Option<Said>, line: &Heard) {
        self.report_in_doubt |= self.failing && line.warns;
        self.picked |= said == Some(Said::Picked);
        self.finished |= said == Some(Said::Finished);
        self.over |= matches!(said, Some(Said::Completed | Said::Failing | Said::Discarded));
        match said {
            Some(Said::Picked) => self.provider = provider(line),
            Some(Said::Context) => self.runtime = runtime(line),
            Some(Said::Prepared) => {
                self.provider = provider(line).or(self.provider.take());
                self.root = root(line);
            }
            Some(Said::Finished) => self.status = line.get("status").map(str::to_owned),
            Some(Said::Detail) => self.usage = line.number::<u64>("models_with_usage").is_some_and(|n| n > 0),
            Some(Said::Completed) => self.completed = true,
            Some(Said::Failing) => {
                let word = line.get("failure_reason").map(str::to_owned).map(serde_json::Value::from);
                self.reason = word.and_then(|word| serde_json::from_value(word).ok());
                self.failing = true;
            }
            _ => {}
        }
    }
}

/// Which claim each line is about. A line may name only a part of it, and what is known of a claim by then says whether the line is about
/// another one of the same task.
#[derive(Debug, Default)]
pub(super) struct Claims {
    /// All of them, in the order in which they came.
    all: Vec<About>,
    /// The latest of each task.
    latest: HashMap<String, usize>,
    /// The latest that works in a directory.
    working: HashMap<String, usize>,
}

impl Claims {
    /// Another process begins: nothing of the one before it goes on.
    pub(super) fn begin_anew(&mut self) {
        self.latest.clear();
        self.working.clear();
    }

    /// Hears a line, and says which claim it is about, if it is about one.
    pub(super) fn hear(&mut self, said: Option<Said>, line: &Heard) -> Option<usize> {
        let claim = self.of(said, line)?;
        self.all[claim].hear(said, line);
        if self.all[claim].over {
            // A later line about its directory is about whoever works there then.
            self.working.retain(|_, of| *of != claim);
        }
        Some(claim)
    }

    fn of(&mut self, said: Option<Said>, line: &Heard) -> Option<usize> {
        if said == Some(Said::Launched) {
            // It names the directory and not the task.
            return self.working.get(line.get("cwd")?).copied();
        }
        let task = line.get("task").filter(|task| is_safe_component(task))?;
        let goes_on =
            |claim: &usize| said != Some(Said::Received) && !self.all[*claim].is_begun_again_by(said);
        let known = self.latest.get(task).copied().filter(goes_on);
        let claim = known.unwrap_or_else(|| {
            let received = said == Some(Said::Received);
            self.all.push(About { task: task.to_owned(), received, ..About::default() });
            self.latest.insert(task.to_owned(), self.all.len() - 1);
            self.all.len() - 1
        });
        if let (Some(Said::Prepared), Some(workdir)) = (said, line.get("workdir")) {
            self.working.insert(workdir.to_owned(), claim);
        }
        Some(claim)
    }

    /// What was heard of all claims.
    pub(super) fn finish(self) -> Vec<About> {
        self.all
    }
}

/// An id that may be shown and be a part of a path.
fn safe<'a>(line: &'a Heard, key: &str) -> Option<&'a str> {
    line.get(key).filter(|id| is_safe_component(id))
}

pub(super) fn runtime(line: &Heard) -> Option<RuntimeId> {
    safe(line, "runtime_id").map(RuntimeId::new)
}

pub(super) fn provider(line: &Heard) -> Option<Provider> {
    safe(line, "provider").map(Provider::new)
}

/// `…/<workspace>/<key>/workdir`, without what comes before it, which names a person. A directory of the user that a task works in has any
/// name, and is not told.
fn root(line: &Heard) -> Option<EnvRoot> {
    let workdir = Path::new(line.get("workdir")?);
    let root = workdir.parent().filter(|_| workdir.file_name().is_some_and(|name| name == "workdir"))?;
    let name =
        |path: &Path| path.file_name()?.to_str().filter(|name| is_safe_component(name)).map(str::to_owned);
    let (key, workspace) = (name(root)?, name(root.parent()?)?);
    if !key.bytes().all(|b| b.is_ascii_hexdigit() || b == b'-') {
        return None;
    }
    Some(EnvRoot::new(format!("{workspace}/{key}")))
}
