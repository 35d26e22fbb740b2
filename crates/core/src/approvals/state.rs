//! The state of a request that needs an approval, as its client keeps it.

use rmcp::model::{InputResponses, JsonObject};
use serde::{Deserialize, Serialize};

use super::{
    question::{self, KEY, Reply},
    record::now_ms,
};
use crate::{RequestDigest, RequestObject};

/// The state that a client keeps while its user thinks about an approval, or about what an app asks after one. It is sealed for the caller and the
/// object.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct SealedState {
    pub(super) nonce: String,
    /// The object with exactly its arguments.
    digest: [u8; 32],
    /// The request was approved: what comes back is for the app.
    pub(super) granted: bool,
    /// The scope whose holder approved it.
    pub(super) approvers: Option<String>,
    /// The app's own state.
    pub(super) inner: Option<String>,
    pub(super) issued_ms: u64,
    pub(super) until_ms: u64,
}

impl SealedState {
    /// The state of a request that waits for an approval.
    pub(super) fn asking(digest: RequestDigest, life_ms: u64) -> Self {
        let issued_ms = now_ms();
        Self {
            nonce: nonce(),
            digest: *digest.as_bytes(),
            granted: false,
            approvers: None,
            inner: None,
            issued_ms,
            until_ms: issued_ms.saturating_add(life_ms),
        }
    }

    /// The state of an approved request whose app asks, with the app's own state.
    pub(super) fn granted(
        digest: RequestDigest,
        approvers: Option<&str>,
        inner: Option<String>,
        life_ms: u64,
    ) -> Self {
        Self {
            granted: true,
            approvers: approvers.map(str::to_owned),
            inner,
            ..Self::asking(digest, life_ms)
        }
    }

    /// Returns `true` if it is about the request with this digest.
    pub(super) fn fits(&self, digest: RequestDigest) -> bool {
        self.digest == *digest.as_bytes()
    }
}

/// A [`SealedState`] that a client sent back, with the decision of its user.
#[derive(Debug)]
pub(crate) struct Answered {
    pub(super) state: SealedState,
    /// The decision of the caller; none if there is none, or the answers are for the app.
    pub(super) reply: Option<Reply>,
}

impl Answered {
    /// Returns `true` if the caller refused.
    pub(crate) fn is_refused(&self) -> bool {
        self.reply == Some(Reply::Denied)
    }

    /// Returns `true` if it is about `object` without arguments.
    pub(crate) fn is_for(&self, object: &RequestObject) -> bool {
        self.state.fits(RequestDigest::of(&object.to_string(), &JsonObject::new()))
    }

    /// Takes the decision out of `responses`; the rest is for the app.
    pub(crate) fn of(
        mut state: SealedState,
        responses: &mut Option<InputResponses>,
    ) -> (Self, Option<String>) {
        let inner = state.inner.take();
        let reply = match state.granted {
            true => None,
            false => responses
                .take()
                .and_then(|mut responses| responses.remove(KEY))
                .map(|reply| question::reply(&reply)),
        };
        (Self { state, reply }, inner)
    }
}

fn nonce() -> String {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).expect("the system's random numbers");
    data_encoding::HEXLOWER.encode(&bytes)
}
