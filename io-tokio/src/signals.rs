//! What signals ask of a daemon.

use crate::config::OnSigterm;
use crate::local::interrupts::{Interrupt, Interrupts};
use longshore_core::event::{Event, StopKind};
use tokio::sync::mpsc;

/// Each signal asks the core to stop. The first one says how; the second one hurries, whichever it is.
pub(crate) async fn stop_on_signals(
    mut signals: Interrupts,
    on_sigterm: OnSigterm,
    events: mpsc::Sender<Event>,
) {
    loop {
        let signal = signals.which().await;
        let how = wanted(signal, on_sigterm);
        log_stop(by(signal), how);
        if events.send(Event::Stop { how }).await.is_err() {
            return;
        }
    }
}

/// Says in the log that a stop is asked for, and by what.
pub(crate) fn log_stop(by: &str, how: StopKind) {
    let how = match how {
        StopKind::Drain { .. } => "drain",
        StopKind::Restart => "restart",
        _ => "stop",
    };
    tracing::info!(by, how, "asked to stop");
}

/// A signal by its name.
const fn by(signal: Interrupt) -> &'static str {
    match signal {
        Interrupt::CtrlC => "SIGINT",
        Interrupt::Terminate => "SIGTERM",
        Interrupt::HangUp => "SIGHUP",
    }
}

/// SIGTERM is the word of a service manager or a script, and means what was configured. Whoever types Ctrl-C or closes the terminal wants
/// nothing to go on.
const fn wanted(signal: Interrupt, on_sigterm: OnSigterm) -> StopKind {
    match (signal, on_sigterm) {
        (Interrupt::CtrlC | Interrupt::HangUp, _) | (Interrupt::Terminate, OnSigterm::Stop) => StopKind::Now,
        (Interrupt::Terminate, OnSigterm::Drain) => StopKind::Drain { within_ms: None },
        (Interrupt::Terminate, OnSigterm::Detach) => StopKind::Restart,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_sigterm_can_mean_another_stop_than_the_plain_one() {
        let drain = StopKind::Drain { within_ms: None };
        for (on_sigterm, want) in [
            (OnSigterm::Stop, StopKind::Now),
            (OnSigterm::Drain, drain),
            (OnSigterm::Detach, StopKind::Restart),
        ] {
            assert_eq!(wanted(Interrupt::Terminate, on_sigterm), want);
            for signal in [Interrupt::CtrlC, Interrupt::HangUp] {
                assert_eq!(wanted(signal, on_sigterm), StopKind::Now);
            }
        }
    }
}
