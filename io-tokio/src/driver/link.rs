//! The control connection, carried out: one task for each life of it.

use super::action;
use super::host::Host;
use super::over::Line;
use crate::http::{CallError, RejectKind};
use crate::wire::frame::{Inbound, Outgoing};
use crate::wire::heartbeat::HeartbeatRequest;
use crate::ws::{self, Link, LinkEvent};
use longshore_core::error::Refusal;
use longshore_core::event::{Event, WsEvent};
use longshore_core::id::{ConnGen, RuntimeId};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// Deadline of the handshake.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// How long answers are waited for on a connection that is not wanted any more; a claim is given up after this time anyway, half of which it
/// is waited for beyond its own.
const LINGER: Duration = Duration::from_secs(14);
/// Heartbeats that wait to be sent.
const BEATS: usize = 1024;

/// A connection that was asked for. Dropping it closes the connection.
pub(super) struct Conn {
    pub(super) generation: ConnGen,
    beats: mpsc::Sender<RuntimeId>,
    close: CancellationToken,
}

impl Conn {
    /// Dials, naming `runtimes`.
    pub(super) fn dial(host: Arc<Host>, generation: ConnGen, runtimes: Vec<RuntimeId>) -> Self {
        let (beats, queue) = mpsc::channel(BEATS);
        let close = CancellationToken::new();
        tokio::spawn(live(host, generation, runtimes, queue, close.clone()));
        Self { generation, beats, close }
    }

    /// Sends a heartbeat. One that finds no room is as good as lost, and the next one comes soon.
    pub(super) fn beat(&self, runtime: RuntimeId) {
        if self.beats.try_send(runtime).is_err() {
            tracing::debug!("a heartbeat found no room on the control connection");
        }
    }
}

impl Drop for Conn {
    fn drop(&mut self) {
        self.close.cancel();
    }
}

async fn live(
    host: Arc<Host>,
    conn: ConnGen,
    runtimes: Vec<RuntimeId>,
    mut beats: mpsc::Receiver<RuntimeId>,
    close: CancellationToken,
) {
    let tell = async |ws: WsEvent| host.tell(Event::Ws { conn, ws }).await;
    let mut token = host.client.credential().replaced();
    let limit = crate::http::Limit::from(HANDSHAKE).or_when(close.clone());
    let mut link = match ws::connect(&host.client, &runtimes, limit).await {
        Ok(link) => link,
        Err(error) => {
            tracing::debug!(%error, "no control connection; polling goes on");
            tell(for_refused(&error)).await;
            return;
        }
    };
    tracing::debug!(runtimes = runtimes.len(), "control connection is up");
    let line = Line::new(conn, link.sender());
    host.set_line(Some(line.clone()));
    tell(WsEvent::Up).await;
    loop {
        tokio::select! {
            biased;
            () = close.cancelled() => return retire(&host, link, &line).await,
            // The server knows the connection by the token that it was dialled with.
            () = token.next() => {
                tracing::debug!("the control connection is dialled again with the new token");
                tell(WsEvent::Down).await;
                return retire(&host, link, &line).await;
            }
            Some(runtime) = beats.recv() => {
                let beat = HeartbeatRequest { runtime_id: &runtime, supports_batch_import: true };
                if let Err(error) = link.send(&Outgoing::Heartbeat(beat)) {
                    tracing::debug!(%error, "a heartbeat was not sent over the control connection");
                }
            }
            event = link.recv() => match event {
                LinkEvent::Frame(Inbound::Rpc(response)) => line.answered(response),
                LinkEvent::Frame(frame) => {
                    if let Some(event) = for_core(&host, frame) {
                        tell(event).await;
                    }
                }
                // Hints were dropped: look at everything, as they might have said.
                LinkEvent::HintsLost => {
                    tell(WsEvent::TaskAvailable { runtime: None, task: None }).await;
                    tell(WsEvent::WorkspacesChanged).await;
                    for workspace in host.workspaces() {
                        tell(WsEvent::ProfilesChanged { workspace }).await;
                    }
                }
                LinkEvent::Down(reason) => {
                    tracing::debug!(%reason, "control connection is gone");
                    line.detach();
                    host.drop_line(conn);
                    tell(WsEvent::Down).await;
                    return;
                }
            }
        }
    }
}

/// Ends a connection that is not wanted any more: nothing is begun on it from here on, and it stays until the claims that are on their way have
/// their answers, as those may hold tasks that the server would offer again only much later.
async fn retire(host: &Host, mut link: Link, line: &Line) {
    host.drop_line(line.conn);
    line.retire();
    let mut over = pin!(tokio::time::sleep(LINGER));
    loop {
        tokio::select! {
            biased;
            event = link.recv() => match event {
                LinkEvent::Frame(Inbound::Rpc(response)) => line.answered(response),
                // Whatever else it says is looked at when the next one is up.
                LinkEvent::Frame(_) | LinkEvent::HintsLost => {}
                LinkEvent::Down(_) => break,
            },
            () = line.settled() => break,
            () = &mut over => break,
        }
    }
    // In this order: a claim that waits is recalled only when nothing can begin it any more.
    link.close().await;
    line.detach();
}

/// What the core needs to know of a connection that was not made.
fn for_refused(error: &CallError) -> WsEvent {
    match error {
        // In whatever words: one of the runtimes that were named may be gone.
        CallError::Rejected(rejection)
            if rejection.status == 404 && rejection.kind == RejectKind::Foreign =>
        {
            WsEvent::Refused { status: 404, kind: Refusal::Other }
        }
        CallError::Rejected(rejection) => match super::api::refusal(rejection) {
            Some(kind) => WsEvent::Refused { status: rejection.status, kind },
            None => WsEvent::Down,
        },
        _ => WsEvent::Down,
    }
}

fn for_core(host: &Host, frame: Inbound) -> Option<WsEvent> {
    Some(match frame {
        Inbound::TaskAvailable { runtime_id, task_id } => {
            WsEvent::TaskAvailable { runtime: runtime_id, task: task_id }
        }
        Inbound::PendingWork { runtime_id } => WsEvent::PendingWork { runtime: runtime_id },
        Inbound::WorkspacesChanged => WsEvent::WorkspacesChanged,
        Inbound::HeartbeatAck(ack) => {
            let (gone, claims) = (ack.runtime_gone, ack.speaks_rpc());
            let runtime = RuntimeId::new(ack.runtime_id.as_str());
            let actions = action::keep(host, &runtime, ack);
            WsEvent::Ack { runtime, gone, claims, actions }
        }
        Inbound::ProfilesChanged { workspace_id } => WsEvent::ProfilesChanged { workspace: workspace_id },
        // Answers to claims do not go through the core.
        Inbound::Rpc(_) => return None,
    })
}
