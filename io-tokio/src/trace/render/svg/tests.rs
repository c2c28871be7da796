use super::*;
use crate::trace::render::drawing::{Bar, Group};
use crate::trace::render::specimen::{plain, specimen};
use crate::trace::render::text::Text;
use crate::trace::render::text::tests::HOSTILE;
use roxmltree::{Document, Node};
use std::collections::BTreeSet;

fn words(document: &Document<'_>) -> Vec<String> {
    document.descendants().filter(Node::is_text).filter_map(|node| node.text()).map(str::to_owned).collect()
}

#[test]
fn a_picture_is_well_formed_and_complete() {
    let drawing = specimen(12, plain);
    let text = svg(&drawing, 40);
    let document = Document::parse(&text).expect("well-formed");
    let root = document.root_element();
    assert_eq!(root.tag_name().name(), "svg");
    let size: Vec<f64> = ["width", "height"]
        .map(|name| root.attribute(name).expect("has a size").parse().expect("a number"))
        .into();
    assert!(size[0] > 0.0 && size[1] > 0.0);
    let words = words(&document);
    for (_, lane) in drawing.lanes() {
        assert!(words.iter().any(|word| word == lane.label.as_str()), "{}", lane.label);
    }
    let style = words.iter().find(|word| word.contains("@media")).expect("a style sheet");
    assert!(style.contains("@media(prefers-color-scheme:dark)"));
    // Whatever has a class has its rule.
    let classes = document.descendants().filter_map(|node| node.attribute("class"));
    let classes: BTreeSet<&str> = classes.flat_map(|all| all.split(' ')).collect();
    for class in classes {
        assert!(style.contains(&format!(".{class}{{")), "no rule for {class}");
    }
    let alarms = document.descendants().filter(|node| node.attribute("class") == Some("alarm-line")).count();
    assert_eq!(alarms, drawing.violations.len());
}

#[test]
fn hostile_names_are_texts_and_nothing_else() {
    let shape = |text: &str| {
        let document = Document::parse(text).unwrap_or_else(|error| panic!("{error}: {text}"));
        let names: Vec<_> = document
            .descendants()
            .filter(Node::is_element)
            .map(|node| node.tag_name().name().to_owned())
            .collect();
        let attributes: BTreeSet<String> = document
            .descendants()
            .flat_map(|node| node.attributes().map(|it| it.name().to_owned()).collect::<Vec<_>>())
            .collect();
        (names.into_iter().collect::<BTreeSet<_>>(), attributes)
    };
    let plain = shape(&svg(&specimen(6, plain), 40));
    for hostile in HOSTILE {
        let text = svg(&specimen(6, |_, n| format!("{hostile}{n}")), 40);
        assert_eq!(shape(&text), plain, "{hostile}");
        let shown = Text::new(hostile);
        let document = Document::parse(&text).expect("well-formed");
        let start: String = shown.as_str().chars().take(10).collect();
        assert!(words(&document).iter().any(|word| word.starts_with(&start)), "{hostile} is to be read");
        assert!(!text.contains(char::is_control) || text.trim_end().find(char::is_control).is_none());
    }
}

#[test]
fn lanes_that_are_left_out_are_said() {
    let drawing = specimen(30, plain);
    let said = |most| words(&Document::parse(&svg(&drawing, most)).expect("well-formed"));
    assert!(said(10).iter().any(|word| word == "⋮ 20 more are not shown"));
    assert!(said(29).iter().any(|word| word == "⋮ 1 more is not shown"));
    assert!(!said(30).iter().any(|word| word.contains("not shown")));
    let labels = |most| {
        let text = svg(&drawing, most);
        let document = Document::parse(&text).expect("well-formed");
        document.descendants().filter(|node| node.attribute("class") == Some("id ink")).count()
    };
    assert_eq!([0, 3, 10, 30, 40].map(labels), [0, 8, 16, 36, 36], "two runtimes, four slots, thirty tasks");
}

#[test]
fn bars_that_are_too_short_to_be_seen_are_counted() {
    let bars = (0..1_000).map(|i| Bar::new(Kind::Beat, "", i * 1_000, i * 1_000 + 1)).collect::<Vec<_>>();
    let lane = Lane { label: "lane".into(), bars, ..Lane::default() };
    let groups = vec![Group { name: "Lanes".into(), lanes: vec![lane] }];
    let drawing = Drawing { end: 10_000_000, groups, ..Drawing::default() };
    let text = svg(&drawing, 40);
    let document = Document::parse(&text).expect("well-formed");
    let drawn = document.descendants().filter(|node| node.attribute("class") == Some("k-beat")).count() - 1;
    let said = words(&document).into_iter().find(|word| word.starts_with("Not drawn: ")).expect("it is said");
    assert_eq!(said, format!("Not drawn: {} bars that are too short to be seen", 1_000 - drawn));
}

#[test]
fn nothing_can_be_drawn_too() {
    for drawing in [Drawing::default(), Drawing { end: u64::MAX, ..specimen(2, plain) }] {
        Document::parse(&svg(&drawing, 0)).expect("well-formed");
    }
}
