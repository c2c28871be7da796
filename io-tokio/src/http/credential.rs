//! The token that requests carry. Where it is from a file, another one that is written there is used without a restart: the file is looked
//! at before a renewal, and while the server refuses the token that is in use.

use super::client::ClientError;
use super::skew::Skew;
use crate::config::token_file::{Stamp, TokenFile};
use crate::log::{Redactor, Registration};
use crate::secret::Secret;
use reqwest::header::{HeaderMap, HeaderValue};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// Between two looks at the file of a token that is refused.
const LOOK: Duration = Duration::from_secs(1);
/// That a token is refused is said this often at most.
const SAY: Duration = Duration::from_mins(1);
/// Tokens of the past that are still kept out of the log.
const KEPT: usize = 8;

/// The token in use. Clones share it.
#[derive(Clone)]
pub struct Credential(Arc<Inner>);

struct Inner {
    current: watch::Sender<Current>,
    against: watch::Sender<Against>,
    said: Mutex<Option<Instant>>,
    source: OnceLock<Source>,
}

/// What speaks against the token in use.
#[derive(Clone, Copy, Default)]
struct Against {
    /// The last answer was that it is none.
    refused: bool,
    /// It is one, but the server takes nothing from its owner.
    doubtful: bool,
}

#[derive(Clone)]
struct Current {
    bearer: HeaderValue,
    /// Counts the tokens.
    number: u64,
}

/// Where another token would come from.
struct Source {
    file: TokenFile,
    redactor: Redactor,
    /// Whether the token was renewed since the start.
    renewed: AtomicBool,
    /// Held while the file is read, so that only one does.
    seen: tokio::sync::Mutex<Seen>,
}

#[derive(Default)]
struct Seen {
    stamp: Option<Stamp>,
    registrations: Vec<Registration>,
}

/// Tells when another token is used.
pub struct Replaced(watch::Receiver<Current>);

impl Replaced {
    /// Waits until another one is used than when this was last waited for, or else made.
    pub async fn next(&mut self) {
        if self.0.changed().await.is_err() {
            // The client is gone: there will be no other.
            std::future::pending::<()>().await;
        }
    }
}

impl Credential {
    pub(super) fn new(token: &Secret) -> Result<Self, ClientError> {
        let current = Current { bearer: bearer(token)?, number: 0 };
        Ok(Self(Arc::new(Inner {
            current: watch::Sender::new(current),
            against: watch::Sender::default(),
            said: Mutex::default(),
            source: OnceLock::new(),
        })))
    }

    /// Uses another token from the next request on; whether it is another one.
    ///
    /// # Errors
    /// If it is empty or cannot be sent; the old one stays.
    pub fn replace(&self, token: &Secret) -> Result<bool, ClientError> {
        let bearer = bearer(token)?;
        let replaced = self.0.current.send_if_modified(|current| {
            let other = current.bearer != bearer;
            if other {
                *current = Current { bearer, number: current.number + 1 };
            }
            other
        });
        if replaced {
            self.0.against.send_replace(Against::default());
            *self.0.said.lock().unwrap_or_else(PoisonError::into_inner) = None;
        }
        Ok(replaced)
    }

    /// Whether the server takes nothing of this daemon's, whatever it says of the token: then another one may be in the file soon.
    pub(crate) fn doubt(&self, doubtful: bool) {
        self.0.against.send_modify(|against| against.doubtful = doubtful);
    }

    /// To be told of other tokens.
    pub fn replaced(&self) -> Replaced {
        Replaced(self.0.current.subscribe())
    }

    /// Looks at `file` for another token from now on, as the module says. The first call counts. Must be called inside a runtime.
    pub fn follow(&self, file: TokenFile, redactor: Redactor) {
        let (renewed, seen) = (AtomicBool::new(false), tokio::sync::Mutex::default());
        let source = Source { file, redactor, renewed, seen };
        if self.0.source.set(source).is_ok() {
            tokio::spawn(watch_file(self.0.against.subscribe(), Arc::downgrade(&self.0)));
        }
    }

    /// The token is to be renewed, which should be the one that is in the file. Before the first time, at the start, it has just been read.
    pub(super) async fn look_before_renewal(&self) {
        if self.0.source.get().is_some_and(|source| source.renewed.swap(true, Ordering::Relaxed)) {
            self.look().await;
        }
    }

