use super::*;
use crate::trace::render::specimen::{plain, specimen};
use crate::trace::render::{page, svg};
use proptest::prelude::*;
use roxmltree::Document;

fn moment(text: &str) -> Moment {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

#[test]
fn moments_are_steps_or_times() {
    for (text, expected) in [
        ("59", Moment::Step { life: None, n: 59 }),
        ("2/59", Moment::Step { life: Some(2), n: 59 }),
        ("90s", Moment::Axis(90_000)),
        ("1h30m", Moment::Axis(5_400_000)),
        ("250ms", Moment::Axis(250)),
        ("2d", Moment::Axis(172_800_000)),
        ("0:01:30", Moment::Clock(90_000)),
        ("26:04:19.377", Moment::Clock(93_859_377)),
        ("0:00:00.5", Moment::Clock(500)),
    ] {
        assert_eq!(moment(text), expected, "{text}");
    }
    let nonsense = [
        "",
        "-5s",
        "x",
        "5x",
        "1/",
        "/2",
        "1/2/3",
        "1:30",
        "0:60:00",
        "0:00:00.0000",
        "0:00:+1",
        "+5",
        ":::",
        "99999999999999999999",
        "99999999999999999999:00:00",
        "9999999999999:00:00",
    ];
    for text in nonsense {
        let said = text.parse::<Moment>().err().unwrap_or_else(|| panic!("{text} is none")).to_string();
        assert!(said.contains("59") && said.contains("90s"), "{said}");
    }
}

#[test]
fn the_steps_that_are_there_are_named_in_runs() {
    let row = |life, n| Row { life, n, at: 0, event: "".into(), effects: Vec::new() };
    assert_eq!(there(&[]), "none");
    assert_eq!(there(&[row(0, 61)]), "step 61");
    assert_eq!(there(&[row(0, 61), row(0, 62), row(0, 70), row(0, 71)]), "steps 61 to 62, steps 70 to 71");
    assert_eq!(there(&[row(0, 5), row(1, 0), row(1, 1)]), "step 5 of life 1, steps 0 to 1 of life 2");
    let odd: Vec<Row> = (0..8).map(|n| row(0, n * 2)).collect();
    assert!(there(&odd).ends_with("step 10, more after them"), "{}", there(&odd));
}

fn part(from: &str, to: &str) -> Result<Part, NoWindow> {
    window(specimen(12, plain), 5_000, Some(moment(from)), Some(moment(to)))
}

#[test]
fn steps_and_times_lead_to_the_same_part() {
    let whole = specimen(12, plain);
    let (first, last) = (&whole.steps[20], &whole.steps[60]);
    let by_step = part(&first.n.to_string(), &format!("1/{}", last.n)).expect("is there");
    assert_eq!((by_step.drawing.begin, by_step.drawing.end), (first.at, last.at));
    let by_time = part(&format!("{}ms", first.at), &format!("{}ms", last.at));
    assert_eq!(by_time.as_ref(), Ok(&by_step));
    // The clock of `trace show` counts from the first life, which is older than the picture.
    let clock = |at: u64| {
        let at = at + 5_000;
        format!("{}:{:02}:{:02}.{:03}", at / 3_600_000, at / 60_000 % 60, at / 1000 % 60, at % 1000)
    };
    assert_eq!(part(&clock(first.at), &clock(last.at)), Ok(by_step));
}

#[test]
fn a_window_with_nothing_in_it_is_refused_with_the_reason() {
    let said = |from: &str, to: &str| part(from, to).expect_err("refused").to_string();
    assert_eq!(
        said("5s", "4s"),
        "the window is empty: it begins at 5.000 s (5.000 s) and ends at 4.000 s (4.000 s), which is before that"
    );
    assert!(said("40", "20").contains("(step 40)"));
    assert!(
        said("10h", "11h").starts_with("the window begins at 10 h 00 min 00.000 s, and the trace ends at ")
    );
    let unknown = said("2/7", "9s");
    assert!(unknown.starts_with("the trace has no step 7 of life 2; it has step 0, "), "{unknown}");
    assert!(said("7s", "99999").contains("has no step 99999;"));
    let bars = vec![Bar::new(super::super::look::Kind::Beat, "", 100, 200)];
    let lanes = vec![Lane { bars, ..Lane::default() }];
    let drawing =
        Drawing { end: 1_000, groups: vec![Group { name: "a".into(), lanes }], ..Drawing::default() };
    let seen = |from, to| window(drawing.clone(), 0, Some(Moment::Axis(from)), Some(Moment::Axis(to)));
    assert_eq!(seen(300, 400), Err(NoWindow::Nothing { begin: 300, end: 400 }));
    assert!(seen(150, 150).is_ok_and(|part| part.drawing.end == 151 && part.reach_out == 1));
}

#[test]
fn an_end_of_a_bar_that_is_outside_is_dashed_and_told() {
    let part = part("12s", "13s").expect("is there");
    let bars: Vec<&Bar> = part.drawing.lanes().flat_map(|(_, lane)| &lane.bars).collect();
    let reach = |bar: &&&Bar| bar.detail.iter().any(|(name, _)| name.as_str() == REACHES_OUT);
    assert_eq!(bars.iter().filter(reach).count(), part.reach_out);
    let running = bars.iter().filter(reach).find(|bar| bar.open.begin && bar.open.end).expect("is there");
    assert_eq!((running.begin, running.end), (12_000, 13_000));
    let picture = svg(&part.drawing, 40);
    let document = Document::parse(&picture).expect("well-formed");
    let texts: Vec<&str> = document.descendants().filter_map(|node| node.text()).collect();
    assert!(texts.contains(&"12.0 s") && texts.contains(&"13.0 s"), "the axis has the times of the trace");
    assert!(texts.contains(&"beginning or end is not known, or outside"));
    assert!(texts.iter().any(|text| text.ends_with(", at least 1.00 s")), "no length is made up");
    let count = format!("bars that reach out of it {}", part.reach_out);
    assert!(texts.iter().any(|text| text.contains(&count)), "{count}");
    assert!(page(&part.drawing).contains("\"begin\":12000,"));
}

proptest! {
    #[test]
    fn what_is_in_a_window_is_in_the_part_and_nothing_else(tasks in 1..14_u32, a in 0..1_100_u64, b in 0..1_100_u64) {
        let whole = specimen(tasks, plain);
        let at = |share: u64| whole.end * share / 1_000;
        let (from, to) = (at(a.min(b)), at(a.max(b)));
        let part = match window(whole.clone(), 0, Some(Moment::Axis(from)), Some(Moment::Axis(to))) {
            Ok(part) => part,
            Err(error) => {
                prop_assert!(from > whole.end, "{}", error);
                return Ok(());
            }
        };
        let seen = &part.drawing;
        let (begin, end) = (from, to.min(whole.end).max(from + 1));
        prop_assert_eq!((seen.begin, seen.end), (begin, end));
        let holds = |at: u64| begin <= at && at <= end;
        prop_assert!(seen.steps.iter().eq(whole.steps.iter().filter(|row| holds(row.at))));
        prop_assert_eq!(part.steps, whole.steps.len() - seen.steps.len());
        prop_assert_eq!(part.violations, whole.violations.len() - seen.violations.len());
        let step = |step: Option<StepIndex>| step.map(|step| &seen.steps[step as usize]);
        let was = |step: Option<StepIndex>| step.map(|step| &whole.steps[step as usize]).filter(|row| holds(row.at));
        // Each lane that is left has what it had, as far as that is in the window.
        let (mut left, mut reach_out) = (seen.lanes(), 0);
        for (group, lane) in whole.lanes() {
            let bars: Vec<&Bar> = lane.bars.iter().filter(|bar| bar.begin <= end && bar.end >= begin).collect();
            let marks: Vec<&Mark> = lane.marks.iter().filter(|mark| holds(mark.at)).collect();
            if bars.is_empty() && marks.is_empty() {
                continue;
            }
            let (of, now) = left.next().expect("it is used");
            prop_assert_eq!((of, &now.label, &now.note), (group, &lane.label, &lane.note));
            prop_assert_eq!((now.bars.len(), now.marks.len()), (bars.len(), marks.len()));
            for (now, bar) in now.bars.iter().zip(bars) {
                prop_assert_eq!((now.begin, now.end), (bar.begin.max(begin), bar.end.min(end)));
                let failed = bar.failed && bar.end <= end;
                prop_assert_eq!((now.kind, &now.label, now.failed), (bar.kind, &bar.label, failed));
                prop_assert_eq!(now.open.begin, bar.open.begin || bar.begin < begin);
                prop_assert_eq!(now.open.end, bar.open.end || bar.end > end);
                prop_assert_eq!((step(now.first), step(now.last)), (was(bar.first), was(bar.last)));
                reach_out += usize::from(bar.begin < begin || bar.end > end);
            }
            for (now, mark) in now.marks.iter().zip(marks) {
                prop_assert_eq!((now.at, &now.label, step(now.step)), (mark.at, &mark.label, was(mark.step)));
            }
        }
        prop_assert!(left.next().is_none());
        prop_assert_eq!(part.lanes, whole.lanes().count() - seen.lanes().count());
        prop_assert_eq!(part.reach_out, reach_out);
        // Arrows lead from and to the same lanes.
        let ends = |drawing: &Drawing, arrow: &Arrow| {
            let lane = |point: Point| drawing.lanes().nth(point.lane as usize).map(|(_, lane)| lane.label.clone());
            (lane(arrow.from), arrow.from.at, lane(arrow.to), arrow.to.at)
        };
        let named: Vec<_> = seen.arrows.iter().map(|arrow| ends(seen, arrow)).collect();
        let wanted: Vec<_> = whole.arrows.iter().filter(|arrow| holds(arrow.from.at) && holds(arrow.to.at)).collect();
        let label = |point: Point| whole.lanes().nth(point.lane as usize).map(|(_, lane)| lane.label.clone());
        let there = |point: Point| seen.lanes().any(|(_, lane)| Some(&lane.label) == label(point).as_ref());
        let wanted: Vec<_> = wanted
            .into_iter()
            .filter(|arrow| there(arrow.from) && there(arrow.to))
            .map(|arrow| ends(&whole, arrow))
            .collect();
        prop_assert_eq!(named, wanted);
        Document::parse(&svg(seen, 40)).expect("well-formed");
    }
}
