//! A drawing as the page's script reads it: JSON with each text once, and lists of numbers in the place of objects.

use crate::trace::render::drawing::{Drawing, Lane, Row};
use crate::trace::render::look::{ArrowKind, DARK, Ground, Kind, LIGHT, MarkKind};
use crate::trace::render::stack::stack;
use crate::trace::render::text::Text;
use crate::trace::render::window::reaches_out;
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::HashMap;

/// Numbers of a bar.
pub(super) const BAR: usize = 8;
/// Numbers of a mark.
pub(super) const MARK: usize = 4;
/// Numbers of an arrow.
pub(super) const ARROW: usize = 6;

/// Texts, each with its number.
#[derive(Default)]
struct Texts<'a> {
    all: Vec<&'a str>,
    numbers: HashMap<&'a str, u64>,
}

impl<'a> Texts<'a> {
    fn number(&mut self, text: &'a Text) -> u64 {
        let next = self.all.len() as u64;
        *self.numbers.entry(text.as_str()).or_insert_with(|| {
            self.all.push(text.as_str());
            next
        })
    }
}

/// A list of names and values as numbers of texts, each list with its own number; the first is the empty one.
struct Lists {
    all: Vec<Vec<u64>>,
    numbers: HashMap<Vec<u64>, u64>,
}

impl Lists {
    fn new() -> Self {
        Self { all: vec![Vec::new()], numbers: HashMap::from([(Vec::new(), 0)]) }
    }

    fn number(&mut self, list: Vec<u64>) -> u64 {
        let next = self.all.len() as u64;
        *self.numbers.entry(list).or_insert_with_key(|list| {
            self.all.push(list.clone());
            next
        })
    }
}

#[derive(Serialize)]
struct LaneData {
    label: u64,
    note: u64,
    thick: u32,
    thin: u32,
    /// Of each row, its bars: kind, text, begin after the begin of the one before, length, flags, first step + 1, last step + 1 (0: none),
    /// number of the list with the detail.
    rows: Vec<Vec<u64>>,
    /// Kind, text, time, step + 1.
    marks: Vec<u64>,
}

/// The drawing as one JSON value.
pub(super) fn data(drawing: &Drawing) -> Value {
    let (mut texts, mut lists) = (Texts::default(), Lists::new());
    let groups: Vec<_> = drawing
        .groups
        .iter()
        .map(|group| {
            let lanes: Vec<_> = group.lanes.iter().map(|it| lane(it, &mut texts, &mut lists)).collect();
            json!({ "name": group.name.as_str(), "lanes": lanes })
        })
        .collect();
    let mut arrows = Vec::with_capacity(ARROW * drawing.arrows.len());
    for arrow in &drawing.arrows {
        arrows.extend([
            position(&ArrowKind::ALL, arrow.kind),
            u64::from(arrow.from.lane),
            arrow.from.at,
            u64::from(arrow.to.lane),
            arrow.to.at,
            step(arrow.step),
        ]);
    }
    let violations: Vec<_> = drawing
        .violations
        .iter()
        .map(|it| {
            json!({
                "rule": it.rule.as_str(), "says": it.says.as_str(), "story": it.story.as_str(), "at": it.at,
                "step": step(it.step)
            })
        })
        .collect();
    let unknown: Vec<_> =
        drawing.unknown.iter().map(|it| json!([it.begin, it.end, it.why.as_str()])).collect();
    let facts: Vec<_> = drawing.facts.iter().map(|(name, value)| [name.as_str(), value.as_str()]).collect();
    let steps = steps(&drawing.steps, &mut texts, &mut lists);
    json!({
        "title": drawing.title.as_str(),
        "facts": facts,
        "start": drawing.start,
        "begin": drawing.begin,
        "end": drawing.end,
        "looks": looks(),
        "groups": groups,
        "arrows": arrows,
        "judged": drawing.judged,
        "violations": violations,
        "unknown": unknown,
        "reachesOut": drawing.lanes().any(|(_, lane)| lane.bars.iter().any(reaches_out)),
        "steps": steps,
        "texts": texts.all,
        "lists": lists.all,
    })
}

