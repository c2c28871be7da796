//! Drawings for tests.

use super::drawing::{Arrow, Bar, Drawing, Group, Lane, Mark, Open, Point, Row, Unknown, Violation};
use super::look::{ArrowKind, Kind, MarkKind};
use super::text::Text;

/// A day of work: `tasks` tasks on four slots, with everything that can be drawn. `name` makes names of numbers.
pub(super) fn specimen(tasks: u32, name: impl Fn(&str, u32) -> String) -> Drawing {
    let text = |what: &str, n: u32| Text::from(name(what, n));
    let mut drawing = Drawing {
        title: text("run", 1),
        facts: vec![("core".into(), "0.1.0".into()), (text("fact", 1), text("value", 1))],
        start: Some(1_760_000_000_000),
        judged: 7,
        ..Drawing::default()
    };
    let mut lanes: Vec<Lane> = Vec::new();
    let mut slots: Vec<Lane> = (0..4).map(|n| lane(text("slot", n), Text::default())).collect();
    let mut runtimes: Vec<Lane> = (0..2).map(|n| lane(text("runtime", n), "claude".into())).collect();
    let mut free = [0_u64; 4];
    for n in 0..tasks {
        let i = (0..4).min_by_key(|i| free[*i]).expect("there are four");
        let begin = free[i] + u64::from(n * 7 % 5) * 400;
        let step = drawing.steps.len() as u32;
        let mut task = lane(text("task", n), text("note", n % 3));
        let mut at = begin;
        let lengths =
            [(Kind::Waiting, 300), (Kind::Preparing, 900), (Kind::Starting, 120), (Kind::Running, 9_000)];
        let ends = [(Kind::Settling, 250), (Kind::Reporting, 400), (Kind::Sealing, 60)];
        for (k, (kind, long)) in lengths.into_iter().chain(ends).enumerate() {
            let end = at + long * u64::from(n * 13 % 7 + 1) / 2;
            let mut bar = Bar::new(kind, text(kind.look().name, n), at, end);
            bar.first = Some(step + k as u32);
            bar.last = Some(step + k as u32 + 1);
            bar.failed = kind == Kind::Running && n % 5 == 3;
            bar.detail = vec![(text("root", 0), text("env", n % 7))];
            task.bars.push(bar);
            at = end;
        }
        let started = task.bars[3].begin;
        let mut lease = Bar::new(Kind::Lease, "lease", begin, started);
        lease.open = Open { begin: n % 9 == 8, end: false };
        let mut mark = Bar::new(Kind::RootMark, text("env", n), begin + 100, at);
        mark.open.end = n + 1 == tasks;
        task.bars.extend([lease, mark]);
        if n % 4 == 1 {
            task.bars.push(Bar::new(Kind::Wait, "no slot is free", begin, begin + 300));
            task.bars.push(Bar::new(Kind::PathLock, text("path", n), begin, at));
        }
        let kind = [MarkKind::Completed, MarkKind::Failed, MarkKind::Cancelled]
            [usize::from(n % 5 == 3) + usize::from(n % 11 == 10)];
        task.marks.push(Mark { kind, label: text("ended", n), at, step: Some(step + 7) });
        task.marks.push(Mark {
            kind: MarkKind::Extended,
            label: "extended".into(),
            at: begin + 500,
            step: None,
        });
        slots[i].bars.push(Bar::new(Kind::Held, text("task", n), begin, at));
        let runtime = &mut runtimes[(n % 2) as usize];
        runtime.bars.push(Bar::new(Kind::Claim, text("claim", n), begin.saturating_sub(90), begin));
        runtime.bars.push(Bar::new(Kind::Beat, "beat", begin + 2_000, begin + 2_050));
        runtime.marks.push(Mark {
            kind: MarkKind::Hint,
            label: text("hint", n),
            at: begin.saturating_sub(120),
            step: Some(step),
        });
        for k in 0..8 {
            drawing.steps.push(Row {
                life: 0,
                n: u64::from(step + k),
                at: begin + u64::from(k) * (at - begin) / 7,
                event: text("event", k),
                effects: (0..k % 4).map(|e| text("effect", n + e)).collect(),
            });
        }
        let to = Point { lane: 6 + n, at: begin };
        let from = Point { lane: n % 2, at: begin.saturating_sub(90) };
        drawing.arrows.push(Arrow { kind: ArrowKind::Claim, from, to, step: Some(step) });
        let hint = Point { lane: n % 2, at: begin.saturating_sub(120) };
        drawing.arrows.push(Arrow { kind: ArrowKind::Hint, from: hint, to: from, step: Some(step) });
        free[i] = at + 500;
        drawing.end = drawing.end.max(at);
        lanes.push(task);
    }
    drawing.steps.sort_by_key(|row| row.at);
    for runtime in &mut runtimes {
        let serving = Bar::new(Kind::Serving, "online", 0, drawing.end);
        runtime.bars.insert(0, serving);
    }
    let end = drawing.end;
    drawing.groups = vec![
        Group { name: text("Runtimes", 0), lanes: runtimes },
        Group { name: "Slots".into(), lanes: slots },
        Group { name: "Tasks".into(), lanes },
    ];
    drawing.violations = vec![
        Violation {
            rule: "I5".into(),
            says: text("says", 5),
            story: text("story", 5),
            at: end / 3,
            step: Some(drawing.steps.len() as u32 / 3),
        },
        Violation { rule: text("rule", 6), says: "".into(), story: "twice".into(), at: end / 2, step: None },
    ];
    drawing.unknown = vec![Unknown { begin: end * 7 / 10, end: end * 72 / 100, why: text("gap", 1) }];
    drawing
}

fn lane(label: Text, note: Text) -> Lane {
    Lane { label, note, ..Lane::default() }
}

/// Names that say what they are.
pub(super) fn plain(what: &str, n: u32) -> String {
    match what {
        "task" | "runtime" => format!("{what}-{:08x}", 0x9e37_79b9_u32.wrapping_mul(n + 1)),
        _ => format!("{what} {n}"),
    }
}
