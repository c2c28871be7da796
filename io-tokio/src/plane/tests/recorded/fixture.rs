//! Recorded exchanges, and what all of them together tell of runtimes, tasks and skills.

use crate::plane::{Skill, SkillFile};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;

/// One line of a recording.
pub(super) struct Line(Value);

impl Line {
    pub(super) fn is_from_daemon(&self) -> bool {
        self.0["dir"] == "daemon->server"
    }

    pub(super) fn is_from_server(&self) -> bool {
        self.0["dir"] == "server->daemon"
    }

    pub(super) fn text(&self, field: &str) -> &str {
        self.0[field].as_str().unwrap_or_default()
    }

    pub(super) fn method(&self) -> &str {
        self.text("method")
    }

    pub(super) fn path(&self) -> &str {
        self.text("path")
    }

    pub(super) fn request(&self) -> &Value {
        &self.0["request_body"]
    }

    pub(super) fn response(&self) -> &Value {
        &self.0["response_body"]
    }

    pub(super) fn headers(&self) -> impl Iterator<Item = (&str, &str)> {
        let headers = self.0["request_headers"].as_object().into_iter().flatten();
        headers.filter_map(|(name, value)| Some((name.as_str(), value.as_str()?)))
    }

    pub(super) fn content_type(&self) -> &str {
        self.0["response_headers"]["Content-Type"].as_str().unwrap_or_default()
    }

    /// The status that the server itself answered: not the one that the recorder put in its place. Nothing if none came.
    pub(super) fn status(&self) -> Option<u16> {
        let put_in = self.0["injected_fault"] == true;
        let field = if put_in { &self.0["upstream_status"] } else { &self.0["status"] };
        field.as_u64().and_then(|status| u16::try_from(status).ok()).filter(|status| *status > 0)
    }

    /// Whether the recorder put another answer in place of the server's.
    pub(super) fn is_spoilt(&self) -> bool {
        self.0["injected_fault"] == true
    }

    /// Which control channel it was on.
    pub(super) fn link(&self) -> i64 {
        self.0["ws"].as_i64().unwrap_or_default()
    }
}

/// A recording.
pub(super) struct Fixture {
    pub(super) name: String,
    pub(super) lines: Vec<Line>,
}

/// All of them, in the order of their names.
pub(super) fn all() -> Vec<Fixture> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures");
    let mut out = Vec::new();
    for entry in std::fs::read_dir(folder).expect("the fixtures") {
        let path = entry.expect("a file").path();
        if path.extension().is_some_and(|extension| extension == "json") {
            let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
            let text = std::fs::read_to_string(&path).expect("text");
            let lines: Vec<Value> = serde_json::from_str(&text).expect(&name);
            out.push(Fixture { name, lines: lines.into_iter().map(Line).collect() });
        }
    }
    out.sort_by(|a, b| a.name.cmp(&b.name));
    out
}

/// What is the same in all recordings, as they share their ids.
#[derive(Default)]
pub(super) struct World {
    /// Runtimes as a registration showed them.
    pub(super) runtimes: BTreeMap<String, Value>,
    /// Tasks as a claim showed them first.
    pub(super) tasks: BTreeMap<String, Value>,
    /// Skills by source and id.
    pub(super) skills: BTreeMap<(String, String), Skill>,
    /// Names of workspaces.
    pub(super) workspaces: BTreeMap<String, String>,
}

/// The tasks in the answer of a claim, over HTTP or on a control channel.
pub(super) fn claimed(line: &Line) -> Vec<Value> {
    let over_link = &line.response()["payload"]["body"]["tasks"];
    let tasks = over_link.as_array().or_else(|| line.response()["tasks"].as_array());
    tasks.cloned().unwrap_or_default()
}

fn text(of: &Value) -> String {
    of.as_str().unwrap_or_default().to_owned()
}

fn skill(bundle: &Value) -> Skill {
    let file = |it: &Value| SkillFile { path: text(&it["path"]), content: text(&it["content"]) };
    Skill {
        id: text(&bundle["id"]),
        source: text(&bundle["source"]),
        name: text(&bundle["name"]),
        description: text(&bundle["description"]),
        content: text(&bundle["content"]),
        files: bundle["files"].as_array().into_iter().flatten().map(file).collect(),
    }
}

impl World {
    pub(super) fn of(fixtures: &[Fixture]) -> Self {
        let mut world = Self::default();
        for line in fixtures.iter().flat_map(|fixture| &fixture.lines) {
            if line.path() == "/api/daemon/register" {
                for row in line.response()["runtimes"].as_array().into_iter().flatten() {
                    world.runtimes.entry(text(&row["id"])).or_insert_with(|| row.clone());
                }
            }
            for task in claimed(line) {
                world.tasks.entry(text(&task["id"])).or_insert(task);
            }
            for bundle in line.response()["bundles"].as_array().into_iter().flatten() {
                let skill = skill(bundle);
                world.skills.insert((skill.source.clone(), skill.id.clone()), skill);
            }
            if line.path() == "/api/daemon/workspaces" {
                for row in line.response().as_array().into_iter().flatten() {
                    world.workspaces.insert(text(&row["id"]), text(&row["name"]));
                }
            }
        }
        world
    }
}
