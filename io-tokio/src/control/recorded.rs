//! What a daemon has recorded of itself.

use super::error::ControlError;
use super::health::Unanswered;
use super::place::Place;
use super::running::Running;
use crate::health::{TRACE_PATH, TRACE_REFUSED, TRACE_REMEDY};
use crate::trace_sink::Refusal;
use std::path::PathBuf;

/// The longest refusal that is shown, in characters.
const WORDS: usize = 200;

/// Who has the recording.
#[derive(Debug)]
pub enum Recorded {
    /// The daemon, which gives it.
    From(Recording),
    /// No daemon runs.
    Nobody,
    /// A daemon runs, and does not give it: why.
    Unsaid(String),
}

/// A recording on its way.
#[derive(Debug)]
pub struct Recording {
    pid: i32,
    answer: reqwest::Response,
}

impl Recording {
    /// The daemon's process id.
    pub fn pid(&self) -> i32 {
        self.pid
    }

    /// Whether the daemon's disk does not take the recording at the moment.
    pub fn refusal(&self) -> Option<Refusal> {
        let said = |name| self.answer.headers().get(name)?.to_str().ok();
        let short = |text: &str| text.chars().take(WORDS).collect();
        let (since, why) = said(TRACE_REFUSED)?.split_once(' ')?;
        Some(Refusal { since: since.parse().ok()?, why: short(why), remedy: said(TRACE_REMEDY).map(short) })
    }

    /// The next bytes, as they come; `None` at the end.
    ///
    /// # Errors
    /// The daemon broke off, so what came so far is not all.
    pub async fn next(&mut self) -> Result<Option<Vec<u8>>, ControlError> {
        let pid = self.pid;
        let broke_off = |_| ControlError::RecordingBrokeOff { pid };
        Ok(self.answer.chunk().await.map_err(broke_off)?.map(Vec::from))
    }
}

impl Place {
    /// Where the flight recorder of the daemon is.
    pub fn trace_dir(&self) -> PathBuf {
        self.dirs.profile.join("longshore/trace")
    }
}

/// Asks the daemon of this place for its recording.
///
/// # Errors
/// What answers is another user's or another profile's daemon, or does not answer as a daemon does.
pub async fn recorded(place: &Place) -> Result<Recorded, ControlError> {
    let Some(daemon) = Running::find(place).await? else { return Ok(Recorded::Nobody) };
    let pid = daemon.pid;
    match daemon.local().open(TRACE_PATH).await {
        Ok(answer) if answer.status().is_success() => Ok(Recorded::From(Recording { pid, answer })),
        Ok(answer) => {
            let status = answer.status().as_u16();
            let words = answer.text().await.unwrap_or_default();
            let words: String = words.trim().chars().filter(|c| !c.is_control()).take(WORDS).collect();
            Ok(Recorded::Unsaid(format!("pid {pid}: {status} {words}").trim_end().to_owned()))
        }
        Err(Unanswered::Nobody) => Ok(Recorded::Nobody),
        Err(Unanswered::Silent(why)) => Ok(Recorded::Unsaid(format!("pid {pid}: {why}"))),
    }
}
