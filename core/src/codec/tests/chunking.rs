//! Arbitrary bytes in arbitrary pieces.

use super::*;
use proptest::collection::vec;
use proptest::prelude::*;

/// Pieces of streams: real events, parts of events, and anything.
fn fragment() -> impl Strategy<Value = Vec<u8>> {
    let event = prop_oneof![
        Just(INIT.to_owned()),
        Just(DONE.to_owned()),
        Just(says("é你🙂 \\ud800 \\u0000 \\\\n")),
        Just(blocks(r#"{"type":"tool_use","id":"t","name":"T","input":{"a":[[[1]]]}},{"type":"thinking","text":"x"}"#)),
        Just(r#"{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t","content":"y"}]}}"#.to_owned()),
        Just("{\"type\":\"control_request\",\"request_id\":\"r\",\"request\":{\"input\":{\"run_in_background\":true}}}\n".to_owned()),
        Just("{\"type\":\"result\",\"is_error\":true,\"errors\":[\"x\"],\"usage\":{\"input_tokens\":1}}\n".to_owned()),
        Just("\n".to_owned()),
        "[\\[\\]{}\",:\\\\a-e0-9 ]{0,20}",
    ];
    (event, any::<prop::sample::Index>(), any::<u8>(), 0u8..8).prop_map(|(event, at, byte, kind)| {
        let mut bytes = event.into_bytes();
        if !bytes.is_empty() {
            let at = at.index(bytes.len());
            match kind {
                0 => bytes[at] = byte,
                1 => bytes.truncate(at),
                2 => bytes.insert(at, byte),
                _ => {}
            }
        }
        bytes
    })
}

fn endings() -> impl Strategy<Value = EndedBy> {
    let second = std::time::Duration::from_secs(1);
    prop_oneof![
        Just(EndedBy::Itself),
        Just(EndedBy::AfterResult),
        Just(EndedBy::Cancel),
        Just(EndedBy::Timeout { after: second }),
        Just(EndedBy::IdleWatchdog { silent: second, in_tool: true }),
        Just(EndedBy::Shutdown),
        Just(EndedBy::Lost),
    ]
}

proptest! {
    /// No panic; the same outputs and outcome however the bytes are cut and whenever the codec was saved and restored;
    /// a run completes only with an explicit success in the stream; a verdict always has a reason or an output.
    #[test]
    fn every_chunking_gives_the_same_outputs_and_outcome(
        fragments in vec(prop_oneof![4 => fragment(), 1 => vec(any::<u8>(), 0..40)], 0..20),
        sizes in vec(1usize..60, 1..20),
        restart in any::<prop::sample::Index>(),
        stderr in vec(any::<u8>(), 0..50),
        code in proptest::option::of(any::<i32>()),
        by in endings(),
        resume in prop_oneof![Just(""), Just("s-1"), Just("other")],
    ) {
        let stream = fragments.concat();
        let options = Options { resume_session: resume.to_owned(), ..Options::default() };
        let exit = Exit { code, signal: None };
        let mut whole = feed_with(&options, &stream);
        whole.run.stderr(&stderr);

        let mut fed = Fed { run: Family::Claude.start(&options), out: Vec::new() };
        let mut at = 0;
        let stop = restart.index(stream.len() + 1);
        let mut restarted = false;
        for size in sizes.iter().cycle() {
            if at >= stream.len() { break; }
            let end = (at + size).min(stream.len());
            fed.run.stdout(&stream[at..end], &mut fed.out);
            at = end;
            if at >= stop && !restarted {
                restarted = true;
                let state = serde_json::to_string(&fed.run).expect("plain data");
                fed.run = serde_json::from_str(&state).expect("read back");
                at = usize::try_from(fed.run.consumed()).expect("small");
            }
        }
        fed.run.stdout_end(&mut fed.out);
        fed.run.stderr(&stderr);

        prop_assert_eq!(&fed.out, &whole.out);
        let outcome = whole.end(exit, by);
        prop_assert_eq!(&fed.end(exit, by), &outcome);
        prop_assert_eq!(outcome.reason.is_none(), outcome.status == super::super::outcome::Status::Completed);
        prop_assert_eq!(outcome.reason.is_none(), outcome.error.is_empty());
        if outcome.reason.is_none() {
            let text = String::from_utf8_lossy(&stream);
            prop_assert!(text.contains("result") && (text.contains("success") || text.contains("is_error")));
        } else {
            prop_assert_eq!(outcome.output.as_str(), "");
        }
    }
}
