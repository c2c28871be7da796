//! A trace as one SVG picture for documents and reports: everything at once, in the light and the dark of whoever looks.

mod frame;
mod lanes;
mod style;
mod xml;

use super::drawing::{Drawing, Lane};
use super::look::{ArrowKind, Kind, MarkKind};
use super::stack::{Stack, stack};
use lanes::Shown;
use std::fmt::Write;
use xml::{Esc, Px};

/// Width of the picture.
const WIDTH: f64 = 1200.0;
/// Space around everything.
const MARGIN: f64 = 16.0;
/// Where the time axis begins; labels are left of it.
const LEFT: f64 = 196.0;
/// Where the time axis ends.
const RIGHT: f64 = WIDTH - 24.0;
/// Height of the line with a group's name.
const GROUP: f64 = 24.0;
/// Height of a line of text.
const LINE: f64 = 15.0;
/// Lines of the time axis.
const AXIS_LINES: u64 = 11;

/// Where things are.
struct Page<'a> {
    drawing: &'a Drawing,
    /// Lanes that are drawn, by their number; `None` for one that is left out.
    places: Vec<Option<Place<'a>>>,
    /// Top and bottom of the area with lanes.
    top: f64,
    bottom: f64,
}

/// A lane that is drawn.
struct Place<'a> {
    lane: &'a Lane,
    stack: Stack,
    y: f64,
    height: f64,
}

impl Page<'_> {
    /// Position of a time.
    #[expect(clippy::cast_precision_loss, reason = "a pixel is coarser")]
    fn x(&self, at: u64) -> f64 {
        let Drawing { begin, end, .. } = self.drawing;
        LEFT + at.saturating_sub(*begin) as f64 / (end - begin).max(1) as f64 * (RIGHT - LEFT)
    }
}

/// Draws a picture with at most `most` lanes of each group; what is left out is said in the picture.
pub fn svg(drawing: &Drawing, most: usize) -> String {
    let mut body = String::new();
    let top = frame::head(drawing, &mut body);
    let (page, mut y) = place(drawing, most, top, &mut body);
    let mut shown = Shown::default();
    let mut area = String::new();
    frame::axis(&page, &mut area);
    frame::unknown(&page, &mut area);
    lanes::bars(&page, &mut area, &mut shown);
    lanes::arrows(&page, &mut area, &mut shown);
    lanes::marks(&page, &mut area, &mut shown);
    frame::violations(&page, &mut area);
    body.push_str(&area);
    y = frame::notes(&shown, y, &mut body);
    y = frame::legend(&shown, drawing, y, &mut body);
    y = frame::list(drawing, y, &mut body);
    let height = y + MARGIN;
    let mut out = String::with_capacity(body.len() + 8_192);
    let kinds: Vec<_> = Kind::ALL.into_iter().filter(|kind| shown.kinds.contains(kind)).collect();
    let marks: Vec<_> = MarkKind::ALL.into_iter().filter(|kind| shown.marks.contains(kind)).collect();
    writeln!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{h}\" viewBox=\"0 0 {WIDTH} {h}\" role=\"img\" \
         aria-labelledby=\"title desc\"><title id=\"title\">{}</title><desc id=\"desc\">{}</desc><style>{}</style>{}\
         <rect class=\"ground\" width=\"{WIDTH}\" height=\"{h}\"/>{body}</svg>",
        Esc(&drawing.title),
        Esc(frame::description(drawing)),
        style::sheet(&kinds, &marks),
        definitions(&shown),
        h = Px(height),
    )
    .expect("a string takes everything");
    out
}

/// Patterns and heads of arrows.
fn definitions(shown: &Shown) -> String {
    let mut out = String::from(
        "<defs><pattern id=\"hatch\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\" patternTransform=\"rotate(45)\">\
         <path class=\"faint-line\" d=\"M0 0V6\" stroke-width=\"1.6\" opacity=\".45\"/></pattern>",
    );
    for kind in ArrowKind::ALL.into_iter().filter(|kind| shown.arrows.contains(kind)) {
        let key = kind.look().0;
        write!(
            out,
            "<marker id=\"head-{key}\" viewBox=\"0 0 6 6\" refX=\"5.5\" refY=\"3\" markerWidth=\"5\" markerHeight=\"5\" orient=\"auto\">\
             <path class=\"h-{key}\" d=\"M0 0L6 3L0 6Z\"/></marker>"
        )
        .expect("a string takes everything");
    }
    out.push_str("</defs>");
    out
}

/// Gives each lane its place, and writes labels and bands. Returns the bottom of it all too.
fn place<'a>(drawing: &'a Drawing, most: usize, top: f64, out: &mut String) -> (Page<'a>, f64) {
    let mut places = Vec::new();
    let mut y = top;
    for group in &drawing.groups {
        if group.lanes.is_empty() {
            continue;
        }
        y += frame::group(&group.name, group.lanes.len(), y, out);
        for (i, lane) in group.lanes.iter().enumerate() {
            if i >= most {
                places.push(None);
                continue;
            }
            let stack = stack(lane);
            let height = lanes::height(&stack);
            frame::label(lane, i, y, height, out);
            places.push(Some(Place { lane, stack, y, height }));
            y += height;
        }
        if let Some(left @ 1..) = group.lanes.len().checked_sub(most) {
            y += frame::elided(left, y, out);
        }
    }
    (Page { drawing, places, top, bottom: y }, y)
}

#[cfg(test)]
mod tests;
