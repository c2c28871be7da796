//! `longshore trace check`: whether a recorded history keeps to all invariants.

use super::input::Input;
use longshore_core::observe::catalog::{self, Check as Kind};
use longshore_core::observe::needs_rest;
use longshore_core::trace::{Audit, Finding, Near};
use serde_json::{Value, json};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Where a reader finds the invariants.
const DOCUMENT: &str = "docs/invariants.md";

/// What a check came to, for the exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// No rule is broken, as far as the trace allows to say.
    Kept,
    /// A rule is broken.
    Broken,
    /// The trace cannot be read, or nothing in it can be judged.
    Unreadable,
}

impl Verdict {
    /// 0, 1 or 2, in the order above.
    pub const fn code(self) -> u8 {
        match self {
            Self::Kept => 0,
            Self::Broken => 1,
            Self::Unreadable => 2,
        }
    }
}

/// What is asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq, clap::Args)]
pub struct Check {
    /// The trace, the directory of a flight recorder, or - for standard input; may be packed by gzip or zstd
    pub file: PathBuf,
    /// Only this rule, such as I5 or INV-99
    #[arg(long, value_name = "ID", value_parser = rule)]
    pub rule: Option<&'static str>,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// The rule of this id, upper or lower case.
pub(super) fn rule(id: &str) -> Result<&'static str, String> {
    let wanted = id.to_ascii_uppercase();
    if let Some(rule) = catalog::rules().find(|entry| entry.id == wanted) {
        return Ok(rule.id);
    }
    let Some((family, entry)) = catalog::entry(&wanted) else {
        return Err(format!("there is no rule of that id; {DOCUMENT} lists all"));
    };
    let by = |check: &Kind| match check {
        Kind::By(rule) => Some(*rule),
        _ => None,
    };
    let others: Vec<_> = entry.checks.iter().filter_map(by).collect();
    Err(match others.as_slice() {
        [] => format!("that is no rule over a trace, but is held otherwise; see {}", anchor(family.name)),
        others => format!("it is checked as rule {}", others.join(", ")),
    })
}

/// Holds a trace to the rules, and writes what came of it to `out`, and what is wrong with the trace to `err`. A relative path is below `cwd`.
///
/// # Errors
/// If `out` or `err` cannot be written to.
pub fn check(asked: &Check, cwd: &Path, out: &mut dyn Write, err: &mut dyn Write) -> io::Result<Verdict> {
    let mut input = match Input::open(&asked.file, cwd) {
        Ok(input) => input,
        Err(error) => {
            writeln!(err, "error: {error}")?;
            return Ok(Verdict::Unreadable);
        }
    };
    let mut audit = Audit::default();
    while let Some(record) = input.next() {
        if let Err(error) = audit.record(input.place(), record) {
            writeln!(err, "warning: {}: {error}; it was not used", input.source())?;
        }
    }
    input.say(err)?;
    let wanted = |finding: &&Finding| asked.rule.is_none_or(|rule| finding.violation.rule == rule);
    let findings: Vec<&Finding> = audit.findings().iter().filter(wanted).collect();
    let blind: Vec<&str> = audit.blind().filter(|id| asked.rule.is_none_or(|rule| rule == *id)).collect();
    let judged = audit.audited().whole + audit.audited().middle;
    let verdict = match (judged, findings.is_empty()) {
        (0, _) => Verdict::Unreadable,
        (_, true) => Verdict::Kept,
        (_, false) => Verdict::Broken,
    };
    let told = Told { asked, audit: &audit, input: &input, findings, blind, verdict };
    if asked.json {
        writeln!(out, "{}", told.json())?
    } else {
        told.text(out)?
    }
    Ok(verdict)
}

struct Told<'a> {
    asked: &'a Check,
    audit: &'a Audit,
    input: &'a Input,
    findings: Vec<&'a Finding>,
    blind: Vec<&'static str>,
    verdict: Verdict,
}

