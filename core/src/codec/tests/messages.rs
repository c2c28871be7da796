//! What each event becomes.

use super::*;

#[test]
fn agents_3_4_a_run_with_a_tool_becomes_the_rows_that_the_server_expects() {
    let stream = [
        INIT,
        &blocks(
            r#"{"type":"thinking","thinking":"hm"},{"type":"text","text":"Looking."},{"type":"tool_use","id":"t1","name":"Bash","input":{"command":"echo hi"}}"#,
        ),
        r#"{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t1","content":"hi\n"}]}}"#,
        "\n",
        &says("All good."),
        DONE,
    ]
    .concat();
    let fed = feed(&stream);
    assert_eq!(
        fed.messages(),
        [
            thinking("hm"),
            text("Looking."),
            tool_use("t1", "Bash", r#"{"command":"echo hi"}"#),
            tool_result("t1", "Bash", r#""hi\n""#),
            text("All good."),
        ]
    );
    assert_eq!(fed.sessions(), ["s-1"]);
    assert_eq!(fed.out.last(), Some(&Output::Result));
    let outcome = fed.exits(0);
    assert_eq!((outcome.output.as_str(), outcome.session_id.as_deref()), ("All done.", Some("s-1")));
    assert_eq!(outcome.tools_started, 1);
    assert_eq!(outcome.warnings, [""; 0]);
}

#[test]
fn agents_3_4_a_thought_may_be_in_either_field() {
    let fed = feed(blocks(
        r#"{"type":"thinking","text":"a"},{"type":"thinking","thinking":"b","text":"x"},{"type":"thinking"}"#,
    ));
    assert_eq!(fed.messages(), [thinking("a"), thinking("b")]);
}

#[test]
fn agents_3_4_a_tool_result_is_the_raw_json_of_its_content() {
    let fed = feed(
        r#"{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"a","content":[{"type":"text","text":"x"}]},{"type":"text","text":"no result"},{"type":"tool_result","tool_use_id":"b"},{"type":"tool_result"},7]}}"#,
    );
    assert_eq!(
        fed.messages(),
        [
            tool_result("a", "", r#"[{"type":"text","text":"x"}]"#),
            tool_result("b", "", ""),
            tool_result("", "", "")
        ]
    );
}

#[test]
fn agents_3_4_log_events_go_to_the_log() {
    let fed = feed(r#"{"type":"log","log":{"level":"debug","message":"careful"}}"#);
    assert_eq!(fed.out, [Output::Log { level: "debug".into(), text: "careful".into() }]);
}

#[test]
fn agents_3_4_unknown_events_and_blocks_mean_nothing_and_cost_nothing() {
    let stream = [
        r#"{"type":"stream_event","event":{"x":1}}"#,
        "\n",
        r#"{"type":"control_response","response":{}}"#,
        "\n",
        &blocks(r#"{"type":"hologram","x":1},{"type":"text","text":"seen"}"#),
        DONE,
    ]
    .concat();
    let fed = feed(&stream);
    assert_eq!(fed.messages(), [text("seen")]);
    assert_eq!(fed.exits(0).warnings, [""; 0]);
}

#[test]
fn agents_0_6_a_field_of_the_wrong_type_does_not_cost_the_event() {
    let stream = [
        r#"{"type":"system","subtype":"init","session_id":5,"model":[]}"#,
        "\n",
        r#"{"type":"assistant","session_id":{},"message":{"model":null,"content":"just text","usage":7}}"#,
        "\n",
        &blocks(r#"{"type":"tool_use","id":3,"name":null,"input":"x"},{"type":"text","text":1},null"#),
        r#"{"type":"user","message":"x"}"#,
        "\n",
        r#"{"type":"assistant","message":9}"#,
        "\n",
        r#"{"type":"result","subtype":"success","result":{"a":1},"usage":"lots","modelUsage":[1]}"#,
    ]
    .concat();
    let fed = feed(&stream);
    assert_eq!(fed.messages(), [text("just text"), tool_use("", "", "{}")]);
    let outcome = fed.exits(0);
    assert_eq!(outcome.status, super::super::outcome::Status::Completed);
    assert_eq!(outcome.output, "");
}

#[test]
fn lone_surrogates_and_two_hundred_levels_do_not_cost_the_event() {
    let deep = format!("{}1{}", r#"{"a":["#.repeat(100), "]}".repeat(100));
    let stream = blocks(&format!(
        r#"{{"type":"text","text":"a\ud83db"}},{{"type":"tool_use","id":"t","name":"T\udc00","input":{{"k\ud800":"\u0000","d":{deep}}}}}"#
    ));
    let fed = feed(&stream);
    let input = format!(r#"{{"k\ufffd":"\ufffd","d":{deep}}}"#);
    assert_eq!(fed.messages(), [text("a\u{fffd}b"), tool_use("t", "T\u{fffd}", &input)]);
    assert_eq!(fed.exits(0).warnings, [""; 0]);
}

#[test]
fn r_59_nul_never_reaches_a_text_and_never_costs_the_event() {
    let fed = feed(b"{\"type\":\"assistant\",\"message\":{\"content\":[{\"type\":\"text\",\"text\":\"a\0b\\u0000c\td\"}]}}\n\0\n");
    assert_eq!(fed.messages(), [text("a\u{fffd}b\u{fffd}c\td")]);
    let outcome = feed([DONE.replace("All", "A\0ll").as_str()].concat()).exits(0);
    assert_eq!(outcome.output, "A\u{fffd}ll done.");
}

#[test]
fn agents_3_4_fallback_text_is_the_last_thing_said_with_nothing_behind_it() {
    let empty = r#"{"type":"result","subtype":"success","result":""}"#;
    let tool =
        blocks(r#"{"type":"text","text":"calling"},{"type":"tool_use","id":"t","name":"T","input":{}}"#);
    let thought = blocks(r#"{"type":"thinking","thinking":"hm"}"#);
    let two = blocks(r#"{"type":"text","text":"a"},{"type":"text","text":"b"}"#);
    let strange = blocks(r#"{"type":"text","text":"a"},{"type":"hologram"}"#);
    let unreadable = "{\"type\":\"assistant\",\"message\":[]}\n";
    let cases: [(&[&str], &str); 7] = [
        (&[&says("first"), &says("last")], "last"),
        (&[&says("first"), &thought], "first"),
        (&[&says("first"), &tool], ""),
        (&[&tool, &two], "ab"),
        (&[&says("first"), &strange], ""),
        (&[&says("first"), unreadable], ""),
        (&[], ""),
    ];
    for (events, output) in cases {
        let stream = events.concat() + empty;
        let outcome = feed(&stream).exits(0);
        assert_eq!((outcome.output.as_str(), outcome.reason), (output, None), "{stream}");
    }
}
