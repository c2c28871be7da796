//! `longshore trace render`: a trace as a picture.
//!
//! What is drawn is a [`Drawing`], which knows nothing of traces and nothing of forms: [`of_story()`] makes one of a trace's story, [`svg()`] makes
//! a picture for documents of it, [`page()`] a page to look around in.

mod axis;
pub mod drawing;
pub mod look;
pub mod of_story;
mod page;
mod stack;
mod svg;
mod text;
pub mod window;

#[cfg(test)]
mod specimen;
#[cfg(test)]
mod tests;

pub use page::page;
pub use svg::svg;
pub use text::Text;

use super::destination::Destination;
use super::input::{Input, is_stdin};
use super::words::count;
use crate::cli::Exit;
use drawing::Drawing;
use longshore_core::story::Story;
use longshore_core::trace::Audit;
use of_story::{Broken, Steps, base, of_story};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use window::{Moment, Part, window};

/// What is asked for.
#[derive(Clone, Debug, PartialEq, Eq, clap::Args)]
#[command(
    after_help = "Example: longshore trace render run.jsonl --from 90s --to 5m -o part.svg\nExit code: 0 if the picture is there, else 2."
)]
pub struct Render {
    /// The trace, the directory of a flight recorder or a tar archive of it, or - for standard input; may be packed by gzip or zstd
    pub file: PathBuf,
    /// The picture, a file that is not there yet: .svg for documents, .html for a page to look around in
    #[arg(short, long = "output", alias = "out", value_name = "FILE")]
    pub out: PathBuf,
    /// Only from here on: a step (59, or 2/59 in life 2), a time on the axis of the picture (90s, 5m, 1h30m), or a time as `trace show` has it
    /// (0:01:30.000). Default: the beginning
    #[arg(long, value_name = "STEP|TIME", allow_hyphen_values = true)]
    pub from: Option<Moment>,
    /// Only up to here, in the same way. Default: the end
    #[arg(long, value_name = "STEP|TIME", allow_hyphen_values = true)]
    pub to: Option<Moment>,
    /// Lanes of each group in an SVG picture at most; a page has them all
    #[arg(long, value_name = "N", default_value_t = 40, allow_hyphen_values = true)]
    pub lanes: usize,
}

/// What a picture is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Svg,
    Page,
}

impl Form {
    /// By the extension of the file's name, in any case.
    fn of(path: &Path) -> Option<Self> {
        match path.extension()?.to_str()?.to_ascii_lowercase().as_str() {
            "svg" => Some(Self::Svg),
            "html" | "htm" => Some(Self::Page),
            _ => None,
        }
    }
}

/// Draws a trace, and says to `out` what is drawn, and to `err` what went wrong. Relative paths are below `cwd`. Ends with 0 if the picture is there,
/// else with 2.
///
/// # Errors
/// If `out` or `err` cannot be written to.
pub fn render(asked: &Render, cwd: &Path, out: &mut dyn Write, err: &mut dyn Write) -> io::Result<Exit> {
    const FAILED: Exit = Exit::Code(2);
    let Some(form) = Form::of(&asked.out) else {
        let name = asked.out.display();
        writeln!(
            err,
            "error: {name}: the form of the picture is not known; name a file that ends in .svg or .html"
        )?;
        return Ok(FAILED);
    };
    // Before the work, and so that the picture never replaces the trace.
    let mut file = match Destination::create(Some(&asked.out), cwd) {
        Ok(file) => file,
        Err(error) => {
            writeln!(err, "error: {error}")?;
            return Ok(FAILED);
        }
    };
    let mut input = match Input::open(&asked.file, cwd) {
        Ok(input) => input,
        Err(error) => {
            writeln!(err, "error: {error}")?;
            return Ok(FAILED);
        }
    };
    let name =
        asked.file.file_name().map_or_else(|| "trace".into(), |name| name.to_string_lossy().into_owned());
    let (drawing, base) = draw(if is_stdin(&asked.file) { "trace" } else { &name }, &mut input);
    input.say(err)?;
    let (drawing, cut) = if asked.from.is_some() || asked.to.is_some() {
        match window(drawing, base, asked.from, asked.to) {
            Ok(part) => {
                let cut = left_out(&part);
                (part.drawing, cut)
            }
            Err(error) => {
                // All of it, not the segment that was read last.
                let stdin = Path::new("standard input");
                let file = if is_stdin(&asked.file) { stdin } else { &asked.file };
                writeln!(err, "error: {}: {error}", file.display())?;
                return Ok(FAILED);
            }
        }
    } else {
        (drawing, String::new())
    };
    let picture = match form {
        Form::Svg => svg(&drawing, asked.lanes),
        Form::Page => page(&drawing),
    };
    match file.write(picture.as_bytes()).and_then(|()| file.finish()) {
        Ok(name) => {
            let lanes = count(drawing.lanes().count(), "lane", "lanes");
            let steps = count(drawing.steps.len(), "step", "steps");
            let judged = count(drawing.judged, "was", "were");
            let broken = count(drawing.violations.len(), "violation", "violations");
            writeln!(out, "{name}: {lanes}, {steps}; {judged} held to the rules, {broken}{cut}")?;
            Ok(Exit::Code(0))
        }
        Err(error) => {
            writeln!(err, "error: {error}")?;
            Ok(FAILED)
        }
    }
}

/// What is not in a part of a drawing, in words.
fn left_out(part: &Part) -> String {
    let steps = count(part.steps, "step", "steps");
    let violations = count(part.violations, "violation", "violations");
    let lanes = count(part.lanes, "lane", "lanes");
    let bars = count(part.reach_out, "bar reaches", "bars reach");
    format!("; outside of the window are {steps}, {violations} and all of {lanes}; {bars} out of it")
}

/// Reads a trace to its end, and draws it. Also returns where the axis has its 0, in milliseconds after the beginning of the first life.
fn draw(title: &str, input: &mut Input) -> (Drawing, u64) {
    let (mut builder, mut steps, mut audit) = (Story::builder(), Steps::default(), Audit::default());
    while let Some(record) = input.next() {
        builder.record(&record);
        steps.record(&record);
        // A record of no use to the rules may be of use to the story: what could not be judged is said by the number of steps.
        let _ = audit.record(input.place(), record);
    }
    let broken: Vec<_> = audit
        .findings()
        .iter()
        .map(|found| Broken {
            life: usize::try_from(found.life.saturating_sub(1)).unwrap_or(usize::MAX),
            n: found.violation.step,
            rule: found.violation.rule,
            story: found.violation.story.clone(),
        })
        .collect();
    let audited = audit.audited();
    let mut facts: Vec<(Text, Text)> = Vec::new();
    let mut fact = |name: &str, value: u64| facts.push((name.into(), value.to_string().into()));
    fact("steps held to all rules", audited.whole);
    for (name, value) in [
        ("held to rules that need no beginning", audited.middle),
        ("held to rules that need no more than a log", audited.logged),
        ("steps where this core does something else", audited.divergences),
        ("violations that are not drawn", audited.more),
    ] {
        if value > 0 {
            fact(name, value);
        }
    }
    fact("violations", broken.len() as u64);
    let story = builder.finish();
    let base = base(&story, &steps);
    (Drawing { judged: audited.judged(), ..of_story(title, &story, steps, &broken, facts) }, base)
}
