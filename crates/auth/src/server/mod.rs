//! The authorization server: its endpoints, one file each, over the services of this crate.

mod account;
pub(crate) mod account_form;
mod api_keys;
mod authorization_server;
mod authorize;
mod consent;
pub(crate) mod flow;
mod introspect;
mod login;
mod logout;
mod metadata;
mod openapi;
mod operator;
mod par;
mod passkeys;
mod provider_callback;
mod pushed;
mod register;
mod request_check;
mod revoke;
pub(crate) mod router;
pub(crate) mod services;
mod token;
mod userinfo;
mod views;

pub(crate) use self::services::Services;
pub use self::{
    api_keys::{ApiKeyError, ApiKeyInfo, NewApiKey, RevokedApiKey},
    authorization_server::{AuthorizationServer, OpenError, ServerParts, open_peers, open_store},
    openapi::OPENAPI,
    operator::{ClientInfo, ConsentInfo, RemovedClient, RevokedToken},
    passkeys::enrol::{EnrolError, Enrolment},
};
