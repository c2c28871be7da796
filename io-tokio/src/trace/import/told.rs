//! What became of the lines of a log, and how that is said.

use super::days::{Days, Guesses, Whence};
use super::heard::Heard;
use super::line::{Line, Tail};
use super::repeat::Repeated;
use super::said::Said;
use super::source::{Done, LONGEST, LineEnd};
use crate::trace::words::{clean, count, length};
use longshore_core::id::is_safe_component;
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::time::Duration;

/// As many different messages that are not known are shown.
const SHOWN: usize = 8;

/// The longest of them that is shown, in characters.
const WIDE: usize = 60;

/// Messages that are not known and are told apart; a log of many more is none.
const TOLD_APART: usize = 10_000;

/// What became of the lines.
#[derive(Debug, Default)]
pub(super) struct Count {
    pub(super) all: u64,
    /// Those with a message that is known.
    pub(super) understood: u64,
    /// Those of the log with another message, by that, with the number of the first.
    unknown: BTreeMap<String, (u64, u64)>,
    unknown_lines: u64,
    /// Those that are none of the log: traces of a panic, what goes on from the line before.
    other: u64,
    /// Those with a quote that is not closed.
    unclosed: Torn,
    /// Those that are longer than can be read.
    long: Torn,
    /// Logs whose last line has no end, and is left out.
    cut_ends: Vec<String>,
    /// Whether that is so of the log that is read.
    cut_end: bool,
    /// Those of the log that are left out as they may be cut.
    pub(super) not_whole: u64,
    /// Those about a task whose id is none, and the first of these ids with its line.
    odd: u64,
    first_odd: Option<(String, u64)>,
    /// Files that are broken, after how many lines, and why.
    pub(super) broken: Vec<(String, u64, String)>,
    pub(super) repeated: Repeated,
}

/// Lines of which only a part is there.
#[derive(Clone, Copy, Debug, Default)]
struct Torn {
    lines: u64,
    /// Those of them of which something is missing that counts.
    left_out: u64,
}

impl Torn {
    fn add(&mut self, left_out: bool) {
        self.lines += 1;
        self.left_out += u64::from(left_out);
    }

    /// What was made of them, behind how many they are.
    fn used(self) -> String {
        match (self.lines, self.left_out) {
            (_, 0) => "all that is read of such a line is there".to_owned(),
            (1, _) => "left out, as what it says may be half".to_owned(),
            (all, out) if all == out => "left out, as what they say may be half".to_owned(),
            (_, 1) => "1 is left out, as what it says may be half".to_owned(),
            (_, out) => format!("{out} are left out, as what they say may be half"),
        }
    }
}

impl Count {
    /// Reads a line. `None`: there is nothing in it to go by.
    ///
    /// Of one whose end is missing only what is certainly whole is taken, and that is all that is read of such a line, or nothing.
    pub(super) fn read(&mut self, text: &str, end: LineEnd) -> Option<Heard> {
        self.all += 1;
        let line = Line::read(text);
        if line.is_none() && text.trim().is_empty() {
            return None;
        }
        let said = line.as_ref().and_then(Said::by);
        let is_whole = line.as_ref().is_some_and(|line| line.tells(Said::reads(said)));
        let tail = line.as_ref().map(|line| line.tail);
        let left_out = match end {
            LineEnd::Missing => !is_whole || matches!(tail, Some(Tail::Quoted | Tail::Between)),
            LineEnd::TooFar => !is_whole,
            LineEnd::There => !is_whole && tail == Some(Tail::Quoted),
        };
        match end {
            LineEnd::Missing => self.cut_end = left_out,
            LineEnd::TooFar => self.long.add(left_out),
            LineEnd::There if tail == Some(Tail::Quoted) => self.unclosed.add(left_out),
            LineEnd::There => {}
        }
        if left_out {
            self.not_whole += u64::from(line.is_some());
            return None;
        }
        let Some(line) = line else {
            self.other += 1;
            return None;
        };
        if let Some(said) = said {
            self.understood += 1;
            self.odd_id(said, &line);
        } else {
            self.unknown_lines += 1;
            let message: String = line.message.chars().filter(|c| !c.is_control()).take(WIDE).collect();
            if self.unknown.len() < TOLD_APART || self.unknown.contains_key(&message) {
                self.unknown.entry(message).or_insert((0, self.all)).0 += 1;
            }
        }
        Some(Heard::of(&line, said, self.all))
    }

    fn odd_id(&mut self, said: Said, line: &Line) {
        let id = line.get("task").filter(|id| said != Said::Background && !is_safe_component(id));
        let Some(id) = id else { return };
        self.odd += 1;
        let (all, shown) = (self.all, || id.chars().take(WIDE).collect());
        self.first_odd.get_or_insert_with(|| (shown(), all));
    }

    /// A log is read.
    pub(super) fn end_of(&mut self, name: &str, done: Done) {
        self.broken.extend(done.broken.map(|why| (name.to_owned(), done.lines, why)));
        if std::mem::take(&mut self.cut_end) {
            self.cut_ends.push(name.to_owned());
        }
    }

    /// The logs whose last line is left out.
    #[cfg(test)]
    pub(super) fn cut_ends(&self) -> &[String] {
        &self.cut_ends
    }

