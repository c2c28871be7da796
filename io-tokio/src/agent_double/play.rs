//! Plays a script over claude's stream-json.

use super::script::{self, Step};
use super::{HOLD, OWN_SESSION};
use serde_json::{Value, json};
use std::io::{self, BufRead, Write};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::Duration;

/// Lines of input that are read ahead.
const READ_AHEAD: usize = 64;
/// What it says when nobody told it anything.
const DEFAULT_ANSWER: &str = "Nothing was asked of this double.";

pub(super) struct Player<W, E> {
    input: Receiver<String>,
    out: W,
    err: E,
    session: String,
    model: String,
    prompt: String,
    last_said: String,
    tools: u32,
    reported: bool,
}

impl<W: Write, E: Write> Player<W, E> {
    pub(super) fn new(
        input: impl BufRead + Send + 'static,
        out: W,
        err: E,
        session: String,
        model: &str,
    ) -> Self {
        // A thread of its own, so that the end of the input is seen as such while nothing is expected from it.
        let (lines, receiver) = sync_channel(READ_AHEAD);
        std::thread::spawn(move || {
            for line in input.lines().map_while(Result::ok) {
                if lines.send(line).is_err() {
                    return;
                }
            }
        });
        Self {
            input: receiver,
            out,
            err,
            session,
            model: model.into(),
            prompt: String::new(),
            last_said: String::new(),
            tools: 0,
            reported: false,
        }
    }

    /// Plays the given script, or the one in the prompt; the exit code.
    pub(super) fn play(mut self, given: Option<&str>) -> io::Result<u8> {
        let mut steps = given.map(script::read).transpose()?;
        if !steps.as_ref().is_some_and(|steps| steps.contains(&Step::NoPrompt)) {
            self.read_prompt();
        }
        if steps.is_none() {
            steps = script::in_prompt(&self.prompt).map(script::read).transpose()?;
        }
        let steps = steps.unwrap_or_else(|| vec![Step::Say(DEFAULT_ANSWER.into())]);
        if !steps.contains(&Step::NoInit) {
            let cwd = std::env::current_dir().unwrap_or_default();
            self.line(&json!({
                "type": "system", "subtype": "init", "session_id": self.session, "model": self.model, "cwd": cwd,
            }))?;
        }
        for step in steps {
            if let Some(code) = self.step(step)? {
                return Ok(code);
            }
            self.out.flush()?;
        }
        if !self.reported {
            let answer = self.last_said.clone();
            self.report(&answer, false)?;
        }
        self.until_eof();
        Ok(0)
    }

    /// The first line is the prompt; none if the input ends before.
    fn read_prompt(&mut self) {
        let Ok(line) = self.input.recv() else { return };
        let message: Value = serde_json::from_str(&line).unwrap_or_default();
        let content = &message["message"]["content"];
        let blocks = content.as_array().map(Vec::as_slice).unwrap_or_default();
        let texts: Vec<_> = blocks.iter().filter_map(|block| block["text"].as_str()).collect();
        self.prompt = content.as_str().map_or_else(|| texts.concat(), Into::into);
    }

    fn step(&mut self, step: Step) -> io::Result<Option<u8>> {
        match step {
            Step::NoInit | Step::NoPrompt => {}
            Step::Say(text) => self.say(&text)?,
            Step::SayEnv(name) => match std::env::var(&name) {
                Ok(value) => self.say(&format!("{name}={value}"))?,
                Err(_) => self.say(&format!("{name} is not set"))?,
            },
            Step::SayPrompt => {
                let prompt = self.prompt.clone();
                self.say(&prompt)?;
            }
            Step::Think(text) => self.assistant(&json!([{ "type": "thinking", "thinking": text }]))?,
            Step::Tool { name, input, output } => {
                self.tools += 1;
                let id = format!("tool-{}", self.tools);
                self.assistant(&json!([{ "type": "tool_use", "id": id, "name": name, "input": input }]))?;
                self.line(&json!({ "type": "user", "session_id": self.session, "message": { "role": "user", "content": [
                    { "type": "tool_result", "tool_use_id": id, "content": output },
                ] } }))?;
            }
            Step::Ask { tool, input } => {
                self.tools += 1;
                let id = format!("ask-{}", self.tools);
                self.line(&json!({ "type": "control_request", "request_id": id, "request": {
                    "subtype": "can_use_tool", "tool_name": tool, "input": input,
                } }))?;
                self.out.flush()?;
                self.await_answer(&id);
            }
            Step::Sleep(ms) => {
                self.out.flush()?;
                std::thread::sleep(Duration::from_millis(ms));
            }
            Step::Stderr(text) => writeln!(self.err, "{text}")?,
            Step::Raw(text) => self.out.write_all(text.as_bytes())?,
            Step::RawHex(digits) => self.out.write_all(&from_hex(&digits)?)?,
            Step::Flood { lines, bytes } => {
                for n in 1..=lines {
                    self.say(&numbered(n, bytes))?;
                }
            }
            Step::Count { until, every, bytes } => {
                for n in 1.. {
                    self.say(&numbered(n, bytes))?;
                    self.out.flush()?;
                    if std::fs::exists(&until)? {
                        break;
                    }
                    std::thread::sleep(Duration::from_millis(every));
                }
            }
            Step::Write { path, text } => std::fs::write(path, text)?,
            Step::IgnoreTerm => {
                for signal in [signal_hook::consts::SIGTERM, signal_hook::consts::SIGINT] {
                    // A handler that only sets a flag: the signal no longer ends the process.
                    signal_hook::flag::register(signal, Arc::new(AtomicBool::new(false)))?;
                }
            }
            Step::HangUntilEof => {
                self.out.flush()?;
                self.until_eof();
            }
            Step::Hang => {
                self.out.flush()?;
                loop {
                    std::thread::park();
                }
            }
            Step::Spawn { ms, own_session, pid_file } => spawn_holder(ms, own_session, pid_file.as_deref())?,
            Step::Shell(text) => {
                self.out.flush()?;
                run_shell(&text)?;
            }
            Step::Result(text) => self.report(&text, false)?,
            Step::Error(text) => self.report(&text, true)?,
            Step::Exit(code) => {
                self.out.flush()?;
                return Ok(Some(code));
            }
        }
        Ok(None)
    }

