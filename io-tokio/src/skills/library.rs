//! Gives a task its skills: those that are kept at once, the others one request after the other.

use super::cache::{self, Place};
use super::check::{self, Checked, Unusable};
use crate::http::{CallError, Client, Limit};
use crate::wire::skill::{Bundle, SkillRef};
use longshore_core::id::{RuntimeId, TaskId};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

/// Most skills of a task.
pub const MAX_TASK_SKILLS: usize = 256;
/// Most bytes of all skills of a task: they go to the helper over a pipe, whose frames are bounded.
pub const MAX_TASK_BYTES: u64 = 32 * 1024 * 1024;

/// A request has as much time as its skill needs at this rate, in bytes a second …
const SLOWEST: u64 = 50 * 1024;
/// … but not less than this, nor more than that.
const SHORTEST: Duration = Duration::from_secs(30);
const LONGEST: Duration = Duration::from_mins(5);
/// Between tries.
const PAUSES: [Duration; 2] = [Duration::from_millis(500), Duration::from_secs(2)];
/// The longest pause that a server is granted.
const LONGEST_PAUSE: Duration = Duration::from_mins(1);

/// Which skills a task wants.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'a> {
    /// Its workspace.
    pub workspace: &'a str,
    /// Its runtime.
    pub runtime: &'a RuntimeId,
    /// The task.
    pub task: &'a TaskId,
    /// The skills, in the order of the claim.
    pub skills: &'a [SkillRef],
}

/// Why a task does not have its skills.
#[derive(Debug, thiserror::Error)]
pub enum Missing {
    /// A skill was not to be had.
    #[error("skill {name:?} ({id}) could not be fetched: {why}")]
    Call {
        /// Its name.
        name: String,
        /// Its id.
        id: String,
        /// The last try.
        #[source]
        why: CallError,
    },
    /// A skill came, but cannot be used.
    #[error("skill {name:?} ({id}) cannot be used: {why}")]
    Unusable {
        /// Its name.
        name: String,
        /// Its id.
        id: String,
        /// What is wrong with it.
        #[source]
        why: Unusable,
    },
    /// What the claim says of a skill is not enough to ask for it, or too much to take it.
    #[error("skill {name:?} ({id:?}) cannot be fetched: {why}")]
    Reference {
        /// Its name.
        name: String,
        /// Its id.
        id: String,
        /// What is wrong with it.
        why: String,
    },
    /// The task has too many of them.
    #[error("the agent has {what}; take some from it")]
    TooMany {
        /// How many, and what is allowed.
        what: String,
    },
}

impl Missing {
    fn call(skill: &SkillRef, why: CallError) -> Self {
        Self::Call { name: skill.name.clone(), id: skill.id.clone(), why }
    }

    fn reference(skill: &SkillRef, why: impl Into<String>) -> Self {
        Self::Reference { name: skill.name.clone(), id: skill.id.clone(), why: why.into() }
    }
}

/// The skills of all tasks.
#[derive(Debug)]
pub struct Library {
    root: PathBuf,
    /// One for each skill that somebody fetches: whoever wants the same one waits, and then finds it kept.
    fetching: Mutex<BTreeMap<Key, Weak<tokio::sync::Mutex<()>>>>,
}

/// Which skill, also if it can have no [`Place`].
type Key = [String; 4];

impl Library {
    /// The one of this workspaces root.
    pub fn new(workspaces_root: &Path) -> Self {
        Self { root: workspaces_root.to_owned(), fetching: Mutex::default() }
    }

    /// All skills that are wanted, in their order. What was fetched before one fails is kept for the next try (#4505). Dropping the future ends
    /// the request that is on its way.
    ///
    /// # Errors
    /// At the first skill that is not to be had; see [`Missing`].
    pub async fn get(&self, client: &Client, wanted: Wanted<'_>) -> Result<Vec<Checked>, Missing> {
        check_wanted(wanted.skills)?;
        let places: Vec<Option<Place>> = wanted
            .skills
            .iter()
            .map(|skill| Place::new(wanted.workspace, &skill.source, &skill.id, &skill.hash))
            .collect();
        let kept = self.load(places.clone()).await;
        let mut all = Vec::with_capacity(wanted.skills.len());
        let mut bytes = 0;
        for ((skill, place), kept) in wanted.skills.iter().zip(places).zip(kept) {
            let checked = match kept {
                Some(checked) => checked,
                None => self.fetch_once(client, wanted, skill, place).await?,
            };
            bytes += checked.bytes();
            if bytes > MAX_TASK_BYTES {
                let what = format!("skills of more than {MAX_TASK_BYTES} bytes in all");
                return Err(Missing::TooMany { what });
            }
            all.push(checked);
        }
        Ok(all)
    }

