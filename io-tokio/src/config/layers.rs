//! One knob from several places: a flag beats the environment, which beats the config file.

use super::duration::{self, Days};
use super::env::Env;
use super::error::{ConfigError, Source};
use super::file::ConfigFile;
use super::size;
use std::collections::BTreeMap;
use std::str::FromStr;
use std::time::Duration;

/// The places of one knob; an absent one is empty.
#[derive(Clone, Copy, Default)]
pub(super) struct Places<'a> {
    /// The flag with its dashes, and its value where it was given.
    pub flag: Option<(&'static str, &'a str)>,
    /// The environment variable.
    pub env: &'static str,
    /// The key of the config file.
    pub key: &'static str,
}

/// What a zero means for a duration.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Zero {
    /// It turns the knob off.
    Off,
    /// It is the same as not saying anything, except in the file, where it is an error.
    Unset,
    /// It is an error, except as a flag, where it is the same as not given.
    Refused,
}

/// What was said about a duration.
enum Limit {
    Unsaid,
    Off,
    Of(Duration),
}

/// What was said, and where.
pub(super) struct Said {
    pub text: String,
    pub place: Source,
}

impl Said {
    pub(super) fn wrong(&self, problem: &str, expected: &str) -> ConfigError {
        ConfigError::value(self.place.clone(), Some(&self.text), problem, expected)
    }

    fn is_in_file(&self) -> bool {
        matches!(self.place, Source::File { .. })
    }

    fn is_flag(&self) -> bool {
        matches!(self.place, Source::Flag(_))
    }
}

/// The places, and a note of which one decided what.
pub(super) struct Layers<'a> {
    pub env: &'a Env,
    pub file: &'a ConfigFile,
    pub sources: BTreeMap<&'static str, Source>,
}

impl Layers<'_> {
    /// What each place says, the strongest first. A blank one says nothing. The config file is asked only if the
    /// environment is silent.
    fn said(&self, at: Places<'_>) -> Result<Vec<Said>, ConfigError> {
        let mut all = Vec::new();
        if let Some((name, value)) = at.flag.filter(|(_, v)| !v.trim().is_empty()) {
            all.push(Said { text: value.trim().to_owned(), place: Source::Flag(name) });
        }
        if !at.env.is_empty()
            && let Some(text) = self.env.text(at.env)?
        {
            all.push(Said { text: text.to_owned(), place: Source::Env(at.env.to_owned()) });
        } else if !at.key.is_empty()
            && let Some(text) = self.file.text_or_number(at.key)?
        {
            all.push(Said { text, place: self.file.place(at.key) });
        }
        Ok(all)
    }

    fn note(&mut self, knob: &'static str, place: Source) {
        self.sources.insert(knob, place);
    }

    /// The strongest text.
    pub(super) fn text(&mut self, knob: &'static str, at: Places<'_>) -> Result<Option<Said>, ConfigError> {
        let said = self.said(at)?.into_iter().next();
        if let Some(said) = &said {
            self.note(knob, said.place.clone());
        }
        Ok(said)
    }

    /// A duration.
    fn duration(&mut self, knob: &'static str, at: Places<'_>, zero: Zero) -> Result<Limit, ConfigError> {
        for said in self.said(at)? {
            let (days, mut expected) = match said.place {
                Source::Env(_) => (Days::Allowed, "a duration such as 30s, 1h30m or 1d".to_owned()),
                _ => (Days::Refused, "a duration such as 200ms, 30s or 1h30m".to_owned()),
            };
            expected.push_str(if zero == Zero::Off { "; 0s turns it off" } else { ", more than zero" });
            let nanos = duration::parse(&said.text, days).map_err(|e| said.wrong(e, &expected))?;
            let value = nanos.non_negative().ok_or_else(|| said.wrong("it is negative", &expected))?;
            match (value.is_zero(), zero) {
                (true, Zero::Unset) if !said.is_in_file() => {}
                (true, Zero::Refused) if said.is_flag() => {}
                (true, Zero::Unset | Zero::Refused) => return Err(said.wrong("it is zero", &expected)),
                (is_zero, _) => {
                    self.note(knob, said.place);
                    return Ok(if is_zero { Limit::Off } else { Limit::Of(value) });
                }
            }
        }
        Ok(Limit::Unsaid)
    }

    /// A duration of which zero is no value.
    pub(super) fn positive(
        &mut self,
        knob: &'static str,
        at: Places<'_>,
        zero: Zero,
        default: Duration,
    ) -> Result<Duration, ConfigError> {
        Ok(match self.duration(knob, at, zero)? {
            Limit::Of(value) => value,
            Limit::Unsaid | Limit::Off => default,
        })
    }

    /// A duration that zero turns off.
    pub(super) fn or_off(
        &mut self,
        knob: &'static str,
        at: Places<'_>,
        default: Option<Duration>,
    ) -> Result<Option<Duration>, ConfigError> {
        Ok(match self.duration(knob, at, Zero::Off)? {
            Limit::Of(value) => Some(value),
            Limit::Off => None,
            Limit::Unsaid => default,
        })
    }

    /// A count from 1 to 65535. Zero is refused in the environment; as a flag or in the file it says nothing.
    pub(super) fn count(
        &mut self,
        knob: &'static str,
        at: Places<'_>,
        default: u16,
    ) -> Result<u16, ConfigError> {
        for said in self.said(at)? {
            let n = parse_count(&said)?;
            if n > 0 {
                self.note(knob, said.place);
                return Ok(n);
            }
            if matches!(said.place, Source::Env(_)) {
                return Err(said.wrong("it is zero", COUNT));
            }
        }
        Ok(default)
    }

    /// A size in bytes; `None` if it was turned off with 0.
    pub(super) fn size(
        &mut self,
        knob: &'static str,
        at: Places<'_>,
        default: Option<u64>,
    ) -> Result<Option<u64>, ConfigError> {
        let Some(said) = self.text(knob, at)? else { return Ok(default) };
        let expected = "a byte count or a size such as 512MiB or 1GiB; 0 turns the limit off";
        let bytes = size::parse(&said.text).map_err(|e| said.wrong(e, expected))?;
        Ok((bytes > 0).then_some(bytes))
    }

    /// One of a few words.
    pub(super) fn word<T: FromStr<Err = &'static str> + Default>(
        &mut self,
        knob: &'static str,
        at: Places<'_>,
    ) -> Result<T, ConfigError> {
        let Some(said) = self.text(knob, at)? else { return Ok(T::default()) };
        said.text.parse().map_err(|expected| said.wrong("it is none of the choices", expected))
    }
}

const COUNT: &str = "a whole number from 1 to 65535";

/// A count from 0 to 65535.
pub(super) fn parse_count(said: &Said) -> Result<u16, ConfigError> {
    match said.text.parse::<i64>() {
        Ok(n) if n < 0 => Err(said.wrong("it is negative", COUNT)),
        Ok(n) => u16::try_from(n).map_err(|_| said.wrong("it is too large", COUNT)),
        Err(_) => Err(said.wrong("it is no whole number", COUNT)),
    }
}
