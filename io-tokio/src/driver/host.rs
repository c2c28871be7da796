//! What all parts of the adapter share: who this daemon is, what it found on the machine, and where things are.

use super::absent::Absent;
use super::collect::Round;
use super::local::Numbers;
use super::offers::Unusable;
use super::over::Line;
use super::reach::Reach;
use super::served::Served;
use crate::actions;
use crate::book::Book;
use crate::clock::Clock;
use crate::config::Settings;
use crate::discover::Prober;
use crate::http::Client;
use crate::identity::Identity;
use crate::ledger::Store;
use crate::log::{Redactor, Registration};
use crate::skills::Library;
use crate::supervise::Launcher;
use crate::wire::register::Repos;
use longshore_core::config::Timing;
use longshore_core::effect::{ClaimScope, RuntimeChange};
use longshore_core::event::Event;
use longshore_core::id::{ConnGen, Generation, PathKey, ProfileId, Provider, RuntimeId, WorkspaceId};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{SetOnce, mpsc, watch};
use tokio_util::sync::CancellationToken;

/// Capabilities that are told to the server: only those that are there.
pub const CAPABILITIES: &[&str] = &["skill-bundles-v1", "coalesced-comments-v1", "rpc-v1"];

/// Shared by the driver and everything that it starts.
pub struct Host {
    /// The server.
    pub client: Client,
    /// Processes.
    pub launcher: Launcher,
    /// Claims.
    pub book: Book,
    /// What the server asked for in its answers to heartbeats.
    pub(super) actions: actions::Book,
    /// Models of agent CLIs that were asked for a moment ago.
    pub(super) catalogues: actions::Catalogues,
    /// What survives this process.
    pub ledger: Store,
    /// Who this daemon is.
    pub identity: Identity,
    /// What was configured.
    pub settings: Settings,
    /// The core's delays and deadlines.
    pub timing: Timing,
    /// The daemon's own environment.
    pub env: Vec<(OsString, OsString)>,
    /// The port that the local HTTP server is bound to.
    pub health_port: u16,
    /// Folder of the `multica` command, where the machine has it.
    pub cli_dir: Option<PathBuf>,
    /// Secrets that no log line may show.
    pub redactor: Redactor,
    /// Both clocks.
    pub clock: Arc<Clock>,
    /// The agent CLIs of this machine.
    pub prober: Prober,
    /// Set when the core has heard of all that earlier processes left.
    pub(super) recovered: SetOnce<()>,
    /// Skills that claims name.
    pub(super) skills: Library,
    /// What the collector knows.
    pub(super) round: Round,
    pub(super) events: mpsc::Sender<Event>,
    pub(super) set: Mutex<RuntimeSet>,
    pub(super) listed: Mutex<Listed>,
    pub(super) served: Mutex<Served>,
    /// Numbers for people's own directories.
    pub(super) directories: Mutex<Numbers>,
    pub(super) registrations: Mutex<BTreeMap<u64, Registration>>,
    /// How the server answers.
    pub(super) reach: Reach,
    pub(super) unusable: Unusable,
    /// Routes that it does not have.
    pub(super) absent: Absent,
    /// Cancelled when the daemon is to end.
    pub(super) stopping: CancellationToken,
    /// Cancelled when the core wants no more: what is not sent by now is the next process's to send.
    pub(super) over: CancellationToken,
    /// Claims over the control connection that is up.
    pub(super) line: Mutex<Option<Arc<Line>>>,
    /// Changes when the server has told of workspaces or of custom runtimes.
    pub(super) heard: watch::Sender<()>,
    /// Set once something was found that tasks can be run with.
    pub(super) has_work: SetOnce<()>,
}

/// The workspace list as it was last seen.
#[derive(Debug, Default)]
pub(super) struct Listed {
    /// Whether the server has told it at all.
    pub(super) is_told: bool,
    pub(super) etag: Option<String>,
    pub(super) list: Vec<WorkspaceId>,
    pub(super) legacy: bool,
}

/// The runtimes, as the core says they are.
#[derive(Debug, Default)]
pub(super) struct RuntimeSet {
    pub(super) set: Generation,
    pub(super) runtimes: BTreeMap<RuntimeId, Hosted>,
}

/// One of them.
#[derive(Debug)]
pub(super) struct Hosted {
    pub(super) workspace: WorkspaceId,
    pub(super) provider: Provider,
    /// Set if it is a custom one.
    pub(super) profile: Option<ProfileId>,
    pub(super) claimable: bool,
}

