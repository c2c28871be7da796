//! `longshore trace check`: whether a recorded history keeps to all invariants.

#[cfg(test)]
mod imported_tests;
mod told;

use super::input::Input;
use super::plain;
use longshore_core::observe::catalog::{self, Check as Kind};
use longshore_core::trace::{Audit, Finding};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use told::Told;

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
#[command(
    after_help = "Example: longshore trace check run.jsonl --rule INV-103\nExit code: 0 if no rule is broken, as far as can be checked; 1 if one is; 2 if nothing could be judged."
)]
pub struct Check {
    /// The trace, the directory of a flight recorder or a tar archive of it, or - for standard input; may be packed by gzip or zstd
    pub file: PathBuf,
    /// Only this rule, such as I5 or INV-99; docs/invariants.md lists all
    #[arg(long, value_name = "ID", value_parser = rule)]
    pub rule: Option<&'static str>,
    /// Name the rules that were not held to all of the trace
    #[arg(short, long)]
    pub verbose: bool,
    /// Print one JSON object, which names them too
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
    let judged = audit.audited().judged() > 0 && asked.rule.is_none_or(|rule| audit.has_held(rule));
    let verdict = match (findings.is_empty(), judged) {
        (false, _) => Verdict::Broken,
        (true, true) => Verdict::Kept,
        (true, false) => Verdict::Unreadable,
    };
    let told = Told { asked, audit: &audit, input: &input, findings, blind, verdict };
    if asked.json {
        writeln!(out, "{}", plain::json(&told.json()))?;
    } else {
        told.text(out)?;
    }
    Ok(verdict)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::input::tests::recorded;
    use crate::trace::plain::Plain;
    use longshore_core::effect::Effect;
    use longshore_core::id::OpId;
    use longshore_core::trace::{Record, Step, encode};
    use serde_json::{Value, json};
    use std::fs;
    use std::io::Cursor;
    use tempfile::TempDir;

    fn run(text: &str, asked: &Check) -> (Verdict, String, String) {
        let dir = TempDir::new().expect("temp");
        fs::write(dir.path().join("t"), text).expect("writes");
        let asked = Check { file: "t".into(), ..asked.clone() };
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let verdict = check(&asked, dir.path(), &mut out, &mut err).expect("writes to memory");
        let text = |bytes| String::from_utf8(bytes).expect("text");
        (verdict, text(out), text(err))
    }

    /// A trace in which an agent is launched twice, and the step of that.
    fn violating() -> (String, u64) {
        let text = recorded(6, 400);
        let (mut lines, mut at) = (Vec::new(), None);
        for mut record in Input::of("it", Cursor::new(text)).expect("a trace") {
            if let Record::Step(Step { n, effects: Some(effects), .. }) = &mut record
                && at.is_none()
            {
                let launch = effects.iter().find_map(|effect| match effect {
                    Effect::Run { call, .. } => Some(call.clone()),
                    _ => None,
                });
                at = launch.is_some().then_some(*n);
                effects.extend(launch.map(|call| Effect::Run { op: OpId(9_000_000), call }));
            }
            encode::record(&mut lines, &record).expect("encodes");
        }
        (String::from_utf8(lines).expect("text"), at.expect("an agent is launched"))
    }

    #[test]
    fn a_good_trace_ends_with_0_and_says_what_was_checked() {
        let (verdict, out, err) = run(&recorded(6, 200), &Check::default());
        assert_eq!((verdict, verdict.code(), err.as_str()), (Verdict::Kept, 0, ""), "{out}");
        assert!(out.contains(
            "steps       201: 201 held to all rules, 0 to those that need no beginning, 0 to none\n"
        ));
        assert!(out.ends_with("result      no rule is broken\n"), "{out}");
    }

