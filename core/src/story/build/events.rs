//! What happened.

use super::scene::Scene;
use crate::event::{Event, GateAsk, WsEvent};
use crate::story::{End, Span, What};

impl Scene<'_> {
    pub(super) fn event(&mut self, event: &Event) {
        match event {
            Event::Api { op, r } => self.api_ended(*op, r),
            Event::Fs { op, r } => self.fs_ended(*op, r),
            Event::Run { op, run } => self.ran(*op, run),
            Event::Ws { ws, .. } if !self.course.step.stray => self.over_the_link(ws),
            Event::Stop { how } => {
                self.course.stopping = true;
                self.moment(None, None, What::Stop(*how));
            }
            Event::Credential => self.moment(None, None, What::Credential),
            Event::Gate { ask: GateAsk::Wait, .. } => self.course.gate |= !self.course.step.stray,
            Event::Gate { ask: GateAsk::Release, .. } => self.course.gate &= self.course.step.stray,
            Event::Gate { ask: GateAsk::Try, .. }
            | Event::Tick
            | Event::Ws { .. }
            | Event::Recovered { .. } => {}
        }
    }

    fn over_the_link(&mut self, ws: &WsEvent) {
        let at = self.at;
        match ws {
            WsEvent::Up => {
                let linked = &mut self.story[self.course.life].linked;
                if !linked.last().is_some_and(Span::is_open) {
                    linked.push(Span::from(at));
                }
            }
            WsEvent::Down | WsEvent::Refused { .. } => {
                if let Some(linked) = self.story[self.course.life].linked.last_mut() {
                    linked.close(End::Seen(at));
                }
            }
            WsEvent::TaskAvailable { runtime, task } => self.hinted(runtime.as_ref(), task.as_ref()),
            WsEvent::Ack { .. }
            | WsEvent::WorkspacesChanged
            | WsEvent::ProfilesChanged { .. }
            | WsEvent::PendingWork { .. } => {}
        }
    }
}
