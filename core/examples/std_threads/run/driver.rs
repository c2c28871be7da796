//! The loop: one thread owns the core. It carries out effects without waiting for them, and sleeps until an event or the core's next deadline.

use super::http;
use super::process::Run;
use longshore_core::config::Config;
use longshore_core::daemon::Daemon;
use longshore_core::effect::{
    ApiCall, ClaimScope, Effect, Effects, Fact, FsCall, KillStep, RuntimeChange, WsCmd,
};
use longshore_core::error::{ApiError, FsError, Refusal};
use longshore_core::event::{
    ApiReply, ClaimKey, Event, FsReply, Offer, Probed, Registered, Standing, TaskStatus, WsEvent,
};
use longshore_core::id::{EnvRoot, OpId, Provider, RuntimeId, TaskId, WorkspaceId};
use longshore_core::reason::FailReason;
use longshore_core::rng::Seed;
use longshore_core::script::effect_label;
use longshore_core::time::{Instant, Now, UnixMillis};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, SystemTime};

/// A claimed task, as the adapter knows it.
struct Work {
    task: TaskId,
    runtime: RuntimeId,
    run: Run,
}

/// The adapter.
pub(crate) struct Driver {
    server: SocketAddr,
    dir: PathBuf,
    script: String,
    started: std::time::Instant,
    events: (Sender<Event>, Receiver<Event>),
    runtimes: BTreeMap<RuntimeId, Provider>,
    work: BTreeMap<ClaimKey, Work>,
    runs: BTreeMap<OpId, ClaimKey>,
    claims: u64,
}

impl Driver {
    pub(crate) fn new(server: SocketAddr, dir: PathBuf, script: &str) -> Self {
        Self {
            server,
            dir,
            script: script.to_owned(),
            started: std::time::Instant::now(),
            events: channel(),
            runtimes: BTreeMap::new(),
            work: BTreeMap::new(),
            runs: BTreeMap::new(),
            claims: 0,
        }
    }

