//! Steps as a person names them.

use longshore_core::trace::{Header, Record, StepNumber};
use std::fmt;
use std::str::FromStr;
use thiserror::Error;

/// A step: `59`, or `2/59` for step 59 of life 2. Without a life it is the first step of that number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StepName {
    /// In which life, from 1.
    pub life: Option<u64>,
    /// Its number there, from 0.
    pub n: StepNumber,
}

impl StepName {
    /// Whether that is step `n` of a life, from 1.
    pub fn is(self, life: u64, n: StepNumber) -> bool {
        self.n == n && self.life.is_none_or(|wanted| wanted == life)
    }
}

/// What a text is that names no step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("a step is a number from 0, such as 59; 2/59 is step 59 of life 2, and lives are counted from 1")]
pub struct NoStepName;

impl FromStr for StepName {
    type Err = NoStepName;

    fn from_str(text: &str) -> Result<Self, NoStepName> {
        let number = |text: &str| {
            let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
            text.parse::<u64>().ok().filter(|_| digits).ok_or(NoStepName)
        };
        let Some((life, n)) = text.split_once('/') else {
            return Ok(Self { life: None, n: number(text)? });
        };
        let life = number(life).ok().filter(|life| *life > 0).ok_or(NoStepName)?;
        Ok(Self { life: Some(life), n: number(n)? })
    }
}

impl fmt::Display for StepName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.life {
            None => write!(f, "step {}", self.n),
            Some(life) => write!(f, "step {} of life {life}", self.n),
        }
    }
}

/// Counts the lives that pass by.
#[derive(Debug, Default)]
pub(super) struct Lives {
    last: Option<Box<Header>>,
    count: u64,
}

impl Lives {
    /// Takes a record. Returns the number of the life that it is of, from 1.
    pub(super) fn record(&mut self, record: &Record) -> u64 {
        if let Record::Header(header) = record {
            let same = self.last.as_ref().is_some_and(|last| last.same_life(header));
            self.count += u64::from(!same);
            self.last = Some(header.clone());
        }
        self.count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_has_a_number_and_may_have_a_life() {
        let step = |text: &str| text.parse::<StepName>();
        assert_eq!(step("59"), Ok(StepName { life: None, n: 59 }));
        assert_eq!(step("2/0"), Ok(StepName { life: Some(2), n: 0 }));
        for text in ["", "-1", "+1", "1/", "/1", "0/5", "1/2/3", "1.5", "x", "99999999999999999999"] {
            assert_eq!(step(text), Err(NoStepName), "{text}");
        }
        assert_eq!(
            (step("7").map(|it| it.is(3, 7)), step("2/7").map(|it| it.is(3, 7))),
            (Ok(true), Ok(false))
        );
        assert_eq!(step("2/7").map(|it| it.to_string()), Ok("step 7 of life 2".to_owned()));
    }
}