    /// Looks at the file, if there is one and it is not as it was when it was last read.
    pub async fn look(&self) {
        let Some(source) = self.0.source.get() else { return };
        let mut seen = source.seen.lock().await;
        let file = source.file.clone();
        let before = seen.stamp.clone();
        let read = move || {
            // Taken first: what is written meanwhile is another one.
            let stamp = file.stamp();
            let unchanged = stamp.is_some() && stamp == before;
            (!unchanged).then(|| {
                let mut warnings = Vec::new();
                let token = file.read(&mut warnings);
                (stamp, token, warnings)
            })
        };
        let Ok(Some((stamp, token, warnings))) = tokio::task::spawn_blocking(read).await else { return };
        seen.stamp = stamp;
        for warning in warnings {
            tracing::warn!("{warning}");
        }
        let path = source.file.path().display();
        match token {
            // Whoever logs out takes away the copy in the file, and no more.
            Ok(token) if token.is_empty() => {}
            Ok(token) => {
                let registration = source.redactor.register(&token);
                match self.replace(&token) {
                    Ok(true) => {
                        seen.registrations.push(registration);
                        let past = seen.registrations.len().saturating_sub(KEPT);
                        seen.registrations.drain(..past);
                        tracing::info!(file = %path, "the file holds another token; it is used from now on");
                    }
                    Ok(false) => {}
                    Err(error) => {
                        tracing::warn!(file = %path, "the token in the file cannot be used: {error}");
                    }
                }
            }
            Err(error) => tracing::warn!("the token stays as it is: {error}"),
        }
    }

    /// The number of the token in use, to be taken before a request is made.
    pub(crate) fn number(&self) -> u64 {
        self.0.current.borrow().number
    }

    pub(super) fn header(&self) -> HeaderValue {
        self.0.current.borrow().bearer.clone()
    }

    /// The server has answered a request so. `number` was that of the token in use; what becomes of an earlier one says nothing.
    pub(crate) fn heard(&self, number: u64, status: u16, headers: &HeaderMap) {
        let skew = (status == 401).then(|| Skew::told(headers)).flatten();
        self.answered(number, status, skew.filter(|skew| skew.is_doubtful()));
    }

    fn answered(&self, number: u64, status: u16, skew: Option<Skew>) {
        let refused = match status {
            401 => true,
            // Anything else may be the word of something before the server.
            101 | 200..=299 | 304 => false,
            _ => return,
        };
        if number != self.number() {
            return;
        }
        let news = self
            .0
            .against
            .send_if_modified(|against| std::mem::replace(&mut against.refused, refused) != refused);
        if news && refused {
            self.say(skew);
        }
    }

    fn say(&self, skew: Option<Skew>) {
        let mut said = self.0.said.lock().unwrap_or_else(PoisonError::into_inner);
        if said.is_some_and(|at| at.elapsed() < SAY) {
            return;
        }
        *said = Some(Instant::now());
        if let Some(skew) = skew {
            tracing::error!(
                "the server refuses this daemon's credential, but the server's clock is {skew} of this machine's: set the clock of whichever is \
                 wrong; the credential may be good, and is tried on until it is taken"
            );
            return;
        }
        if let Some(source) = self.0.source.get() {
            tracing::error!(
                file = %source.file.path().display(),
                "the server refuses this daemon's credential; log in again with `multica login`, and the new token in the file is used \
                 without a restart"
            );
        } else {
            tracing::error!("the server refuses this daemon's credential");
        }
    }
}

/// Looks at the file every second for as long as its token is refused or in doubt.
async fn watch_file(mut against: watch::Receiver<Against>, credential: Weak<Inner>) {
    // An error means that the client is gone.
    while against.wait_for(|against| against.refused || against.doubtful).await.is_ok() {
        let Some(inner) = credential.upgrade() else { return };
        Credential(inner).look().await;
        tokio::time::sleep(LOOK).await;
    }
}

fn bearer(token: &Secret) -> Result<HeaderValue, ClientError> {
    const WHAT: ClientError = ClientError::Header("token");
    if token.is_empty() || !token.expose().bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(WHAT);
    }
    let mut value = HeaderValue::from_str(&format!("Bearer {}", token.expose())).map_err(|_| WHAT)?;
    value.set_sensitive(true);
    Ok(value)
}

#[cfg(test)]
#[path = "credential_tests.rs"]
mod tests;