    /// Serves until one task is over, then stops.
    pub(crate) fn run(mut self, log: &mut dyn FnMut(String)) -> io::Result<()> {
        let mut effects = Effects::new();
        let cfg = Config { slots: 2, ..Config::default() };
        let mut daemon = Daemon::new(cfg, Seed(1), self.now(), &mut effects).map_err(io::Error::other)?;
        loop {
            for effect in effects.drain() {
                log(effect_label(&effect));
                if matches!(effect, Effect::Exit { .. }) {
                    return Ok(());
                }
                self.carry_out(effect);
            }
            let wakeup = daemon.next_wakeup().map(|(at, _)| at.since(self.now().mono));
            let event = match self.events.1.recv_timeout(wakeup.unwrap_or(Duration::MAX)) {
                Ok(event) => self.number(event),
                Err(RecvTimeoutError::Timeout) => Event::Tick,
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(io::Error::other("no event can come any more"));
                }
            };
            daemon.handle(self.now(), &event, &mut effects);
        }
    }

    /// One clock for all deadlines, and the wall's for texts.
    fn now(&self) -> Now {
        let mono = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        let wall = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Now::new(Instant::from_millis(mono), UnixMillis(i64::try_from(wall.as_millis()).unwrap_or(i64::MAX)))
    }

    fn tell(&self, event: Event) {
        // This side holds the other end as well.
        let _ = self.events.0.send(event);
    }

    /// Gives each offer of a claim its number, and remembers what it names.
    fn number(&mut self, mut event: Event) -> Event {
        if let Event::Api { r: Ok(ApiReply::Claimed { offers, .. }), .. } = &mut event {
            for offer in offers {
                self.claims += 1;
                offer.claim = ClaimKey(self.claims);
                let work =
                    Work { task: offer.task.clone(), runtime: offer.runtime.clone(), run: Run::default() };
                self.work.insert(offer.claim, work);
            }
        }
        event
    }

    fn carry_out(&mut self, effect: Effect) {
        match effect {
            Effect::Api { op, call, deadline } => {
                let within = deadline.since(self.now().mono);
                let request = self.request(&call);
                let (server, events) = (self.server, self.events.0.clone());
                std::thread::spawn(move || {
                    let r = match request {
                        Some((method, path, body)) => http::ask(server, (method, &path), &body, within)
                            .and_then(|(status, body)| read_reply(&call, status, &body)),
                        // This server has no custom runtimes.
                        None if matches!(call, ApiCall::Profiles { .. }) => {
                            Err(ApiError::Refused { status: 404, kind: Refusal::RouteMissing })
                        }
                        None => Ok(ApiReply::Done),
                    };
                    // The daemon may have left meanwhile.
                    let _ = events.send(Event::Api { op, r });
                });
            }
            Effect::Fs { op, call } => {
                let r = self.disk(&call);
                self.tell(Event::Fs { op, r });
            }
            Effect::Run { op, call } => {
                self.runs.insert(op, call.claim());
                if let Some(work) = self.work.get(&call.claim()) {
                    let dir = self.dir.join(work.task.as_str());
                    work.run.start(op, &self.script, &dir, self.events.0.clone());
                }
            }
            // It reads no input.
            Effect::Kill { step: KillStep::CloseInput, .. } => {}
            Effect::Kill { op, .. } => {
                if let Some(work) = self.runs.get(&op).and_then(|claim| self.work.get(claim)) {
                    work.run.kill();
                }
            }
            // This adapter has no control connection, and nothing depends on one.
            Effect::Ws { conn, cmd: WsCmd::Connect { .. } } => {
                self.tell(Event::Ws { conn, ws: WsEvent::Down });
            }
            Effect::Runtime { runtime, change, .. } => match change {
                RuntimeChange::Added { provider, .. } => {
                    self.runtimes.insert(runtime, provider);
                }
                RuntimeChange::Removed => {
                    self.runtimes.remove(&runtime);
                }
                // Also what a later version of the core may say.
                _ => {}
            },
            Effect::Forget { claim } => {
                self.work.remove(&claim);
            }
            // One task is what this daemon is for.
            Effect::Fact { fact: Fact::Released { .. } } => self.tell(Event::stop()),
            // Requests end by their own deadline; and nothing is kept for another process.
            _ => {}
        }
    }

    /// Method, path and body; `None` for what this server has no use for.
    fn request(&self, call: &ApiCall) -> Option<(&'static str, String, Value)> {
        let post = |path: String, body| Some(("POST", format!("/api/daemon/{path}"), body));
        let task = |claim: &ClaimKey| self.work.get(claim).map(|work| work.task.as_str()).unwrap_or_default();
        match call {
            ApiCall::Workspaces => Some(("GET", "/api/daemon/workspaces".to_owned(), Value::Null)),
            ApiCall::Register { workspace, .. } => {
                post("register".to_owned(), json!({ "workspace_id": workspace.as_str() }))
            }
            ApiCall::RecoverOrphans { runtime } => {
                post(format!("runtimes/{runtime}/recover-orphans"), Value::Null)
            }
            ApiCall::Deregister { runtimes, .. } => {
                post("deregister".to_owned(), json!({ "runtime_ids": texts(runtimes.iter()) }))
            }
            ApiCall::Beat { runtime } => {
                post("heartbeat".to_owned(), json!({ "runtime_id": runtime.as_str() }))
            }
            ApiCall::Claim(claim) => {
                let wanted = |(id, provider): &(&RuntimeId, &Provider)| match claim.scope() {
                    ClaimScope::All => true,
                    ClaimScope::Only { provider: only } => *provider == only,
                    ClaimScope::AllBut { providers } => !providers.contains(provider),
                    ClaimScope::Named { runtimes } => runtimes.contains(id),
                };
                let ids = texts(self.runtimes.iter().filter(wanted).map(|(id, _)| id));
                post("tasks/claim".to_owned(), json!({ "runtime_ids": ids, "max": claim.max() }))
            }
            ApiCall::Lease { claim } => {
                let work = self.work.get(claim)?;
                post(format!("runtimes/{}/tasks/{}/prepare-lease", work.runtime, work.task), Value::Null)
            }
            ApiCall::Start(start) => post(format!("tasks/{}/start", task(&start.claim())), Value::Null),
            ApiCall::Status { claim } => {
                Some(("GET", format!("/api/daemon/tasks/{}/status", task(claim)), Value::Null))
            }
            ApiCall::Messages { claim, after, upto } => {
                let said = self.work.get(claim)?.run.messages(*after, *upto);
                let said: Value = said
                    .into_iter()
                    .map(|(seq, content)| json!({ "seq": seq, "content": content }))
                    .collect();
                post(format!("tasks/{}/messages", task(claim)), json!({ "messages": said }))
            }
            ApiCall::Complete { claim } => {
                post(format!("tasks/{}/complete", task(claim)), json!({ "output": "done" }))
            }
            ApiCall::Fail { claim, reason } => {
                post(format!("tasks/{}/fail", task(claim)), json!({ "failure_reason": reason.as_str() }))
            }
            _ => None,
        }
    }

    /// Work on the disk that is too short to need a thread.
    fn disk(&self, call: &FsCall) -> Result<FsReply, FsError> {
        if let FsCall::Probe { .. } = call {
            // The one agent of this example is a script that needs no look.
            let agent = Probed { provider: Provider::new("sh"), standing: Standing::Works { version: 1 } };
            return Ok(FsReply::Probed { agents: vec![agent] });
        }
        let FsCall::Prepare { claim, root, .. } = call else { return Ok(FsReply::Done) };
        let failed = FsError::Failed { reason: FailReason::RuntimeOffline };
        let work = self.work.get(claim).ok_or(failed)?;
        std::fs::create_dir(self.dir.join(work.task.as_str())).map_err(|_| failed)?;
        Ok(FsReply::Prepared { root: root.clone() })
    }
}

