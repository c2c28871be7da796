//! Answers to the agent's requests.

use super::*;

fn answer_to(request: &str) -> String {
    let fed = feed(request);
    let [line] = fed.written()[..] else { panic!("one answer: {:?}", fed.out) };
    line.to_owned()
}

#[test]
fn inv_agents_26_22_a_tool_is_allowed_with_the_same_input() {
    let line = answer_to(
        r#"{"type":"control_request","request_id":"r1","request":{"subtype":"can_use_tool","tool_name":"Bash","input":{"command":"ls \"x\"","n":1e3}}}"#,
    );
    let expected = r#"{"type":"control_response","response":{"subtype":"success","request_id":"r1","response":{"behavior":"allow","updatedInput":{"command":"ls \"x\"","n":1e3}}}}"#;
    assert_eq!(line, format!("{expected}\n"));
}

#[test]
fn inv_agents_26_22_nothing_may_run_in_the_background() {
    let line = answer_to(
        r#"{"type":"control_request","request_id":"r","request":{"input":{"a":{"run_in_background":true},"run_in_background": true,"b":2}}}"#,
    );
    assert!(
        line.contains(r#""updatedInput":{"a":{"run_in_background":true},"run_in_background":false,"b":2}"#),
        "{line}"
    );
    let no = answer_to(
        r#"{"type":"control_request","request_id":"r","request":{"input":{"run_in_background":"true"}}}"#,
    );
    assert!(no.contains(r#""updatedInput":{"run_in_background":"true"}"#), "{no}");
}

#[test]
fn inv_agents_26_23_an_input_that_is_no_object_becomes_an_empty_one() {
    for request in [
        r#"{"type":"control_request","request_id":"r","request":{"input":[1]}}"#,
        r#"{"type":"control_request","request_id":"r","request":{}}"#,
        r#"{"type":"control_request","request_id":"r"}"#,
    ] {
        let line = answer_to(request);
        assert!(
            line.contains(r#""request_id":"r","response":{"behavior":"allow","updatedInput":{}}"#),
            "{line}"
        );
    }
    assert!(answer_to(r#"{"type":"control_request","request_id":5}"#).contains(r#""request_id":"","#));
}

#[test]
fn an_answer_is_one_line_of_json_whatever_the_input_is() {
    let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
    let request = format!(
        "{{\"type\":\"control_request\",\"request_id\":\"r\",\"request\":{{\"input\":{{\"a\":\r\"x\u{2028}\\ud800\",\"d\":{deep}}}}}}}"
    );
    let line = answer_to(&request);
    assert_eq!(line.find(['\n', '\r', '\u{2028}']), Some(line.len() - 1));
    assert!(line.contains(&deep) && line.contains(r"x\u2028\ud800"), "{line}");
    assert!(super::super::json::parse(line.trim()).is_some());
}

#[test]
fn inv_agents_26_21_nothing_is_written_after_the_result() {
    let fed = feed([DONE, r#"{"type":"control_request","request_id":"r","request":{}}"#].concat());
    assert_eq!(fed.written(), [""; 0]);
}
