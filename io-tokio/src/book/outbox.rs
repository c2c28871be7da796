//! The transcript of a run on its way to the server: numbered in the order in which the agent said it, kept until the server has it.

use crate::ledger::Replayed;
use crate::wire::message::{Message, MessageKind, ToolInput};
use longshore_core::codec::message::{AgentMessage, MAX_TEXT};
use serde_json::value::RawValue;
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// Bytes of messages in one request, but for a single message that is larger.
pub const MAX_BATCH: usize = 4 << 20;
/// Bytes of messages that the server does not have yet at which the agent is made to wait.
pub const MAX_UNSENT: usize = 16 << 20;

/// One task's messages.
#[derive(Debug, Default)]
pub struct Outbox {
    inner: Mutex<Inner>,
    room: Notify,
}

#[derive(Debug, Default)]
struct Inner {
    last: u32,
    /// Messages up to this number do not change any more: they are being written down, or are.
    sealed: u32,
    /// Messages up to this number are written down.
    written: u32,
    /// Messages up to this number were handed to a request.
    sent: u32,
    /// The server is known to have the messages up to this number.
    taken: u32,
    unsent: VecDeque<Message>,
    bytes: usize,
    /// Nobody is at work on it but the late outbox: its messages are in memory only while they are needed.
    late: bool,
    /// They are on disk alone: `unsent` is empty, whatever the server has.
    away: bool,
    /// So many have need of them.
    held: usize,
}

/// Keeps the messages in memory that are there, or are brought back, until it is dropped.
#[derive(Debug)]
pub struct Held<'a>(&'a Outbox);

impl Drop for Held<'_> {
    fn drop(&mut self) {
        let mut inner = self.0.inner();
        inner.held -= 1;
        inner.put_away();
    }
}

impl Outbox {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Appends what the agent said. Text that follows text of the same kind, and was not sent yet, becomes one message with it,
    /// with `joint` between them.
    pub fn push(&self, message: AgentMessage, joint: &str) {
        self.inner().push(message, joint);
    }

    /// Highest number so far; 0 for none.
    pub fn last(&self) -> u32 {
        self.inner().last
    }

    /// The next messages above `after` and up to `upto`, as many as fit one request, and the number of the last of them.
    /// Those up to `after` are forgotten: the server has them.
    pub fn batch(&self, after: u32, upto: u32) -> (Vec<Message>, u32) {
        let mut inner = self.inner();
        inner.forget(after);
        let mut bytes = 0;
        let mut batch = Vec::new();
        for message in inner.unsent.iter().take_while(|message| message.seq <= upto) {
            bytes += message.size();
            if bytes > MAX_BATCH && !batch.is_empty() {
                break;
            }
            batch.push(message.clone());
        }
        let last = batch.last().map_or(upto.min(inner.last), |message| message.seq);
        inner.sealed = inner.sealed.max(last);
        inner.sent = inner.sent.max(last);
        drop(inner);
        self.room.notify_waiters();
        (batch, last)
    }

    /// No more will come, and what there is may take weeks to be sent: from now on it is in memory only while somebody holds it.
    pub fn put_away(&self) {
        let mut inner = self.inner();
        inner.late = true;
        inner.put_away();
    }