fn texts<'a>(ids: impl Iterator<Item = &'a RuntimeId>) -> Value {
    ids.map(|id| Value::from(id.as_str())).collect()
}

/// What an answer means. The number of an offer is given where they are counted.
fn read_reply(call: &ApiCall, status: u16, body: &Value) -> Result<ApiReply, ApiError> {
    match status {
        200..300 => {}
        404 => return Err(ApiError::Refused { status, kind: not_found(body) }),
        500.. => return Err(ApiError::Server { status }),
        _ => return Err(ApiError::Refused { status, kind: Refusal::Other }),
    }
    let text = |value: &Value| value.as_str().map(str::to_owned).ok_or(ApiError::Undecodable);
    let list = || body.as_array().ok_or(ApiError::Undecodable);
    Ok(match call {
        ApiCall::Workspaces => {
            let list = list()?.iter().map(|id| Ok(WorkspaceId::new(text(id)?)));
            ApiReply::Workspaces { list: list.collect::<Result<_, ApiError>>()?, legacy: false }
        }
        ApiCall::Register { .. } => {
            let runtime = |row: &Value| {
                Ok(Registered {
                    id: RuntimeId::new(text(&row["id"])?),
                    provider: Provider::new(text(&row["provider"])?),
                    profile: None,
                })
            };
            ApiReply::Registered { runtimes: list()?.iter().map(runtime).collect::<Result<_, ApiError>>()? }
        }
        ApiCall::Beat { .. } => ApiReply::Beaten { gone: false, actions: Vec::new() },
        ApiCall::Claim(_) => {
            let offer = |row: &Value| {
                let task = TaskId::new(text(&row["id"])?);
                let (runtime, root) =
                    (RuntimeId::new(text(&row["runtime_id"])?), EnvRoot::new(task.as_str()));
                let claim = ClaimKey(0);
                Ok(Offer { claim, task, runtime, root, prior: None, fault: None, in_place: false })
            };
            let offers = list()?.iter().map(offer).collect::<Result<_, ApiError>>()?;
            ApiReply::Claimed { offers, unusable: 0 }
        }
        ApiCall::Status { .. } => {
            let status = serde_json::from_value(body["status"].clone()).unwrap_or(TaskStatus::Other);
            ApiReply::Task { status }
        }
        _ => ApiReply::Done,
    })
}

fn not_found(body: &Value) -> Refusal {
    match body["error"].as_str() {
        Some("task not found") => Refusal::TaskGone,
        Some("runtime not found") => Refusal::RuntimeGone,
        Some("workspace not found") => Refusal::WorkspaceGone,
        _ => Refusal::RouteMissing,
    }
}
