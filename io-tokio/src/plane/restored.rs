//! A control plane as it was stored, or a new one.

use super::access::Tokens;
use super::content::Content;
use super::database::{self, CLOCK, OpenError, TOKENS, Table, Writer, read_content};
use super::server::StartError;
use super::skills::Skill;
use longshore_core::plane::limits::Limits;
use longshore_core::plane::{Payload, Plane, Text};
use longshore_core::time::Now;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// All that a control plane knows beside its connections.
#[derive(Debug)]
pub(super) struct Restored {
    pub(super) plane: Plane,
    pub(super) tokens: Tokens,
    pub(super) skills: BTreeMap<Text, Arc<Vec<Skill>>>,
    pub(super) contents: BTreeMap<Payload, Arc<Content>>,
    /// Where the plane's clock stands: it goes on through the time that nothing ran.
    pub(super) moment: Duration,
}

impl Restored {
    /// A new one.
    pub(super) fn new(seed: u64) -> Self {
        Self {
            plane: Plane::new(seed),
            tokens: Tokens::default(),
            skills: BTreeMap::new(),
            contents: BTreeMap::new(),
            moment: Duration::ZERO,
        }
    }

    /// The one in the file, which is made if it is missing, and what writes it from now on.
    pub(super) fn open(path: &Path, seed: u64) -> Result<(Self, Writer), StartError> {
        let opened = database::open(path, |rows| Self::of_rows(seed, rows))?;
        if let Some((aside, damage)) = &opened.set_aside {
            tracing::error!(
                "the database {} is damaged ({damage}): it was put aside as {}, and the control plane begins with an empty one. Tasks \
                 that were queued in it have to be queued again",
                path.display(),
                aside.display()
            );
        }
        let mut restored = opened.made;
        restored.plane.track();
        let writer = Writer::start(opened.file).map_err(|why| OpenError::Unusable {
            path: path.to_owned(),
            why: format!("no thread can be started to write it: {why}"),
        })?;
        Ok((restored, writer))
    }

    fn of_rows(seed: u64, rows: Vec<(Table, String, Vec<u8>)>) -> Result<Self, String> {
        let mut out = Self::new(seed);
        let mut of_plane = Vec::new();
        for (table, key, value) in rows {
            match table {
                Table::Plane(rows) => of_plane.push((rows, key, value)),
                Table::Contents => {
                    let number = key.parse().map_err(|_| format!("contents {key:?}: this is no number"))?;
                    let content = read_content(&value).map_err(|why| format!("contents {key:?}: {why}"))?;
                    out.contents.insert(Payload(number), Arc::new(content));
                }
                Table::Skills => {
                    out.skills.insert(key.as_str().into(), Arc::new(read("skills", &key, &value)?));
                }
                Table::Singles => match key.as_str() {
                    TOKENS => out.tokens = read("singles", &key, &value)?,
                    CLOCK => out.moment = moment(read("singles", &key, &value)?),
                    _ => {}
                },
            }
        }
        out.plane = Plane::restore(seed, Limits::default(), of_plane).map_err(|why| why.to_string())?;
        if let Some(task) =
            out.plane.tasks().find(|it| it.payload.0 != 0 && !out.contents.contains_key(&it.payload))
        {
            return Err(format!("tasks {:?}: its texts are not there", task.id.as_str()));
        }
        Ok(out)
    }
}

fn read<T: DeserializeOwned>(table: &str, key: &str, value: &[u8]) -> Result<T, String> {
    serde_json::from_slice(value).map_err(|why| format!("{table} {key:?}: {why}"))
}

/// Where the clock stands that stood at `last` when something was stored. A wall clock that was set back stops it, no more.
fn moment(last: Now) -> Duration {
    let wall = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let since = wall.saturating_sub(Duration::from_millis(u64::try_from(last.wall.0).unwrap_or_default()));
    Duration::from_millis(last.mono.as_millis()) + since
}
