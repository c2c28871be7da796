//! Output of agents that is long, much, or no text at all.

use crate::bed::{Bed, numbers};
use longshore_io_tokio::agent_double::Step;
use longshore_io_tokio::plane::TaskSpec;

fn hex(bytes: &[u8]) -> Step {
    let digit = |half: u8| char::from_digit(u32::from(half), 16).expect("a hex digit");
    Step::RawHex(bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect())
}

fn event(text: &str) -> String {
    let content = serde_json::json!([{ "type": "text", "text": text }]);
    serde_json::json!({ "type": "assistant", "message": { "role": "assistant", "content": content } })
        .to_string()
}

#[tokio::test]
async fn bug_30_a_line_of_20_mib_arrives_whole() {
    const BYTES: usize = 20 << 20;
    let bed = Bed::new().await;
    let script = [Step::Flood { lines: 1, bytes: BYTES }, Step::Result("that was it".into())];
    let task = bed.enqueue(TaskSpec::new("claude").script(&script));
    assert_eq!(&*bed.completed(&task).await.result.expect("a report").output, "that was it");
    let said = bed.said(&task);
    assert_eq!(said.len(), BYTES);
    assert_eq!(said.trim_start_matches('0'), "1");
}

#[tokio::test]
async fn twenty_thousand_lines_arrive_in_order_and_none_is_missing() {
    let bed = Bed::new().await;
    let script = [Step::Flood { lines: 20_000, bytes: 6 }, Step::Result("counted".into())];
    let task = bed.enqueue(TaskSpec::new("claude").script(&script));
    bed.completed(&task).await;
    assert!(bed.said(&task) == numbers(20_000, 6), "something is missing, doubled or in another order");
}

#[tokio::test]
async fn bug_32_noise_between_the_events_changes_nothing() {
    let bed = Bed::new().await;
    let script = [
        Step::Raw("\u{feff}plain text\n\n{\"type\":\nnull\n[]\n[1,2]\n{\"type\":\"of tomorrow\"}\r\n".into()),
        Step::Say("heard".into()),
        hex(b"\xff\xfe garbage \x00\n"),
        Step::Result("still here".into()),
    ];
    let task = bed.enqueue(TaskSpec::new("claude").script(&script));
    assert_eq!(&*bed.completed(&task).await.result.expect("a report").output, "still here");
    assert!(bed.said(&task).contains("heard"));
}

#[tokio::test]
async fn bug_33_a_byte_that_is_no_utf_8_costs_one_character_of_its_line() {
    let bed = Bed::new().await;
    let (before, after) = (event("a@b"), event("é你🙂"));
    let mut bytes: Vec<u8> = before.into_bytes();
    let at = bytes.iter().position(|byte| *byte == b'@').expect("the mark");
    bytes[at] = 0xff;
    bytes.push(b'\n');
    let script = [hex(&bytes), Step::Raw(after + "\n"), Step::Result("read".into())];
    let task = bed.enqueue(TaskSpec::new("claude").script(&script));
    bed.completed(&task).await;
    assert_eq!(bed.said(&task), "a\u{fffd}bé你🙂");
}

#[tokio::test]
async fn bug_13_no_nul_character_is_sent_and_the_text_around_it_is() {
    let bed = Bed::new().await;
    let task = bed
        .enqueue(TaskSpec::new("claude").script(&[Step::Say("a\0b".into()), Step::Result("ok\0end".into())]));
    bed.completed(&task).await;
    let sent = [bed.bodies(&task, "messages"), bed.bodies(&task, "complete")].concat();
    let sent = serde_json::to_string(&sent).expect("JSON");
    assert!(!sent.contains("\\u0000") && !sent.contains('\0'), "{sent}");
    let output = bed.plane.task(&task).expect("there").result.expect("a report").output;
    assert!(output.starts_with("ok") && output.ends_with("end"), "{output}");
}

#[tokio::test]
async fn bug_19_a_pipe_that_somebody_holds_keeps_no_task() {
    let bed = Bed::new().await;
    let holder = Step::Spawn { ms: 600_000, own_session: true, pid_file: None };
    let script = [holder, Step::Say("x".repeat(60_000)), Step::Result("whole".into()), Step::Exit(0)];
    let task = bed.enqueue(TaskSpec::new("claude").script(&script));
    let row = bed.completed(&task).await;
    assert_eq!(bed.said(&task).len(), 60_000);
    let took = row.ended_at.expect("ended").mono.since(row.started_at.expect("started").mono);
    assert!(took < std::time::Duration::from_secs(10), "{took:?}: the end of the file was waited for");
}
