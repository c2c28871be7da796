//! What segments are called. Their numbers tell their order, and that one between them is not there.

use std::fmt;

const PREFIX: &str = "flight-";
const SUFFIX: &str = ".jsonl";

/// What a segment has behind its name if somebody packed it.
const PACKED: [&str; 2] = [".gz", ".zst"];

/// The highest number of a segment. No recorder gets there: with a thousand segments in each second it would take 30 000 years.
pub(super) const HIGHEST: u64 = 999_999_999_999_999;

/// The name of a segment, which may have been packed since it was recorded. Ordered by number, and of two of one number the plain one comes first:
/// the other one may be half of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SegmentName {
    /// From 1, and one more for each segment that was made; at most 999 999 999 999 999.
    pub number: u64,
    /// What was put behind its name: nothing, `.gz` or `.zst`.
    packed: Option<&'static str>,
}

impl SegmentName {
    /// Of one that is recorded.
    pub(super) const fn new(number: u64) -> Self {
        Self { number, packed: None }
    }

    /// `None` if this is no name of a segment.
    pub fn parse(name: &str) -> Option<Self> {
        let packed = PACKED.into_iter().find(|end| name.ends_with(end));
        let plain = name.strip_suffix(packed.unwrap_or_default())?;
        let digits = plain.strip_prefix(PREFIX)?.strip_suffix(SUFFIX)?;
        let number = digits.parse().ok().filter(|number| *number <= HIGHEST)?;
        let this = Self { number, packed };
        (this.to_string() == name).then_some(this)
    }
}

impl fmt::Display for SegmentName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PREFIX}{:010}{SUFFIX}{}", self.number, self.packed.unwrap_or_default())
    }
}

/// Segments that are not there between two that are; at least one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hole {
    first: u64,
    last: u64,
}

impl Hole {
    /// What is not there between two numbers, in their order; nothing if all are there.
    pub fn between(before: u64, after: u64) -> Option<Self> {
        let (first, last) = (before.checked_add(1)?, after.checked_sub(1)?);
        (first <= last).then_some(Self { first, last })
    }

    /// Whether it is more than one segment.
    pub const fn is_of_several(self) -> bool {
        self.first < self.last
    }
}

impl fmt::Display for Hole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (first, last) = (SegmentName::new(self.first), SegmentName::new(self.last));
        if self.is_of_several() {
            let count = (self.last - self.first).saturating_add(1);
            write!(f, "{first} to {last} are not there ({count} segments)")
        } else {
            write!(f, "{first} is not there")
        }
    }
}

impl From<Hole> for String {
    fn from(hole: Hole) -> Self {
        hole.to_string()
    }
}

/// Segments with their numbers, of each number one at most, in their order: each of them, or what is the matter with it; and what is not there between
/// them. Of a number that is none of a segment's, nobody knows that others were before or after it.
pub fn in_a_row<T, E: From<Hole>>(mut all: Vec<(u64, Result<T, E>)>) -> Vec<Result<T, E>> {
    all.sort_by_key(|(number, _)| *number);
    let last = all.iter().rev().find(|(_, of)| of.is_ok()).map_or(0, |(number, _)| *number);
    let (mut row, mut before) = (Vec::with_capacity(all.len()), None);
    for (number, of) in all {
        let hole = before.filter(|_| number <= last).and_then(|before| Hole::between(before, number));
        row.extend(hole.map(|hole| Err(hole.into())));
        if before.is_some() || of.is_ok() {
            before = Some(number);
        }
        row.push(of);
    }
    row
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_read_as_it_is_written_and_nothing_else_is_one() {
        for name in
            ["flight-0000000007.jsonl", "flight-0000000007.jsonl.gz", "flight-999999999999999.jsonl.zst"]
        {
            assert_eq!(SegmentName::parse(name).map(|name| name.to_string()).as_deref(), Some(name));
        }
        for name in [
            "flight-7.jsonl",
            "flight-+000000007.jsonl",
            "flight-0000000007.jsonl.gz.gz",
            "flight-0000000007.jsonl.gz.tmp",
            "flight-0000000007.jsonlx",
            "flight-99999999999999999999.jsonl",
            "flight-18446744073709551615.jsonl",
            "flight-1000000000000000.jsonl",
            "flight-.jsonl",
            "",
        ] {
            assert_eq!(SegmentName::parse(name), None, "{name}");
        }
        let of = |name: &str| SegmentName::parse(name).expect("a name");
        assert!(of("flight-0000000007.jsonl") < of("flight-0000000007.jsonl.gz"));
        assert!(of("flight-0000000007.jsonl.zst") < of("flight-0000000008.jsonl"));
    }

    #[test]
    fn what_is_no_segment_is_named_in_its_place_and_makes_no_hole() {
        let odd = |number: u64| (number, Err(format!("{number} is odd")));
        let row = in_a_row(vec![odd(900), (3, Ok(3)), odd(1), odd(5), (7, Ok(7)), (8, Ok(8)), odd(11)]);
        let said: Vec<String> =
            row.into_iter().map(|of| of.map_or_else(|what| what, |n: u64| n.to_string())).collect();
        let [four, six] = [4, 6].map(|n| format!("{} is not there", SegmentName::new(n)));
        assert_eq!(said, ["1 is odd", "3", &four, "5 is odd", &six, "7", "8", "11 is odd", "900 is odd"]);
    }

    #[test]
    fn what_is_absent_is_named() {
        let absent_between = |before, after| Hole::between(before, after).map(String::from);
        assert_eq!(absent_between(3, 4), None);
        assert_eq!(absent_between(3, 3), None);
        assert_eq!(absent_between(u64::MAX, 0), None);
        assert_eq!(absent_between(3, 5).as_deref(), Some("flight-0000000004.jsonl is not there"));
        assert_eq!(
            absent_between(3, 9).as_deref(),
            Some("flight-0000000004.jsonl to flight-0000000008.jsonl are not there (5 segments)")
        );
        assert!(absent_between(0, u64::MAX).is_some_and(|said| said.contains("(18446744073709551614 ")));
    }
}
