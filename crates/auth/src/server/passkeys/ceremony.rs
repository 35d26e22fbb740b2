//! Ceremonies under way: each belongs to one browser and one step, ends after ten minutes, and is used once.
//!
//! The page carries what the server must remember, encrypted for that browser and step; only the use is written to the store. Pages that
//! nobody answers leave nothing behind.

use std::time::Duration;

use super::{Begun, CEREMONY_MS};
use crate::{
    crypto::{b64, sha256_hex, unb64},
    server::Core,
    store::{Key, StoreError},
};

/// Where a ceremony takes place.
pub(super) struct Place<'a> {
    /// What for: `login`, `add`, `enrol`.
    pub(super) step: &'static str,
    /// The cookie of the browser.
    pub(super) browser: &'a str,
    /// What the step belongs to: the pending authorization, the user, the enrolment.
    pub(super) of: &'a str,
}

impl Place<'_> {
    fn name(&self) -> String {
        format!("ceremony {} {} {}", self.step, sha256_hex(self.browser), sha256_hex(self.of))
    }
}

impl Core {
    /// The field of the form that carries the ceremony.
    pub(super) fn seal_ceremony(&self, begun: &Begun, place: &Place<'_>) -> String {
        let expires_ms = self.clock.now_ms() + u64::from(CEREMONY_MS);
        let plain = [&expires_ms.to_be_bytes()[..], &begun.state].concat();
        b64(self.sealer.seal(&*self.entropy, &place.name(), &plain))
    }

    /// Atomic: uses up the ceremony that a form carries. Of any number of calls exactly one gets it; `None` when it is not of this
    /// place, over, or used.
    pub(super) async fn take_ceremony(
        &self,
        field: &str,
        place: &Place<'_>,
    ) -> Result<Option<Vec<u8>>, StoreError> {
        let opened = unb64(field).and_then(|sealed| self.sealer.open(&place.name(), &sealed));
        let Some((expires_ms, state)) = opened.as_deref().and_then(<[u8]>::split_first_chunk::<8>) else {
            return Ok(None);
        };
        if self.clock.now_ms() >= u64::from_be_bytes(*expires_ms) {
            return Ok(None);
        }
        let used = Key::secret("ceremony", &b64(state));
        let fresh = self.store.put_new(&used, b"1", Duration::from_millis(CEREMONY_MS.into())).await?;
        Ok(fresh.then(|| state.to_vec()))
    }
}