    /// What is in memory stays there as long as this is held.
    pub fn hold(&self) -> Held<'_> {
        self.inner().held += 1;
        Held(self)
    }

    /// Whether the messages are on disk alone.
    pub fn is_away(&self) -> bool {
        self.inner().away
    }

    /// Brings the messages back: those that the disk has. To be held meanwhile.
    pub(super) fn bring_back(&self, unsent: VecDeque<Message>) {
        let mut inner = self.inner();
        if !std::mem::take(&mut inner.away) {
            return;
        }
        inner.bytes = unsent.iter().map(Message::size).sum();
        inner.unsent = unsent;
        let taken = inner.taken;
        inner.forget(taken);
    }

    /// Messages up to here are with the server.
    pub fn taken(&self, upto: u32) {
        self.inner().forget(upto);
        self.room.notify_waiters();
    }

    /// What an earlier process left.
    pub(crate) fn restore(&self, said: Replayed) {
        let mut inner = self.inner();
        (inner.late, inner.away) = (said.is_left, said.is_left);
        inner.bytes = said.unsent.iter().map(Message::size).sum();
        (inner.last, inner.sealed, inner.written) = (said.last, said.last, said.last);
        // Any of them may have been.
        inner.sent = said.last;
        (inner.taken, inner.unsent) = (said.taken, said.unsent);
    }

    /// Bytes that the server does not have yet.
    pub(super) fn bytes(&self) -> usize {
        self.inner().bytes
    }

    /// Closes the messages so far to change. Gives those that are to be written down, all that the server may not have if `whole`,
    /// else the new ones; and the last number, and up to where the server has them.
    pub(super) fn seal(&self, whole: bool) -> (Vec<Message>, u32, u32) {
        let mut inner = self.inner();
        inner.sealed = inner.last;
        let from = if whole { 0 } else { inner.written };
        let messages = inner.unsent.iter().filter(|message| message.seq > from).cloned().collect();
        (messages, inner.last, inner.taken)
    }

    /// Messages up to here are written down.
    pub(super) fn written(&self, upto: u32) {
        let mut inner = self.inner();
        inner.written = inner.written.max(upto);
    }

    /// The highest number that is written down: no other may be handed to a request.
    pub fn last_written(&self) -> u32 {
        self.inner().written
    }

    /// The server is known to have the messages up to this number.
    pub fn last_taken(&self) -> u32 {
        self.inner().taken
    }

    /// The server says that it has messages up to here. Those that were never sent are other ones, whatever their number.
    pub fn stored(&self, upto: u32) {
        let sent = self.inner().sent;
        self.taken(upto.min(sent));
    }

    /// Whether the agent may say more.
    pub fn has_room(&self) -> bool {
        self.inner().bytes < MAX_UNSENT
    }

    /// Waits until the agent may say more.
    pub async fn room(&self) {
        loop {
            let notified = self.room.notified();
            tokio::pin!(notified);
            notified.as_mut().enable();
            if self.has_room() {
                return;
            }
            notified.await;
        }
    }
}

impl Inner {
    fn push(&mut self, message: AgentMessage, joint: &str) {
        let (kind, tool, content, input, output) = match message {
            AgentMessage::Text { text } => (MessageKind::Text, String::new(), text, None, String::new()),
            AgentMessage::Thinking { text } => {
                (MessageKind::Thinking, String::new(), text, None, String::new())
            }
            AgentMessage::ToolUse { name, input, .. } => {
                let input = RawValue::from_string(input).ok().and_then(|raw| ToolInput::new(&raw));
                (MessageKind::ToolUse, name, String::new(), input, String::new())
            }
            AgentMessage::ToolResult { name, output, .. } => {
                (MessageKind::ToolResult, name, String::new(), None, output)
            }
            AgentMessage::Error { text } | AgentMessage::Note { text } => {
                (MessageKind::Error, String::new(), text, None, String::new())
            }
        };
        if matches!(kind, MessageKind::Text | MessageKind::Thinking)
            && let Some(last) = self.unsent.back_mut()
            && last.kind == kind
            && last.seq > self.sealed
            && last.content.len() + joint.len() + content.len() <= MAX_TEXT
        {
            last.content.push_str(joint);
            last.content.push_str(&content);
            self.bytes += joint.len() + content.len();
            return;
        }
        self.last += 1;
        let message = Message { seq: self.last, kind, tool, content, input, output };
        self.bytes += message.size();
        self.unsent.push_back(message);
    }

    /// Frees the memory, once all of it is written down and nobody needs it.
    fn put_away(&mut self) {
        if self.late && self.held == 0 && self.written == self.last {
            (self.unsent, self.bytes, self.away) = (VecDeque::new(), 0, true);
        }
    }

