//! Bars, marks and arrows.

use super::xml::{Esc, Px};
use super::{Page, Place, RIGHT};
use crate::trace::render::axis::duration;
use crate::trace::render::drawing::{Bar, Lane, Mark, Point};
use crate::trace::render::look::{ArrowKind, Glyph, Kind, MarkKind};
use crate::trace::render::stack::Stack;
use crate::trace::render::window::reaches_out;
use std::collections::BTreeSet;
use std::fmt::Write;

/// Height of a thick bar, with the space below it.
const THICK: f64 = 17.0;
/// Height of a thin bar, with the space below it.
const THIN: f64 = 5.0;
/// Space above and below the bars of a lane.
const PAD: f64 = 3.0;
/// Bars that are narrower, and that touch the one before, are not drawn.
const NARROW: f64 = 0.7;
/// Arrows that are drawn: more of them hide what they lead to.
const MOST_ARROWS: usize = 400;
/// Space between the ends of a bar and its text.
const INDENT: f64 = 4.0;
/// Half the width of a mark.
const HALF_MARK: f64 = 4.0;
/// Width of a letter on a bar, on average.
const LETTER: f64 = 5.6;

/// What is to be seen in the picture, and what is not.
#[derive(Default)]
pub(super) struct Shown {
    pub(super) kinds: BTreeSet<Kind>,
    pub(super) marks: BTreeSet<MarkKind>,
    pub(super) arrows: BTreeSet<ArrowKind>,
    /// Whether a bar ended badly.
    pub(super) failed: bool,
    /// Whether an end of a bar is not known.
    pub(super) open: bool,
    /// Whether such an end is that of the picture, which is a part of a longer one.
    pub(super) reach_out: bool,
    /// Bars that are too short to be drawn.
    pub(super) narrow: usize,
    /// Arrows that are not drawn.
    pub(super) no_arrows: usize,
}

/// Height of a lane.
pub(super) fn height(stack: &Stack) -> f64 {
    2.0 * PAD + THICK * f64::from(stack.thick) + THIN * f64::from(stack.thin)
}

/// All bars.
pub(super) fn bars(page: &Page<'_>, out: &mut String, shown: &mut Shown) {
    for place in page.places.iter().flatten() {
        let mut y = place.y + PAD;
        let marks = covering(page, place.lane);
        for (r, row) in place.stack.rows.iter().enumerate() {
            let thick = r < place.stack.thick as usize;
            let mut drawn = f64::MIN;
            for bar in row.iter().map(|i| &place.lane.bars[*i]) {
                let (from, to) = (page.x(bar.begin), page.x(bar.end));
                if to - from < NARROW && from - drawn < NARROW {
                    shown.narrow += 1;
                    continue;
                }
                drawn = to.max(from + 1.0);
                shown.kinds.insert(bar.kind);
                shown.failed |= bar.failed;
                shown.open |= bar.open.begin || bar.open.end;
                shown.reach_out |= reaches_out(bar);
                // Marks are over the bars of the first row.
                let marks: &[f64] = if r == 0 { &marks } else { &[] };
                let text = text_begin(marks, from + INDENT, to - INDENT, bar.label.as_str());
                draw(
                    bar,
                    from,
                    drawn.min(RIGHT + 1.0) - from,
                    text,
                    y,
                    if thick { THICK - 2.0 } else { THIN - 2.0 },
                    out,
                );
            }
            y += if thick { THICK } else { THIN };
        }
    }
}

/// Where marks are that cover letters, from left to right.
fn covering(page: &Page<'_>, lane: &Lane) -> Vec<f64> {
    let covers = |mark: &&Mark| !matches!(mark.kind.look().glyph, Glyph::Tick | Glyph::Down);
    let mut marks: Vec<f64> = lane.marks.iter().filter(covers).map(|mark| page.x(mark.at)).collect();
    marks.sort_by(f64::total_cmp);
    marks
}

