//! Reads the data of a page as its script does.

use super::super::data::{ARROW, BAR, MARK};
use crate::trace::render::drawing::{
    Arrow, Bar, Drawing, Group, Lane, Mark, Open, Point, Row, Unknown, Violation,
};
use crate::trace::render::look::{ArrowKind, Kind, MarkKind};
use crate::trace::render::text::Text;
use serde_json::Value;

struct Texts<'a> {
    texts: Vec<&'a str>,
    lists: Vec<Vec<u64>>,
}

impl Texts<'_> {
    fn text(&self, number: u64) -> Text {
        self.texts[number as usize].into()
    }

    fn list(&self, number: u64) -> Vec<Text> {
        self.lists[number as usize].iter().map(|number| self.text(*number)).collect()
    }
}

fn number(value: &Value) -> u64 {
    value.as_u64().expect("a number")
}

fn numbers(value: &Value) -> Vec<u64> {
    array(value).iter().map(number).collect()
}

fn array(value: &Value) -> &[Value] {
    value.as_array().expect("a list")
}

fn text(value: &Value) -> Text {
    value.as_str().expect("a text").into()
}

fn step(number: u64) -> Option<u32> {
    number.checked_sub(1).map(|step| step as u32)
}

pub(super) fn drawing(data: &Value) -> Drawing {
    let texts = Texts {
        texts: array(&data["texts"]).iter().map(|it| it.as_str().expect("a text")).collect(),
        lists: array(&data["lists"]).iter().map(numbers).collect(),
    };
    let group = |it: &Value| Group {
        name: text(&it["name"]),
        lanes: array(&it["lanes"]).iter().map(|it| lane(it, &texts)).collect(),
    };
    let violation = |it: &Value| Violation {
        rule: text(&it["rule"]),
        says: text(&it["says"]),
        story: text(&it["story"]),
        at: number(&it["at"]),
        step: step(number(&it["step"])),
    };
    Drawing {
        title: text(&data["title"]),
        facts: array(&data["facts"]).iter().map(|it| (text(&it[0]), text(&it[1]))).collect(),
        start: data["start"].as_i64(),
        begin: number(&data["begin"]),
        end: number(&data["end"]),
        groups: array(&data["groups"]).iter().map(group).collect(),
        arrows: numbers(&data["arrows"]).chunks(ARROW).map(arrow).collect(),
        judged: number(&data["judged"]),
        violations: array(&data["violations"]).iter().map(violation).collect(),
        unknown: array(&data["unknown"])
            .iter()
            .map(|it| Unknown { begin: number(&it[0]), end: number(&it[1]), why: text(&it[2]) })
            .collect(),
        steps: steps(&data["steps"], &texts),
    }
}

fn lane(it: &Value, texts: &Texts<'_>) -> Lane {
    let mut bars = Vec::new();
    for row in array(&it["rows"]) {
        let mut begin = 0;
        for bar in numbers(row).chunks(BAR) {
            begin += bar[2];
            let detail = texts.list(bar[7]);
            bars.push(Bar {
                kind: Kind::ALL[bar[0] as usize],
                label: texts.text(bar[1]),
                begin,
                end: begin + bar[3],
                failed: bar[4] & 1 > 0,
                open: Open { begin: bar[4] & 2 > 0, end: bar[4] & 4 > 0 },
                first: step(bar[5]),
                last: step(bar[6]),
                detail: detail.chunks(2).map(|pair| (pair[0].clone(), pair[1].clone())).collect(),
            });
        }
    }
    let mark = |it: &[u64]| Mark {
        kind: MarkKind::ALL[it[0] as usize],
        label: texts.text(it[1]),
        at: it[2],
        step: step(it[3]),
    };
    Lane {
        label: texts.text(number(&it["label"])),
        note: texts.text(number(&it["note"])),
        bars,
        marks: numbers(&it["marks"]).chunks(MARK).map(mark).collect(),
    }
}

fn arrow(it: &[u64]) -> Arrow {
    Arrow {
        kind: ArrowKind::ALL[it[0] as usize],
        from: Point { lane: it[1] as u32, at: it[2] },
        to: Point { lane: it[3] as u32, at: it[4] },
        step: step(it[5]),
    }
}

fn steps(it: &Value, texts: &Texts<'_>) -> Vec<Row> {
    let (mut rows, mut at, mut next) = (Vec::new(), 0, (0, 0));
    let mut jumps = array(&it["jumps"]).iter().map(numbers).peekable();
    let (events, effects) = (numbers(&it["events"]), numbers(&it["effects"]));
    for (i, by) in array(&it["times"]).iter().enumerate() {
        at += by.as_i64().expect("a number");
        if let Some(jump) = jumps.next_if(|jump| jump[0] == i as u64) {
            next = (jump[1] as u32, jump[2]);
        }
        rows.push(Row {
            life: next.0,
            n: next.1,
            at: u64::try_from(at).expect("a time"),
            event: texts.text(events[i]),
            effects: texts.list(effects[i]),
        });
        next.1 += 1;
    }
    assert!(jumps.next().is_none() && effects.len() == rows.len());
    rows
}
