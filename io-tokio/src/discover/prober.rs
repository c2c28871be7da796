//! Looks at the agent CLIs of this machine, one after the other for as long as the daemon lives.
//!
//! A look ends soon, whatever the programs do: one that has not answered is called slow, and is waited for beside. What was found is
//! published as a whole, and the path and the version of a program are one value, so that nobody sees the one without the other.

use super::login_shell::{FRESH, Shell};
use super::places::{Place, Places};
use super::probe::{self, Problem};
use super::probes::{Answer, Probes, Question};
use super::{AgentCli, Discovery, FoundAgent, Search, SkippedAgent};
use futures_util::future::join_all;
use longshore_core::id::Provider;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use thiserror::Error;
use tokio::sync::{SetOnce, watch};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{Instant, timeout_at};

/// After so long a look ends without those that have not answered.
pub const PATIENCE: Duration = Duration::from_secs(2);
/// Longer than any program may take.
const TO_THE_END: Duration = Duration::from_mins(1);

/// Why a look saw nothing.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum LookError {
    /// The disk hangs.
    #[error("the disk did not say within {0:?} which agent programs there are")]
    Disk(Duration),
    /// A bug.
    #[error("looking for agent programs failed unexpectedly ({0}); this is a bug")]
    Broke(String),
}

/// What looks.
pub struct Prober {
    pub(super) search: Arc<Search>,
    pub(super) shell: Arc<Shell>,
    pub(super) probes: Probes,
    /// The disk is searched by one thread at a time: one that hangs is not joined by others.
    searching: tokio::sync::Mutex<Option<JoinHandle<Places>>>,
    /// The login shell at work, where nobody waits for it.
    beside: Mutex<JoinSet<()>>,
    /// What worked when it was last asked, by provider.
    known: Mutex<BTreeMap<&'static str, Arc<FoundAgent>>>,
    pub(super) healing: BTreeMap<&'static str, tokio::sync::Mutex<()>>,
    latest: watch::Sender<Option<Arc<Discovery>>>,
    first: SetOnce<Arc<Discovery>>,
}

impl Prober {
    /// Looks for this.
    pub fn new(search: Search) -> Self {
        Self {
            probes: Probes::new(search.env.clone()),
            healing: search.clis.iter().map(|cli| (cli.provider, tokio::sync::Mutex::default())).collect(),
            search: Arc::new(search),
            shell: Arc::default(),
            searching: tokio::sync::Mutex::default(),
            beside: Mutex::default(),
            known: Mutex::default(),
            latest: watch::Sender::new(None),
            first: SetOnce::new(),
        }
    }

    /// Looks, for [`PATIENCE`] at most. The first look asks the login shell where nothing is on `PATH`, and waits for it; later ones take
    /// what it said meanwhile of those that are missing. Without `all`, programs that worked, and whose files are the same, are not
    /// asked again.
    ///
    /// # Errors
    /// See [`LookError`].
    pub async fn look(&self, all: bool) -> Result<Arc<Discovery>, LookError> {
        self.look_for(all, PATIENCE).await
    }

    /// Looks as a first look does, and waits for all answers.
    ///
    /// # Errors
    /// See [`LookError`].
    pub async fn look_to_the_end(&self) -> Result<Arc<Discovery>, LookError> {
        self.look_for(true, TO_THE_END).await
    }

    async fn look_for(&self, all: bool, patience: Duration) -> Result<Arc<Discovery>, LookError> {
        let is_first = self.first.get().is_none();
        let mut end = Instant::now() + patience;
        let mut places = self.places(end, patience).await?;
        if self.search.login_shell && !places.missing.is_empty() {
            if is_first && places.found.is_empty() {
                // There is nothing that this would hold up.
                places.add(&*self.shell.ask(&self.search, FRESH).await);
                end = Instant::now() + patience;
            } else {
                if let Some((_, said)) = self.shell.last().filter(|_| !is_first) {
                    places.add(&said);
                }
                self.ask_shell_beside();
            }
        }
        let asked = places
            .found
            .iter()
            .map(|(i, place)| async move { (*i, self.one(self.search.clis[*i], place, all, end).await) });
        let mut seen: BTreeMap<usize, Result<FoundAgent, SkippedAgent>> =
            join_all(asked).await.into_iter().collect();
        seen.extend(places.misplaced.into_iter().map(|(i, skipped)| (i, Err(skipped))));
        let mut found = Discovery::default();
        for outcome in seen.into_values() {
            match outcome {
                Ok(agent) => found.agents.push(agent),
                Err(skipped) => found.skipped.push(skipped),
            }
        }
        Ok(self.publish(found))
    }

    async fn places(&self, end: Instant, patience: Duration) -> Result<Places, LookError> {
        let mut searching = self.searching.lock().await;
        let search = self.search.clone();
        let task = searching.get_or_insert_with(|| tokio::task::spawn_blocking(move || search.places()));
        let places = timeout_at(end, task).await.map_err(|_| LookError::Disk(patience))?;
        *searching = None;
        places.map_err(|error| LookError::Broke(error.to_string()))
    }

