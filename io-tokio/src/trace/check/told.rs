//! What a check came to, as text for a person and as JSON for a program.

use super::{Check, DOCUMENT, Verdict, anchor};
use crate::trace::input::Input;
use crate::trace::replay::why_nothing;
use crate::trace::words::count;
use longshore_core::observe::catalog;
use longshore_core::observe::needs_rest;
use longshore_core::trace::{Audit, Finding, Near, StepNumber};
use serde_json::{Value, json};
use std::io::{self, Write};

/// Rules that are named without being asked for, at most.
const FEW: usize = 8;

/// What came of a check.
pub(super) struct Told<'a> {
    pub(super) asked: &'a Check,
    pub(super) audit: &'a Audit,
    pub(super) input: &'a Input,
    pub(super) findings: Vec<&'a Finding>,
    pub(super) blind: Vec<&'static str>,
    pub(super) verdict: Verdict,
}

impl Told<'_> {
    pub(super) fn text(&self, out: &mut dyn Write) -> io::Result<()> {
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
            steps.saturating_sub(audited.judged())
        )?;
        if report.imported {
            writeln!(
                out,
                "imported    {} from a log of another daemon: held to the rules that need no more than a log tells",
                count(audited.logged, "step", "steps")
            )?;
        }
        if report.gaps > 0 {
            writeln!(out, "gaps        {}, with {}", report.gaps, count(report.lost, "step", "steps"))?;
        }
        if audited.unrecorded > 0 {
            writeln!(
                out,
                "unrecorded  {} no effects that can be read: it is what this core does that was judged",
                count(audited.unrecorded, "of them has", "of them have")
            )?;
        }
        if audited.divergences > 0 {
            writeln!(
                out,
                "diverged    {}, at {}: from there up to the next checkpoint the state is not known",
                count(audited.divergences, "time", "times"),
                places(&audited.diverged, report.all_lives)
            )?;
        }
        let judged = self.verdict != Verdict::Unreadable;
        if judged && !self.blind.is_empty() {
            let rules = count(self.blind.len(), "rule", "rules");
            if self.asked.verbose || self.blind.len() <= FEW {
                writeln!(out, "not checked {rules}, or not all along: {}", self.blind.join(" "))?;
            } else {
                writeln!(out, "not checked {rules}, or not all along; `--verbose` names them")?;
            }
        }
        let rest: Vec<_> = self.at_rest().collect();
        if judged && !rest.is_empty() {
            writeln!(out, "never       {}: needs a daemon at rest, which no trace shows", rest.join(" "))?;
        }
        let result = match self.verdict {
            Verdict::Kept if self.blind.is_empty() && !self.is_partial() => "no rule is broken".to_owned(),
            Verdict::Kept => "no rule is broken, as far as the trace allows to check".to_owned(),
            Verdict::Broken if audited.more > 0 => {
                let found = count(self.findings.len(), "violation", "violations");
                format!("{found}, and {} more", audited.more)
            }
            Verdict::Broken => count(self.findings.len(), "violation", "violations"),
            Verdict::Unreadable => format!("nothing could be checked: {}", self.why_not()),
        };
        writeln!(out, "result      {result}")
    }

    /// Whether something of the trace is lost.
    fn is_partial(&self) -> bool {
        self.audit.report().gaps > 0 || self.input.troubles().lose()
    }

    fn why_not(&self) -> String {
        if let Some(rule) = self.asked.rule.filter(|_| self.audit.audited().judged() > 0) {
            return if needs_rest(rule) {
                format!("{rule} needs a daemon at rest, which no trace shows")
            } else {
                format!("{rule} needs more than this trace has")
            };
        }
        let why = if self.audit.report().imported && self.audit.report().steps == 0 {
            "the trace was imported, and the log tells of no step"
        } else if self.audit.audited().divergences > 0 {
            "this core does something else than was recorded; make a trace of this core by `replay --rebase -o`"
        } else {
            let report = self.audit.report();
            why_nothing(report.steps, report.from_checkpoint.is_some())
        };
        why.to_owned()
    }

    fn at_rest(&self) -> impl Iterator<Item = &'static str> {
        let asked = self.asked.rule;
        let rules = catalog::rules().map(|entry| entry.id);
        rules.filter(|id| needs_rest(id)).filter(move |id| asked.is_none_or(|rule| rule == *id))
    }

    pub(super) fn json(&self) -> Value {
        let (report, audited) = (self.audit.report(), self.audit.audited());
        let violations: Vec<Value> = self.findings.iter().map(|finding| self.finding(finding)).collect();
        let troubles: Vec<Value> = self
            .input
            .troubles()
            .first()
            .iter()
            .map(|trouble| {
                let (line, byte) = (trouble.at.line, trouble.at.byte);
                json!({
                    "file": self.input.name(trouble.at),
                    "line": line,
                    "byte": byte,
                    "life": trouble.life,
                    "what": trouble.what.to_string(),
                })
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
            "imported": report.imported,
            "held_as_a_log": audited.logged,
            "gaps": report.gaps,
            "lost": report.lost,
            "held_as_this_core_does": audited.unrecorded,
            "diverged": audited
                .diverged
                .iter()
                .map(|(life, step)| json!({ "life": life, "step": step }))
                .collect::<Vec<_>>(),
            "violations": violations,
            "more_violations": audited.more,
            "not_checked": self.blind,
            "never_checked": self.at_rest().collect::<Vec<_>>(),
            "partial": self.is_partial(),
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

/// Steps in words: with their lives if there is more than one.
fn places(steps: &[(u64, StepNumber)], lives: u64) -> String {
    let numbers =
        |steps: &[(u64, StepNumber)]| steps.iter().map(|(_, n)| n.to_string()).collect::<Vec<_>>().join(", ");
    let of_one = |steps: &[(u64, StepNumber)]| {
        let of = if lives > 1 { format!(" of life {}", steps[0].0) } else { String::new() };
        format!("step {}{of}", numbers(steps))
    };
    steps.chunk_by(|a, b| a.0 == b.0).map(of_one).collect::<Vec<_>>().join(", ")
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
