//! OAuth clients: configured, registered, or described by a metadata document.

mod authentication;
mod client;
pub(crate) mod documents;
mod metadata;
mod registry;

pub(crate) use self::{
    client::{AuthMethod, OAuthClient, Origin, log_mismatch},
    metadata::ClientMetadata,
    registry::{ClientSource, Clients},
};
