//! Where another process begins, also if its first line is missing.

use super::said::Said;

/// How far a process is, to know another one by what only a process that begins says: its first line may be missing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Processes {
    /// None was heard of.
    #[default]
    None,
    /// It has begun.
    Begun,
    /// It has said more than who it is.
    Up,
    /// It was ready, or a log that begins in the middle tells of work.
    AtWork,
}

impl Processes {
    /// Takes what the next line says. Whether it is the first line that there is of a process.
    pub(super) fn begins_with(&mut self, said: Option<Said>) -> bool {
        let Some(said) = said.filter(|said| *said != Said::Background) else { return false };
        let begins = match said {
            Said::Begun => true,
            Said::Settings | Said::Listening => *self != Self::Begun,
            Said::Ready => matches!(self, Self::None | Self::AtWork),
            _ => *self == Self::None,
        };
        *self = match said {
            Said::Begun | Said::Settings | Said::Listening => Self::Begun,
            Said::Runtime if *self != Self::AtWork => Self::Up,
            _ => Self::AtWork,
        };
        begins
    }
}
