//! What an agent is started with.

use super::super::claude::check_bypass;
use super::super::{Family, for_provider, json};
use super::Options;

const FIXED: [&str; 10] = [
    "-p",
    "--output-format",
    "stream-json",
    "--input-format",
    "stream-json",
    "--verbose",
    "--permission-mode",
    "bypassPermissions",
    "--disallowedTools",
    "AskUserQuestion",
];

fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

#[test]
fn only_providers_with_a_codec_have_one() {
    assert_eq!(for_provider("claude"), Some(Family::Claude));
    assert_eq!(for_provider("Claude"), None);
    assert_eq!(for_provider(""), None);
}

#[test]
fn inv_agents_26_19_argv_of_a_plain_run_is_exact() {
    let args = Family::Claude.argv(&Options::default());
    assert_eq!(args.args, FIXED);
    assert_eq!(args.warnings, [""; 0]);
}

#[test]
fn inv_agents_26_19_argv_with_everything_set_is_in_order() {
    let args = Family::Claude.argv(&Options {
        launch_prefix: Vec::new(),
        model: "m-1".into(),
        thinking_level: "high".into(),
        max_turns: 7,
        resume_session: "s-1".into(),
        mcp_config_path: "/t/mcp.json".into(),
        settings_path: "/t/settings.json".into(),
        extra_args: words("--extra -p --effort low"),
        custom_args: words("--custom 'quoted' --settings mine --mcp-config=x"),
    });
    let set = "--strict-mcp-config --model m-1 --effort high --max-turns 7 --resume s-1 --extra --custom quoted \
               --settings /t/settings.json --mcp-config /t/mcp.json";
    assert_eq!(args.args[..10], FIXED);
    assert_eq!(args.args[10..], words(set));
    assert_eq!(args.warnings.len(), 4, "{:?}", args.warnings);
}

#[test]
fn settings_of_the_user_stay_where_the_task_has_none() {
    let options = Options { custom_args: words("--settings mine"), ..Options::default() };
    assert_eq!(Family::Claude.argv(&options).args[10..], words("--settings mine"));
}

#[test]
fn a_value_that_no_program_can_be_given_is_left_out_with_a_warning() {
    let args = Family::Claude.argv(&Options { model: "m\0x".into(), ..Options::default() });
    assert_eq!(args.args, FIXED);
    assert!(args.warnings[0].contains("--model"));
}

#[test]
fn inv_agents_26_36_root_needs_a_sandbox() {
    let args = Family::Claude.argv(&Options::default()).args;
    assert!(check_bypass(&args, false, None).is_ok());
    assert!(check_bypass(&args, true, None).is_err());
    assert!(check_bypass(&args, true, Some("0")).is_err());
    for yes in ["1", "true", "YES", "On"] {
        assert!(check_bypass(&args, true, Some(yes)).is_ok());
    }
    assert!(check_bypass(&words("-p --verbose"), true, None).is_ok());
    assert!(check_bypass(&words("--dangerously-skip-permissions"), true, None).is_err());
    assert!(check_bypass(&words("--permission-mode=bypassPermissions"), true, None).is_err());
}

#[test]
fn bug_31_the_prompt_is_one_line_on_stdin_whatever_is_in_it() {
    let prompt = format!("{}\n\"-X\" \\ \r\n\u{2028}\0é🙂", "x".repeat(200_000));
    let input = Family::Claude.first_input(&prompt);
    let line = input.strip_suffix('\n').expect("a line feed ends it");
    assert!(!line.contains(['\n', '\r', '\u{2028}', '\0']));
    let event: serde_json::Value = serde_json::from_str(line).expect("strict JSON");
    let content = serde_json::json!([{"type": "text", "text": prompt}]);
    assert_eq!(event, serde_json::json!({"type": "user", "message": {"role": "user", "content": content}}));
    assert!(json::parse(line).is_some());
}

#[test]
fn inv_agents_26_3_the_prefix_of_a_custom_runtime_comes_first_and_cannot_break_the_protocol() {
    let prefix = ["code", "--profile=work", "-p", "--output-format", "text", "--settings", "mine"];
    let mut options =
        Options { launch_prefix: prefix.map(String::from).into(), model: "m".into(), ..Options::default() };
    let args = Family::Claude.argv(&options);
    assert_eq!(args.args[..4], ["code", "--profile=work", "--settings", "mine"]);
    assert_eq!(args.args[4..6], ["-p", "--output-format"]);
    assert_eq!(args.warnings.len(), 2, "{:?}", args.warnings);
    options.settings_path = "/s".into();
    assert_eq!(Family::Claude.argv(&options).args[..3], ["code", "--profile=work", "-p"]);
    let asked = Family::Claude.launch_prefix(&options.launch_prefix).args;
    assert_eq!(asked, ["code", "--profile=work", "--settings", "mine"]);
}
