//! What is around the lanes: heading, labels, time axis, unknown times, violations, legend.

use super::lanes::{Shown, fit, glyph};
use super::xml::{Esc, Px};
use super::{AXIS_LINES, GROUP, LINE, MARGIN, Page, RIGHT, WIDTH};
use crate::trace::render::axis::{duration, lines, time};
use crate::trace::render::drawing::{Drawing, Lane, Violation};
use crate::trace::render::look::{ArrowKind, Kind, MarkKind};
use crate::trace::render::text::Text;
use crate::trace::words::count;
use std::fmt::Write;

/// Letters of a lane's label.
const LABEL: usize = 26;
/// Letters of a note beside the label, at least: fewer say nothing.
const LEAST_NOTE: usize = 4;
/// Letters of a line over the whole width.
const WHOLE: usize = 200;
/// Violations that are listed.
const MOST_LISTED: usize = 20;
/// Width of one entry of the legend, beyond its letters.
const ENTRY: f64 = 34.0;

macro_rules! put {
    ($out:expr, $($arg:tt)*) => { write!($out, $($arg)*).expect("a string takes everything") };
}

/// What the picture shows, in a sentence.
pub(super) fn description(drawing: &Drawing) -> String {
    let groups: Vec<_> = drawing
        .groups
        .iter()
        .filter(|group| !group.lanes.is_empty())
        .map(|group| format!("{} ({})", group.name, group.lanes.len()))
        .collect();
    let broken = match drawing.violations.len() {
        0 => "no violation".to_owned(),
        n => count(n, "violation", "violations"),
    };
    format!(
        "{} over {}; {}, {broken}",
        groups.join(", "),
        duration(drawing.end - drawing.begin),
        count(drawing.steps.len(), "step", "steps")
    )
}

/// Title and facts. Returns where the lanes begin.
pub(super) fn head(drawing: &Drawing, out: &mut String) -> f64 {
    let mut y = MARGIN + 14.0;
    put!(
        out,
        "<text class=\"title ink\" x=\"{MARGIN}\" y=\"{y}\">{}</text>",
        Esc(fit(drawing.title.as_str(), 120))
    );
    let facts: Vec<_> = drawing.facts.iter().map(|(name, value)| format!("{name} {value}")).collect();
    for line in lines_of(&facts, WHOLE) {
        y += LINE + 2.0;
        put!(out, "<text class=\"faint\" x=\"{MARGIN}\" y=\"{y}\">{}</text>", Esc(line));
    }
    y + 34.0
}

/// The name of a group. Returns its height.
pub(super) fn group(name: &Text, lanes: usize, y: f64, out: &mut String) -> f64 {
    put!(
        out,
        "<text class=\"group ink\" x=\"{MARGIN}\" y=\"{}\">{}<tspan class=\"small faint\" dx=\"6\">{lanes}</tspan></text>",
        Px(y + GROUP - 7.0),
        Esc(name)
    );
    GROUP
}

/// Band and label of a lane.
pub(super) fn label(lane: &Lane, i: usize, y: f64, height: f64, out: &mut String) {
    if i.is_multiple_of(2) {
        let width = Px(WIDTH - 2.0 * MARGIN + 8.0);
        put!(
            out,
            "<rect class=\"band\" x=\"{}\" y=\"{}\" width=\"{width}\" height=\"{}\" rx=\"3\"/>",
            Px(MARGIN - 4.0),
            Px(y),
            Px(height)
        );
    }
    let title = if lane.note.as_str().is_empty() {
        lane.label.to_string()
    } else {
        format!("{}: {}", lane.label, lane.note)
    };
    let name = fit(lane.label.as_str(), LABEL);
    let has_note = !lane.note.as_str().is_empty();
    let is_high = height >= 36.0;
    // A note that does not fit below the name is beside it.
    let room = (LABEL + 3).saturating_sub(name.chars().count());
    let beside = if has_note && !is_high && room >= LEAST_NOTE {
        format!("<tspan class=\"note faint\" dx=\"7\">{}</tspan>", Esc(fit(lane.note.as_str(), room)))
    } else {
        String::new()
    };
    put!(
        out,
        "<text class=\"id ink\" x=\"{MARGIN}\" y=\"{}\">{}{beside}<title>{}</title></text>",
        Px(y + 15.0),
        Esc(name),
        Esc(title)
    );
    if has_note && is_high {
        let note = fit(lane.note.as_str(), LABEL + 4);
        put!(out, "<text class=\"small faint\" x=\"{MARGIN}\" y=\"{}\">{}</text>", Px(y + 27.0), Esc(note));
    }
}

/// Says how many lanes are left out. Returns the height of that.
pub(super) fn elided(left: usize, y: f64, out: &mut String) -> f64 {
    let what = count(left, "more is", "more are");
    put!(out, "<text class=\"faint\" x=\"{MARGIN}\" y=\"{}\">⋮ {what} not shown</text>", Px(y + 14.0));
    20.0
}