    /// Says it all.
    pub(super) fn tell(&self, err: &mut dyn Write, name: &str, steps: u64, dates: &Dates) -> io::Result<()> {
        for (name, lines, why) in &self.broken {
            match lines {
                0 => writeln!(err, "warning: {name}: nothing can be read: {why}")?,
                _ => writeln!(
                    err,
                    "warning: {name}: after line {lines} nothing can be read: {why}; what came before was used"
                )?,
            }
        }
        let lines = |n: u64| count(n, "line", "lines");
        let (steps, all) = (count(steps, "step", "steps"), lines(self.all));
        let whence = dates.whence().map_or_else(String::new, |whence| format!("; {whence}"));
        writeln!(err, "{name}: {steps} from {all}{whence}")?;
        writeln!(err, "understood  {}", lines(self.understood))?;
        if self.unknown_lines > 0 {
            writeln!(err, "not known   {}, left out:", lines(self.unknown_lines))?;
            let mut most: Vec<_> = self.unknown.iter().collect();
            most.sort_by_key(|(_, (times, first))| (std::cmp::Reverse(*times), *first));
            for (message, (times, first)) in most.iter().take(SHOWN) {
                writeln!(err, "            {times} x \"{message}\", first in line {first}")?;
            }
            if most.len() > SHOWN {
                writeln!(err, "            and {}", count(most.len() - SHOWN, "other", "others"))?;
            }
        }
        if self.other > 0 {
            let are = count(self.other, "line is none", "lines are none");
            let were = if self.other == 1 { "was" } else { "were" };
            writeln!(err, "other       {are} of the log, and {were} left out")?;
        }
        if let Some((id, line)) = &self.first_odd {
            let name = count(self.odd, "line names", "lines name");
            writeln!(
                err,
                "odd ids     {name} a task by what is no id, left out: first \"{}\" in line {line}",
                clean(id)
            )?;
        }
        if let Some((line, of)) = self.repeated.first {
            let are = count(self.repeated.lines, "line is", "lines are");
            writeln!(
                err,
                "repeated    {are} there twice, used once: line {line} is line {of} again, and so on"
            )?;
        }
        for name in &self.cut_ends {
            writeln!(
                err,
                "cut         the last line of {name} has no line end: left out, as what it says may be half"
            )?;
        }
        if self.unclosed.lines > 0 {
            let have = count(self.unclosed.lines, "line has a quote that is", "lines have a quote that is");
            writeln!(err, "cut         {have} not closed: {}", self.unclosed.used())?;
        }
        if self.long.lines > 0 {
            let are = count(self.long.lines, "line is", "lines are");
            let (bound, used) = (LONGEST / 1024, self.long.used());
            writeln!(err, "too long    {are} longer than {bound} KiB, and not read behind that: {used}")?;
        }
        for guess in dates.guesses() {
            writeln!(err, "guessed     {guess}")?;
        }
        Ok(())
    }

    /// What a reader of the trace must know of it.
    pub(super) fn remark(&self, dates: &Dates) -> String {
        let are = if self.understood == 1 { "was" } else { "were" };
        let all = count(self.all, "line", "lines");
        let mut said =
            vec![format!("imported from a log of {all}, of which {} {are} understood", self.understood)];
        said.extend(dates.whence());
        if self.repeated.lines > 0 {
            let are = count(self.repeated.lines, "line is", "lines are");
            said.push(format!("{are} there twice and used once"));
        }
        if self.odd > 0 {
            let name = count(self.odd, "line is left out that names", "lines are left out that name");
            said.push(format!("{name} a task by what is no id"));
        }
        said.extend(dates.guesses().map(|guess| format!("guessed: {guess}")));
        said.join("; ")
    }
}

/// How it is known when lines were written.
#[derive(Clone, Debug)]
pub(super) struct Dates {
    pub(super) days: Days,
    /// How many lines are of an hour that comes twice.
    pub(super) twice: u64,
}

impl Dates {
    /// Where the dates come from; nothing if every line has its own.
    fn whence(&self) -> Option<String> {
        let Whence { hand, names, files, now, lines } = self.days.whence;
        let from: Vec<&str> = [
            (names, "the names of the files"),
            (files, "the time of the file"),
            (now, "that of the import"),
            (lines, "lines that have one"),
        ]
        .into_iter()
        .filter_map(|(is, what)| is.then_some(what))
        .collect();
        let taken = format!("taken from {}", from.join(" and "));
        let how = match (hand, from.is_empty()) {
            (true, true) => "said by hand".to_owned(),
            (true, false) => format!("said by hand and {taken}"),
            (false, false) => taken,
            (false, true) => return None,
        };
        Some(format!("where lines have no date it was {how}"))
    }

    /// What may be otherwise.
    fn guesses(&self) -> impl Iterator<Item = String> {
        let of = |Guesses { count: times, first }: Guesses, taken: &str| {
            let (line, back) = first?;
            let back = length(Duration::from_millis(back.unsigned_abs()));
            let more = match times - 1 {
                0 => String::new(),
                more => format!(", and {} more", count(more, "time", "times")),
            };
            Some(format!("in line {line} the time of day goes back by {back}{more}: taken for {taken}"))
        };
        let night = of(self.days.nights, "a midnight, and not for a clock that was set back");
        let set = of(self.days.set, "a clock that was set back, and not for a midnight");
        let twice = (self.twice > 0).then(|| {
            let are = count(self.twice, "line is", "lines are");
            format!(
                "{are} of the hour that comes twice as summer time ends: which one is told by their order"
            )
        });
        night.into_iter().chain(set).chain(twice)
    }
}
