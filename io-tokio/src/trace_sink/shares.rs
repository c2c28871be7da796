//! How much of a segment each kind of line may take.

/// How a flight recorder's segment is divided, in bytes. An eighth is left for headers, digests and the like.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shares {
    /// A quarter of the budget.
    pub(super) segment: u64,
}

impl Shares {
    /// Longest checkpoint.
    pub(super) const fn checkpoint(self) -> u64 {
        self.segment / 8 * 3
    }

    /// The segment ends when its steps take more than this.
    pub(super) const fn steps(self) -> u64 {
        self.segment / 8 * 3
    }

    /// Longest line of a step: it may come when the steps have just not taken their share.
    pub(super) const fn line(self) -> u64 {
        self.segment / 8
    }
}
