//! The style sheet of a picture: one class for each kind, for light and dark.

use crate::trace::render::look::{ArrowKind, Colour, DARK, Ground, Kind, LIGHT, MarkKind};
use std::fmt::Write;

const SHAPES: &str = "text{font:11px ui-sans-serif,system-ui,-apple-system,'Segoe UI',Roboto,'Helvetica Neue',Arial,sans-serif}\
.title{font-size:16px;font-weight:600}.group{font-size:12px;font-weight:600}.b{font-size:10px;pointer-events:none}.small{font-size:10px}\
.id{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,'Liberation Mono',monospace;font-size:10.5px}\
.note{font:10px ui-sans-serif,system-ui,-apple-system,'Segoe UI',Roboto,'Helvetica Neue',Arial,sans-serif}\
.end{text-anchor:end}.mid{text-anchor:middle}.arrow{fill:none;stroke-width:1;opacity:.75}.tick{stroke-width:1}\
.alarm-line{stroke-width:1.25}.badge{font-size:9px;font-weight:700;text-anchor:middle}.halo{paint-order:stroke;stroke-width:3px;stroke-linejoin:round}";

/// The whole style sheet, of the kinds that are there.
pub(super) fn sheet(kinds: &[Kind], marks: &[MarkKind]) -> String {
    let mut css = String::from(SHAPES);
    theme(&mut css, LIGHT, kinds, marks, false);
    css.push_str("@media(prefers-color-scheme:dark){");
    theme(&mut css, DARK, kinds, marks, true);
    css.push('}');
    css
}

fn theme(css: &mut String, ground: Ground, kinds: &[Kind], marks: &[MarkKind], dark: bool) {
    let mut rule = |name: &str, body: &str, colour: Colour| {
        write!(css, ".{name}{{{body}:#{colour:06x}}}").expect("a string takes everything");
    };
    rule("ground", "fill", ground.ground);
    rule("band", "fill", ground.band);
    rule("line", "stroke", ground.line);
    rule("ink", "fill", ground.ink);
    rule("faint", "fill", ground.faint);
    rule("faint-line", "stroke", ground.faint);
    rule("halo", "stroke", ground.ground);
    rule("alarm", "fill", ground.alarm);
    rule("alarm-line", "stroke", ground.alarm);
    rule("failed", "fill", ground.failed);
    rule("on-alarm", "fill", ground.ground);
    for kind in kinds {
        let look = kind.look();
        let paint = if dark { look.dark } else { look.light };
        rule(&format!("k-{}", look.key), "fill", paint.fill);
        if !look.thin {
            rule(&format!("t-{}", look.key), "fill", paint.text);
        }
    }
    for mark in marks {
        let look = mark.look();
        let colour = if dark { look.dark } else { look.light };
        rule(&format!("m-{}", look.key), "fill", colour);
        rule(&format!("s-{}", look.key), "stroke", colour);
    }
    for arrow in ArrowKind::ALL {
        let (key, _, light, night) = arrow.look();
        rule(&format!("a-{key}"), "stroke", if dark { night } else { light });
        rule(&format!("h-{key}"), "fill", if dark { night } else { light });
    }
}