    #[test]
    fn a_violation_ends_with_1_and_says_where_what_and_what_to_read() {
        let (text, n) = violating();
        let (verdict, out, _) = run(&text, &Check::default());
        assert_eq!((verdict, verdict.code()), (Verdict::Broken, 1), "{out}");
        assert!(out.contains(&format!(" at step {n} of life 1: ")), "{out}");
        for part in [
            "  rule      ",
            "  read      docs/invariants.md#",
            "  stands in ",
            "  recorded  the effects of this step are not those of this core\n",
            "; run ",
        ] {
            assert!(out.contains(part), "{part}: {out}");
        }
        let (_, json, _) = run(&text, &Check { json: true, ..Check::default() });
        let told: Value = serde_json::from_str(&json).expect("JSON");
        assert_eq!(told["result"], "broken");
        let first = &told["violations"][0];
        assert_eq!((&first["step"], &first["life"]), (&json!(n), &json!(1)));
        assert_eq!(
            first["steps"].as_array().and_then(|all| all.last()).map(|last| &last["step"]),
            Some(&json!(n))
        );
        let rule = rule(first["rule"].as_str().expect("an id")).expect("a rule");
        assert_eq!(run(&text, &Check { rule: Some(rule), ..Check::default() }).0, Verdict::Broken);
        assert_eq!(run(&text, &Check { rule: Some("I5"), ..Check::default() }).0, Verdict::Kept);
    }

    #[test]
    fn what_begins_in_the_middle_is_checked_as_far_as_the_rules_allow() {
        let text = recorded(6, 200);
        let from = text.find("{\"rec\":\"checkpoint\"").expect("a checkpoint");
        let header = text.lines().next().expect("a header");
        let n = text[from..].split("\"n\":").nth(1).and_then(|n| n.split(',').next()).expect("a step");
        let header = header.replacen(
            "\"from\":null",
            &format!("\"from\":{{\"n\":{n},\"h\":\"0000000000000000\"}}"),
            1,
        );
        let (verdict, out, err) = run(&format!("{header}\n{}", &text[from..]), &Check::default());
        assert_eq!((verdict, err.as_str()), (Verdict::Kept, ""), "{out}");
        assert!(out.contains(" 0 held to all rules, "), "{out}");
        assert!(out.contains(" rules, or not all along; `--verbose` names them\n"), "{out}");
        assert!(out.ends_with("no rule is broken, as far as the trace allows to check\n"), "{out}");
        let asked = Check { verbose: true, ..Check::default() };
        let (_, out, _) = run(&format!("{header}\n{}", &text[from..]), &asked);
        assert!(out.contains("\nnot checked ") && out.contains(" I1 "), "{out}");
    }

    #[test]
    fn lives_are_named_where_there_is_more_than_one() {
        // Each life has a checkpoint that is not of this core.
        let life = |seed| {
            let text = recorded(seed, 60);
            let (before, after) = text.split_once("\"h\":\"").expect("a digest");
            format!("{before}\"h\":\"{:016x}{}", 1, &after[16..])
        };
        let (_, one, _) = run(&life(6), &Check::default());
        assert!(one.contains("diverged    1 time, at step 50: "), "{one}");
        let all = [6, 7, 8].map(life).concat();
        let (_, out, _) = run(&all, &Check::default());
        let said = "diverged    3 times, at step 50 of life 1, step 50 of life 2, step 50 of life 3: ";
        assert!(out.contains(said), "{out}");
        let (_, json, _) = run(&all, &Check { json: true, ..Check::default() });
        let told: Value = serde_json::from_str(&json).expect("JSON");
        assert_eq!(told["diverged"][1], json!({ "life": 2, "step": 50 }), "{json}");
        let damaged = format!("{}{}", recorded(6, 40), recorded(7, 40).replace("\"n\":9,", "\"n\":x,"));
        let (_, _, err) = run(&damaged, &Check::default());
        assert!(
            err.contains("), life 2: no record of a trace: ") && err.contains("), life 2: step 9 is"),
            "{err}"
        );
    }

    #[test]
    fn steps_without_effects_are_not_said_to_be_judged_as_they_were_recorded() {
        let text = recorded(6, 60).replacen("\"fx\":[", "\"fx\":[{\"fx\":\"dance\"},", 1);
        let (verdict, out, err) = run(&text, &Check::default());
        assert_eq!(verdict, Verdict::Kept, "{out}{err}");
        assert!(out.contains("\nunrecorded  1 of them has no effects that can be read"), "{out}");
    }

