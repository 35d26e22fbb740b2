//! Approvals: requests that are made once somebody said yes.
//!
//! A client that can be asked is asked like by an app: with a form (`question`), whose state (`state`) comes back sealed with the answer.
//! For clients that cannot be asked, and where others have to approve, the request becomes an [`ApprovalRecord`] in the [`ApprovalStore`]; once
//! somebody decided on it, the same request passes once, and a script that waits for it is woken (`settled`). `asking` is the way of a
//! request through all of this. Which requests need an approval is decided by the policies.

mod asking;
mod caller;
mod duration;
mod question;
mod record;
mod request;
mod sealed;
mod settled;
mod state;
mod store;
mod waiting;

pub(crate) use asking::Passage;
pub use duration::ApprovalDuration;
pub use record::{
    ApprovalEvent, ApprovalEventKind, ApprovalListener, ApprovalRecord, ApprovalState, Approver, CannotDecide,
};
pub use request::{ApprovalExpired, ApprovalRequest, NotRequested, Rehearsed, ScriptStep};
pub use settled::SettledRun;
pub(crate) use state::{Answered, SealedState};
pub use store::ApprovalStore;