    fn say(&mut self, text: &str) -> io::Result<()> {
        text.clone_into(&mut self.last_said);
        self.assistant(&json!([{ "type": "text", "text": text }]))
    }

    fn assistant(&mut self, content: &Value) -> io::Result<()> {
        let usage = json!({ "input_tokens": 10, "output_tokens": 5 });
        self.line(&json!({ "type": "assistant", "session_id": self.session, "message": {
            "role": "assistant", "model": self.model, "content": content, "usage": usage,
        } }))
    }

    fn report(&mut self, text: &str, is_error: bool) -> io::Result<()> {
        self.reported = true;
        let subtype = if is_error { "error_during_execution" } else { "success" };
        self.line(&json!({
            "type": "result", "subtype": subtype, "is_error": is_error, "result": text, "session_id": self.session,
            "num_turns": 1, "duration_ms": 1, "usage": { "input_tokens": 10, "output_tokens": 5 },
            "modelUsage": { self.model.as_str(): {
                "inputTokens": 10, "outputTokens": 5, "cacheReadInputTokens": 2, "cacheCreationInputTokens": 1,
            } },
        }))?;
        self.out.flush()
    }

    fn line(&mut self, value: &Value) -> io::Result<()> {
        writeln!(self.out, "{value}")
    }

    /// Waits for the answer to a request; other input, and the end of it, is as good as a yes.
    fn await_answer(&self, id: &str) {
        while let Ok(line) = self.input.recv() {
            let answer: Value = serde_json::from_str(&line).unwrap_or_default();
            if answer["response"]["request_id"] == id {
                return;
            }
        }
    }

    fn until_eof(&self) {
        while self.input.recv().is_ok() {}
    }
}

/// A number with zeros before it. A width of the formatter ends at 65 535.
fn numbered(n: u64, bytes: usize) -> String {
    let digits = n.to_string();
    let mut text = "0".repeat(bytes.saturating_sub(digits.len()));
    text.push_str(&digits);
    text
}

fn spawn_holder(ms: u64, own_session: bool, pid_file: Option<&str>) -> io::Result<()> {
    let mut command = std::process::Command::new(std::env::current_exe()?);
    command.args(["agent-double", HOLD, &ms.to_string()]);
    if own_session {
        command.arg(OWN_SESSION);
    }
    let child = command.stdin(std::process::Stdio::null()).spawn()?;
    pid_file.map_or(Ok(()), |path| std::fs::write(path, child.id().to_string()))
}

fn run_shell(text: &str) -> io::Result<()> {
    let ended = std::process::Command::new("/bin/sh")
        .args(["-c", text])
        .stdin(std::process::Stdio::null())
        .status()?;
    if ended.success() { Ok(()) } else { Err(io::Error::other(format!("the shell text ended with {ended}"))) }
}

