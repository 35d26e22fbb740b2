//! Tokens of this server: issued, verified, and looked up.

mod access;
mod id_token;
mod issue;

pub(crate) use self::{
    access::{TokenOrigin, Tokens},
    issue::TokenGrant,
};
