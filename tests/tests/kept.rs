//! The control plane in a file, killed in the middle of its work: nothing that it has answered is forgotten, and nothing is done twice.
#![cfg(target_os = "linux")]

use longshore_core::id::TaskId;
use longshore_io_tokio::plane::{Config, Server, State, TaskSpec};
use reqwest::Client;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Names the file for a process of this test that is the server.
const QUEUE: &str = "LONGSHORE_TEST_QUEUE";
/// How long a step may take that takes milliseconds.
const SOON: Duration = Duration::from_secs(30);
const TASKS: usize = 60;
/// Answers (a claimed task, a start, an end) after which the server is killed, each time.
const KILLED_AFTER: [usize; 3] = [25, 70, 120];

/// A server in a process of its own.
struct Victim {
    process: Child,
    url: String,
    token: String,
}

impl Victim {
    /// Starts this very test anew as the server of the file `queue`.
    fn start(queue: &Path) -> Self {
        let mut process = Command::new(std::env::current_exe().expect("a program"))
            .args(["--exact", "a_killed_control_plane_forgets_and_doubles_nothing", "--nocapture"])
            .env(QUEUE, queue)
            .stdout(Stdio::piped())
            .spawn()
            .expect("started");
        let mut lines = BufReader::new(process.stdout.take().expect("piped")).lines();
        let said = lines.find_map(|line| line.ok()?.split_once("serving ").map(|(_, said)| said.to_owned()));
        let said = said.expect("it says where");
        let (url, token) = said.split_once(' ').expect("address and token");
        let (url, token) = (url.into(), token.into());
        // What the test's own frame prints at the end is of no interest, and the pipe must not be closed before.
        std::mem::forget(lines);
        Self { process, url, token }
    }

    /// Waits for its end.
    fn wait(mut self) {
        let ended = self.process.wait().expect("ended");
        assert_eq!(ended.signal(), Some(9), "it ends by a kill and by nothing else");
    }
}

impl Drop for Victim {
    fn drop(&mut self) {
        // Where the test has failed before it ended the server.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The server, until it is killed.
fn serve(queue: &Path) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let config = Config { database: Some(queue.to_owned()), ..Config::default() };
        let server = Server::start(config).await.expect("it starts");
        println!("serving {} {}", server.url(), server.token().expose());
        let never = server.wait_until(Duration::from_mins(5), |_| None::<()>).await;
        never.expect("it is killed long before");
    });
}

fn client() -> Client {
    // Another test may have been first.
    let _ = rustls::crypto::ring::default_provider().install_default();
    Client::builder().no_proxy().timeout(SOON).build().expect("a client")
}

/// What the daemon was told of a task: the furthest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Told {
    Claimed,
    Started,
    Completed,
}

struct Daemon {
    http: Client,
    url: String,
    token: String,
    runtime: String,
    told: Arc<Mutex<BTreeMap<String, Told>>>,
    /// Starts that were accepted, by task.
    starts: Arc<Mutex<BTreeMap<String, u32>>>,
    /// The server, and how much is to be told before it is killed.
    kill: Option<(Pid, usize)>,
}

impl Daemon {
    async fn post(&self, path: &str, body: Value) -> Option<(u16, Value)> {
        let request = self.http.post(format!("{}/api/daemon/{path}", self.url)).bearer_auth(&self.token);
        let answer = request.body(body.to_string()).send().await.ok()?;
        let status = answer.status().as_u16();
        let text = answer.text().await.ok()?;
        Some((status, serde_json::from_str(&text).unwrap_or_default()))
    }

    /// Notes what was answered. The server is killed as soon as that is enough, whatever it is at for the others.
    fn tell(&self, task: &str, told: Told) {
        let mut all = self.told.lock().expect("whole");
        let known = all.entry(task.into()).or_insert(told);
        *known = (*known).max(told);
        let so_far: usize = all.values().map(|told| *told as usize + 1).sum();
        if let Some((server, _)) = self.kill.filter(|(_, enough)| so_far >= *enough) {
            kill_process(server, Signal::KILL).expect("it is not waited for yet");
        }
    }

