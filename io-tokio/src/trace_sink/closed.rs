//! What a recording came to, and why something is missing in it.

use std::fmt;

/// What went wrong. It may have been one thing after another, each of which cost some steps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Causes {
    /// What went wrong first.
    pub first: String,
    /// What went wrong last.
    pub last: String,
}

impl Causes {
    /// Takes note of what went wrong now.
    pub(super) fn add(to: &mut Option<Self>, error: String) {
        match to {
            Some(causes) => causes.last = error,
            None => *to = Some(Self { first: error.clone(), last: error }),
        }
    }
}

impl fmt::Display for Causes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.first == self.last {
            f.write_str(&self.last)
        } else {
            write!(f, "first: {}; last: {}", self.first, self.last)
        }
    }
}

/// What a recording came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Closed {
    /// Steps that were recorded or left out, without the creation.
    pub steps: u64,
    /// Steps that were left out.
    pub lost: u64,
    /// What went wrong, if anything did.
    pub error: Option<Causes>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_cause_is_said_alone_and_of_several_the_first_and_the_last() {
        let mut causes = None;
        for (error, said) in [
            ("the disk is full", "the disk is full"),
            ("the disk is too slow", "first: the disk is full; last: the disk is too slow"),
            ("it was removed", "first: the disk is full; last: it was removed"),
        ] {
            Causes::add(&mut causes, error.to_owned());
            assert_eq!(causes.as_ref().map(ToString::to_string).as_deref(), Some(said));
        }
    }
}
