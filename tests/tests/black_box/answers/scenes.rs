//! For each request, a daemon in the situation that makes it.

use super::checks;
use crate::bed::executable;
use longshore_core::config::{ClaimMode, Config as Core};
use longshore_core::id::TaskId;
use longshore_core::plane::Subject;
use longshore_io_tokio::agent_double::Step;
use longshore_io_tokio::answers::{Reaction, Row, Trouble};
use longshore_io_tokio::plane::{Action, Ask, Config, Fault, Request, Rule, Server, Skill, TaskSpec};
use longshore_io_tokio::wire::routes::{self, Method, Route};
use longshore_tests::{DriverUnderTest, Home};
use serde_json::json;
use std::time::Duration;
use tempfile::TempDir;

/// The longest wait for what has to come.
pub(super) const WITHIN: Duration = Duration::from_mins(1);

/// The requests of the collector.
pub(super) const COLLECTED: &[Route] =
    &[routes::GC_ISSUES, routes::GC_ISSUE, routes::GC_CHAT, routes::GC_AUTOPILOT_RUN, routes::GC_TASK];
/// The agent of the tasks that need skills.
const AGENT: &str = "agent-with-skills";

/// What an agent is to do in a scene.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Play {
    /// It ends well.
    Well,
    /// It fails.
    Badly,
    /// It works until it is ended.
    Hang,
}

/// A daemon's situation.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scene {
    route: Route,
}

/// A daemon in it.
pub(super) struct Stage {
    /// Dropped before its home and its server.
    pub(super) daemon: DriverUnderTest,
    pub(super) home: Home,
    pub(super) plane: Server,
    pub(super) route: Route,
    /// The fault for the request.
    pub(super) fault: Fault,
    /// Where two tasks want to work.
    folder: TempDir,
}

impl Scene {
    pub(super) const fn of(route: Route) -> Self {
        Self { route }
    }

    fn is(self, routes: &[Route]) -> bool {
        routes.contains(&self.route)
    }

    /// Gives the answer once, or throughout where once is not enough, and looks at what follows.
    pub(super) async fn play(self, row: &Row, trouble: Trouble, action: Action) -> Result<(), String> {
        let stage = self.set(row, trouble, action).await;
        let seen = checks::follows(&stage, row, trouble).await;
        stage.daemon.leave().await;
        seen
    }

    async fn set(self, row: &Row, trouble: Trouble, action: Action) -> Stage {
        let polled = !self.is(&[routes::LINK, routes::RUNTIME_PROFILES]);
        let config = Config { websocket: !polled, ..Config::default() };
        let plane = Server::start(config).await.expect("a control plane");
        let method = if self.route.method == Method::Get { "GET" } else { "POST" };
        let rule = Rule::new(method, &self.route.template.replace("{}", "*"), action);
        let fault = plane.fault(self.how_often(row, trouble, rule));
        self.prelude(&plane);
        let home = Home::new(executable(), &plane);
        let home = if self.is(COLLECTED) {
            home.env("MULTICA_GC_TTL", "1ms")
                .env("MULTICA_GC_ARTIFACT_TTL", "0")
                .env("MULTICA_GC_INTERVAL", "100ms")
        } else {
            home
        };
        let claim_mode = if self.is(&[routes::CLAIM_ONE]) { ClaimMode::PerRuntime } else { ClaimMode::Auto };
        let collects = self.is(COLLECTED);
        let daemon = home
            .drive(|core| {
                tune(core, claim_mode);
                core.gc = collects;
            })
            .await;
        let folder = tempfile::tempdir().expect("a folder");
        Stage { daemon, home, plane, route: self.route, fault, folder }
    }

    fn how_often(self, row: &Row, trouble: Trouble, rule: Rule) -> Rule {
        let credential = [Trouble::Unauthorized, Trouble::Forbidden].contains(&trouble);
        match row.reaction {
            Reaction::BelievedLater => rule,
            // Refused at the very start, a daemon ends.
            _ if credential && self.is(&[routes::RENEW, routes::WORKSPACES, routes::WORKSPACES_LEGACY]) => {
                rule.nth(2)
            }
            _ => rule.first(1),
        }
    }

    /// What else goes wrong, so that the request is made at all.
    fn prelude(self, plane: &Server) {
        let about = |call: &str| format!("/api/daemon/tasks/*/{call}");
        if self.is(&[routes::WORKSPACES_LEGACY]) {
            let old = Action::Reply { status: 404, body: "404 page not found\n".into(), headers: Vec::new() };
            plane.fault(Rule::new("GET", routes::WORKSPACES.template, old));
        }
        if self.is(&[routes::GC_ISSUE]) {
            let old = Action::Reply { status: 404, body: "404 page not found\n".into(), headers: Vec::new() };
            plane.fault(Rule::new("POST", "/api/daemon/workspaces/*/issues/gc-check", old));
        }
        if self.is(&[routes::MESSAGES_READ]) {
            plane.fault(Rule::new("POST", &about("messages"), Action::LoseReply).first(1));
        }
        if self.is(&[routes::PREPARE_LEASE]) {
            // Time for a refresh of the lease.
            plane.fault(
                Rule::new("POST", &about("start"), Action::Delay(Duration::from_millis(400))).first(1),
            );
        }
    }
}