    async fn register(&mut self) -> String {
        let body = json!({ "workspace_id": "ws-1", "daemon_id": "d", "runtimes": [{ "type": "claude" }] });
        let (_, reply) = self.post("register", body).await.expect("an answer");
        self.runtime = reply["runtimes"][0]["id"].as_str().expect("an id").into();
        self.runtime.clone()
    }

    /// Takes tasks from the queue to their ends until the server is gone or has none left.
    async fn work(&self) {
        loop {
            let body = json!({ "daemon_id": "d", "runtime_ids": [self.runtime], "max_tasks": 3 });
            let Some((200, reply)) = self.post("tasks/claim", body).await else { return };
            let tasks: Vec<_> =
                reply["tasks"].as_array().into_iter().flatten().map(|it| it["id"].clone()).collect();
            if tasks.is_empty() {
                return;
            }
            for task in tasks {
                let task = task.as_str().expect("an id");
                self.tell(task, Told::Claimed);
                if !self.finish(task).await {
                    return;
                }
            }
        }
    }

    /// Starts and completes a claimed task. False if the server is gone.
    async fn finish(&self, task: &str) -> bool {
        let Some((status, _)) = self.post(&format!("tasks/{task}/start"), json!({})).await else {
            return false;
        };
        if status == 200 {
            *self.starts.lock().expect("whole").entry(task.into()).or_default() += 1;
            self.tell(task, Told::Started);
        }
        let output = json!({ "output": task });
        let Some((200, row)) = self.post(&format!("tasks/{task}/complete"), output).await else {
            return false;
        };
        assert_eq!((&row["status"], &row["result"]["output"]), (&json!("completed"), &json!(task)));
        self.tell(task, Told::Completed);
        true
    }

    async fn status(&self, task: &str) -> String {
        let url = format!("{}/api/daemon/tasks/{task}/status", self.url);
        let answer = self.http.get(url).bearer_auth(&self.token).send().await.expect("an answer");
        let text = answer.text().await.expect("a body");
        let status: Value = serde_json::from_str(&text).expect("JSON");
        status["status"].as_str().unwrap_or_else(|| panic!("{task} is lost: {text}")).into()
    }
}

#[test]
fn a_killed_control_plane_forgets_and_doubles_nothing() {
    if let Some(queue) = std::env::var_os(QUEUE) {
        return serve(Path::new(&queue));
    }
    longshore_tests::heed_interrupts();
    let dir = tempfile::tempdir().expect("a directory");
    let queue = dir.path().join("queue.redb");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let ids = fill(&queue).await;
        let (told, starts) = (Arc::default(), Arc::default());
        let mut daemon = Daemon {
            http: client(),
            url: String::new(),
            token: String::new(),
            runtime: String::new(),
            told: Arc::clone(&told),
            starts: Arc::clone(&starts),
            kill: None,
        };
        let mut last = None;
        for enough in KILLED_AFTER.into_iter().map(Some).chain([None]) {
            let victim = Victim::start(&queue);
            (daemon.url, daemon.token) = (victim.url.clone(), victim.token.clone());
            let same = daemon.register().await;
            assert_eq!(*last.get_or_insert(same.clone()), same, "the same machine has the same runtime");
            let known = told.lock().expect("whole").clone();
            for (task, told) in &known {
                let status = daemon.status(task).await;
                let kept = match told {
                    Told::Claimed => ["dispatched", "running", "completed"].contains(&status.as_str()),
                    Told::Started => ["running", "completed"].contains(&status.as_str()),
                    Told::Completed => status == "completed",
                };
                assert!(kept, "{task} was {told:?} and is {status}");
            }
            if let Some(enough) = enough {
                daemon.kill = Some((Pid::from_child(&victim.process), enough));
                // Several at a time, so that the kill comes amid many calls.
                tokio::join!(daemon.work(), daemon.work(), daemon.work(), daemon.work());
                victim.wait();
                continue;
            }
            daemon.kill = None;
            daemon.work().await;
            // Those of which the daemon did not hear that they were given to it: by now nobody else has them.
            for task in &ids {
                if daemon.status(task).await != "completed" {
                    assert!(daemon.finish(task).await, "the server is there");
                }
            }
            for task in &ids {
                assert_eq!(daemon.status(task).await, "completed");
            }
            kill_process(Pid::from_child(&victim.process), Signal::KILL).expect("it is there");
            victim.wait();
        }
        let starts = starts.lock().expect("whole").clone();
        assert!(starts.values().all(|times| *times == 1), "started twice: {starts:?}");
        let server =
            Server::start(Config { database: Some(queue), ..Config::default() }).await.expect("it starts");
        let rows = server.tasks();
        assert_eq!(
            rows.iter().map(|row| row.id.to_string()).collect::<BTreeSet<_>>(),
            ids,
            "none lost, none made"
        );
        assert!(rows.iter().all(|row| row.state == State::Completed && row.deliveries == 1));
        server.stop().await;
    });
}

