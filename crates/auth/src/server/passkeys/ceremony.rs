//! Ceremonies under way: each belongs to one browser and one step, ends after ten minutes, and is used once.
//!
//! The page carries the server's state, encrypted for that browser and step, and only its use is written to the store. A page that is
//! never answered leaves nothing behind.

use std::time::Duration;

use crate::{
    context::Context,
    crypto::{b64, sha256_hex, unb64},
    relying_party::{CEREMONY_MS, StartedCeremony},
    store::{Key, StoreError},
};

/// Binding of a ceremony.
pub(super) struct Ceremony<'a> {
    /// `login`, `add` or `enrol`.
    pub(super) step: &'static str,
    /// The cookie of the browser.
    pub(super) browser: &'a str,
    /// The authorization request, the user, or the enrolment that the step belongs to.
    pub(super) subject: &'a str,
}

impl Ceremony<'_> {
    fn name(&self) -> String {
        format!("ceremony {} {} {}", self.step, sha256_hex(self.browser), sha256_hex(self.subject))
    }
}

/// Returns the form field that carries a ceremony.
pub(super) fn seal(ctx: &Context, started: &StartedCeremony, ceremony: &Ceremony<'_>) -> String {
    let expires_ms = ctx.clock.now_ms() + u64::from(CEREMONY_MS);
    let plain = [&expires_ms.to_be_bytes()[..], &started.state].concat();
    b64(ctx.sealer.seal(&*ctx.entropy, &ceremony.name(), &plain))
}

/// Atomic: uses up the ceremony of a form field and returns its state. Of concurrent calls exactly one gets it; `None` when it is bound to
/// another browser or step, has expired, or was used.
pub(super) async fn take(
    ctx: &Context,
    field: &str,
    ceremony: &Ceremony<'_>,
) -> Result<Option<Vec<u8>>, StoreError> {
    let plain = unb64(field).and_then(|sealed| ctx.sealer.open(&ceremony.name(), &sealed));
    let Some((expires_ms, state)) = plain.as_deref().and_then(<[u8]>::split_first_chunk::<8>) else {
        return Ok(None);
    };
    if ctx.clock.now_ms() >= u64::from_be_bytes(*expires_ms) {
        return Ok(None);
    }
    let used = Key::secret("ceremony", &b64(state));
    let is_first = ctx.store.put_new(&used, b"1", Duration::from_millis(CEREMONY_MS.into())).await?;
    Ok(is_first.then(|| state.to_vec()))
}
