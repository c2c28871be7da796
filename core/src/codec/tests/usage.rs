//! What is counted.

use super::super::outcome::{MAX_MODELS, Usage, UsageByModel};
use super::*;

fn used(model: &str, [input, output, cache_read, cache_write]: [u64; 4]) -> UsageByModel {
    [(model.to_owned(), Usage { input, output, cache_read, cache_write, cost_usd_ticks: 0 })].into()
}

fn message(model: &str, input: i64) -> String {
    format!(
        r#"{{"type":"assistant","message":{{"model":"{model}","content":[],"usage":{{"input_tokens":{input},"output_tokens":2,"cache_read_input_tokens":3,"cache_creation_input_tokens":4}}}}}}"#
    ) + "\n"
}

#[test]
fn agents_3_7_messages_are_added_up_by_model() {
    let usage = feed(message("a", 1) + &message("a", 10) + &message("b", -5)).exits(1).usage;
    let mut expected = used("a", [11, 4, 6, 8]);
    expected.extend(used("b", [0, 2, 3, 4]));
    assert_eq!(usage, expected);
}

#[test]
fn inv_agents_26_26_usage_by_model_in_the_result_replaces_the_sum() {
    let result = r#"{"type":"result","subtype":"success","usage":{"input_tokens":99},"modelUsage":{"m":{"inputTokens":9,"outputTokens":4.0,"cacheReadInputTokens":2,"cacheCreationInputTokens":1,"costUSD":0.5},"idle":{"inputTokens":0}}}"#;
    assert_eq!(feed(message("a", 1) + result).exits(0).usage, used("m", [9, 4, 2, 1]));
}

#[test]
fn inv_agents_26_26_the_sum_in_the_result_counts_only_without_usage_by_model() {
    let result = |extra: &str| {
        format!(
            r#"{{"type":"result","subtype":"success","usage":{{"input_tokens":7}},"modelUsage":{{"m":{{}}}}{extra}}}"#
        )
    };
    let named = feed(message("a", 1) + &result(r#","model":"r""#)).exits(0).usage;
    assert_eq!(named, used("r", [7, 0, 0, 0]));
    let seen = feed(message("a", 1) + &result("")).exits(0).usage;
    assert_eq!(seen, used("a", [7, 0, 0, 0]));
    let options = Options { model: "configured".into(), ..Options::default() };
    assert_eq!(feed_with(&options, result("")).exits(0).usage, used("configured", [7, 0, 0, 0]));
}

#[test]
fn agents_3_7_a_result_that_says_nothing_of_usage_keeps_the_sum() {
    let result = r#"{"type":"result","subtype":"success","usage":{"input_tokens":0}}"#;
    assert_eq!(feed(message("a", 1) + result).exits(0).usage, used("a", [1, 2, 3, 4]));
}

#[test]
fn the_number_of_models_is_bounded() {
    let stream: String = (0..MAX_MODELS + 5).map(|i| message(&format!("m{i}"), 1)).collect();
    let outcome = feed(stream).exits(0);
    assert_eq!(outcome.usage.len(), MAX_MODELS);
    assert!(outcome.warnings.iter().any(|w| w.contains("too many models")));
}
