//! Lines that are there twice: a log and a copy of it, put one behind the other.
//!
//! A daemon writes the same words again and again, at other times. So a repetition is a stretch of lines that were all there before, one behind the
//! other, with the same times. Chance makes a short one: only one that begins a copy, and ends where the first one or the file ends, is left
//! out if it is short. What is all of one moment is no copy: processes that fail at once write the same in the same second.

use super::days::Part;
use super::heard::Heard;
use std::collections::HashMap;
use std::ops::Range;

/// So many lines are no chance, wherever they end.
const LONG: usize = 16;

/// Lines that were left out as they are there twice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Repeated {
    /// How many.
    pub(super) lines: u64,
    /// The number of the first of them, and of the one that it repeats.
    pub(super) first: Option<(u64, u64)>,
}

/// Leaves out the second of lines that are there twice.
pub(super) fn leave_out(lines: &mut Vec<Heard>, parts: &mut [Part]) -> Repeated {
    let found = stretches(lines, parts);
    let mut repeated = Repeated::default();
    for (stretch, of) in &found {
        repeated.lines += stretch.len() as u64;
        repeated.first = repeated.first.or(Some((lines[stretch.start].nth, lines[*of].nth)));
    }
    if found.is_empty() {
        return repeated;
    }
    // How many are left out before each place.
    let gone = |place: usize| -> usize {
        let before = found.iter().take_while(|(stretch, _)| stretch.start < place);
        before.map(|(stretch, _)| stretch.end.min(place) - stretch.start).sum()
    };
    for part in parts {
        let Range { start, end } = part.lines;
        part.lines = start - gone(start)..end - gone(end);
    }
    let (mut at, mut next) = (0, found.iter().peekable());
    lines.retain(|_| {
        while next.next_if(|(stretch, _)| stretch.end <= at).is_some() {}
        let keep = next.peek().is_none_or(|(stretch, _)| !stretch.contains(&at));
        at += 1;
        keep
    });
    repeated
}

/// Each stretch that repeats another one, with where that begins.
fn stretches(lines: &[Heard], parts: &[Part]) -> Vec<(Range<usize>, usize)> {
    // Where each line was first.
    let mut first: HashMap<u64, usize> = HashMap::with_capacity(lines.len());
    let mut found = Vec::new();
    // From which line on it is not looked for, and behind which line all were left out.
    let (mut at, mut refused, mut kept) = (0, 0, 0);
    while at < lines.len() {
        let of = first.get(&lines[at].print).copied().filter(|_| at >= refused);
        if let Some(of) = of {
            let before = &lines[of..kept];
            let same = lines[at..].iter().zip(before).take_while(|(a, b)| a.print == b.print).count();
            if is_copy(lines, parts, at..at + same, of + same + 1 >= kept) {
                found.push((at..at + same, of));
                at += same;
                continue;
            }
            // What is no copy has none in it, and is not looked at again.
            refused = at + same;
        }
        first.entry(lines[at].print).or_insert(at);
        at += 1;
        kept = at;
    }
    found
}

/// `to_its_end` says whether the first one ends where the stretch begins; its last line may be there in part, if the copy was made meanwhile.
fn is_copy(lines: &[Heard], parts: &[Part], stretch: Range<usize>, to_its_end: bool) -> bool {
    let Range { start, end } = stretch;
    let moments = lines[start..end].iter().any(|line| line.stamp != lines[start].stamp);
    let file_ends = parts.iter().any(|part| part.lines.end == end);
    moments && (to_its_end || file_ends || end - start >= LONG)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::import::days::Until;
    use crate::trace::import::line::Line;
    use jiff::Timestamp;
    use proptest::collection::vec;
    use proptest::prelude::*;

    /// Lines that are told apart by a letter, and say when they were written.
    fn lines(of: &[&str]) -> (Vec<Heard>, Vec<Part>) {
        let (mut lines, mut parts) = (Vec::new(), Vec::new());
        for text in of {
            let start = lines.len();
            for c in text.chars() {
                let second = u32::from(c) % 60;
                let line = Line::read(&format!("09:00:{second:02}.000 INF {c} component=daemon"));
                lines.push(Heard::of(&line.expect("a line"), None, lines.len() as u64 + 1));
            }
            parts.push(Part { lines: start..lines.len(), until: Until::Now(Timestamp::UNIX_EPOCH) });
        }
        (lines, parts)
    }

    /// The letters of what is there of a text.
    fn shown(text: &str, lines: &[Heard]) -> String {
        let letters: Vec<char> = text.chars().collect();
        let letter = |line: &Heard| letters[usize::try_from(line.nth).expect("few") - 1];
        lines.iter().map(letter).collect()
    }

    fn left(of: &[&str]) -> (String, Repeated) {
        let (mut lines, mut parts) = lines(of);
        let repeated = leave_out(&mut lines, &mut parts);
        let text = |part: &Part| shown(&of.concat(), &lines[part.lines.clone()]);
        let texts: Vec<String> = parts.iter().map(text).collect();
        assert_eq!(texts.concat().len(), lines.len(), "every line is of a part");
        (texts.join(" "), repeated)
    }

    #[test]
    fn what_is_there_twice_is_left_out_once() {
        for (of, is) in [
            (vec!["abcdefabcdef"], "abcdef"),
            (vec!["abcdefef"], "abcdef"),
            (vec!["abcdefdefghi"], "abcdefghi"),
            (vec!["abcabcabcd"], "abcd"),
            (vec!["abc", "abcd", "efg"], "abc d efg"),
            (vec!["abc", "defg", "abc", "hij"], "abc defg  hij"),
        ] {
            assert_eq!(left(&of).0, is, "{of:?}");
        }
        assert_eq!(left(&["abcdefdefghi"]).1, Repeated { lines: 3, first: Some((7, 4)) });
    }

    #[test]
    fn what_only_looks_alike_stays() {
        for of in [
            // One line, which is no stretch; the same moment; two lines that nothing ends.
            "abcda",
            "aaaaaa",
            "abcdefbcxyz",
            "aa",
        ] {
            assert_eq!(left(&[of]), (of.to_owned(), Repeated::default()), "{of}");
        }
    }

    #[test]
    fn many_lines_that_are_all_the_same_take_no_time() {
        let same = "a".repeat(50_000);
        assert_eq!(left(&[&same]).1, Repeated::default());
    }

    proptest! {
        #[test]
        fn a_copy_of_a_tail_is_found_whatever_the_log_is(log in vec(0_u32..26, 4..60), tail in any::<prop::sample::Index>()) {
            // Every line is another one, as their times go on.
            let text: String = log.iter().zip(0..).filter_map(|(c, n)| char::from_u32(0x4e00 + c + 26 * n)).collect();
            let from = text.char_indices().nth(tail.index(log.len() - 1)).map_or(0, |(at, _)| at);
            let twice = format!("{text}{}", &text[from..]);
            prop_assert_eq!(left_text(&twice), text);
        }
    }

    fn left_text(text: &str) -> String {
        let (mut lines, mut parts) = (Vec::new(), Vec::new());
        for c in text.chars() {
            let at = u32::from(c) - 0x4e00;
            let line = Line::read(&format!("{:02}:{:02}:00.000 INF {c}", at / 60 % 24, at % 60));
            lines.push(Heard::of(&line.expect("a line"), None, lines.len() as u64 + 1));
        }
        parts.push(Part { lines: 0..lines.len(), until: Until::Now(Timestamp::UNIX_EPOCH) });
        leave_out(&mut lines, &mut parts);
        shown(text, &lines)
    }
}
