//! How the tasks get on: a moving line for each in a terminal, a line for each change elsewhere. On standard error.

use super::tell;
use crate::local::speech::{call, one_line};
use crate::plane::scenario::Scenario;
use crate::plane::{Message, Plane, State, Task};
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use longshore_core::id::TaskId;
use std::fmt::Write as _;
use std::io::{self, IsTerminal};
use std::time::Instant;

/// Characters of an agent's last words.
const WORDS: usize = 72;

/// What can be seen of a task at a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Glance {
    state: State,
    messages: usize,
    words: String,
}

impl Glance {
    /// The task as it is now.
    pub(super) fn of(plane: &Plane, id: &TaskId) -> Self {
        let said = plane.transcript(id);
        let row = plane.task(id);
        Self {
            state: row.map_or(State::Queued, |row| row.state),
            messages: said.len(),
            words: row.and_then(last_words).unwrap_or_else(|| words(said)),
        }
    }
}

/// What a task ended with.
fn last_words(row: &Task) -> Option<String> {
    let text = match row.state {
        State::Completed => row.result.as_ref().map(|result| &*result.output),
        State::Failed => row.error.as_deref().and_then(|error| error.lines().next()),
        State::Cancelled if row.cancel_acked => Some("its agent was ended"),
        _ => None,
    };
    text.map(|text| one_line(text, WORDS))
}

/// The last thing that an agent said or did.
fn words(said: &[Message]) -> String {
    let of = |message: &Message| match &*message.kind {
        "text" | "thinking" => {
            let last = message.content.as_deref()?.lines().rfind(|line| !line.trim().is_empty())?;
            Some(one_line(last, WORDS))
        }
        "tool_use" => message.tool.as_deref().map(|tool| call(tool, message.input.as_deref())),
        _ => None,
    };
    said.iter().rev().find_map(of).unwrap_or_default()
}

/// The display.
pub(super) struct Progress {
    names: Vec<&'static str>,
    ends: Vec<State>,
    shown: Vec<Glance>,
    begun: Instant,
    /// In a terminal.
    bars: Option<Vec<ProgressBar>>,
}

impl Progress {
    /// An empty display of these tasks.
    pub(super) fn new(scenarios: &[Scenario]) -> Self {
        let queued = Glance { state: State::Queued, messages: 0, words: String::new() };
        let bars = io::stderr().is_terminal().then(|| {
            let all = MultiProgress::with_draw_target(ProgressDrawTarget::stderr());
            let bar = |scenario: &Scenario| {
                let bar = all.add(ProgressBar::new_spinner().with_style(style(State::Queued, true)));
                bar.set_prefix(scenario.name);
                bar.tick();
                bar
            };
            scenarios.iter().map(bar).collect()
        });
        Self {
            names: scenarios.iter().map(|scenario| scenario.name).collect(),
            ends: scenarios.iter().map(|scenario| scenario.ends).collect(),
            shown: vec![queued; scenarios.len()],
            begun: Instant::now(),
            bars,
        }
    }

    /// What is shown now.
    pub(super) fn shown(&self) -> &[Glance] {
        &self.shown
    }

    /// Shows how it is now.
    pub(super) fn show(&mut self, now: Vec<Glance>) {
        for (n, (new, old)) in now.iter().zip(&self.shown).enumerate() {
            if new == old {
                continue;
            }
            match &self.bars {
                Some(bars) => paint(&bars[n], new, new.state == self.ends[n]),
                None if new.state != old.state => tell(&self.line(n, new)),
                None => {}
            }
        }
        self.shown = now;
    }

    /// Moves the spinners on.
    pub(super) fn tick(&self) {
        self.bars.iter().flatten().filter(|bar| !bar.is_finished()).for_each(ProgressBar::tick);
    }

    fn line(&self, n: usize, glance: &Glance) -> String {
        let at = self.begun.elapsed().as_secs_f64();
        let phase = phase(glance.state, glance.state == self.ends[n]);
        let mut line = format!("{at:6.2}s  {:<10} {phase}", self.names[n]);
        if !glance.words.is_empty() {
            let _ = write!(line, ": {}", glance.words);
        }
        line
    }
}

impl Drop for Progress {
    /// Leaves the lines as they are.
    fn drop(&mut self) {
        if let Some(bars) = &self.bars {
            bars.iter().for_each(ProgressBar::abandon);
            // The cursor stands at the end of the last of them.
            tell("");
        }
    }
}

fn paint(bar: &ProgressBar, glance: &Glance, as_it_should: bool) {
    bar.set_style(style(glance.state, as_it_should));
    bar.set_message(glance.words.clone());
    if glance.state.is_terminal() {
        bar.abandon();
    } else {
        bar.tick();
    }
}

fn style(state: State, as_it_should: bool) -> ProgressStyle {
    let template = match (state, as_it_should) {
        (State::Completed | State::Failed | State::Cancelled, true) => {
            "  {mark:.green} {prefix:10.bold} {phase:10.green} {wide_msg}"
        }
        (State::Completed | State::Failed | State::Cancelled, false) => {
            "  {mark:.red} {prefix:10.bold} {phase:10.red} {wide_msg}"
        }
        (State::Running, _) => "  {spinner:.cyan} {prefix:10.bold} {phase:10.cyan} {wide_msg:.dim}",
        _ => "  {spinner:.dim} {prefix:10.bold} {phase:10.dim} {wide_msg:.dim}",
    };
    let phase = if state.is_preparing() { "preparing" } else { phase(state, as_it_should) };
    let mark = if as_it_should { "✔" } else { "✘" };
    ProgressStyle::with_template(template)
        .expect("the templates are good")
        .with_key("phase", write(phase))
        .with_key("mark", write(mark))
}

/// The state in words. What looks like a failure of the demo is said to be none.
fn phase(state: State, as_it_should: bool) -> &'static str {
    match (state, as_it_should) {
        (State::Failed, true) => "failed, as meant",
        (State::Cancelled, true) => "cancelled, as meant",
        _ => state.as_str(),
    }
}

/// A part of a line that is always the same.
fn write(text: &'static str) -> impl Fn(&ProgressState, &mut dyn std::fmt::Write) + Clone + Send + Sync {
    // What is written to is a string, which takes everything.
    move |_, out| out.write_str(text).unwrap_or_default()
}
