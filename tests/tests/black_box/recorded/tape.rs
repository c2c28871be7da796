//! Recorded exchanges, as far as a server can give their answers again.

use longshore_io_tokio::wire::routes;
use serde_json::Value;
use std::collections::{BTreeMap, VecDeque};
use std::path::Path;

/// What a server answered.
#[derive(Clone, Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) body: String,
    pub(super) etag: Option<String>,
}

/// What a daemon said: over HTTP, or in a frame of the control connection.
#[derive(Clone, Debug)]
pub(super) struct Said {
    /// `POST /api/daemon/tasks/{}/start`, or `frame daemon:heartbeat`.
    pub(super) route: String,
    pub(super) body: Value,
    pub(super) headers: Vec<String>,
}

/// Everything of some recordings, in order.
#[derive(Debug, Default)]
pub(super) struct Tape {
    /// Answers by method and path.
    pub(super) answers: BTreeMap<(String, String), VecDeque<Answer>>,
    /// The tasks of each claim that brought some.
    pub(super) claims: VecDeque<Vec<Value>>,
    /// What the recorded daemon said.
    pub(super) said: Vec<Said>,
    /// Whether the server took the first control connection.
    pub(super) linked: Option<bool>,
}

impl Tape {
    /// Reads fixtures by their names, one after the other; each to the first note in it, after which somebody interferes.
    pub(super) fn of(names: &[&str]) -> Self {
        let mut tape = Self::default();
        for name in names {
            let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("fixtures/{name}.json"));
            let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
            let list: Vec<Value> = serde_json::from_str(&text).expect("a list of exchanges");
            list.iter()
                .take_while(|exchange| exchange["dir"] != "note")
                .for_each(|exchange| tape.take(exchange));
        }
        tape
    }

    fn take(&mut self, exchange: &Value) {
        let text = |field: &str| exchange[field].as_str().unwrap_or_default().to_owned();
        let (dir, method, path) = (text("dir"), text("method"), text("path"));
        let (asked, answered) = (&exchange["request_body"], &exchange["response_body"]);
        match (dir.as_str(), method.as_str()) {
            ("daemon->server", "GET" | "POST") => self.took(exchange, method, path),
            ("daemon->server", "WS-TEXT") => self.said.push(Said {
                route: format!("frame {}", asked["type"].as_str().expect("a type")),
                body: asked["payload"].clone(),
                headers: Vec::new(),
            }),
            ("daemon->server", "WS-UPGRADE") => {
                self.linked.get_or_insert(exchange["status"] == 101);
            }
            ("server->daemon", "WS-TEXT") if answered["type"] == "daemon:rpc_response" => {
                self.claimed(&answered["payload"]["body"]);
            }
            _ => {}
        }
    }

    fn took(&mut self, exchange: &Value, method: String, path: String) {
        let headers = exchange["request_headers"].as_object().into_iter().flat_map(serde_json::Map::keys);
        self.said.push(Said {
            route: route(&method, &path),
            body: exchange["request_body"].clone(),
            headers: headers.map(|name| name.to_ascii_lowercase()).collect(),
        });
        let answered = &exchange["response_body"];
        if path.ends_with("/tasks/claim") {
            self.claimed(answered);
            return;
        }
        let status = exchange["status"].as_u64().and_then(|status| u16::try_from(status).ok()).unwrap_or(0);
        if status == 0 {
            return;
        }
        let body = match answered {
            Value::Null => String::new(),
            Value::String(text) => text.clone(),
            value => value.to_string(),
        };
        let headers = exchange["response_headers"].as_object();
        let etag = headers.and_then(|headers| {
            let found = headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("etag"));
            Some(found?.1.as_str()?.to_owned())
        });
        self.answers.entry((method, path)).or_default().push_back(Answer { status, body, etag });
    }

    fn claimed(&mut self, reply: &Value) {
        let tasks = reply["tasks"].as_array().cloned().unwrap_or_default();
        if !tasks.is_empty() {
            self.claims.push_back(tasks);
        }
    }
}

/// The route of a request, with `{}` for the ids in it.
pub(super) fn route(method: &str, path: &str) -> String {
    let path = path.split('?').next().unwrap_or(path);
    let given: Vec<&str> = path.split('/').collect();
    let fits = |template: &str| {
        let pieces: Vec<&str> = template.split('/').collect();
        pieces.len() == given.len()
            && pieces.iter().zip(&given).all(|(piece, is)| *piece == "{}" || piece == is)
    };
    let known = routes::ALL.iter().map(|route| route.template).find(|template| fits(template));
    format!("{method} {}", known.unwrap_or(path))
}