    /// Fetches a skill, unless somebody else just does.
    async fn fetch_once(
        &self,
        client: &Client,
        wanted: Wanted<'_>,
        skill: &SkillRef,
        place: Option<Place>,
    ) -> Result<Checked, Missing> {
        let turn = self.turn([wanted.workspace, &skill.source, &skill.id, &skill.hash].map(str::to_owned));
        let _mine = turn.lock().await;
        if let Some(place) = &place
            && let Some(Some(kept)) = self.load(vec![Some(place.clone())]).await.pop()
        {
            return Ok(kept);
        }
        let bundle = fetch(client, wanted, skill).await?;
        let (root, workspace, asked) = (self.root.clone(), wanted.workspace.to_owned(), skill.clone());
        // Both take their time: hashes of megabytes, and the disk.
        let taken = tokio::task::spawn_blocking(move || {
            Checked::of_reply(bundle, &asked).inspect(|checked| keep(&root, &workspace, checked))
        });
        let taken =
            taken.await.map_err(|error| Missing::reference(skill, format!("{error}; this is a bug")))?;
        taken.map_err(|why| Missing::Unusable { name: skill.name.clone(), id: skill.id.clone(), why })
    }

    fn turn(&self, key: Key) -> Arc<tokio::sync::Mutex<()>> {
        let mut fetching = self.fetching.lock().unwrap_or_else(PoisonError::into_inner);
        fetching.retain(|_, turn| turn.strong_count() > 0);
        if let Some(turn) = fetching.get(&key).and_then(Weak::upgrade) {
            return turn;
        }
        let turn = Arc::default();
        fetching.insert(key, Arc::downgrade(&turn));
        turn
    }

    async fn load(&self, places: Vec<Option<Place>>) -> Vec<Option<Checked>> {
        let (root, count) = (self.root.clone(), places.len());
        let look = move || places.iter().map(|place| cache::load(&root, place.as_ref()?)).collect();
        // Should the look itself break down, nothing is kept.
        tokio::task::spawn_blocking(look).await.unwrap_or_else(|_| (0..count).map(|_| None).collect())
    }
}

/// Keeps what was fetched, under the hash that it has. Without success it is fetched again the next time, which is no harm to this task.
fn keep(root: &Path, workspace: &str, skill: &Checked) {
    let bundle = skill.bundle();
    let Some(place) = Place::new(workspace, &bundle.source, &bundle.id, &bundle.hash) else { return };
    if let Err(error) = cache::store(root, &place, skill) {
        tracing::warn!(skill = bundle.name, "a skill is fetched again for the next task: {error}");
    }
}

fn check_wanted(skills: &[SkillRef]) -> Result<(), Missing> {
    if skills.len() > MAX_TASK_SKILLS {
        let what = format!("{} skills, of which there may be {MAX_TASK_SKILLS}", skills.len());
        return Err(Missing::TooMany { what });
    }
    for skill in skills {
        if [&skill.id, &skill.source, &skill.hash].iter().any(|text| text.is_empty()) {
            return Err(Missing::reference(skill, "the claim does not say its id, source and hash"));
        }
        if skill.size_bytes > check::MAX_BYTES {
            return Err(Missing::reference(skill, check::too_many_bytes(skill.size_bytes)));
        }
    }
    Ok(())
}

/// How long a request for so many bytes may take.
fn deadline(bytes: u64) -> Duration {
    Duration::from_millis(bytes.saturating_mul(1000) / SLOWEST).clamp(SHORTEST, LONGEST)
}

async fn fetch(client: &Client, wanted: Wanted<'_>, skill: &SkillRef) -> Result<Bundle, Missing> {
    let mut pauses = PAUSES.iter();
    let bundles = loop {
        let limit = Limit::from(deadline(skill.size_bytes));
        match client.resolve_skill(wanted.runtime, wanted.task, skill, limit).await {
            Ok(bundles) => break bundles,
            Err(error) => {
                let Some(pause) = pauses.next().filter(|_| is_passing(&error)) else {
                    return Err(Missing::call(skill, error));
                };
                let pause = pause_after(&error, *pause);
                tracing::debug!(skill = skill.name, %error, ?pause, "a skill did not come; it is asked for again");
                tokio::time::sleep(pause).await;
            }
        }
    };
    let mut bundles = bundles.into_iter();
    match (bundles.next(), bundles.next()) {
        (Some(bundle), None) => Ok(bundle),
        (None, _) => Err(Missing::reference(skill, "the server sent nothing for it")),
        (Some(_), Some(_)) => Err(Missing::reference(skill, "the server sent more than was asked for")),
    }
}

/// Whether the same request may succeed a moment later. A credential that is refused can be replaced meanwhile, and a success that cannot be read
/// may have been a proxy's page.
fn is_passing(error: &CallError) -> bool {
    use crate::http::RejectKind;
    error.is_transient()
        || matches!(error, CallError::Undecodable { .. })
        || matches!(
            error.rejected_as(),
            Some(RejectKind::Unauthorized | RejectKind::Redirected | RejectKind::Foreign)
        )
}

/// What the server asks for counts if it is longer.
fn pause_after(error: &CallError, pause: Duration) -> Duration {
    match error {
        CallError::Throttled { retry_after: Some(wanted), .. } => pause.max(*wanted).min(LONGEST_PAUSE),
        _ => pause,
    }
}

#[cfg(test)]
#[path = "library_tests.rs"]
mod tests;