/// Everything soon, so that what follows is seen soon.
fn tune(core: &mut Core, claim_mode: ClaimMode) {
    let ms = Duration::from_millis;
    core.claim_mode = claim_mode;
    let t = &mut core.timers;
    (t.poll, t.claim_hold_off) = (ms(60), ms(200));
    (t.beat, t.watch, t.gone_confirm, t.lease) = (ms(200), ms(80), ms(200), ms(60));
    (t.sync, t.sync_legacy, t.sync_bootstrap, t.sync_bootstrap_cap, t.renew) =
        (ms(300), ms(300), ms(200), ms(300), ms(300));
    (t.register_retry, t.register_coalesce) = (ms(80), ms(200));
    for backoff in [
        &mut t.claim_backoff,
        &mut t.start_backoff,
        &mut t.post_backoff,
        &mut t.report_backoff,
        &mut t.late_backoff,
        &mut t.link_backoff,
    ] {
        (backoff.base, backoff.cap) = (ms(40), ms(80));
    }
    (t.retry_after_cap, t.access, t.flush) = (ms(100), ms(250), ms(30));
    (t.gc_first, t.gc) = (ms(50), ms(100));
}

impl Stage {
    /// A task for `claude` that makes the request.
    pub(super) fn enqueue(&self) -> TaskId {
        let play = match self.route {
            routes::FAIL => Play::Badly,
            routes::CANCEL_ACK | routes::STATUS => Play::Hang,
            _ => Play::Well,
        };
        let end = match play {
            Play::Well => Step::Result("done".into()),
            Play::Badly => Step::Error("it cannot be done".into()),
            Play::Hang => Step::Hang,
        };
        let tool =
            Step::Tool { name: "Bash".into(), input: json!({ "command": "true" }), output: "ok".into() };
        let mut script = vec![Step::Say("one".into()), tool, Step::Say("two".into())];
        if self.route == routes::SESSION {
            // Once the run is over, the report names the session.
            script.push(Step::Sleep(1_000));
        }
        script.push(end);
        let mut spec = TaskSpec::new("claude").script(&script);
        if self.route == routes::GC_CHAT {
            spec.subject = Some(Subject::Chat("chat".into()));
        } else if self.route == routes::GC_AUTOPILOT_RUN {
            spec.subject = Some(Subject::Autopilot("run".into()));
        } else if self.route == routes::GC_TASK {
            spec.subject = Some(Subject::QuickCreate);
            spec = spec.field("quick_create_prompt", json!("make an issue of it"));
        }
        if self.route == routes::SKILL_BUNDLES {
            self.plane.set_skills(AGENT, vec![Skill::of_workspace("skill-1", "sail", "# Sail\n")]);
            spec.agent_id = Some(AGENT.into());
        }
        if self.route == routes::WAIT_LOCAL_DIRECTORY {
            let place = json!([{ "id": "res", "resource_type": "local_directory", "resource_ref": {
                "local_path": self.folder.path(), "daemon_id": self.daemon_id(),
            } }]);
            spec = spec.field("project_resources", place);
        }
        self.plane.enqueue(spec).expect("it is taken")
    }

    /// Has the server ask for something, where that is what makes the request.
    pub(super) async fn ask(&self) -> Result<(), String> {
        let ask = match self.route {
            routes::MODELS_RESULT => Ask::Models,
            routes::LOCAL_SKILLS_RESULT => Ask::LocalSkills,
            routes::IMPORT_RESULT => Ask::ImportSkill { skill_key: "none".into() },
            routes::UPDATE_RESULT => Ask::Update { target_version: "v9.9.9".into() },
            _ => return Ok(()),
        };
        let runtime = self.plane.wait_for_runtime("claude", WITHIN).await.map_err(|_| "no runtime")?;
        self.plane.ask(&runtime, ask).map(drop).map_err(|refusal| format!("it cannot be asked: {refusal:?}"))
    }

    fn daemon_id(&self) -> String {
        let registered = self.plane.requests_where(|request| request.is("POST", "/register"));
        registered[0].body["daemon_id"].as_str().expect("an id").to_owned()
    }

    /// Whether the request is one about a task.
    pub(super) fn is_about_tasks(&self) -> bool {
        self.route.template.contains("/tasks/{}/")
    }

    /// The uses of the route so far.
    pub(super) fn uses(&self) -> Vec<Request> {
        let route = self.route;
        self.plane.requests_where(move |request| is_of(request, route))
    }
}

/// Whether a request is of this route.
pub(super) fn is_of(request: &Request, route: Route) -> bool {
    let pieces: Vec<&str> = route.template.split('/').collect();
    let given: Vec<&str> = request.path.split('/').collect();
    request.method == route.method.as_str()
        && pieces.len() == given.len()
        && pieces.iter().zip(&given).all(|(piece, is)| *piece == "{}" || piece == is)
}