    #[test]
    fn what_cannot_be_judged_ends_with_2_and_says_why() {
        let (verdict, _, err) = run("", &Check::default());
        assert_eq!((verdict, verdict.code()), (Verdict::Unreadable, 2));
        assert!(err.contains("the file is empty"), "{err}");
        let header = recorded(6, 1).lines().next().expect("a header").to_owned();
        let (verdict, out, _) = run(&header, &Check::default());
        assert_eq!(verdict, Verdict::Unreadable);
        assert!(out.ends_with("nothing could be checked: there is no step behind the header\n"), "{out}");
        let kept = include_str!("../../../../tests/traces/compat/1.1.jsonl");
        let (verdict, out, _) = run(kept, &Check::default());
        assert_eq!(verdict, Verdict::Unreadable);
        assert!(out.contains("make a trace of this core by `replay --rebase -o`"), "{out}");
    }

    #[test]
    fn damage_qualifies_that_no_rule_is_broken() {
        let text = recorded(6, 60);
        let (whole, out, _) = run(&text, &Check::default());
        assert!(whole == Verdict::Kept && out.ends_with("no rule is broken\n"), "{out}");
        let spoilt: Vec<_> =
            text.lines().enumerate().map(|(n, line)| if n > 30 { &line[1..] } else { line }).collect();
        let (verdict, out, _) = run(&spoilt.join("\n"), &Check::default());
        assert_eq!(verdict, Verdict::Kept);
        assert!(out.ends_with("no rule is broken, as far as the trace allows to check\n"), "{out}");
        let (_, json, _) = run(&spoilt.join("\n"), &Check { json: true, ..Check::default() });
        let told: Value = serde_json::from_str(&json).expect("JSON");
        assert_eq!(told["partial"], true, "{json}");
    }

    #[test]
    fn a_rule_that_was_held_to_no_step_is_not_said_to_be_kept() {
        let run = |rule: &'static str, json| {
            run(&recorded(6, 60), &Check { rule: Some(rule), json, ..Check::default() })
        };
        let (verdict, out, _) = run("I26", false);
        assert_eq!(verdict, Verdict::Unreadable);
        assert!(
            out.ends_with("nothing could be checked: I26 needs a daemon at rest, which no trace shows\n"),
            "{out}"
        );
        let (_, json, _) = run("I26", true);
        let told: Value = serde_json::from_str(&json).expect("JSON");
        assert_ne!(told["result"], "kept", "{json}");
        assert_eq!(run("I5", false).0, Verdict::Kept);
    }

    #[test]
    fn json_stays_json_whatever_a_trace_says() {
        let text = recorded(6, 60).replacen("\"fx\":[", "\"fx\":[{\"fx\":\"da\u{202e}nce\"},", 1);
        let dir = TempDir::new().expect("temp");
        fs::write(dir.path().join("t"), text).expect("writes");
        let asked = Check { file: "t".into(), json: true, ..Check::default() };
        let mut out = Vec::new();
        check(&asked, dir.path(), &mut Plain(&mut out), &mut io::sink()).expect("writes to memory");
        let text = String::from_utf8(out).expect("text");
        let told: Value = serde_json::from_str(&text).expect("JSON");
        assert!(told.to_string().contains("da\u{202e}nce"), "{text}");
        assert!(text.contains("da\\u202ence"), "nothing in it acts on a terminal: {text}");
    }

    #[test]
    fn the_trace_that_shows_it_breaks_the_rule_that_it_is_there_for() {
        let text = include_str!("../../../../tests/traces/broken/an-agent-is-launched-twice.jsonl");
        let (verdict, out, _) = run(text, &Check { rule: Some("INV-103"), ..Check::default() });
        assert_eq!(verdict, Verdict::Broken);
        assert!(
            out.starts_with("INV-103 at step 19 of life 1: claim 3 is launched again (2nd run)\n"),
            "{out}"
        );
        assert!(out.ends_with("result      1 violation\n"), "{out}");
    }

    #[test]
    fn rules_are_known_by_their_ids() {
        assert_eq!(rule("inv-31"), Err("it is checked as rule I1".to_owned()));
        assert_eq!(rule("i5"), Ok("I5"));
        assert!(rule("I999").is_err_and(|why| why.contains("docs/invariants.md lists all")));
        assert!(rule("INV-46").is_err_and(|why| why.contains("held otherwise")));
    }
}