/// Where a text between `x` and `end` begins: so that no mark covers any of it or, if there is no such place, not its beginning.
#[expect(clippy::cast_precision_loss, reason = "texts are short")]
fn text_begin(marks: &[f64], x: f64, end: f64, text: &str) -> f64 {
    let long = LETTER * text.chars().count() as f64;
    let whole = clear_of(marks, x, long);
    if whole + long <= end { whole } else { clear_of(marks, x, LETTER) }
}

/// The first place from `x` on where so many pixels are clear of marks.
fn clear_of(marks: &[f64], mut x: f64, long: f64) -> f64 {
    let first = marks.partition_point(|at| at + HALF_MARK < x);
    for at in &marks[first..] {
        if *at - HALF_MARK > x + long {
            break;
        }
        x = at + HALF_MARK + 1.0;
    }
    x
}

fn draw(bar: &Bar, x: f64, width: f64, text_x: f64, y: f64, height: f64, out: &mut String) {
    let look = bar.kind.look();
    let least = if bar.open.begin || bar.open.end { "at least " } else { "" };
    let long = format!("{least}{}", duration(bar.end - bar.begin));
    let name = if bar.label.as_str() == look.name { String::new() } else { format!("{}: ", look.name) };
    let title = Esc(format!("{name}{}, {long}", bar.label));
    let radius = if look.thin { 1.0 } else { 2.0 };
    let (px, py, w, h) = (Px(x), Px(y), Px(width), Px(height));
    let mut push = |args: std::fmt::Arguments<'_>| out.write_fmt(args).expect("a string takes everything");
    push(format_args!(
        "<rect class=\"k-{}\" x=\"{px}\" y=\"{py}\" width=\"{w}\" height=\"{h}\" rx=\"{radius}\"><title>{title}</title></rect>",
        look.key
    ));
    if look.hatched && width > 3.0 {
        push(format_args!("<rect x=\"{px}\" y=\"{py}\" width=\"{w}\" height=\"{h}\" fill=\"url(#hatch)\"/>"));
    }
    if bar.failed {
        let end = width.min(3.0);
        let at = Px(x + width - end);
        push(format_args!(
            "<rect class=\"failed\" x=\"{at}\" y=\"{py}\" width=\"{}\" height=\"{h}\"/>",
            Px(end)
        ));
    }
    for (open, at) in [(bar.open.begin, x), (bar.open.end, x + width)] {
        if open {
            push(format_args!(
                "<path class=\"faint-line\" d=\"M{} {py}v{h}\" stroke-width=\"2\" stroke-dasharray=\"2 2\"/>",
                Px(at)
            ));
        }
    }
    let letters = letters(x + width - INDENT - text_x);
    if !look.thin && letters >= 3 {
        let text = fit(bar.label.as_str(), letters);
        let (tx, ty) = (Px(text_x), Px(y + height - 4.0));
        push(format_args!("<text class=\"b t-{}\" x=\"{tx}\" y=\"{ty}\">{}</text>", look.key, Esc(text)));
    }
}

/// How many letters of a bar's label go into so many pixels.
#[expect(clippy::cast_sign_loss, reason = "it is not negative")]
fn letters(room: f64) -> usize {
    (room.max(0.0) / LETTER) as usize
}

/// The beginning of a text, so that it is not longer than so many letters.
pub(super) fn fit(text: &str, letters: usize) -> String {
    if text.chars().count() <= letters {
        return text.to_owned();
    }
    text.chars().take(letters.saturating_sub(1)).chain(['…']).collect()
}

/// All marks.
pub(super) fn marks(page: &Page<'_>, out: &mut String, shown: &mut Shown) {
    for place in page.places.iter().flatten() {
        for mark in &place.lane.marks {
            shown.marks.insert(mark.kind);
            let title = Esc(&mark.label);
            write!(out, "<g><title>{title}</title>").expect("a string takes everything");
            glyph(mark.kind, page.x(mark.at), mark_y(place, mark), out);
            out.push_str("</g>");
        }
    }
}

