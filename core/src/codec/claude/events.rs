//! From a line of stdout to what it means.

use super::Run;
use super::control;
use super::verdict::Verdict;
use crate::codec::json::{self, Json};
use crate::codec::lines::Line;
use crate::codec::message::{AgentMessage, Output, cut};

/// How many lines that are no events are shown in the daemon's log; the others are only counted.
const MAX_NOISE_LOGGED: u64 = 10;

/// Bytes of such a line that are shown.
const MAX_NOISE_SHOWN: usize = 200;

/// Bytes of a log entry.
const MAX_LOG: usize = 1024;

impl Run {
    /// A line of stdout. Each is judged alone.
    pub(super) fn line(&mut self, line: &Line<'_>, out: &mut Vec<Output>) {
        match line {
            Line::Oversized { bytes } => {
                self.oversized = self.oversized.saturating_add(1);
                let text = format!(
                    "The agent wrote a line of {bytes} bytes, which is too long to read; it was skipped."
                );
                out.push(Output::Message(AgentMessage::Note { text }));
            }
            Line::Text(line) => {
                let mut strange = false;
                let content = json::values_of_line(line, |value| strange |= !self.event(value, out));
                if strange || content.noise {
                    self.noise = self.noise.saturating_add(1);
                    if self.noise <= MAX_NOISE_LOGGED {
                        let shown = cut(line, MAX_NOISE_SHOWN);
                        let text = format!("no event, {} bytes: {shown}", line.len());
                        out.push(Output::Log { level: "warn".to_owned(), text });
                    }
                }
            }
        }
    }

    /// Takes one event; gives whether it was one. Events of unknown types are, and mean nothing.
    fn event(&mut self, event: Json<'_>, out: &mut Vec<Output>) -> bool {
        let [kind, session, model] = event.fields(["type", "session_id", "model"]);
        let Some(kind) = kind.and_then(Json::string) else { return false };
        if let Some(model) = model.and_then(Json::string) {
            self.usage.named(&model);
        }
        let session = session.and_then(Json::string);
        match kind.as_ref() {
            "system" => {
                self.session.named(&session.unwrap_or_default());
                // Hooks are reported before the prompt is read, the start of the turn after it.
                if matches!(event.text("subtype").as_ref(), "init" | "") {
                    self.session.prompt_taken();
                }
            }
            "assistant" => {
                self.session.named(&session.unwrap_or_default());
                self.assistant(event, out);
            }
            "user" => self.user(event, out),
            "result" => self.result(event, session.as_deref(), out),
            "log" => {
                if let Some(log) = event.field("log") {
                    let level = cut(&log.text("level"), 16).to_owned();
                    let text = cut(&log.text("message"), MAX_LOG).to_owned();
                    out.push(Output::Log { level, text });
                }
            }
            // After its result the agent has no stdin any more.
            "control_request" if self.verdict.is_none() => out.push(Output::Write(control::answer(event))),
            _ => {}
        }
        if matches!(kind.as_ref(), "system" | "assistant" | "user") {
            out.extend(self.session.take_announcement().map(Output::Session));
        }
        true
    }

    fn result(&mut self, event: Json<'_>, session: Option<&str>, out: &mut Vec<Output>) {
        if let Some(id) = session {
            self.session.settled(id);
        }
        let [model, by_model, sum] = event.fields(["model", "modelUsage", "usage"]);
        self.usage.of_result(model, by_model, sum);
        if self.verdict.is_none() {
            out.push(Output::Result);
        }
        // Of two results the later one is the agent's last word.
        self.verdict = Some(Verdict::of(event));
    }
}
