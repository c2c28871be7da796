//! A trace can be given away as it is: whatever is secret or a person's own, it is in none of them.

use crate::bed::{Bed, WITHIN, executable};
use longshore_core::effect::Effect;
use longshore_core::event::Event;
use longshore_core::id::TaskId;
use longshore_core::plane::{Plane, ProfileSpec, Repo};
use longshore_core::time::Now;
use longshore_core::trace::{Mode, Reader, Replay, encode};
use longshore_io_tokio::agent_double::Step;
use longshore_io_tokio::plane::{Action, Comment, Config, Fault, Rule, Server, Skill, TaskSpec};
use longshore_io_tokio::secret::Secret;
use longshore_tests::{Gate, Home, trace_text};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};

/// Is in every text that must not be in a trace, and in nothing else.
const MARK: &str = "zzq7c1e";
const WORKSPACE: &str = "ws-1";

fn secret(place: &str) -> String {
    format!("{MARK}-{place}")
}

/// A control plane whose every text has the mark, and a daemon of it that records its whole run.
async fn bed() -> Bed {
    let config = Config {
        token: Some(Secret::new(format!("mul_{}", secret("token")))),
        workspaces: vec![(WORKSPACE.into(), secret("workspace"))],
        ..Config::default()
    };
    let plane = Server::start(config).await.expect("a control plane");
    let url = format!("https://{}:{}@git.example/r.git", secret("user"), secret("password"));
    let repo = Repo { url: url.as_str().into(), description: secret("description").as_str().into() };
    plane.set_repos(WORKSPACE, vec![repo]).expect("set");
    let fixed_args = vec!["--key".into(), secret("fixed-argument").as_str().into()];
    let description = Some(secret("runtime-description").as_str().into());
    let profile =
        ProfileSpec { fixed_args, description, ..ProfileSpec::new(&secret("profile"), "claude", "my-agent") };
    plane.add_profile(WORKSPACE, profile).expect("a profile");
    let home = Home::new(executable(), &plane);
    let path = home.path_with_agents();
    let home = home
        .env("PATH", path)
        .env("ANTHROPIC_API_KEY", secret("environment"))
        .env("MULTICA_CLAUDE_MODEL", secret("default-model"))
        .env("MULTICA_CLAUDE_ARGS", format!("--append-system-prompt '{}'", secret("default-argument")))
        // The server is on this machine and called directly; agents inherit it.
        .env(
            "HTTP_PROXY",
            format!("http://{}:{}@proxy.invalid:3128", secret("proxy-user"), secret("proxy-password")),
        )
        .env("MULTICA_DAEMON_DEVICE_NAME", secret("device"))
        .env("LOG_LEVEL", "debug")
        .config("some_other_token", json!(secret("config")))
        .flag("--record=whole.jsonl");
    home.install("my-agent", &format!("[ \"$1\" = --key ] && shift 2\n{}", home.double()));
    let daemon = home.start();
    Bed { daemon, home, plane }
}

/// A task with the mark in everything that a server can put into one, and an agent that says it in every way.
fn marked(end: Step, gate: &Gate) -> TaskSpec {
    let tool = |name: &str| Step::Tool {
        name: secret(name),
        input: json!({ "command": secret("tool-input") }),
        output: secret("tool-output"),
    };
    let script = [
        Step::Say(secret("said")),
        Step::Think(secret("thought")),
        tool("tool"),
        Step::Stderr(secret("stderr")),
        Step::Shell(format!("echo {} > {}", secret("file-text"), secret("file"))),
        gate.wait(),
        end,
    ];
    let skill = Skill::of_workspace("skill-1", &secret("skill"), &secret("skill-text"))
        .file("notes.md", &secret("skill-file"));
    let servers =
        json!({ "mcpServers": { "x": { "command": secret("mcp"), "env": { "KEY": secret("mcp-env") } } } });
    let mut spec = TaskSpec::new("claude")
        .script(&script)
        .env("API_KEY", &secret("custom-environment"))
        .titled(&secret("title"))
        .skill(skill);
    spec.content.agent_name = secret("agent");
    spec.content.instructions = secret("instructions");
    spec.content.model = secret("model");
    spec.content.custom_args = vec!["--append-system-prompt".into(), secret("custom-argument")];
    spec.content.agent_fields.insert("mcp_config".into(), servers);
    spec.content.comments =
        vec![Comment { content: secret("comment"), author_name: secret("author"), ..Comment::default() }];
    spec
}

/// The server refuses the first call of each kind with a text of its own.
fn refusals(bed: &Bed) -> Vec<Fault> {
    let kinds = ["start", "messages", "usage", "complete", "fail"];
    let of = |call: &str| {
        bed.fault(call, |path| Rule::new("POST", &path, Action::error(503, &secret("refusal"))).first(1))
    };
    kinds.into_iter().map(of).collect()
}

