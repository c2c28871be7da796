//! Small scripts play the agent CLIs.

use super::*;
use crate::actions::{Machine, Program};
use crate::config::Env;
use std::fs;

/// A script in the place of an agent CLI. `$LOG` is a file that it may write to.
struct Double {
    dir: tempfile::TempDir,
    version: String,
}

impl Double {
    fn new(script: &str) -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        fs::write(dir.path().join("cli"), script).expect("a script");
        Self { dir, version: "1.0.0".to_owned() }
    }

    fn version(mut self, version: &str) -> Self {
        version.clone_into(&mut self.version);
        self
    }

    fn machine(&self) -> Machine {
        let log = self.dir.path().join("log").into_os_string();
        let env = Env::from_pairs([("PATH", "/usr/bin:/bin".into()), ("LOG", log)]);
        let args = vec![self.dir.path().join("cli").display().to_string()];
        let program = Program { path: "/bin/sh".into(), args, version_line: self.version.clone() };
        Machine { env, home: self.dir.path().to_owned(), agent: Some(program) }
    }

    /// How often the script has written a line.
    fn runs(&self) -> usize {
        fs::read_to_string(self.dir.path().join("log")).unwrap_or_default().lines().count()
    }

    async fn list(&self, provider: &str) -> ModelsReport {
        Catalogues::default().list(&self.machine(), provider).await.expect("a list")
    }
}

fn levels_of(model: &Model) -> String {
    let Some(thinking) = &model.thinking else { return "-".to_owned() };
    let values: Vec<_> = thinking.supported_levels.iter().map(|level| level.value.as_str()).collect();
    format!("{} {}", values.join(","), thinking.default_level.as_deref().unwrap_or("-"))
}

/// `id=label` with a star at the default, and the levels behind a colon.
fn shown(report: &ModelsReport) -> String {
    let one = |model: &Model| {
        let star = if model.default { "*" } else { "" };
        format!("{}={}{star}:{}", model.id, model.label, levels_of(model))
    };
    report.models.iter().map(one).collect::<Vec<_>>().join("; ")
}

#[tokio::test]
async fn claude_models_are_known_and_their_levels_are_in_the_help() {
    let double = Double::new(
        "echo x >> $LOG; [ \"$1\" = --help ] && echo '  --effort <level>  Effort (low, medium, high, xhigh, max)'",
    );
    let (catalogues, machine) = (Catalogues::default(), double.machine());
    let list = catalogues.list(&machine, "claude").await.expect("a list");
    assert!(list.supported && !list.fallback);
    assert_eq!(list.models.len(), 9);
    let levels = |list: &ModelsReport, id: &str| {
        levels_of(list.models.iter().find(|model| model.id == id).expect("it is there"))
    };
    assert_eq!(levels(&list, "claude-opus-5"), "low,medium,high,xhigh,max medium");
    assert_eq!(levels(&list, "claude-sonnet-4-6"), "low,medium,high,max medium");
    assert_eq!(levels(&list, "claude-haiku-4-5-20251001"), "low,medium,high medium");
    assert_eq!(levels(&list, "claude-fable-5"), "low,medium,high,xhigh,max medium");
    let default: Vec<_> =
        list.models.iter().filter(|model| model.default).map(|model| model.id.as_str()).collect();
    assert_eq!(default, ["claude-sonnet-4-6"]);
    catalogues.list(&machine, "claude").await.expect("a list");
    assert_eq!(double.runs(), 1, "what a version says is kept");
    let newer = Double { dir: double.dir, version: "1.0.1".to_owned() };
    catalogues.list(&newer.machine(), "claude").await.expect("a list");
    assert_eq!(newer.runs(), 2, "another version may say something else");
}

#[tokio::test]
async fn claude_without_help_has_the_least_and_asks_again() {
    let double = Double::new("echo x >> $LOG; exit 1");
    let (catalogues, machine) = (Catalogues::default(), double.machine());
    for _ in 0..2 {
        let list = catalogues.list(&machine, "claude").await.expect("a list");
        assert_eq!(levels_of(&list.models[3]), "low,medium,high medium");
    }
    assert_eq!(double.runs(), 2, "a failure is not kept");
    let old = Double::new("echo '--model <model>'").list("claude").await;
    assert_eq!(levels_of(&old.models[3]), "-");
}