fn mark_y(place: &Place<'_>, mark: &Mark) -> f64 {
    match mark.kind.look().glyph {
        Glyph::Tick if place.stack.thin > 0 => place.y + PAD + THICK * f64::from(place.stack.thick) + 1.5,
        Glyph::Down => place.y + PAD + 3.0,
        _ => place.y + PAD + THICK / 2.0 - 1.0,
    }
}

/// One mark, around a point.
pub(super) fn glyph(kind: MarkKind, x: f64, y: f64, out: &mut String) {
    let look = kind.look();
    let (px, py, key) = (Px(x), Px(y), look.key);
    let drawn = match look.glyph {
        Glyph::Down => write!(out, "<path class=\"m-{key}\" d=\"M{px} {py}m-3.5 -4h7l-3.5 6z\"/>"),
        Glyph::Disc => write!(out, "<circle class=\"m-{key}\" cx=\"{px}\" cy=\"{py}\" r=\"3.2\"/>"),
        Glyph::Cross => write!(
            out,
            "<path class=\"s-{key}\" d=\"M{px} {py}m-3 -3l6 6m0 -6l-6 6\" fill=\"none\" stroke-width=\"2.2\"/>"
        ),
        Glyph::Square => write!(out, "<path class=\"m-{key}\" d=\"M{px} {py}m-3 -3h6v6h-6z\"/>"),
        Glyph::Tick => {
            write!(
                out,
                "<path class=\"s-{key}\" d=\"M{px} {py}m0 -2.5v5\" fill=\"none\" stroke-width=\"1.4\"/>"
            )
        }
        Glyph::Diamond => write!(out, "<path class=\"m-{key}\" d=\"M{px} {py}m0 -4l4 4l-4 4l-4 -4z\"/>"),
    };
    drawn.expect("a string takes everything");
}

/// Arrows between lanes that are drawn.
pub(super) fn arrows(page: &Page<'_>, out: &mut String, shown: &mut Shown) {
    let at = |point: Point| {
        let place = page.places.get(point.lane as usize)?.as_ref()?;
        Some((page.x(point.at), place.y + (place.height / 2.0).min(PAD + THICK / 2.0)))
    };
    let mut drawn = 0;
    for arrow in &page.drawing.arrows {
        let (Some((x, y)), Some((to_x, to_y)), true) = (at(arrow.from), at(arrow.to), drawn < MOST_ARROWS)
        else {
            shown.no_arrows += 1;
            continue;
        };
        drawn += 1;
        shown.arrows.insert(arrow.kind);
        let bend = ((to_x - x) / 2.0).clamp(6.0, 60.0);
        let key = arrow.kind.look().0;
        write!(
            out,
            "<path class=\"arrow a-{key}\" d=\"M{} {}C{} {} {} {} {} {}\" marker-end=\"url(#head-{key})\"/>",
            Px(x),
            Px(y),
            Px(x + bend),
            Px(y),
            Px(to_x - bend),
            Px(to_y),
            Px(to_x),
            Px(to_y)
        )
        .expect("a string takes everything");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_where_no_mark_covers_it() {
        let begin = |marks: &[f64], end| text_begin(marks, 100.0, end, "life 1");
        for none in [&[][..], &[95.0], &[150.0], &[20.0, 300.0]] {
            assert!((begin(none, 900.0) - 100.0).abs() < f64::EPSILON, "{none:?}");
        }
        let is_covered = |marks: &[f64], from: f64, to: f64| {
            marks.iter().any(|at| at + HALF_MARK > from && at - HALF_MARK < to)
        };
        for some in [&[96.0][..], &[96.0, 96.0], &[112.0, 120.0], &[20.0, 120.0, 160.0, 300.0]] {
            let x = begin(some, 900.0);
            assert!(x > 100.0 && !is_covered(some, x, x + 6.0 * LETTER), "{some:?}: {x}");
            assert!(x < 210.0, "it is not farther off than it must be: {some:?}: {x}");
        }
        // There is no room for all of it.
        let x = begin(&[101.0, 120.0], 140.0);
        assert!(x > 101.0 && x < 120.0 && !is_covered(&[101.0, 120.0], x, x + LETTER), "{x}");
    }
}