/// Puts tasks into the queue, and ends the server in peace.
async fn fill(queue: &Path) -> BTreeSet<String> {
    let config = Config { database: Some(queue.to_owned()), ..Config::default() };
    let server = Server::start(config).await.expect("it starts");
    let mut daemon = Daemon {
        http: client(),
        url: server.url(),
        token: server.token().expose().into(),
        runtime: String::new(),
        told: Arc::default(),
        starts: Arc::default(),
        kill: None,
    };
    daemon.register().await;
    let enqueue = |_| server.enqueue(TaskSpec::new("claude")).expect("a runtime");
    let ids: Vec<TaskId> = (0..TASKS).map(enqueue).collect();
    server.stored().await.expect("there is room");
    server.stop().await;
    ids.iter().map(ToString::to_string).collect()
}

/// `cargo test -p longshore-tests --test kept -- --ignored --nocapture`
#[test]
#[ignore = "a measurement: how many tasks a second the control plane takes to their ends, with its file and without"]
fn throughput_with_the_file_and_without() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        for round in 1..=3 {
            for (daemons, kept) in [(1, false), (1, true), (16, false), (16, true)] {
                let dir = tempfile::tempdir().expect("a directory");
                let database = kept.then(|| dir.path().join("queue.redb"));
                let server =
                    Server::start(Config { database, ..Config::default() }).await.expect("it starts");
                let mut first = Daemon {
                    http: client(),
                    url: server.url(),
                    token: server.token().expose().into(),
                    runtime: String::new(),
                    told: Arc::default(),
                    starts: Arc::default(),
                    kill: None,
                };
                first.register().await;
                for _ in 0..TASKS * 10 {
                    server.enqueue(TaskSpec::new("claude")).expect("a runtime");
                }
                server.stored().await.expect("there is room");
                let begun = Instant::now();
                futures(daemons, &first).await;
                let took = begun.elapsed();
                let done = server.tasks().iter().filter(|row| row.state == State::Completed).count();
                assert_eq!(done, TASKS * 10);
                let rate = f64::from(u32::try_from(done).expect("few")) / took.as_secs_f64();
                let kind = if kept { "file" } else { "memory" };
                println!("round {round}: {daemons:2} at a time, {kind:6}: {rate:6.0} tasks/s");
                server.stop().await;
            }
        }
    });
}

/// So many daemons that work until there is nothing left.
async fn futures(daemons: usize, as_this: &Daemon) {
    let mut all = tokio::task::JoinSet::new();
    for _ in 0..daemons {
        let one = Daemon {
            http: as_this.http.clone(),
            url: as_this.url.clone(),
            token: as_this.token.clone(),
            runtime: as_this.runtime.clone(),
            told: Arc::clone(&as_this.told),
            starts: Arc::clone(&as_this.starts),
            kill: None,
        };
        all.spawn(async move { one.work().await });
    }
    while let Some(ended) = all.join_next().await {
        ended.expect("no panic");
    }
}