#[tokio::test]
async fn codex_lists_what_it_was_made_with() {
    let script = r#"[ "$*" = "debug models --bundled" ] || exit 1
cat <<'END'
warning: noise
{"models":[{"slug":"gpt-a","display_name":"GPT A","visibility":"list","default_reasoning_level":"medium",
  "supported_reasoning_levels":[{"effort":"low","description":"Fast"},{"effort":"medium"}],
  "service_tiers":[{"id":"fast","name":"Fast"}]},
 {"slug":"hidden","visibility":"hide"},{"slug":"gpt-b"},{"slug":7}]}
END"#;
    let report = Double::new(script).version("codex-cli 0.122.0").list("codex").await;
    assert_eq!(shown(&report), "gpt-a=GPT A*:low,medium medium; gpt-b=gpt-b:-");
    let first = &report.models[0];
    let described = first.thinking.as_ref().map(|it| it.supported_levels[0].description.as_deref());
    assert_eq!(described, Some(Some("Fast")));
    assert_eq!(first.service_tiers[0].id, "fast");
    let older = Double::new("exit 7").version("codex-cli 0.121.9").list("codex").await;
    assert!(older.fallback && older.models[0].default);
    assert_eq!(levels_of(&older.models[0]), "low,medium,high,xhigh,max,ultra low");
    assert_eq!(levels_of(&older.models[3]), "low,medium,high,xhigh medium");
}

#[tokio::test]
async fn lists_are_kept_for_a_while_and_what_stands_in_is_not() {
    let double = Double::new("echo x >> $LOG; echo 'p/m extra'");
    let (catalogues, machine) = (Catalogues::default(), double.machine());
    for _ in 0..2 {
        assert_eq!(shown(&catalogues.list(&machine, "deveco").await.expect("a list")), "p/m=p/m:-");
    }
    assert_eq!(double.runs(), 1);
    for provider in ["cursor", "antigravity"] {
        let double = Double::new("echo x >> $LOG");
        let (catalogues, machine) = (Catalogues::default(), double.machine());
        for _ in 0..2 {
            catalogues.list(&machine, provider).await.expect("a list");
        }
        assert_eq!(double.runs(), 2, "an empty list of {provider} is asked for again");
    }
    let failing = Double::new("echo x >> $LOG; exit 1");
    let machine = failing.machine();
    for _ in 0..2 {
        let why = catalogues.list(&machine, "deveco").await.expect_err("it fails");
        assert!(why.contains("models` ended with exit status: 1"), "{why}");
    }
    assert_eq!(failing.runs(), 2);
}

#[tokio::test]
async fn lists_of_lines_are_read() {
    let cursor =
        Double::new("echo 'Available models'; echo 'auto - Auto (default)'; echo 'gpt-5 - GPT-5 (fast)'")
            .list("cursor")
            .await;
    assert_eq!(shown(&cursor), "auto=Auto*:-; gpt-5=GPT-5:-");
    let none = Double::new("exit 1").list("cursor").await;
    assert!(none.fallback);
    assert_eq!(shown(&none), "auto=Auto*:-");
    let agy = Double::new("printf 'm-1\\tModel One\\nnoise\\nm-2\\t\\n'").list("antigravity").await;
    assert_eq!(shown(&agy), "m-1=Model One:-; m-2=m-2:-");
    let dsh = r#"[ "$*" = "--profile multica --list-models" ] || exit 1
echo '{"v":1,"type":"probe"}'
echo '{"v":1,"type":"models","models":[{"id":"d/v4","label":"V4","provider":"d","default":true,"thinking":{"supported_levels":[{"value":"low"},{"value":"high"}],"default_level":"high"}}]}'"#;
    assert_eq!(shown(&Double::new(dsh).list("dsh").await), "d/v4=V4*:low,high high");
}

#[tokio::test]
async fn opencode_tells_levels_in_its_longer_list() {
    let script = r#"[ "$1" = models ] || exit 1
if [ "$2" = --verbose ]; then cat <<'END'
a/one
{
  "name": "One", "variants": { "high": {}, "minimal": {}, "turbo": {} }
}
a/two
b/three
{"reasoning": true}
END
fi"#;
    let report = Double::new(script).list("opencode").await;
    assert_eq!(shown(&report), "a/one=One:minimal,high,turbo -; a/two=a/two:-; b/three=b/three:-");
    assert_eq!(report.models[2].provider, "b");
    let old = Double::new("[ $# = 1 ] && echo 'a/one' && echo noise").list("opencode").await;
    assert_eq!(shown(&old), "a/one=a/one:-");
}

#[tokio::test]
async fn pi_is_asked_over_rpc_and_else_for_its_table() {
    let rpc = r#"[ "$2" = rpc ] || exit 1
read state; read models
echo '{"type":"event"}'
echo '{"type":"response","command":"get_state","success":true,"data":{"model":{"provider":"p","id":"m"}}}'
echo '{"type":"response","command":"get_available_models","success":true,"data":{"models":[{"provider":"p","id":"m","name":"M","reasoning":true,"thinkingLevelMap":{"xhigh":"x","minimal":null}},{"provider":"q","id":"n","reasoning":false}]}}'
sleep 600"#;
    let report = Double::new(rpc).list("pi").await;
    assert_eq!(shown(&report), "p/m=M*:off,low,medium,high,xhigh -; q/n=q/n:-");
    let table = r#"[ "$1" = --list-models ] || exit 1
echo 'provider  model  context' >&2; echo 'p  m-1  200K' >&2"#;
    assert_eq!(shown(&Double::new(table).list("pi").await), "p/m-1=m-1:-");
    let omp = r#"echo '{"models":[{"id":"m","provider":"p","selector":"p/m:high","name":"M"},{"id":"n","provider":"q"}]}'"#;
    assert_eq!(shown(&Double::new(omp).list("omp").await), "p/m:high=M:-; q/n=q/n:-");
}