/// Lines of time with their words.
pub(super) fn axis(page: &Page<'_>, out: &mut String) {
    let (step, lines) = lines(page.drawing.begin, page.drawing.end, AXIS_LINES);
    for at in lines {
        let x = page.x(at);
        let (px, top, bottom) = (Px(x), Px(page.top), Px(page.bottom));
        put!(out, "<path class=\"line\" d=\"M{px} {top}V{bottom}\"/>");
        let place = if x > RIGHT - 20.0 { "end" } else { "mid" };
        put!(
            out,
            "<text class=\"faint {place}\" x=\"{px}\" y=\"{}\">{}</text>",
            Px(page.top - 5.0),
            time(at, step)
        );
    }
}

/// Times of which nothing is known.
pub(super) fn unknown(page: &Page<'_>, out: &mut String) {
    for hole in &page.drawing.unknown {
        let (from, to) = (page.x(hole.begin), page.x(hole.end));
        let (x, width) = (Px(from), Px((to - from).max(2.0)));
        let (y, height) = (Px(page.top), Px(page.bottom - page.top));
        let title = Esc(format!("nothing is known: {}", hole.why));
        put!(
            out,
            "<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" fill=\"url(#hatch)\"><title>{title}</title></rect>"
        );
    }
}

/// A red line for each violation, with its number.
pub(super) fn violations(page: &Page<'_>, out: &mut String) {
    let mut badge = f64::MIN;
    for (i, broken) in page.drawing.violations.iter().enumerate() {
        let x = page.x(broken.at);
        let title = Esc(sentence(broken, page.drawing));
        let (px, top, bottom) = (Px(x), Px(page.top), Px(page.bottom));
        put!(out, "<path class=\"alarm-line\" d=\"M{px} {top}V{bottom}\"><title>{title}</title></path>");
        if x - badge >= 14.0 {
            badge = x;
            put!(out, "<circle class=\"alarm\" cx=\"{px}\" cy=\"{}\" r=\"7\"/>", Px(page.top + 4.0));
            put!(
                out,
                "<text class=\"badge on-alarm\" x=\"{px}\" y=\"{}\">{}</text>",
                Px(page.top + 7.2),
                i + 1
            );
        }
    }
}

fn sentence(broken: &Violation, drawing: &Drawing) -> String {
    let row = broken.step.and_then(|step| drawing.steps.get(step as usize));
    let step = row.map_or(String::new(), |row| format!(" at step {}", row.n));
    format!("{}{step}, {}: {}", broken.rule, time(broken.at, 1), broken.story)
}

/// What is too small or too much to be drawn. Returns the new bottom.
pub(super) fn notes(shown: &Shown, y: f64, out: &mut String) -> f64 {
    let mut left = Vec::new();
    if shown.narrow > 0 {
        let bars = count(shown.narrow, "bar that is", "bars that are");
        left.push(format!("{bars} too short to be seen"));
    }
    if shown.no_arrows > 0 {
        left.push(count(shown.no_arrows, "arrow", "arrows"));
    }
    if left.is_empty() {
        return y;
    }
    put!(
        out,
        "<text class=\"faint\" x=\"{MARGIN}\" y=\"{}\">Not drawn: {}</text>",
        Px(y + 18.0),
        left.join(", ")
    );
    y + 22.0
}

/// What colours and shapes mean, of those that are there. Returns the new bottom.
pub(super) fn legend(shown: &Shown, drawing: &Drawing, y: f64, out: &mut String) -> f64 {
    let mut at = Flow { x: MARGIN, y: y + 26.0 };
    for kind in Kind::ALL.into_iter().filter(|kind| shown.kinds.contains(kind)) {
        let look = kind.look();
        let (x, y) = at.entry(look.name);
        let (top, height) = if look.thin { (y - 6.0, 3.0) } else { (y - 9.0, 11.0) };
        let place = format!("x=\"{}\" y=\"{}\" width=\"16\" height=\"{height}\"", Px(x), Px(top));
        put!(out, "<rect class=\"k-{}\" {place} rx=\"2\"/>", look.key);
        if look.hatched {
            put!(out, "<rect {place} fill=\"url(#hatch)\"/>");
        }
        word(look.name, x, y, out);
    }
    for kind in MarkKind::ALL.into_iter().filter(|kind| shown.marks.contains(kind)) {
        let (x, y) = at.entry(kind.look().name);
        glyph(kind, x + 8.0, y - 4.0, out);
        word(kind.look().name, x, y, out);
    }
    for kind in ArrowKind::ALL.into_iter().filter(|kind| shown.arrows.contains(kind)) {
        let (key, name, ..) = kind.look();
        let (x, y) = at.entry(name);
        put!(
            out,
            "<path class=\"arrow a-{key}\" d=\"M{} {}h16\" marker-end=\"url(#head-{key})\"/>",
            Px(x),
            Px(y - 4.0)
        );
        word(name, x, y, out);
    }
    if shown.failed {
        let (x, y) = at.entry("ended badly");
        put!(
            out,
            "<rect class=\"failed\" x=\"{}\" y=\"{}\" width=\"3\" height=\"11\"/>",
            Px(x + 6.0),
            Px(y - 9.0)
        );
        word("ended badly", x, y, out);
    }
    if shown.open {
        let name = if shown.reach_out {
            "beginning or end is not known, or outside"
        } else {
            "beginning or end is not known"
        };
        let (x, y) = at.entry(name);
        let d = format!("M{} {}v11", Px(x + 8.0), Px(y - 9.0));
        put!(out, "<path class=\"faint-line\" d=\"{d}\" stroke-width=\"2\" stroke-dasharray=\"2 2\"/>");
        word(name, x, y, out);
    }
    if !drawing.unknown.is_empty() {
        let (x, y) = at.entry("nothing is known");
        put!(
            out,
            "<rect x=\"{}\" y=\"{}\" width=\"16\" height=\"11\" fill=\"url(#hatch)\"/>",
            Px(x),
            Px(y - 9.0)
        );
        word("nothing is known", x, y, out);
    }
    if !drawing.violations.is_empty() {
        let (x, y) = at.entry("violation");
        put!(out, "<circle class=\"alarm\" cx=\"{}\" cy=\"{}\" r=\"5\"/>", Px(x + 8.0), Px(y - 4.0));
        word("violation", x, y, out);
    }
    at.y + 4.0
}

