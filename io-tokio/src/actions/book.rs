//! What the server asked for, by its id: what the core must not see of it, from the reply that brought it until the core says that it can be
//! forgotten.

use crate::wire::action::ActionReport;
use crate::wire::heartbeat::Action as Asked;
use longshore_core::event::{Action, ActionKind};
use longshore_core::id::{ActionId, Provider, is_safe_component};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Actions that are known at most; the core drops what is beyond fewer than that.
const MOST: usize = 256;
/// Longest skill key or version that is kept, in bytes.
const LONGEST_TEXT: usize = 1024;

/// What is to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ask {
    /// Update the program to this version.
    Update(String),
    /// List the models.
    Models,
    /// List the skills.
    LocalSkills,
    /// Upload the skill with this key.
    ImportSkill(String),
}

impl Ask {
    const fn kind(&self) -> ActionKind {
        match self {
            Self::Update(_) => ActionKind::Update,
            Self::Models => ActionKind::Models,
            Self::LocalSkills => ActionKind::LocalSkills,
            Self::ImportSkill(_) => ActionKind::ImportSkill,
        }
    }
}

#[derive(Debug)]
struct Entry {
    ask: Ask,
    provider: Option<Provider>,
    report: Option<Arc<ActionReport>>,
    /// It was done, or is being done.
    begun: bool,
    /// When it came.
    order: u64,
    /// It was handed out once more while it was here. The core ignores that, or begins it anew if it has just been over.
    again: bool,
}

/// All of them.
#[derive(Debug, Default)]
pub struct Book {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    entries: BTreeMap<ActionId, Entry>,
    next: u64,
}

impl Inner {
    /// Keeps a new one. At the bound the oldest that nobody has begun goes: an answer over a connection that was given up is not looked at, so
    /// that nobody forgets what came with it.
    fn insert(&mut self, id: ActionId, ask: Ask, provider: Option<Provider>) {
        if self.entries.len() >= MOST {
            let idle = self.entries.iter().filter(|(_, entry)| !entry.begun);
            let oldest = idle.min_by_key(|(_, entry)| entry.order).map(|(id, _)| id.clone());
            oldest.and_then(|id| self.entries.remove(&id));
        }
        if self.entries.len() < MOST {
            self.next += 1;
            let entry = Entry { ask, provider, report: None, begun: false, order: self.next, again: false };
            self.entries.insert(id, entry);
        }
    }
}

impl Book {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps what a reply asks a runtime of this provider for. Returns what the core has to be told of it: all that can be answered.
    pub fn keep(&self, provider: Option<&Provider>, asked: Vec<Asked>) -> Vec<Action> {
        let mut inner = self.lock();
        let mut told = Vec::with_capacity(asked.len());
        for asked in asked {
            let (id, ask) = match asked {
                Asked::Update { id, target_version } => (id, Ask::Update(cut(target_version))),
                Asked::ListModels { id } => (id, Ask::Models),
                Asked::ListSkills { id } => (id, Ask::LocalSkills),
                // A key that is cut off is the key of nothing, and the answer says so.
                Asked::ImportSkill { id, skill_key } => (id, Ask::ImportSkill(cut(skill_key))),
            };
            if !is_safe_component(&id) {
                tracing::warn!(
                    "the server asks for something under an id that can be no part of a URL; it is not done"
                );
                continue;
            }
            let (id, kind) = (ActionId::new(id), ask.kind());
            match inner.entries.get_mut(&id) {
                Some(entry) => entry.again = true,
                None => inner.insert(id.clone(), ask, provider.cloned()),
            }
            told.push(Action { id, kind });
        }
        told
    }

    /// What is to be done, and by which agent CLI.
    pub fn begin(&self, id: &ActionId) -> Option<(Ask, Option<Provider>)> {
        let mut inner = self.lock();
        let entry = inner.entries.get_mut(id)?;
        entry.begun = true;
        Some((entry.ask.clone(), entry.provider.clone()))
    }

    /// Keeps what came of it.
    pub fn done(&self, id: &ActionId, report: ActionReport) {
        if let Some(entry) = self.lock().entries.get_mut(id) {
            entry.report = Some(Arc::new(report));
        }
    }

    /// What came of it.
    pub fn report(&self, id: &ActionId) -> Option<Arc<ActionReport>> {
        self.lock().entries.get(id).and_then(|entry| entry.report.clone())
    }

    /// Nothing more is asked about it.
    pub fn forget(&self, id: &ActionId) {
        let mut inner = self.lock();
        if let Some(entry) = inner.entries.get_mut(id).filter(|entry| entry.again) {
            (entry.again, entry.begun, entry.report) = (false, false, None);
        } else {
            inner.entries.remove(id);
        }
    }
}

fn cut(mut text: String) -> String {
    let end = (0..=text.len().min(LONGEST_TEXT)).rev().find(|at| text.is_char_boundary(*at));
    text.truncate(end.unwrap_or_default());
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn models(id: &str) -> Vec<Asked> {
        vec![Asked::ListModels { id: id.to_owned() }]
    }

    #[test]
    fn what_is_handed_out_again_while_it_ends_is_still_known() {
        let (book, id) = (Book::default(), ActionId::new("a"));
        let provider = Provider::new("claude");
        assert_eq!(book.keep(Some(&provider), models("a")).len(), 1);
        book.done(&id, ActionReport::failed("first"));
        book.keep(None, models("a"));
        book.forget(&id);
        assert_eq!(book.begin(&id), Some((Ask::Models, Some(provider))), "the core may begin it once more");
        assert_eq!(book.report(&id), None, "with a result of its own");
        book.forget(&id);
        assert_eq!(book.begin(&id), None);
    }

    #[test]
    fn it_is_bounded_and_unusable_ids_reach_nobody() {
        let book = Book::default();
        assert!(book.keep(None, models("../x")).is_empty());
        for n in 0..2 * MOST {
            book.keep(None, models(&format!("a-{n}")));
        }
        assert_eq!(book.lock().entries.len(), MOST);
        let long = Asked::ImportSkill { id: "a-0".into(), skill_key: "ä".repeat(LONGEST_TEXT) };
        let other = Book::default();
        other.keep(None, vec![long]);
        let Some((Ask::ImportSkill(key), _)) = other.begin(&ActionId::new("a-0")) else { panic!("kept") };
        assert!(key.len() <= LONGEST_TEXT);
    }
}