fn from_hex(digits: &str) -> io::Result<Vec<u8>> {
    let digits: Vec<_> = digits.chars().filter(|digit| !digit.is_whitespace()).collect();
    let byte = |pair: &[char]| match *pair {
        [high, low] => Some(u8::try_from(high.to_digit(16)? * 16 + low.to_digit(16)?).ok()?),
        _ => None,
    };
    let bytes: Option<_> = digits.chunks(2).map(byte).collect();
    bytes.ok_or_else(|| io::Error::other("raw_hex needs pairs of hex digits"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the double writes to its standard output as JSON lines, and its exit code.
    fn played(given: Option<&[Step]>, prompt: &str) -> (Vec<Value>, u8) {
        let prompt = json!({ "type": "user", "message": { "role": "user", "content": [{ "type": "text", "text": prompt }] } });
        let mut out = Vec::new();
        let script = given.map(script::script_text);
        let code =
            Player::new(io::Cursor::new(format!("{prompt}\n")), &mut out, io::sink(), "s-1".into(), "m")
                .play(script.as_deref())
                .expect("played");
        let lines = String::from_utf8(out).expect("text");
        (lines.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect(), code)
    }

    #[test]
    fn without_a_script_it_announces_itself_says_something_and_succeeds() {
        let (lines, code) = played(None, "do something");
        let kinds: Vec<_> = lines.iter().map(|line| line["type"].as_str().expect("a type")).collect();
        assert_eq!((kinds, code), (vec!["system", "assistant", "result"], 0));
        assert_eq!((&lines[0]["session_id"], &lines[0]["subtype"]), (&json!("s-1"), &json!("init")));
        assert_eq!(lines[2]["result"], lines[1]["message"]["content"][0]["text"]);
    }

    #[test]
    fn a_script_in_the_prompt_is_played_and_one_in_the_environment_goes_first() {
        let prompt = "please\nlongshore-double: [{\"say\":\"from the prompt\"}] thanks";
        let (lines, _) = played(None, prompt);
        assert_eq!(lines[2]["result"], "from the prompt");
        let (lines, _) = played(Some(&[Step::Say("from the environment".into())]), prompt);
        assert_eq!(lines[2]["result"], "from the environment");
    }

    #[test]
    fn tools_are_called_with_matching_results() {
        let tool =
            |n: u32| Step::Tool { name: "Bash".into(), input: json!({ "n": n }), output: format!("out {n}") };
        let (lines, _) = played(Some(&[Step::NoInit, tool(1), tool(2)]), "");
        for pair in lines[..4].chunks(2) {
            let (used, result) = (&pair[0]["message"]["content"][0], &pair[1]["message"]["content"][0]);
            assert_eq!((&used["type"], &result["type"]), (&json!("tool_use"), &json!("tool_result")));
            assert_eq!(used["id"], result["tool_use_id"]);
        }
        assert_ne!(lines[0]["message"]["content"][0]["id"], lines[2]["message"]["content"][0]["id"]);
    }

    #[test]
    fn errors_and_exits_end_the_run_as_told() {
        let (lines, code) = played(Some(&[Step::Error("broken".into())]), "");
        assert_eq!((&lines[1]["is_error"], &lines[1]["result"], code), (&json!(true), &json!("broken"), 0));
        let (lines, code) = played(Some(&[Step::Say("x".into()), Step::Exit(3), Step::Say("y".into())]), "");
        assert_eq!((lines.len(), code), (2, 3));
    }

    #[test]
    fn a_flood_has_as_many_lines_of_that_length() {
        let (lines, _) = played(Some(&[Step::NoInit, Step::Flood { lines: 500, bytes: 40 }]), "");
        assert_eq!(lines.len(), 501);
        assert!(lines[..500].iter().all(|line| {
            line["message"]["content"][0]["text"].as_str().is_some_and(|text| text.len() == 40)
        }));
    }

    #[test]
    fn a_flood_of_one_can_be_longer_than_any_width_of_a_formatter() {
        let (lines, _) = played(Some(&[Step::NoInit, Step::Flood { lines: 1, bytes: 70_000 }]), "");
        let text = lines[0]["message"]["content"][0]["text"].as_str().expect("a text");
        assert!(text.len() == 70_000 && text.ends_with("01"));
    }

    #[test]
    fn a_count_ends_when_its_file_is_there_and_not_before_it_has_begun() {
        let until = tempfile::NamedTempFile::new().expect("a file");
        let count = Step::Count { until: until.path().display().to_string(), every: 1, bytes: 3 };
        let (lines, _) = played(Some(&[Step::NoInit, count]), "");
        assert_eq!(lines.len(), 2);
        assert_eq!(lines[0]["message"]["content"][0]["text"], "001");
        assert_eq!(lines[1]["result"], "001");
    }

    #[test]
    fn raw_bytes_are_written_as_they_are() {
        let mut out = Vec::new();
        let script = r#"["no_init","no_prompt",{"raw":"half a li"},{"raw_hex":"ff00 0a"},{"exit":0}]"#;
        Player::new(io::empty(), &mut out, io::sink(), "s".into(), "m").play(Some(script)).expect("played");
        assert_eq!(out, b"half a li\xff\x00\n");
    }

    #[test]
    fn a_script_that_is_none_is_an_error() {
        let play =
            |script| Player::new(io::empty(), Vec::new(), io::sink(), "s".into(), "m").play(Some(script));
        assert!(play("[{\"dance\":1}]").is_err());
        assert!(play("[{\"raw_hex\":\"f\"}]").is_err());
    }
}