    fn ask_shell_beside(&self) {
        if self.shell.last().is_some_and(|(at, _)| at.elapsed() < FRESH) {
            return;
        }
        let mut beside = self.beside.lock().unwrap_or_else(PoisonError::into_inner);
        while beside.try_join_next().is_some() {}
        if beside.is_empty() {
            let (shell, search) = (self.shell.clone(), self.search.clone());
            beside.spawn(async move { drop(shell.ask(&search, FRESH).await) });
        }
    }

    async fn one(
        &self,
        cli: &'static AgentCli,
        place: &Place,
        all: bool,
        end: Instant,
    ) -> Result<FoundAgent, SkippedAgent> {
        let question = Question::new(cli, place.path.clone());
        let stands = |answer: &Answer| !all && usable(cli, answer.clone()).is_ok();
        let answer = self.probes.ask(&question, place.file, stands, end).await;
        let path = place.path.clone();
        match answer.map_or(Err(Problem::Slow), |answer| usable(cli, answer)) {
            Ok(version_line) => {
                Ok(FoundAgent { cli, provider: Provider::new(cli.provider), path, version_line })
            }
            Err(problem) => Err(SkippedAgent { cli, path: Some(path), problem }),
        }
    }

    fn publish(&self, found: Discovery) -> Arc<Discovery> {
        for agent in &found.agents {
            self.learn(Arc::new(agent.clone()));
        }
        let found = Arc::new(found);
        let before = self.latest.send_replace(Some(found.clone()));
        self.log_news(before.as_deref(), &found);
        // Only the first one counts.
        let _ = self.first.set(found.clone());
        found
    }

    fn known_ones(&self) -> MutexGuard<'_, BTreeMap<&'static str, Arc<FoundAgent>>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn learn(&self, agent: Arc<FoundAgent>) {
        self.known_ones().insert(agent.cli.provider, agent);
    }

    /// What is known of a provider that worked when it was last asked. It stays known while it is slow, cannot be read or is not found.
    pub fn known(&self, provider: &str) -> Option<Arc<FoundAgent>> {
        self.known_ones().get(provider).cloned()
    }

    /// What the first look found, as soon as it did.
    pub async fn first(&self) -> Arc<Discovery> {
        self.first.wait().await.clone()
    }

    /// What the latest look found.
    pub fn latest(&self) -> Option<Arc<Discovery>> {
        self.latest.borrow().clone()
    }

    /// Where a command is, looked for on `PATH` as agent CLIs are. It reads the disk.
    pub fn locate(&self, command: &OsStr) -> Option<PathBuf> {
        self.search.command(command)
    }

    /// The version line of a program that is used as this agent CLI, with these arguments before all others, or why it does not say; `None` if it
    /// has not said by `end`.
    pub async fn version_of(
        &self,
        cli: &AgentCli,
        program: PathBuf,
        prefix: &[String],
        end: Instant,
    ) -> Option<Result<String, Problem>> {
        let place = Place::at(program);
        let question = Question::custom(cli, place.path, prefix);
        self.probes.ask(&question, place.file, Result::is_ok, end).await
    }

    /// What is not as the look before saw it.
    fn log_news(&self, before: Option<&Discovery>, now: &Discovery) {
        let nothing = Discovery::default();
        let before = before.unwrap_or(&nothing);
        for agent in now.agents.iter().filter(|agent| !before.agents.contains(agent)) {
            tracing::info!(provider = %agent.provider, path = %agent.path.display(), version = agent.version_line, "agent found");
            let is_known = before.agents.iter().any(|known| known.provider == agent.provider);
            if !is_known && longshore_core::codec::for_provider(agent.provider.as_str()).is_none() {
                tracing::warn!(
                    provider = %agent.provider,
                    "this version cannot run this agent yet: its tasks are prepared, started, and failed with that message"
                );
            }
        }
        for skipped in now.skipped.iter().filter(|skipped| !before.skipped.contains(skipped)) {
            let SkippedAgent { cli, problem, .. } = skipped;
            match problem {
                Problem::Slow | Problem::NoVersion { .. } | Problem::Gate { .. }
                    if self.known(cli.provider).is_some() =>
                {
                    tracing::warn!(
                        provider = cli.provider,
                        "an agent that worked does not answer as it should, and is used all the same: {problem}"
                    );
                }
                _ => tracing::warn!(provider = cli.provider, "agent not used: {problem}"),
            }
        }
        let is_there = |provider: &str| {
            now.agents.iter().any(|agent| agent.cli.provider == provider)
                || now.skipped.iter().any(|skipped| skipped.cli.provider == provider)
        };
        for agent in before.agents.iter().filter(|agent| !is_there(agent.cli.provider)) {
            tracing::warn!(provider = %agent.provider, path = %agent.path.display(), "an agent that worked is not found any more; its runtimes stay for now");
        }
    }

    /// Ends what is still asked. When this is done, no process of it is left.
    pub async fn close(&self) {
        let mut beside = std::mem::take(&mut *self.beside.lock().unwrap_or_else(PoisonError::into_inner));
        beside.shutdown().await;
        self.probes.close().await;
    }
}

/// The version line of an agent CLI that can be used.
pub(super) fn usable(cli: &AgentCli, answer: Answer) -> Answer {
    answer.and_then(|line| probe::recent_enough(cli, line))
}
