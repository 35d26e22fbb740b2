//! The identity provider that logins are delegated to (`type: remote`).
//!
//! `client` is our side of its protocol, `tokens` keeps its tokens, and `status` asks it about users whose tokens are refreshed. The
//! browser comes back at `server::provider_callback`.

mod client;
mod status;
mod tokens;

pub(crate) use self::{
    client::{LoginError, Provider, unavailable_page},
    status::{ProviderStatus, status_of},
    tokens::save_tokens,
};