#[tokio::test]
async fn openclaw_lists_agents_the_way_it_can() {
    let json = r#"[ "$*" = "agents list -o json" ] && echo '{"agents":[{"id":"main","name":"Main","isDefault":true},{"id":"x"}]}'"#;
    assert_eq!(shown(&Double::new(json).list("openclaw").await), "main=Main*:-; x=x:-");
    let table = r#"[ "$*" = "agents list" ] || exit 1
echo 'Agents:'; echo '- main (default)'; echo '- side'"#;
    assert_eq!(shown(&Double::new(table).list("openclaw").await), "main=main:-; side=side:-");
}

/// A session that is opened, with what `session/new` answers.
fn acp(session: &str) -> String {
    format!(
        r#"[ "$1" = provider ] && {{ echo '{{"models":{{"p:a":{{"supportEfforts":["low","high"],"defaultEffort":"low"}}}}}}'; exit 0; }}
read hello; echo "$*" >> $LOG
echo '{{"jsonrpc":"2.0","id":0,"result":{{"agentInfo":{{"version":"0.29.1"}},"authMethods":[{{"id":"cached_token"}}]}}}}'
read next
case "$next" in *authenticate*) echo '{{"jsonrpc":"2.0","id":1.0,"result":{{}}}}'; read next;; esac
echo '{{"jsonrpc":"2.0","id":"q","method":"fs/read_text_file","params":{{}}}}'
read refusal
echo '{{"jsonrpc":"2.0","id":2,"result":{session}}}'
sleep 600"#
    )
}

const SESSION: &str = r#"{"sessionId":"s","models":{"currentModelId":"p:a","availableModels":[{"modelId":"p:a","name":"A"},{"model_id":"b","name":"unknown"}]},"configOptions":[{"id":"x","category":"Thought_Level","currentValue":"high","options":[{"value":"low"},{"value":"high"},{"value":"low"},{"value":" "}]}]}"#;

#[tokio::test]
async fn a_session_of_acp_names_its_models() {
    for (provider, known) in [
        ("kiro", "p:a=A*:-; b=b:-"),
        ("hermes", "p:a=A*:low,high high; b=b:-"),
        ("kimi", "p:a=A*:low,high low; b=b:-"),
        ("grok", "p:a=A*:-; b=b:-"),
        ("codebuddy", "p:a=A*:low,high -; b=b:low,high -"),
    ] {
        let double = Double::new(&acp(SESSION));
        let report = double.list(provider).await;
        assert_eq!(shown(&report), known, "{provider}");
        assert!(!report.fallback);
        assert_eq!(report.models[0].provider, "p");
        let argv = fs::read_to_string(double.dir.path().join("log")).expect("it was started");
        assert_eq!(argv.trim(), acp::args(provider).join(" "), "{provider}");
    }
    let config = r#"{"config_options":[{"id":"model","current_value":"m","options":[{"value":"m","name":"M"},{"value":"n"}]}]}"#;
    assert_eq!(shown(&Double::new(&acp(config)).list("traecli").await), "m=M*:-; n=n:-");
}

#[tokio::test]
async fn an_acp_program_that_does_not_answer_has_no_models_or_a_list_that_stands_in() {
    let error = r#"read hello; echo '{"jsonrpc":"2.0","id":0,"error":{"code":-32603,"message":"no"}}'"#;
    for script in [error, "exit 1"] {
        let none = Double::new(script).list("kiro").await;
        assert!(none.models.is_empty() && none.supported && !none.fallback);
        for (provider, count, first) in
            [("copilot", 12, "gpt-5.5"), ("codebuddy", 5, "claude-sonnet-4.6"), ("grok", 2, "grok-4.5")]
        {
            let report = Double::new(script).list(provider).await;
            assert!(report.fallback);
            assert_eq!((report.models.len(), report.models[0].id.as_str()), (count, first));
        }
    }
}

#[tokio::test]
async fn a_provider_without_a_way_to_ask_answers_as_it_must() {
    let double = Double::new("exit 1");
    for provider in ["qwenpaw", "mcode"] {
        let report = double.list(provider).await;
        assert!(!report.supported && report.models.is_empty());
    }
    let qwen = double.list("qwen").await;
    assert!(qwen.supported && qwen.models.is_empty() && !qwen.fallback);
    let mut gone = double.machine();
    gone.agent = None;
    let why = Catalogues::default().list(&gone, "codex").await.expect_err("not there");
    assert!(why.contains("not on this machine"), "{why}");
}
