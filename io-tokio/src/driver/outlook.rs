//! Whether there is anything that tasks can be run with: an agent CLI of this machine, or a custom runtime that the server tells of.

use super::host::Host;

/// What is known of that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outlook {
    /// There is something.
    Work,
    /// There is nothing, and the server has told all that it has to tell.
    Nothing,
    /// Nobody has looked yet, or the server has not told of every workspace.
    Unknown,
}

impl Outlook {
    /// From what a look found, and from what is known of each workspace: whether one of its custom runtimes can be used here, if it was told.
    fn of(found: Option<bool>, workspaces: Option<impl IntoIterator<Item = Option<bool>>>) -> Self {
        let mut outlook = match found {
            Some(true) => return Self::Work,
            Some(false) => Self::Nothing,
            None => Self::Unknown,
        };
        let Some(workspaces) = workspaces else { return Self::Unknown };
        for usable in workspaces {
            match usable {
                Some(true) => return Self::Work,
                Some(false) => {}
                None => outlook = Self::Unknown,
            }
        }
        outlook
    }
}

impl Host {
    /// What is known by now.
    fn outlook(&self) -> Outlook {
        let found = self.prober.latest().map(|found| !found.is_in_vain());
        let listed = {
            let listed = self.listed();
            listed.is_told.then(|| listed.list.clone())
        };
        let served = self.served();
        Outlook::of(
            found,
            listed.as_ref().map(|all| all.iter().map(|workspace| served.has_usable(workspace))),
        )
    }

    /// Whether there is, or was, something that tasks can be run with. A daemon that had something is not held to it later.
    pub(super) fn has_work(&self) -> bool {
        if self.has_work.get().is_none() && self.outlook() == Outlook::Work {
            // It may be said by two at once.
            let _ = self.has_work.set(());
        }
        self.has_work.get().is_some()
    }

    /// Waits until it is known whether there is anything that tasks can be run with, however long the server takes to tell. It is never
    /// [`Outlook::Unknown`].
    pub async fn settled_outlook(&self) -> Outlook {
        let mut heard = self.heard.subscribe();
        loop {
            heard.borrow_and_update();
            if self.has_work() {
                return Outlook::Work;
            }
            if self.outlook() == Outlook::Nothing {
                return Outlook::Nothing;
            }
            // The sender is our own.
            let _ = heard.changed().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_nothing_only_when_everybody_has_said_so() {
        let of =
            |found, told: Option<&[Option<bool>]>| Outlook::of(found, told.map(|told| told.iter().copied()));
        let (yes, no) = (Some(true), Some(false));
        for (found, told, outlook) in [
            (yes, None, Outlook::Work),
            (None, Some(&[yes][..]), Outlook::Work),
            (no, Some(&[no, None, yes]), Outlook::Work),
            (no, None, Outlook::Unknown),
            (no, Some(&[no, None]), Outlook::Unknown),
            (None, Some(&[no]), Outlook::Unknown),
            (no, Some(&[no, no]), Outlook::Nothing),
            (no, Some(&[]), Outlook::Nothing),
        ] {
            assert_eq!(of(found, told), outlook, "{found:?} {told:?}");
        }
    }
}
