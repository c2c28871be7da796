//! What agents said. Like the real server it has no uniqueness: a batch that is sent twice is stored twice.

use super::row::Text;
use super::{Plane, Refusal};
use crate::id::TaskId;
use crate::time::Now;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// One message of a run.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Message {
    /// Its place, as the daemon counts.
    pub seq: i32,
    /// `text`, `thinking`, `tool_use`, `tool_result` or `error`; any text is taken.
    pub kind: Text,
    /// The tool.
    pub tool: Option<Text>,
    /// What was said.
    pub content: Option<Text>,
    /// The tool's arguments: a JSON object as text.
    pub input: Option<Text>,
    /// The tool's result.
    pub output: Option<Text>,
    /// When it arrived.
    pub at: Now,
}

impl Message {
    /// Bytes that it counts for: its texts and the frame around them.
    fn size(&self) -> usize {
        let texts = [&self.tool, &self.content, &self.input, &self.output];
        64 + self.kind.len() + texts.into_iter().flatten().map(|text| text.len()).sum::<usize>()
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(super) struct Transcripts {
    by_task: BTreeMap<TaskId, Vec<Message>>,
    bytes: usize,
    /// What is to be stored; `None` as long as nobody stores it.
    #[serde(skip)]
    touched: Option<Touched>,
}

/// What became of transcripts since they were stored last.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Touched {
    /// Those that are gone, with the number of their messages.
    gone: BTreeMap<TaskId, usize>,
    /// Those that have grown, with the place of the first new message.
    grown: BTreeMap<TaskId, usize>,
}

impl Transcripts {
    pub(super) fn track(&mut self) {
        let grown = self.by_task.keys().map(|id| (id.clone(), 0)).collect();
        self.touched = Some(Touched { gone: BTreeMap::new(), grown });
    }

    /// The transcripts that are gone and how many messages they had; those that have grown and from where on.
    pub(super) fn take_touched(&mut self) -> (BTreeMap<TaskId, usize>, BTreeMap<TaskId, usize>) {
        let touched = self.touched.as_mut().map(std::mem::take).unwrap_or_default();
        (touched.gone, touched.grown)
    }

    pub(super) fn append(&mut self, id: &TaskId, batch: Vec<Message>) {
        self.bytes += batch.iter().map(Message::size).sum::<usize>();
        let all = self.by_task.entry(id.clone()).or_default();
        if let Some(touched) = &mut self.touched {
            touched.grown.entry(id.clone()).or_insert(all.len());
        }
        all.extend(batch);
    }

    pub(super) fn forget(&mut self, id: &TaskId) {
        if let Some(gone) = self.by_task.remove(id) {
            self.bytes -= gone.iter().map(Message::size).sum::<usize>();
            if let Some(touched) = &mut self.touched {
                touched.grown.remove(id);
                let stored = touched.gone.entry(id.clone()).or_default();
                *stored = gone.len().max(*stored);
            }
        }
    }
}

impl Plane {
    /// Stores a batch, in any state of the task: all of it or nothing. An empty one is taken for any id.
    ///
    /// # Errors
    /// [`Refusal::TaskNotFound`]; [`Refusal::Full`] if the task has too many messages, or all transcripts together
    /// are too large and none of an ended task can be forgotten.
    pub fn post_messages(&mut self, id: &TaskId, batch: Vec<Message>) -> Result<(), Refusal> {
        if batch.is_empty() {
            return Ok(());
        }
        self.row(id)?;
        if self.transcript(id).len() + batch.len() > self.limits.task_messages {
            return Err(Refusal::Full("messages of this task"));
        }
        let size: usize = batch.iter().map(Message::size).sum();
        if self.transcripts.bytes + size > self.limits.transcript_bytes {
            let ended: Vec<_> = self.ended.iter().filter(|ended| *ended != id).cloned().collect();
            for task in &ended {
                if self.transcripts.bytes + size <= self.limits.transcript_bytes {
                    break;
                }
                self.transcripts.forget(task);
            }
            if self.transcripts.bytes + size > self.limits.transcript_bytes {
                return Err(Refusal::Full("transcript bytes"));
            }
        }
        self.transcripts.append(id, batch);
        Ok(())
    }

    /// Every stored message of the task, in the order of arrival; empty for a task that is not there.
    pub fn transcript(&self, id: &TaskId) -> &[Message] {
        self.transcripts.by_task.get(id).map_or(&[], Vec::as_slice)
    }

    /// The messages after `since`, by sequence number and then arrival.
    ///
    /// # Errors
    /// [`Refusal::TaskNotFound`].
    pub fn messages_since(&self, id: &TaskId, since: i64) -> Result<Vec<&Message>, Refusal> {
        self.row(id)?;
        let mut out: Vec<_> =
            self.transcript(id).iter().filter(|message| i64::from(message.seq) > since).collect();
        out.sort_by_key(|message| message.seq);
        Ok(out)
    }
}
