//! The gate that each claim passes: it counts those on their way, and once closed lets no more through.

use crate::token::ClaimPass;
use serde::{Deserialize, Serialize};

/// The gate.
#[derive(Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct ClaimGate {
    out: u32,
    closed: bool,
}

impl ClaimGate {
    pub(crate) fn enter(&mut self) -> Option<ClaimPass> {
        if self.closed {
            return None;
        }
        self.out += 1;
        Some(ClaimPass::mint())
    }

    pub(crate) fn exit(&mut self, pass: ClaimPass) {
        let ClaimPass { .. } = pass;
        self.out -= 1;
    }

    pub(crate) fn close(&mut self) {
        self.closed = true;
    }

    pub(crate) const fn is_closed(&self) -> bool {
        self.closed
    }

    /// Claims on their way.
    pub(crate) const fn out(&self) -> u32 {
        self.out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inv_134_a_closed_gate_lets_nothing_through() {
        let mut gate = ClaimGate::default();
        let pass = gate.enter().expect("open");
        gate.close();
        assert!(gate.enter().is_none());
        assert_eq!(gate.out(), 1, "a claim on its way is still counted");
        gate.exit(pass);
        assert_eq!(gate.out(), 0);
    }
}
