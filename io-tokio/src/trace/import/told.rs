//! What became of the lines of a log, and how that is said.

use super::days::{Days, Guesses, Whence};
use super::line::Line;
use super::repeat::Repeated;
use super::said::Said;
use super::source::Done;
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

/// Fields that name something: of a part of it comes something that there is not.
const NAMES: [&str; 5] = ["task", "runtime_id", "workspace_id", "provider", "version"];

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
    /// Those whose end is missing.
    cut: u64,
    /// Logs whose last line is cut.
    cut_ends: Vec<String>,
    /// Those about a task whose id is none, and the first of these ids with its line.
    odd: u64,
    first_odd: Option<(String, u64)>,
    /// Files that are broken, after how many lines, and why.
    pub(super) broken: Vec<(String, u64, String)>,
    pub(super) repeated: Repeated,
    last: Last,
}

/// What the latest line was counted as.
#[derive(Debug, Default)]
enum Last {
    /// There is none, or it says nothing.
    #[default]
    Blank,
    /// None of the log.
    Other,
    /// One with a message that is not known.
    Unknown(String),
    /// One with a quote that is not closed.
    Unclosed,
    /// One that was understood.
    Understood {
        /// Whether it is all there whatever comes after it.
        whole: bool,
    },
}

impl Count {
    /// Reads a line.
    pub(super) fn read(&mut self, text: &str) -> Option<Line> {
        self.all += 1;
        let Some(line) = Line::read(text) else {
            let blank = text.trim().is_empty();
            self.other += u64::from(!blank);
            self.last = if blank { Last::Blank } else { Last::Other };
            return None;
        };
        self.cut += u64::from(line.cut);
        let said = Said::by(&line);
        self.last = if let Some(said) = said {
            self.understood += 1;
            self.odd_id(said, &line);
            // What goes on behind its last field has that whole.
            let open = line.last_field().is_some_and(|(_, value)| text.ends_with(value));
            Last::Understood { whole: text.ends_with('}') || !open }
        } else {
            self.unknown_lines += 1;
            let message: String = line.message.chars().filter(|c| !c.is_control()).take(WIDE).collect();
            if self.unknown.len() < TOLD_APART || self.unknown.contains_key(&message) {
                self.unknown.entry(message.clone()).or_insert((0, self.all)).0 += 1;
            }
            Last::Unknown(message)
        };
        if line.cut {
            self.last = Last::Unclosed;
        }
        Some(Line { nth: self.all, ..line })
    }

    fn odd_id(&mut self, said: Said, line: &Line) {
        let id = line.get("task").filter(|id| said != Said::Background && !is_safe_component(id));
        // What is cut is said anyhow.
        let Some(id) = id.filter(|_| !line.cut) else { return };
        self.odd += 1;
        let (all, shown) = (self.all, || id.chars().take(WIDE).collect());
        self.first_odd.get_or_insert_with(|| (shown(), all));
    }

    /// A log is read. `lines` are those of all that there are so far.
    pub(super) fn end_of(&mut self, name: &str, done: Done, lines: &mut Vec<Line>) {
        self.cut += done.long;
        self.broken.extend(done.broken.map(|why| (name.to_owned(), done.lines, why)));
        let last = std::mem::take(&mut self.last);
        if done.unended && self.is_cut(last, lines) {
            self.cut_ends.push(name.to_owned());
        }
    }

    /// Whether the last line, which has no line end, is cut. It is counted as that and nothing else then, and what may be part of a name is
    /// left out.
    fn is_cut(&mut self, last: Last, lines: &mut Vec<Line>) -> bool {
        match last {
            Last::Blank | Last::Understood { whole: true } => return false,
            Last::Other => self.other -= 1,
            Last::Unknown(message) => {
                self.unknown_lines -= 1;
                if let Some((times, _)) = self.unknown.get_mut(&message) {
                    *times -= 1;
                }
                self.unknown.retain(|_, (times, _)| *times > 0);
            }
            Last::Unclosed => self.cut -= 1,
            Last::Understood { whole: false } => {
                let Some((line, before)) = lines.split_last_mut() else { return false };
                let Some((key, value)) = line.last_field().filter(|(key, _)| NAMES.contains(key)) else {
                    return false;
                };
                if before.iter().any(|line| line.get(key) == Some(value)) {
                    return false;
                }
                if key == "task" {
                    self.understood -= 1;
                    lines.pop();
                } else {
                    line.drop_last_field();
                }
            }
        }
        true
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
            writeln!(err, "cut         the last line of {name} is cut, and was read as far as it goes")?;
        }
        match self.cut {
            0 => {}
            1 => writeln!(err, "cut         1 line has no end, and was read as far as it goes")?,
            n => writeln!(err, "cut         {n} lines have no end, and were read as far as they go")?,
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
