//! A control plane on the loopback address: the pure one of the core, behind the routes that one task needs.

use super::http;
use longshore_core::id::{RuntimeId, TaskId, WorkspaceId};
use longshore_core::plane::{
    Completion, Failure, Message, NewTask, Plane, Refusal, Registration, RuntimeEntry, Subject,
};
use longshore_core::time::{Instant, Now, UnixMillis};
use serde_json::{Value, json};
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread::JoinHandle;
use std::time::Duration;

const DAEMON: &str = "example";

/// A plane that notes what it is asked.
pub(crate) struct Served {
    plane: Plane,
    started: std::time::Instant,
    /// Set once the last request is in.
    over: bool,
    task: Option<TaskId>,
    pub(crate) requests: Vec<String>,
}

/// The server's thread.
pub(crate) struct Server {
    address: SocketAddr,
    thread: JoinHandle<io::Result<Served>>,
}

impl Server {
    pub(crate) fn start() -> io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0))?;
        let address = listener.local_addr()?;
        let thread = std::thread::spawn(move || Served::new()?.serve(&listener));
        Ok(Self { address, thread })
    }

    pub(crate) const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Asks the thread to end, as a last request, and waits for it.
    pub(crate) fn stop(self) -> io::Result<Served> {
        let asked = http::ask(self.address, ("POST", "/quit"), &Value::Null, Duration::from_secs(10));
        asked.map_err(|error| io::Error::other(format!("{error:?}")))?;
        self.thread.join().map_err(|_| io::Error::other("the server panicked"))?
    }
}

impl Served {
    fn new() -> io::Result<Self> {
        let mut plane = Plane::new(1);
        plane.add_workspace(WorkspaceId::new("ws-1"), "Example").map_err(io::Error::other)?;
        let started = std::time::Instant::now();
        Ok(Self { plane, started, over: false, task: None, requests: Vec::new() })
    }

    fn serve(mut self, listener: &TcpListener) -> io::Result<Self> {
        while !self.over {
            let (stream, _) = listener.accept()?;
            // A client that does not behave costs itself its answer.
            let _ = self.answer(&stream);
        }
        Ok(self)
    }

    fn answer(&mut self, stream: &TcpStream) -> io::Result<()> {
        stream.set_read_timeout(Some(Duration::from_secs(5)))?;
        let request = http::read(stream)?;
        let mut words = request.first.split(' ');
        let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        let (status, body) = if path == "/quit" {
            self.over = true;
            (200, json!({}))
        } else {
            self.requests.push(format!("{method} {path}"));
            match self.route(method, path, &request.body) {
                Ok(body) => (200, body),
                Err(refusal) => (refusal.status(), json!({ "error": refusal.to_string() })),
            }
        };
        http::write(stream, &format!("HTTP/1.1 {status} Answer"), &body)
    }

    fn route(&mut self, method: &str, path: &str, body: &Value) -> Result<Value, Refusal> {
        let now = self.now();
        let text = |key: &str| body[key].as_str().unwrap_or_default();
        let path = path.strip_prefix("/api/daemon/").unwrap_or_default();
        let parts: Vec<&str> = path.split('/').collect();
        match (method, parts.as_slice()) {
            ("GET", ["workspaces"]) => {
                let ids: Vec<&str> = self.plane.workspaces().map(|(id, _)| id.as_str()).collect();
                return Ok(json!(ids));
            }
            ("POST", ["register"]) => return self.register(now, text("workspace_id")),
            ("POST", ["runtimes", runtime, "recover-orphans"]) => {
                self.plane.recover_orphans(now, &RuntimeId::new(*runtime))?;
            }
            ("POST", ["heartbeat"]) => self.plane.heartbeat(now, &RuntimeId::new(text("runtime_id")))?,
            ("POST", ["deregister"]) => self.plane.deregister(&names(&body["runtime_ids"]))?,
            ("POST", ["tasks", "claim"]) => {
                let max = usize::try_from(body["max"].as_u64().unwrap_or_default()).unwrap_or_default();
                let tasks = self.plane.claim(now, DAEMON, &names(&body["runtime_ids"]), max)?;
                let rows = tasks.iter().filter_map(|claimed| self.plane.task(&claimed.task));
                let rows =
                    rows.map(|row| json!({ "id": row.id.as_str(), "runtime_id": row.runtime.as_str() }));
                return Ok(rows.collect());
            }
            ("GET", ["tasks", task, "status"]) => {
                return Ok(json!({ "status": self.plane.status(&TaskId::new(*task))?.as_str() }));
            }
            ("POST", ["runtimes", runtime, "tasks", task, "prepare-lease"]) => {
                self.plane.prepare_lease(now, &RuntimeId::new(*runtime), &TaskId::new(*task))?;
            }
            ("POST", ["tasks", task, "start"]) => {
                self.plane.start(now, &TaskId::new(*task))?;
            }
            ("POST", ["tasks", task, "messages"]) => {
                let said = body["messages"].as_array().into_iter().flatten().map(|line| Message {
                    seq: line["seq"].as_i64().and_then(|seq| i32::try_from(seq).ok()).unwrap_or_default(),
                    kind: "text".into(),
                    tool: None,
                    content: line["content"].as_str().map(Into::into),
                    input: None,
                    output: None,
                    at: now,
                });
                self.plane.post_messages(&TaskId::new(*task), said.collect())?;
            }
            ("POST", ["tasks", task, "complete"]) => {
                let with = Completion { output: text("output").into(), ..Completion::default() };
                self.plane.complete(now, &TaskId::new(*task), with)?;
            }
            ("POST", ["tasks", task, "fail"]) => {
                let with = Failure { failure_reason: text("failure_reason").into(), ..Failure::default() };
                self.plane.fail(now, &TaskId::new(*task), &with)?;
            }
            _ => return Err(Refusal::Invalid("no such route here".into())),
        }
        Ok(json!({}))
    }

    /// Takes a daemon's runtime; the first one gets a task.
    fn register(&mut self, now: Now, workspace: &str) -> Result<Value, Refusal> {
        let entry = RuntimeEntry {
            provider: "sh".into(),
            version: "1".into(),
            online: true,
            ..RuntimeEntry::default()
        };
        let ids = self.plane.register(
            now,
            Registration {
                device_name: "here".into(),
                cli_version: "1".into(),
                runtimes: vec![entry],
                ..Registration::new(WorkspaceId::new(workspace), DAEMON)
            },
        )?;
        if let (None, Some(runtime)) = (&self.task, ids.first()) {
            self.task = Some(self.plane.enqueue(now, NewTask::new(runtime.clone(), "agent", Subject::Bare))?);
        }
        Ok(ids.iter().map(|id| json!({ "id": id.as_str(), "provider": "sh" })).collect())
    }

    fn now(&self) -> Now {
        let ms = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        Now::new(Instant::from_millis(ms), UnixMillis(i64::try_from(ms).unwrap_or(i64::MAX)))
    }

    pub(crate) fn state(&self) -> &'static str {
        let state = self.task.as_ref().and_then(|task| self.plane.status(task).ok());
        state.map_or("never queued", longshore_core::plane::State::as_str)
    }

    pub(crate) fn transcript(&self) -> Vec<String> {
        let said = self.task.iter().flat_map(|task| self.plane.transcript(task));
        said.filter_map(|message| message.content.as_deref().map(str::to_owned)).collect()
    }
}

fn names(list: &Value) -> Vec<RuntimeId> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str).map(RuntimeId::new).collect()
}