fn lane<'a>(lane: &'a Lane, texts: &mut Texts<'a>, lists: &mut Lists) -> LaneData {
    let stack = stack(lane);
    let mut rows = Vec::with_capacity(stack.rows.len());
    for row in &stack.rows {
        let (mut numbers, mut before) = (Vec::with_capacity(BAR * row.len()), 0);
        for bar in row.iter().map(|i| &lane.bars[*i]) {
            let detail = bar.detail.iter().flat_map(|(name, value)| [name, value]);
            let detail = detail.map(|text| texts.number(text)).collect();
            let flags = u64::from(bar.failed) | u64::from(bar.open.begin) << 1 | u64::from(bar.open.end) << 2;
            numbers.extend([
                position(&Kind::ALL, bar.kind),
                texts.number(&bar.label),
                bar.begin - before,
                bar.end - bar.begin,
                flags,
                step(bar.first),
                step(bar.last),
                lists.number(detail),
            ]);
            before = bar.begin;
        }
        rows.push(numbers);
    }
    let mut marks = Vec::with_capacity(MARK * lane.marks.len());
    for mark in &lane.marks {
        marks.extend([
            position(&MarkKind::ALL, mark.kind),
            texts.number(&mark.label),
            mark.at,
            step(mark.step),
        ]);
    }
    let (label, note) = (texts.number(&lane.label), texts.number(&lane.note));
    LaneData { label, note, thick: stack.thick, thin: stack.thin, rows, marks }
}

/// Columns of the table: life and number as differences where a row does not simply follow the one before, times as differences.
fn steps<'a>(rows: &'a [Row], texts: &mut Texts<'a>, lists: &mut Lists) -> Value {
    let (mut jumps, mut times, mut events, mut effects) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let (mut next, mut at) = ((0, 0), 0);
    for (i, row) in rows.iter().enumerate() {
        if (row.life, row.n) != next {
            jumps.push([i as u64, u64::from(row.life), row.n]);
        }
        next = (row.life, row.n + 1);
        times.push(i128::from(row.at) - i128::from(at));
        at = row.at;
        events.push(texts.number(&row.event));
        let numbers = row.effects.iter().map(|text| texts.number(text)).collect();
        effects.push(lists.number(numbers));
    }
    let times: Vec<_> = times.into_iter().map(|ms| ms as i64).collect();
    json!({ "jumps": jumps, "times": times, "events": events, "effects": effects })
}

fn step(step: Option<u32>) -> u64 {
    step.map_or(0, |step| u64::from(step) + 1)
}

fn position<T: PartialEq>(all: &[T], one: T) -> u64 {
    all.iter().position(|it| *it == one).expect("all of them are in the list") as u64
}

/// Names and colours of everything.
fn looks() -> Value {
    let ground = |it: Ground| {
        json!({
            "ground": css(it.ground), "band": css(it.band), "line": css(it.line), "ink": css(it.ink), "faint": css(it.faint),
            "alarm": css(it.alarm), "failed": css(it.failed), "focus": css(it.focus)
        })
    };
    let bars: Vec<_> = Kind::ALL
        .map(Kind::look)
        .iter()
        .map(|it| {
            json!({
                "key": it.key, "name": it.name, "thin": it.thin, "hatched": it.hatched,
                "light": [css(it.light.fill), css(it.light.text)], "dark": [css(it.dark.fill), css(it.dark.text)]
            })
        })
        .collect();
    let marks: Vec<_> = MarkKind::ALL
        .map(MarkKind::look)
        .iter()
        .map(|it| {
            let glyph = format!("{:?}", it.glyph).to_ascii_lowercase();
            json!({ "key": it.key, "name": it.name, "glyph": glyph, "light": css(it.light), "dark": css(it.dark) })
        })
        .collect();
    let arrows: Vec<_> = ArrowKind::ALL
        .map(ArrowKind::look)
        .iter()
        .map(|(key, name, light, dark)| {
            json!({ "key": key, "name": name, "light": css(*light), "dark": css(*dark) })
        })
        .collect();
    json!({ "light": ground(LIGHT), "dark": ground(DARK), "bars": bars, "marks": marks, "arrows": arrows })
}

fn css(colour: u32) -> String {
    format!("#{colour:06x}")
}
