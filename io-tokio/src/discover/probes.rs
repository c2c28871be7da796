//! Programs that are asked for their version: each by one process at a time, whoever wants to know, and for as long as it takes.

use super::file_mark::FileMark;
use super::probe::{self, PROBES_AT_ONCE, Problem};
use super::registry::AgentCli;
use crate::config::Env;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout_at};

/// Most answers that are kept. Beyond them those that have come are forgotten, and asked for again when they are wanted.
const MAX_KEPT: usize = 1024;

/// A program that is asked, and how.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Question {
    pub(super) program: PathBuf,
    /// Arguments that make it say its version.
    pub(super) args: Vec<String>,
    /// Arguments that make it say that it speaks the daemon's protocol, where it must.
    pub(super) gate: Option<&'static [&'static str]>,
    /// Whether it is the program of a custom runtime. There may be many of those, and they have a queue of their own.
    is_custom: bool,
}

impl Question {
    pub(super) fn new(cli: &AgentCli, program: PathBuf) -> Self {
        let args = cli.version_args.iter().map(|arg| (*arg).to_owned()).collect();
        Self { program, args, gate: cli.gate_args, is_custom: false }
    }

    /// As a custom runtime is asked: its own arguments come first.
    pub(super) fn custom(cli: &AgentCli, program: PathBuf, prefix: &[String]) -> Self {
        let own = cli.version_args.iter().map(|arg| (*arg).to_owned());
        let args = prefix.iter().cloned().chain(own).collect();
        Self { program, args, gate: None, is_custom: true }
    }
}

/// The line with the version.
pub(super) type Answer = Result<String, Problem>;

/// Something that is asked, or was.
struct Asked {
    /// What the program was at the time.
    file: Option<FileMark>,
    answer: watch::Receiver<Option<Answer>>,
    task: JoinHandle<()>,
    /// Whether somebody has seen the answer. One that came when nobody waited any more is for whoever asks next.
    is_taken: bool,
}

/// All of them.
pub(super) struct Probes {
    env: Env,
    room: Arc<Semaphore>,
    custom_room: Arc<Semaphore>,
    asked: Mutex<BTreeMap<Question, Asked>>,
}

impl Probes {
    pub(super) fn new(env: Env) -> Self {
        let room = || Arc::new(Semaphore::new(PROBES_AT_ONCE));
        Self { env, room: room(), custom_room: room(), asked: Mutex::default() }
    }

    fn asked(&self) -> MutexGuard<'_, BTreeMap<Question, Asked>> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks, and waits for the answer until `end`; what has not come by then goes on, and is for whoever asks next. The program is
    /// not asked again if it is being asked, if its last answer was seen by nobody, or if `stands` says so of that answer; for the last
    /// two only while its file is the same.
    pub(super) async fn ask(
        &self,
        question: &Question,
        file: Option<FileMark>,
        stands: impl FnOnce(&Answer) -> bool,
        end: Instant,
    ) -> Option<Answer> {
        let mut answer = self.pose(question, file, stands);
        let answer = match timeout_at(end, answer.wait_for(Option::is_some)).await {
            // Time is over, or everything ends: neither says anything of the program.
            Err(_) | Ok(Err(_)) => return None,
            Ok(Ok(answer)) => answer.clone(),
        };
        if let Some(asked) = self.asked().get_mut(question) {
            asked.is_taken = asked.answer.borrow().is_some();
        }
        answer
    }

    fn pose(
        &self,
        question: &Question,
        file: Option<FileMark>,
        stands: impl FnOnce(&Answer) -> bool,
    ) -> watch::Receiver<Option<Answer>> {
        let mut asked = self.asked();
        if let Some(known) = asked.get(question) {
            let good = match &*known.answer.borrow() {
                None => !known.task.is_finished(),
                Some(answer) => known.file == file && (!known.is_taken || stands(answer)),
            };
            if good {
                return known.answer.clone();
            }
        }
        if asked.len() >= MAX_KEPT {
            asked.retain(|_, known| known.answer.borrow().is_none());
        }
        let (tell, answer) = watch::channel(None);
        let room = if question.is_custom { &self.custom_room } else { &self.room };
        let (env, room, of) = (self.env.clone(), room.clone(), question.clone());
        let task = tokio::spawn(async move {
            // It is never closed.
            let _permit = room.acquire().await;
            let said = probe::ask(&of, &env).await;
            // It is kept as well where nobody waits any more.
            tell.send_replace(Some(said));
        });
        asked.insert(question.clone(), Asked { file, answer: answer.clone(), task, is_taken: false });
        answer
    }

    /// Ends what is still asked. When this is done, no process of it is left.
    pub(super) async fn close(&self) {
        let all = std::mem::take(&mut *self.asked());
        for asked in all.values() {
            asked.task.abort();
        }
        for asked in all.into_values() {
            // Its end is all that is wanted.
            let _ = asked.task.await;
        }
    }
}

impl Drop for Probes {
    fn drop(&mut self) {
        for asked in self.asked.get_mut().unwrap_or_else(PoisonError::into_inner).values() {
            asked.task.abort();
        }
    }
}
