//! What is kept of each line of the log: of a log of gigabytes there are many, so it is little, and no text that is not read again.

use super::line::{Line, Stamp};
use super::said::Said;

/// The field that is read of every line, whatever it says.
const TASK: &str = "task";

/// A line of the log, as far as it is read again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Heard {
    pub(super) stamp: Stamp,
    /// `None` if its message is not known.
    pub(super) said: Option<Said>,
    /// Whether it is a warning or an error.
    pub(super) warns: bool,
    /// Its number among all lines that were read, from 1.
    pub(super) nth: u64,
    /// A number that is the same for the same line.
    pub(super) print: u64,
    /// Those of its fields that are read and say something.
    fields: Box<[(&'static str, Box<str>)]>,
}

impl Heard {
    /// Of a line that says this.
    pub(super) fn of(line: &Line, said: Option<Said>, nth: u64) -> Self {
        let read = Said::reads(said).iter().copied();
        let task = std::iter::once(TASK).filter(|task| !Said::reads(said).contains(task));
        let fields = read.chain(task).filter_map(|key| Some((key, line.get(key)?.into()))).collect();
        Self { stamp: line.stamp, said, warns: line.warns, nth, print: line.print, fields }
    }

    /// A field that says something.
    pub(super) fn get(&self, key: &str) -> Option<&str> {
        let (_, value) = self.fields.iter().find(|(name, _)| *name == key)?;
        Some(value)
    }

    /// A number.
    pub(super) fn number<T: std::str::FromStr>(&self, key: &str) -> Option<T> {
        self.get(key)?.parse().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_line_is_kept_what_is_read_of_it_and_no_more() {
        let of = |text: &str| {
            let line = Line::read(text).unwrap_or_else(|| panic!("{text:?} is a line"));
            Heard::of(&line, Said::by(&line), 7)
        };
        let sent =
            of("07:08:09.010 DBG reported task messages component=daemon task=ab12 count=3 last_seq=4");
        assert_eq!((sent.said, sent.nth), (Some(Said::Sent), 7));
        assert_eq!((sent.get("task"), sent.number("last_seq")), (Some("ab12"), Some(4)));
        assert_eq!((sent.get("count"), sent.get("component")), (None, None));
        // What says nothing is none, and of two of one name the first counts.
        let hint = of(
            "07:08:09.010 DBG task wakeup received component=daemon runtime_id=r runtime_id=s task_id=\"\"",
        );
        assert_eq!((hint.get("runtime_id"), hint.get("task_id"), hint.get("task")), (Some("r"), None, None));
        let unknown = of("07:08:09.010 WRN nobody knows this component=daemon task=ab12 cwd=/x");
        assert_eq!((unknown.said, unknown.get("task"), unknown.get("cwd")), (None, Some("ab12"), None));
        assert!(unknown.warns);
        let size = size_of::<Heard>();
        assert!(size <= 72, "{size} bytes for each line of a log");
    }
}