impl RuntimeSet {
    pub(super) fn change(&mut self, set: Generation, runtime: RuntimeId, change: RuntimeChange) {
        self.set = set;
        match change {
            RuntimeChange::Added { workspace, provider, profile } => {
                self.runtimes.insert(runtime, Hosted { workspace, provider, profile, claimable: false });
            }
            RuntimeChange::Claimable => {
                if let Some(hosted) = self.runtimes.get_mut(&runtime) {
                    hosted.claimable = true;
                }
            }
            RuntimeChange::Removed => {
                self.runtimes.remove(&runtime);
            }
            _ => {}
        }
    }

    /// The runtimes that a claim is for.
    pub(super) fn in_scope(&self, scope: &ClaimScope) -> Vec<RuntimeId> {
        let claimable = self.runtimes.iter().filter(|(_, hosted)| hosted.claimable);
        let fits = |id: &RuntimeId, hosted: &Hosted| match scope {
            ClaimScope::All => true,
            ClaimScope::Only { provider } => hosted.provider == *provider,
            ClaimScope::AllBut { providers } => !providers.contains(&hosted.provider),
            ClaimScope::Named { runtimes } => runtimes.contains(id),
        };
        claimable.filter(|(id, hosted)| fits(id, hosted)).map(|(id, _)| id.clone()).collect()
    }
}

impl Host {
    pub(super) fn set(&self) -> MutexGuard<'_, RuntimeSet> {
        self.set.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn listed(&self) -> MutexGuard<'_, Listed> {
        self.listed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What the core calls a person's directory.
    pub(super) fn key_of(&self, real: &Path) -> PathKey {
        self.directories.lock().unwrap_or_else(PoisonError::into_inner).key(real)
    }

    pub(super) fn set_line(&self, line: Option<Arc<Line>>) {
        *self.line.lock().unwrap_or_else(PoisonError::into_inner) = line;
    }

    /// The agent CLI family of a runtime, if it is in the set.
    pub(super) fn provider_of(&self, runtime: &RuntimeId) -> Option<Provider> {
        self.set().runtimes.get(runtime).map(|hosted| hosted.provider.clone())
    }

    /// Claims over this life of the control connection, if it is the one that is up.
    pub(super) fn line(&self, conn: ConnGen) -> Option<Arc<Line>> {
        let line = self.line.lock().unwrap_or_else(PoisonError::into_inner);
        line.as_ref().filter(|line| line.conn == conn).cloned()
    }

    /// This life of the control connection is over.
    pub(super) fn drop_line(&self, conn: ConnGen) {
        self.line.lock().unwrap_or_else(PoisonError::into_inner).take_if(|line| line.conn == conn);
    }

    pub(super) fn served(&self) -> MutexGuard<'_, Served> {
        self.served.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The workspaces that have runtimes here.
    pub(super) fn workspaces(&self) -> BTreeSet<WorkspaceId> {
        self.set().runtimes.values().map(|hosted| hosted.workspace.clone()).collect()
    }

    /// Forgets what is known of workspaces that are neither in the list nor have a runtime here.
    pub(super) fn forget_others(&self, listed: &[WorkspaceId]) {
        let mut kept = self.workspaces();
        kept.extend(listed.iter().cloned());
        self.served().retain(&kept);
    }

    /// The repositories of a workspace, as its last registration named them.
    pub fn repos(&self, workspace: &WorkspaceId) -> Arc<Repos> {
        self.served().repos(workspace)
    }

    /// The provider of a runtime that is ours, and the custom runtime that it is, if it is one.
    pub(super) fn made_of(&self, runtime: &RuntimeId) -> Option<(Provider, Option<ProfileId>)> {
        self.set().runtimes.get(runtime).map(|hosted| (hosted.provider.clone(), hosted.profile.clone()))
    }

    /// The core has heard of all that earlier processes left. No look at the agent CLIs ends before this, and so nothing is registered.
    pub fn set_recovered(&self) {
        // It is said once; again changes nothing.
        let _ = self.recovered.set(());
    }

    /// A variable of the daemon's own environment.
    pub(super) fn var(&self, name: &str) -> Option<&std::ffi::OsStr> {
        self.env.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_os_str())
    }

    /// Keeps a claim's credential out of the log for as long as the claim is known.
    pub(super) fn register_secret(&self, claim: u64, secret: &crate::secret::Secret) {
        let registration = self.redactor.register(secret);
        self.registrations.lock().unwrap_or_else(PoisonError::into_inner).insert(claim, registration);
    }

    pub(super) fn forget_secret(&self, claim: u64) {
        self.registrations.lock().unwrap_or_else(PoisonError::into_inner).remove(&claim);
    }

    /// Gives the driver an event. The driver takes them until the process ends, so a failure means that it has ended.
    pub(super) async fn tell(&self, event: Event) {
        drop(self.events.send(event).await);
    }
}