fn word(name: &str, x: f64, y: f64, out: &mut String) {
    put!(out, "<text class=\"ink\" x=\"{}\" y=\"{}\">{name}</text>", Px(x + 21.0), Px(y));
}

/// Places of entries, line by line.
struct Flow {
    x: f64,
    y: f64,
}

impl Flow {
    #[expect(clippy::cast_precision_loss, reason = "names are short")]
    fn entry(&mut self, name: &str) -> (f64, f64) {
        let width = ENTRY + 6.0 * name.chars().count() as f64;
        if self.x + width > WIDTH - MARGIN {
            (self.x, self.y) = (MARGIN, self.y + LINE + 4.0);
        }
        let place = (self.x, self.y);
        self.x += width;
        place
    }
}

/// The violations in words. Returns the new bottom.
pub(super) fn list(drawing: &Drawing, mut y: f64, out: &mut String) -> f64 {
    if drawing.violations.is_empty() {
        return y;
    }
    y += 26.0;
    put!(out, "<text class=\"group alarm\" x=\"{MARGIN}\" y=\"{}\">Violations</text>", Px(y));
    for (i, broken) in drawing.violations.iter().take(MOST_LISTED).enumerate() {
        let text = format!("{}  {}", i + 1, sentence(broken, drawing));
        for (k, line) in wrap(&text, WHOLE - 10).into_iter().enumerate() {
            y += LINE + 1.0;
            let x = MARGIN + if k == 0 { 0.0 } else { 14.0 };
            put!(out, "<text class=\"ink\" x=\"{}\" y=\"{}\">{}</text>", Px(x), Px(y), Esc(line));
        }
    }
    if let Some(left @ 1..) = drawing.violations.len().checked_sub(MOST_LISTED) {
        y += LINE + 1.0;
        put!(out, "<text class=\"faint\" x=\"{MARGIN}\" y=\"{}\">⋮ {left} more</text>", Px(y));
    }
    y
}

/// Facts in lines of at most so many letters. None is torn apart, as far as one fits into a line.
fn lines_of(facts: &[String], letters: usize) -> Vec<String> {
    const BETWEEN: &str = "  ·  ";
    let mut lines: Vec<String> = Vec::new();
    for fact in facts {
        let long = BETWEEN.chars().count() + fact.chars().count();
        match lines.last_mut() {
            Some(line) if line.chars().count() + long <= letters => {
                line.push_str(BETWEEN);
                line.push_str(fact);
            }
            _ => lines.extend(wrap(fact, letters)),
        }
    }
    lines
}

/// Lines of at most so many letters, broken between words where there are any.
fn wrap(text: &str, letters: usize) -> Vec<String> {
    let (mut lines, mut line, mut long) = (Vec::new(), String::new(), 0);
    for word in text.split(' ') {
        let letters_of = word.chars().count();
        if long > 0 && long + 1 + letters_of > letters {
            lines.push(std::mem::take(&mut line));
            long = 0;
        }
        if long > 0 {
            line.push(' ');
            long += 1;
        }
        line.push_str(&fit(word, letters));
        long += letters_of;
    }
    if !line.is_empty() {
        lines.push(line);
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_facts_ends_between_two_of_them() {
        let facts = ["window 2 h 04 min 00.000 s", "steps 122", "a b c d e f g h i j k l m n o p q r"]
            .map(str::to_owned);
        assert_eq!(
            lines_of(&facts, 40),
            ["window 2 h 04 min 00.000 s  ·  steps 122", "a b c d e f g h i j k l m n o p q r"]
        );
        assert_eq!(lines_of(&facts[..2], 39), ["window 2 h 04 min 00.000 s", "steps 122"]);
        assert_eq!(lines_of(&facts[2..], 20).len(), 2, "one that is longer than a line goes on in the next");
    }
}
