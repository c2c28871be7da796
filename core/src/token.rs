//! What must be given back, as values that cannot be copied. Only the machine that issues a token can make or consume one,
//! and the daemon's self-check counts them, so a lost token is found in the step that lost it.

use crate::event::GateOwner;
use crate::id::{EnvRoot, PathKey, SlotIndex};
use serde::{Deserialize, Serialize};

macro_rules! token {
    ($($(#[$doc:meta])* $name:ident $({ $($field:ident: $ty:ty),* })?;)*) => {$(
        $(#[$doc])*
        #[derive(Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
        #[must_use = "a token must be handed back to its issuer"]
        pub(crate) struct $name { $($(pub(crate) $field: $ty,)*)? _sealed: () }

        impl $name {
            /// For the issuing machine only.
            pub(crate) fn mint($($($field: $ty),*)?) -> Self {
                Self { $($($field,)*)? _sealed: () }
            }
        }
    )*};
}

token! {
    /// The right to run one task. Issued by `Slots`.
    SlotPermit { index: SlotIndex };
    /// The right to wait for a user's directory without a slot. Issued by `Slots` to who has to, and to no more tasks than there are slots.
    ParkPermit;
    /// The right to work in a user's directory, and to be alone in it. Issued by `PathLocks`.
    PathGuard { path: PathKey };
    /// The right to have one claim on its way. Issued by `ClaimGate`.
    ClaimPass;
    /// The gate, held: while it lives, no claim is on its way. Issued by `ClaimGate`.
    UpdateBarrier { owner: GateOwner };
    /// One mark on an env root: while it lives, nobody removes the directory. Issued by `EnvRoots`.
    EnvRootGuard { root: EnvRoot };
    /// The right to remove an env root that nobody has marked. Issued by `EnvRoots`.
    GcReservation { root: EnvRoot };
    /// Proof that a task's directory is prepared. Made from the reply of a preparation, needed for `/start`.
    Prepared { root: EnvRoot };
    /// Proof that no refresh of the prepare lease is on its way or will be. Needed for a launch.
    LeaseStopped;
}