impl Told<'_> {
    fn text(&self, out: &mut dyn Write) -> io::Result<()> {
        let (report, audited) = (self.audit.report(), self.audit.audited());
        for finding in &self.findings {
            violation(finding, self.input, out)?;
        }
        let steps = report.steps;
        writeln!(out, "segments    {}, lives from their beginning: {}", report.segments, report.lives)?;
        writeln!(
            out,
            "steps       {steps}: {} held to all rules, {} to those that need no beginning, {} to none",
            audited.whole,
            audited.middle,
            steps.saturating_sub(audited.whole + audited.middle)
        )?;
        if report.gaps > 0 {
            writeln!(out, "gaps        {}, with {} steps", report.gaps, report.lost)?;
        }
        if audited.divergences > 0 {
            let all: Vec<_> = audited.diverged.iter().map(ToString::to_string).collect();
            writeln!(
                out,
                "diverged    {} times, at step {}: from there up to the next checkpoint the state is not known",
                audited.divergences,
                all.join(", ")
            )?;
        }
        if !self.blind.is_empty() {
            writeln!(
                out,
                "not checked {} rules, or not all along: {}",
                self.blind.len(),
                self.blind.join(" ")
            )?;
        }
        let rest: Vec<_> = self.at_rest().collect();
        if !rest.is_empty() {
            writeln!(out, "never       {}: needs a daemon at rest, which no trace shows", rest.join(" "))?;
        }
        let result = match self.verdict {
            Verdict::Kept if self.blind.is_empty() => "no rule is broken".to_owned(),
            Verdict::Kept => "no rule is broken, as far as the trace allows to check".to_owned(),
            Verdict::Broken if audited.more > 0 => {
                format!("{} violations, and {} more", self.findings.len(), audited.more)
            }
            Verdict::Broken => format!("{} violations", self.findings.len()),
            Verdict::Unreadable => format!("nothing could be checked: {}", self.why_not()),
        };
        writeln!(out, "result      {result}")
    }

    fn why_not(&self) -> &'static str {
        if self.audit.audited().divergences > 0 {
            "this core does something else than was recorded; make a trace of this core by `replay --rebase -o`"
        } else {
            "no segment begins with a daemon's creation or has a checkpoint that can be used"
        }
    }

    fn at_rest(&self) -> impl Iterator<Item = &'static str> {
        let asked = self.asked.rule;
        let rules = catalog::rules().map(|entry| entry.id);
        rules.filter(|id| needs_rest(id)).filter(move |id| asked.is_none_or(|rule| rule == *id))
    }

    fn json(&self) -> Value {
        let (report, audited) = (self.audit.report(), self.audit.audited());
        let violations: Vec<Value> = self.findings.iter().map(|finding| self.finding(finding)).collect();
        let troubles: Vec<Value> = self
            .input
            .troubles()
            .first()
            .iter()
            .map(|trouble| {
                let (line, byte) = (trouble.at.line, trouble.at.byte);
                json!({ "file": self.input.name(trouble.at), "line": line, "byte": byte, "what": trouble.what.to_string() })
            })
            .collect();
        json!({
            "result": match self.verdict {
                Verdict::Kept => "kept",
                Verdict::Broken => "broken",
                Verdict::Unreadable => "unreadable",
            },
            "segments": report.segments,
            "lives": report.lives,
            "steps": report.steps,
            "held_to_all": audited.whole,
            "held_from_the_middle": audited.middle,
            "gaps": report.gaps,
            "lost": report.lost,
            "diverged": audited.diverged,
            "violations": violations,
            "more_violations": audited.more,
            "not_checked": self.blind,
            "never_checked": self.at_rest().collect::<Vec<_>>(),
            "troubles": troubles,
            "more_troubles": self.input.troubles().more(),
        })
    }

    fn finding(&self, finding: &Finding) -> Value {
        let Finding { life, at, violation, recorded_only, near } = finding;
        let (says, read) = catalog::entry(violation.rule)
            .map_or(("", DOCUMENT.to_owned()), |(family, entry)| (entry.says, anchor(family.name)));
        let near: Vec<Value> = near
            .iter()
            .map(|Near { n, at, text }| json!({ "step": n, "ms": at.as_millis(), "what": text }))
            .collect();
        json!({
            "rule": violation.rule,
            "says": says,
            "step": violation.step,
            "life": life,
            "file": self.input.name(*at),
            "line": at.line,
            "story": violation.story,
            "recorded_only": recorded_only,
            "read": read,
            "steps": near,
        })
    }
}

fn violation(finding: &Finding, input: &Input, out: &mut dyn Write) -> io::Result<()> {
    let Finding { life, at, violation, recorded_only, near } = finding;
    writeln!(out, "{} at step {} of life {life}: {}", violation.rule, violation.step, violation.story)?;
    if let Some((family, entry)) = catalog::entry(violation.rule) {
        writeln!(out, "  rule      {}", entry.says)?;
        writeln!(out, "  read      {}, {}", anchor(family.name), entry.id)?;
    }
    writeln!(out, "  stands in {}, line {}", input.name(*at), at.line)?;
    if *recorded_only {
        writeln!(out, "  recorded  the effects of this step are not those of this core")?;
    }
    for Near { n, at, text } in near {
        let ms = at.as_millis();
        writeln!(out, "  {n:>9} {:>8}.{:03} s  {text}", ms / 1000, ms % 1000)?;
    }
    writeln!(out)
}

/// The part of the document that tells of a family.
fn anchor(family: &str) -> String {
    let slug: String = family
        .chars()
        .filter_map(|c| match c {
            ' ' => Some('-'),
            c if c.is_alphanumeric() || c == '-' => Some(c.to_ascii_lowercase()),
            _ => None,
        })
        .collect();
    format!("{DOCUMENT}#{slug}")
}
