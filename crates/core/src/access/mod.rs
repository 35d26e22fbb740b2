//! The one decision on who may use what: every request reaches apps through a [`View`], and only a view makes the
//! [`CallContext`] and the [`Permit`] that the methods of an [`App`](crate::App) take.

mod caller;
mod decided;
mod endpoint;
mod endpoints;
mod expansion;
mod letters;
mod mode;
mod permit;
mod permitted;
mod plain;
mod request;
mod roots;
mod rules;
mod seal;
mod view;

pub use caller::{Audience, Caller, KnownSince, SessionRef};
pub(crate) use decided::NeededApproval;
pub(crate) use endpoint::Reach;
pub use endpoint::{
    Endpoint, EndpointAudience, EndpointConfig, MAIN_ENDPOINT, check_endpoint_name, fits_tool,
};
pub use endpoints::{EndpointName, Endpoints};
pub use mode::AccessMode;
pub use permit::{CallContext, Permit};
pub(crate) use permitted::SubscribedItem;
pub use permitted::{Completion, Permitted, PermittedTool, PromptItem, ResourceItem, TaskItem, WholeApp};
pub(crate) use request::{Decided, DecidedRequest, PendingRequest, Requested, decide};
pub use roots::{OwnPaths, Roots};
pub use rules::{ScopeRule, UriPattern};
pub(crate) use rules::{all_scopes, scopes_of_uri};
pub(crate) use seal::{OpenTask, Sealer};
pub use seal::{RecordSealer, SealKey};
pub use view::{Denied, Listed, View};
