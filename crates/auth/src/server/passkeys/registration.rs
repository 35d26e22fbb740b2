//! Registration of a passkey, for the account page and for enrolment links.

use axum::response::Response;
use http::StatusCode;

use super::ceremony::{Ceremony, take};
use crate::{
    pages,
    server::services::Services,
    store::{AddPasskey, Key, PasskeyStore as _, StoreError},
    web::{params::Params, responses::page},
};

const MAX_NAME_CHARS: usize = 60;

/// The page where passkeys are off.
pub(in crate::server) fn off() -> Response {
    page(StatusCode::NOT_FOUND, "Passkeys are turned off on this server.")
}

/// Returns the name of a passkey as it is stored.
pub(super) fn passkey_name(params: &Params) -> String {
    let name = pages::plain(params.get("name").unwrap_or_default(), MAX_NAME_CHARS);
    if name.is_empty() { "Passkey".to_owned() } else { name }
}

/// Adds the passkey of an authenticator's response. Returns a text for the user when it was not added. `enrolment` is used up once the
/// response is verified.
pub(super) async fn register(
    services: &Services,
    params: &Params,
    ceremony: &Ceremony<'_>,
    sub: &str,
    enrolment: Option<&str>,
) -> Result<Option<&'static str>, StoreError> {
    let ctx = &services.ctx;
    let Some(state) = take(ctx, params.get("ceremony").unwrap_or_default(), ceremony).await? else {
        return Ok(Some("The page was open too long, or was used already. Try again."));
    };
    let Some(party) = &services.relying_party else { return Ok(Some("Passkeys are turned off.")) };
    let response = params.get("credential").unwrap_or_default();
    let (mut passkey, handle) = match party.finish_registration(&state, response) {
        Ok(made) => made,
        Err(why) => {
            tracing::info!(reason = %why, "a passkey was not added");
            return Ok(Some("The passkey could not be checked, and was not added."));
        }
    };
    if let Some(token) = enrolment
        && ctx.store.take(&Key::secret("enrol", token)).await?.is_none()
    {
        return Ok(Some("This link was used already. Ask for a new one."));
    }
    passkey.name = passkey_name(params);
    passkey.created_ms = ctx.clock.now_ms();
    let limit = ctx.config.local.passkeys.most_per_user;
    Ok(match ctx.store.add_passkey(sub, &handle, &passkey, limit).await? {
        AddPasskey::Added => None,
        AddPasskey::Taken => Some("This passkey is known already."),
        AddPasskey::Full => Some("You have as many passkeys as this server allows. Remove one first."),
        AddPasskey::OtherHandle => Some("Another passkey was added at the same moment. Try again."),
    })
}
