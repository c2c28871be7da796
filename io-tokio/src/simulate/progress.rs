//! How a sweep gets on: a bar in a terminal, a line now and then elsewhere.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

/// Between two lines, where nobody can see a bar.
const LINE_EVERY: Duration = Duration::from_secs(10);

pub(super) struct Progress {
    seeds: u64,
    begun: Instant,
    told: Instant,
    bar: Option<ProgressBar>,
}

impl Progress {
    pub(super) fn new(seeds: u64) -> Self {
        let bar = io::stderr().is_terminal().then(|| {
            let bar = ProgressBar::with_draw_target(Some(seeds), ProgressDrawTarget::stderr());
            let style = ProgressStyle::with_template("{wide_bar} {pos}/{len} seeds, {msg}, {eta} left");
            bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
        });
        let now = Instant::now();
        Self { seeds, begun: now, told: now, bar }
    }

    /// Another world is done.
    pub(super) fn show(
        &mut self,
        err: &mut dyn Write,
        seeds: u64,
        steps: u64,
        failures: u64,
    ) -> io::Result<()> {
        let ms = u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX).max(1);
        let speed = steps / ms;
        if let Some(bar) = &self.bar {
            bar.set_position(seeds);
            bar.set_message(format!("{speed} k steps/s, {failures} failures"));
            return Ok(());
        }
        if self.told.elapsed() < LINE_EVERY {
            return Ok(());
        }
        self.told = Instant::now();
        let left = (self.seeds - seeds) * ms / seeds.max(1) / 1000;
        writeln!(
            err,
            "{seeds} of {} seeds, {speed} k steps/s, {failures} failures, about {left} s left",
            self.seeds
        )
    }

    /// Something else is printed.
    pub(super) fn pause(&self, print: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
        match &self.bar {
            Some(bar) => bar.suspend(print),
            None => print(),
        }
    }

    pub(super) fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