/// What a replay makes of a trace, written down as a new one.
fn made_anew(trace: &[u8]) -> Vec<u8> {
    let reader = Reader::new(trace).expect("a header");
    let mut out = Vec::new();
    encode::header(&mut out, reader.header()).expect("encoded");
    let write = |n, now: Now, event: Option<&Event>, effects: &[Effect], out: &mut Vec<u8>| match event {
        Some(event) => encode::step(out, n, now, event, effects),
        None => encode::start(out, now, effects),
    };
    let mut replay = Replay::new(Mode::EventsOnly);
    let seen = replay.segment(reader, |seen| {
        write(seen.n, seen.now, seen.event, seen.effects, &mut out).expect("encoded");
    });
    seen.expect("replays");
    out
}

fn flight(dir: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let files = fs::read_dir(dir).expect("a flight recorder").flatten().map(|entry| entry.path());
    files.map(|path| (path.clone(), fs::read(&path).expect("read"))).collect()
}

fn daemon_id(bed: &Bed) -> String {
    let registered = bed.plane.requests_where(|request| request.is("POST", "/register"));
    registered[0].body["daemon_id"].as_str().expect("it says who it is").to_owned()
}

/// What an agent was given and has said really had the mark: then that it is nowhere else says something.
fn was_at_work(bed: &Bed, task: &TaskId) {
    let told = format!("{:?}", bed.plane.transcript(task));
    for place in ["said", "thought", "tool-input", "tool-output"] {
        assert!(told.contains(&secret(place)), "{place} was said: {told}");
    }
}

#[tokio::test]
async fn no_trace_has_a_secret_or_a_text_of_anybody() {
    let bed = bed().await;
    bed.runtime("claude").await;
    let own = |plane: &Plane| {
        let online = |custom: bool| {
            let mut rows = plane.runtimes().filter(|row| row.online && row.profile.is_some() == custom);
            rows.next().map(|row| row.id.clone())
        };
        Some((online(false)?, online(true)?))
    };
    let (builtin, custom) = bed.plane.wait_until(WITHIN, own).await.expect("two runtimes");
    let refused = refusals(&bed);

    let gate = Gate::new(bed.home.dir().join("gate"));
    let directory = bed.home.dir().join(secret("directory"));
    fs::create_dir(&directory).expect("a directory");
    let reference =
        json!({ "daemon_id": daemon_id(&bed), "local_path": directory, "label": secret("label") });
    let resources: Value =
        json!([{ "id": "res-1", "resource_type": "local_directory", "resource_ref": reference }]);
    let good = bed.enqueue(TaskSpec {
        runtime: Some(builtin.clone()),
        ..marked(Step::Result(secret("result")), &gate)
    });
    let bad = bed
        .enqueue(TaskSpec { runtime: Some(builtin.clone()), ..marked(Step::Error(secret("error")), &gate) });
    let there = marked(Step::Result(secret("result")), &gate).field("project_resources", resources);
    let there = bed.enqueue(TaskSpec { runtime: Some(builtin), ..there });
    let other =
        bed.enqueue(TaskSpec { runtime: Some(custom), ..marked(Step::Result(secret("result")), &gate) });
    for task in [&good, &bad, &there, &other] {
        bed.spoke(task).await;
    }
    let dumped = bed.home.run(&["trace", "dump", "-o", "running.jsonl"]).await;
    assert_eq!(dumped.code, Some(0), "{dumped:?}");
    let _open = gate.open();
    for task in [&good, &there, &other] {
        bed.completed(task).await;
    }
    bed.failed(&bad).await;
    for task in [&good, &bad, &there, &other] {
        was_at_work(&bed, task);
    }
    assert!(refused.iter().all(|fault| fault.hits() > 0), "every call was refused once");
    bed.daemon.stop().await;
    let dumped = bed.home.run(&["trace", "dump", "-o", "after.jsonl.gz"]).await;
    assert_eq!(dumped.code, Some(0), "{dumped:?}");

    let mut traces = flight(&bed.home.state_dir().join("trace"));
    for name in ["whole.jsonl", "running.jsonl"] {
        let path = bed.home.dir().join(name);
        let text = fs::read(&path).expect("a trace");
        traces.push((PathBuf::from(format!("{name}, replayed")), made_anew(&text)));
        traces.push((path, text));
    }
    let packed = bed.home.dir().join("after.jsonl.gz");
    traces.push((packed.clone(), trace_text(&packed)));

    assert_eq!(traces.len(), 6, "one segment, two files, each replayed, and the last dump");
    let place = bed.home.dir().display().to_string();
    for (path, trace) in traces {
        let text = String::from_utf8(trace).expect("UTF-8");
        assert!(
            text.contains(good.as_str()) && text.contains(bad.as_str()),
            "{} is about them",
            path.display()
        );
        for (what, found) in
            [("a secret", MARK), ("a credential", "mat_"), ("a path", &place), ("git", "git.example")]
        {
            let line = text.lines().find(|line| line.contains(found));
            assert_eq!(line, None, "{} has {what}", path.display());
        }
    }
}
