//! Whatever claude writes: the codec says the same if it is saved, restored and fed from where it left off, and completes a
//! run only if the agent said so.
//!
//! The first two bytes say where the stream is cut.
#![no_main]

use libfuzzer_sys::fuzz_target;
use longshore_core::codec::{
    AgentCodec, Codec, Family,
    options::Options,
    outcome::{EndedBy, Exit, Status},
};

fuzz_target!(|data: &[u8]| {
    let [high, low, stream @ ..] = data else { return };
    let cut = usize::from(u16::from_be_bytes([*high, *low])) % (stream.len() + 1);

    let (mut whole, mut said) = (Family::Claude.start(&Options::default()), Vec::new());
    whole.stdout(stream, &mut said);
    whole.stdout_end(&mut said);

    let (mut codec, mut again) = (Family::Claude.start(&Options::default()), Vec::new());
    codec.stdout(&stream[..cut], &mut again);
    let state = serde_json::to_string(&codec).expect("a codec is plain data");
    let mut codec: AgentCodec = serde_json::from_str(&state).expect("it reads what it wrote");
    let from = usize::try_from(codec.consumed()).expect("no more than the stream has");
    codec.stdout(&stream[from..], &mut again);
    codec.stdout_end(&mut again);
    assert_eq!(said, again);

    let has_result = whole.has_result();
    let outcome = whole.finish(Exit::code(0), EndedBy::Itself);
    assert_eq!(outcome, codec.finish(Exit::code(0), EndedBy::Itself));
    assert!(has_result || outcome.status != Status::Completed, "completed without a result");
});
