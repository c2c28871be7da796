//! The steps of a trace as rows of the table, and where they are in it.

use crate::trace::render::drawing::{Row, StepIndex};
use crate::trace::render::text::Text;
use longshore_core::effect::Effect;
use longshore_core::event::Event;
use longshore_core::id::OpId;
use longshore_core::script::{effect_label, event_label};
use longshore_core::story::Story;
use longshore_core::time::Instant;
use longshore_core::trace::{Header, Record, Step, StepNumber};
use std::collections::HashMap;

/// Rows that are gathered record by record.
#[derive(Default)]
pub struct Steps {
    header: Option<Header>,
    /// Of each life, the numbers of its steps with their rows.
    lives: Vec<Vec<(StepNumber, StepIndex)>>,
    rows: Vec<Row>,
    /// When each row was, on the clock of its life.
    times: Vec<Instant>,
    /// What is on its way, to say what an answer answers.
    asked: HashMap<OpId, String>,
}

impl Steps {
    /// Takes a record, headers included. A step that was there already is left out.
    pub fn record(&mut self, record: &Record) {
        match record {
            Record::Header(header) if !self.header.as_ref().is_some_and(|old| old.same_life(header)) => {
                self.lives.push(Vec::new());
                self.asked.clear();
                self.header = Some((**header).clone());
            }
            Record::Step(step) => self.step(step),
            _ => {}
        }
    }

    fn step(&mut self, step: &Step) {
        let life = self.lives.len().saturating_sub(1);
        let Some(own) = self.lives.last_mut() else { return };
        if own.last().is_some_and(|(last, _)| *last >= step.n) {
            return;
        }
        let Ok(index) = StepIndex::try_from(self.rows.len()) else { return };
        own.push((step.n, index));
        let event =
            step.event.as_ref().map_or_else(|| "the daemon is created".to_owned(), |it| self.event(it));
        let effects = match &step.effects {
            None => vec![Text::from("not recorded")],
            Some(effects) => effects.iter().map(|it| self.effect(it)).collect(),
        };
        self.rows.push(Row { life: life as u32, n: step.n, at: 0, event: event.into(), effects });
        self.times.push(step.mono);
    }

    fn event(&mut self, event: &Event) -> String {
        let label = event_label(event);
        let (op, over) = match event {
            Event::Api { op, .. } | Event::Fs { op, .. } => (op, true),
            Event::Run { op, run } => (op, matches!(run, longshore_core::event::RunEvent::Ended { .. })),
            _ => return label,
        };
        let asked = if over { self.asked.remove(op) } else { self.asked.get(op).cloned() };
        asked.map_or(label.clone(), |asked| format!("{asked}: {label}"))
    }

    fn effect(&mut self, effect: &Effect) -> Text {
        let label = effect_label(effect);
        match effect {
            Effect::Api { op, .. } | Effect::Fs { op, .. } | Effect::Run { op, .. } => {
                let text = Text::from(format!("{label} #{}", op.0));
                self.asked.insert(*op, label);
                text
            }
            _ => label.into(),
        }
    }

    /// Where a step of a life is in the table.
    pub fn index(&self, life: usize, n: StepNumber) -> Option<StepIndex> {
        let own = self.lives.get(life)?;
        own.binary_search_by_key(&n, |(n, _)| *n).ok().map(|at| own[at].1)
    }

    /// The instant of the first step.
    pub(super) fn first(&self) -> Option<(usize, Instant)> {
        Some((self.rows.first()?.life as usize, *self.times.first()?))
    }

    /// When a row was, on the clock of its life.
    pub(super) fn instant(&self, index: StepIndex) -> Option<Instant> {
        self.times.get(index as usize).copied()
    }

    /// The rows, with their times after `base` milliseconds of the story.
    pub(super) fn rows(self, story: &Story, base: u64) -> Vec<Row> {
        let Self { mut rows, times, .. } = self;
        for (row, at) in rows.iter_mut().zip(times) {
            if let Some(life) = story.lives.get(row.life as usize) {
                row.at = super::millis(life.since_story(at)).saturating_sub(base);
            }
        }
        rows
    }
}
