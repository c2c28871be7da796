//! The server over its own wire, on loopback.

mod calls;
mod faulty;
mod kept;
mod link;
mod outage;
mod played;
mod profiles;
mod recorded;

use super::*;
use longshore_core::id::{RuntimeId, TaskId};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use std::time::Duration;

/// Far longer than anything here takes; a test that waits so long has failed.
pub(super) const SOON: Duration = Duration::from_secs(20);

pub(super) async fn server() -> Server {
    Server::start(Config { seed: Some(1), ..Config::default() }).await.expect("a free port")
}

/// A daemon, as far as HTTP goes.
pub(super) struct Client {
    http: reqwest::Client,
    pub(super) url: String,
    pub(super) token: String,
    /// What it says that it can do.
    pub(super) capabilities: String,
}

impl Client {
    pub(super) fn of(server: &Server) -> Self {
        // Another test may have been first.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let http = reqwest::Client::builder().no_proxy().build().expect("a client");
        Self { http, url: server.url(), token: server.token().expose().into(), capabilities: String::new() }
    }

    pub(super) async fn send(
        &self,
        method: Method,
        path: &str,
        body: &str,
    ) -> reqwest::Result<reqwest::Response> {
        let request = self.http.request(method, format!("{}{path}", self.url)).bearer_auth(&self.token);
        let request = request.header("x-client-capabilities", &self.capabilities);
        request.body(body.to_owned()).send().await
    }

    pub(super) async fn post(&self, path: &str, body: Value) -> (StatusCode, Value) {
        let answer = self.send(Method::POST, path, &body.to_string()).await.expect("an answer");
        let status = answer.status();
        let text = answer.text().await.expect("a body");
        (status, serde_json::from_str(&text).unwrap_or(Value::String(text)))
    }

    pub(super) async fn get(&self, path: &str) -> (StatusCode, Value) {
        let answer = self.send(Method::GET, path, "").await.expect("an answer");
        let status = answer.status();
        let text = answer.text().await.expect("a body");
        (status, serde_json::from_str(&text).unwrap_or(Value::String(text)))
    }

    /// Registers one runtime for claude.
    pub(super) async fn register(&self) -> RuntimeId {
        let body = json!({
            "workspace_id": "ws-1", "daemon_id": "d", "device_name": "box", "cli_version": "0.4.32",
            "runtimes": [{ "name": "Claude (box)", "type": "claude", "version": "2.1", "status": "online" }],
            "failed_profiles": null,
        });
        let (status, reply) = self.post("/api/daemon/register", body).await;
        assert_eq!(status, 200, "{reply}");
        RuntimeId::new(reply["runtimes"][0]["id"].as_str().expect("an id").to_owned())
    }

    pub(super) async fn claim(&self, runtime: &RuntimeId) -> Value {
        let body = json!({ "daemon_id": "d", "runtime_ids": [runtime.as_str()], "max_tasks": 8 });
        let (status, reply) = self.post("/api/daemon/tasks/claim", body).await;
        assert_eq!(status, 200, "{reply}");
        reply["tasks"].clone()
    }

    pub(super) async fn task(&self, task: &TaskId, verb: &str, body: Value) -> (StatusCode, Value) {
        self.post(&format!("/api/daemon/tasks/{task}/{verb}"), body).await
    }
}

/// A server with one runtime and one task in its queue.
pub(super) async fn queued() -> (Server, Client, RuntimeId, TaskId) {
    let server = server().await;
    let client = Client::of(&server);
    let runtime = client.register().await;
    let task = server.enqueue(TaskSpec::new("claude")).expect("a runtime");
    (server, client, runtime, task)
}

/// The same with the task running.
pub(super) async fn running() -> (Server, Client, RuntimeId, TaskId) {
    let (server, client, runtime, task) = queued().await;
    assert_eq!(client.claim(&runtime).await[0]["id"], task.as_str());
    assert_eq!(client.task(&task, "start", json!({})).await.0, 200);
    (server, client, runtime, task)
}