    fn forget(&mut self, upto: u32) {
        self.taken = self.taken.max(upto);
        while self.unsent.front().is_some_and(|message| message.seq <= upto) {
            if let Some(message) = self.unsent.pop_front() {
                self.bytes -= message.size();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(of: &str) -> AgentMessage {
        AgentMessage::Text { text: of.to_owned() }
    }

    #[test]
    fn inv_101_messages_are_numbered_in_the_order_in_which_they_were_said() {
        let outbox = Outbox::default();
        outbox.push(AgentMessage::Thinking { text: "t".into() }, "");
        outbox.push(text("a"), "");
        outbox.push(text("b"), "");
        outbox
            .push(AgentMessage::ToolUse { call_id: "1".into(), name: "Bash".into(), input: "{}".into() }, "");
        let (batch, last) = outbox.batch(0, 99);
        let seen: Vec<_> = batch.iter().map(|m| (m.seq, m.kind, m.content.as_str())).collect();
        assert_eq!(
            seen,
            [(1, MessageKind::Thinking, "t"), (2, MessageKind::Text, "ab"), (3, MessageKind::ToolUse, "")]
        );
        assert_eq!(last, 3);
    }

    #[test]
    fn whole_blocks_stay_paragraphs_of_their_own() {
        let outbox = Outbox::default();
        outbox.push(text("First."), "\n\n");
        outbox.push(text("Second."), "\n\n");
        assert_eq!(outbox.batch(0, 1).0[0].content, "First.\n\nSecond.");
    }

    #[test]
    fn what_was_handed_to_a_request_never_changes() {
        let outbox = Outbox::default();
        outbox.push(text("a"), "");
        assert_eq!(outbox.batch(0, 1).1, 1);
        outbox.push(text("b"), "");
        assert_eq!(outbox.last(), 2, "a new message, as the first may be on its way");
        let (again, _) = outbox.batch(0, 2);
        assert_eq!(again.iter().map(|m| m.content.as_str()).collect::<Vec<_>>(), ["a", "b"]);
        assert_eq!(outbox.batch(1, 2).0.len(), 1, "what the server has is forgotten");
    }

    #[test]
    fn what_was_never_sent_is_not_forgotten_on_the_servers_word() {
        let outbox = Outbox::default();
        outbox.push(text("a"), "");
        assert_eq!(outbox.batch(0, 1).1, 1);
        outbox.push(text("b"), "");
        outbox.stored(9);
        let (batch, _) = outbox.batch(0, 9);
        assert_eq!(batch.iter().map(|m| m.content.as_str()).collect::<Vec<_>>(), ["b"]);
    }

    #[test]
    fn a_batch_is_bounded_but_never_empty_while_there_is_something() {
        let outbox = Outbox::default();
        for _ in 0..40 {
            outbox.push(text(&"x".repeat(MAX_TEXT)), "");
        }
        let (batch, last) = outbox.batch(0, 40);
        assert_eq!(batch.len(), usize::try_from(last).expect("small"));
        assert!((10..20).contains(&batch.len()), "{}", batch.len());
    }

    #[test]
    fn what_is_put_away_takes_no_memory_and_is_there_again_for_whoever_holds_it() {
        let outbox = Outbox::default();
        for n in 0..5 {
            outbox.push(AgentMessage::Error { text: n.to_string() }, "");
        }
        outbox.put_away();
        assert!(!outbox.is_away() && outbox.bytes() > 0, "it is not written down");
        let (all, last, _) = outbox.seal(true);
        outbox.written(last);
        let first = outbox.hold();
        outbox.put_away();
        assert!(!outbox.is_away(), "somebody needs it");
        let second = outbox.hold();
        drop(first);
        assert!(!outbox.is_away() && outbox.batch(0, 5).0.len() == 5, "and somebody else still does");
        drop(second);
        assert!(outbox.is_away() && outbox.bytes() == 0);
        outbox.taken(2);
        let held = outbox.hold();
        outbox.bring_back(all.clone().into());
        let seqs = |batch: (Vec<Message>, u32)| batch.0.iter().map(|it| it.seq).collect::<Vec<_>>();
        assert_eq!(seqs(outbox.batch(2, 5)), [3, 4, 5], "without what the server took meanwhile");
        outbox.bring_back(VecDeque::new());
        assert_eq!(seqs(outbox.batch(3, 5)), [4, 5], "what is there is not replaced");
        drop(held);
        assert!(outbox.is_away() && outbox.last() == 5 && outbox.last_taken() == 3);
    }

    #[test]
    fn what_an_earlier_process_left_to_be_sent_stays_on_the_disk_until_it_is_needed() {
        let outbox = Outbox::default();
        outbox.restore(Replayed { taken: 1, last: 3, is_left: true, ..Replayed::default() });
        assert!(outbox.is_away() && outbox.last_written() == 3);
        let held = outbox.hold();
        assert!(outbox.is_away(), "to hold it does not read it");
        drop(held);
        assert!(outbox.is_away());
    }

    #[tokio::test]
    async fn an_agent_waits_until_the_server_has_taken_enough() {
        let outbox = Outbox::default();
        while outbox.has_room() {
            outbox.push(text(&"x".repeat(MAX_TEXT)), "");
        }
        let waits = outbox.room();
        tokio::pin!(waits);
        assert!(futures_util::poll!(waits.as_mut()).is_pending());
        outbox.taken(outbox.last() / 2);
        waits.await;
    }
}
