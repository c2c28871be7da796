//! A task's messages on their way to the server: sent in order, in parts where the server refuses them together.

use super::host::Host;
use crate::book::Entry;
use crate::http::{CallError, Limit, RejectKind};
use crate::wire::message::{Message, MessagesRequest};
use longshore_core::event::ApiReply;
use std::sync::Arc;

/// Posts the next messages. A refusal that lies in what was sent costs the one message that it lies in: the others are sent without it.
pub(super) async fn post(
    host: &Host,
    entry: &Arc<Entry>,
    after: u32,
    upto: u32,
    limit: Limit,
) -> Result<ApiReply, CallError> {
    let _held = entry.outbox.hold();
    entry.bring_back().await.map_err(|error| CallError::NotSent {
        why: format!("the agent's messages could not be read from the disk: {error}"),
    })?;
    // A later process must know them by the same numbers.
    entry.write_down().await.map_err(|error| CallError::NotSent {
        why: format!("the agent's messages could not be written down: {error}"),
    })?;
    host.ledger.sync(&host.ledger.outbox(entry.claim));
    let upto = upto.min(entry.outbox.last_written());
    let (batch, last) = entry.outbox.batch(after, upto);
    let mut dealt_with = after;
    // What is still to be sent, the next part last.
    let mut parts = vec![batch.as_slice()];
    while let Some(part) = parts.pop() {
        let Some(part_last) = part.last() else { continue };
        match host.client.post_messages(&entry.id, &MessagesRequest { messages: part }, limit.clone()).await {
            Ok(()) => dealt_with = part_last.seq,
            Err(error) if lies_in_content(&error) => {
                if let [message] = part {
                    skip(entry, message, &error);
                    dealt_with = message.seq;
                } else {
                    let (first, second) = part.split_at(part.len() / 2);
                    parts.extend([second, first]);
                }
            }
            Err(error) => return stopped(entry, after, dealt_with, upto, error),
        }
        entry.outbox.taken(dealt_with);
        entry.note_taken();
    }
    Ok(ApiReply::Known { upto: last })
}

/// Asks which messages the server has.
pub(super) async fn known(
    host: &Host,
    entry: &Arc<Entry>,
    after: u32,
    limit: Limit,
) -> Result<ApiReply, CallError> {
    let stored = host.client.messages_since(&entry.id, after, limit).await?;
    let upto = stored.items.iter().filter_map(|message| u32::try_from(message.seq).ok()).max().unwrap_or(0);
    // An agent that waits for room must not wait for a post that will not come, as the server has everything.
    entry.outbox.stored(upto);
    entry.note_taken();
    Ok(ApiReply::Known { upto })
}

/// Whether the same text would be refused again, and another one may not be.
fn lies_in_content(error: &CallError) -> bool {
    error.rejected_as() == Some(RejectKind::Other)
}

fn skip(entry: &Entry, message: &Message, error: &CallError) {
    tracing::error!(task = %entry.id, message = message.seq, %error, "the server refuses a message of the task; it is skipped");
}

/// Not all was sent: what was, must not be sent again.
fn stopped(
    entry: &Entry,
    after: u32,
    dealt_with: u32,
    upto: u32,
    error: CallError,
) -> Result<ApiReply, CallError> {
    let told = super::api::for_core_of_all(&error);
    if !told.is_passing() {
        // The core takes all of them for refused, and an agent that waits for room must not wait for them.
        entry.outbox.taken(upto);
        return Err(error);
    }
    // Where the fate of the last part is not known, the server is asked for all of it.
    if dealt_with > after && !told.leaves_doubt() {
        return Ok(ApiReply::Known { upto: dealt_with });
    }
    Err(error)
}
