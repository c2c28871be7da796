//! Sizes that are cut or split.

use super::super::message::{MAX_TEXT, MAX_TOOL_RESULT};
use super::super::outcome::Status;
use super::*;

#[test]
fn inv_texts_are_split_at_256_kib_and_nothing_is_lost() {
    let long = "é".repeat(MAX_TEXT);
    let fed = feed(says(&long) + &blocks(&format!(r#"{{"type":"thinking","thinking":"{long}"}}"#)));
    let (mut texts, mut thoughts) = (Vec::new(), Vec::new());
    for message in fed.messages() {
        match message {
            AgentMessage::Text { text } => texts.push(text),
            AgentMessage::Thinking { text } => thoughts.push(text),
            other => panic!("{other:?}"),
        }
    }
    for pieces in [texts, thoughts] {
        assert_eq!(pieces.len(), 2);
        assert!(pieces.iter().all(|piece| piece.len() <= MAX_TEXT));
        assert!(pieces.concat() == long);
    }
}

#[test]
fn inv_a_tool_result_is_cut_at_8192_bytes_between_characters() {
    for (shift, length) in [("", 8191), ("x", 8192)] {
        let content = format!("{shift}{}", "é".repeat(5000));
        let fed = feed(format!(
            r#"{{"type":"user","message":{{"content":[{{"type":"tool_result","tool_use_id":"t","content":"{content}"}}]}}}}"#
        ));
        let [AgentMessage::ToolResult { output, .. }] = &fed.messages()[..] else { panic!("one result") };
        assert_eq!(output.len(), length);
        assert!(output.len() <= MAX_TOOL_RESULT && output.starts_with(&format!("\"{shift}éé")));
    }
}

#[test]
fn a_long_result_is_delivered_whole_and_a_long_stand_in_is_cut_with_a_warning() {
    let long = "y".repeat(3 << 20);
    let result = feed(DONE.replace("All done.", &long)).exits(0);
    assert!(result.output == long);
    let silent = feed(says(&long) + r#"{"type":"result","subtype":"success"}"#).exits(0);
    assert_eq!((silent.status, silent.output.len()), (Status::Completed, 1 << 20));
    assert!(silent.warnings[0].contains("cut"));
}

#[test]
fn an_error_text_is_bounded() {
    let long = "y".repeat(1 << 20);
    let outcome = feed(format!(r#"{{"type":"result","is_error":true,"result":"{long}"}}"#)).exits(1);
    assert_eq!(outcome.error.len(), super::super::outcome::MAX_ERROR);
}

#[test]
fn an_id_that_is_too_long_is_no_session() {
    let long = "s".repeat(2000);
    let fed = feed(INIT.replace("s-1", &long) + &DONE.replace("s-1", &long));
    assert_eq!(fed.sessions(), [""; 0]);
    assert_eq!(fed.exits(0).session_id, None);
}

#[test]
fn a_long_line_in_tiny_pieces_is_read_as_one() {
    let stream = says(&"z".repeat(2 << 20));
    let mut fed = Fed { run: Family::Claude.start(&Options::default()), out: Vec::new() };
    for piece in stream.as_bytes().chunks(13) {
        fed.run.stdout(piece, &mut fed.out);
    }
    assert_eq!(fed.messages().len(), 8);
    assert_eq!(fed.run.consumed(), stream.len() as u64);
}
