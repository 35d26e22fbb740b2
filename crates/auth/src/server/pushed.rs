//! Pushed authorization requests as they are stored, until the authorization endpoint takes them.

use axum::response::Response;
use serde::{Deserialize, Serialize};

use super::services::Services;
use crate::{
    clients::OAuthClient,
    error::OAuthError,
    net::ClientAddress,
    store::Key,
    tuning::PUSHED_REQUEST_LIFETIME,
    web::{
        params::Params,
        responses::{bad_request, store_page},
    },
};

const REQUEST_URI_PREFIX: &str = "urn:ietf:params:oauth:request_uri:";

/// A pushed authorization request, as it is stored.
#[derive(Serialize, Deserialize)]
struct PushedRequest {
    client: String,
    text: String,
    expires_ms: u64,
}

/// Returns the parameters, or the pushed ones that `request_uri` names.
pub(super) async fn pushed_or(services: &Services, params: Params) -> Result<Params, Response> {
    let ctx = &services.ctx;
    let Some(uri) = params.get("request_uri") else {
        if ctx.config.require_par {
            return Err(bad_request("This server takes pushed authorization requests only."));
        }
        return Ok(params);
    };
    let gone = || bad_request("The pushed request is over, was used, or belongs to another application.");
    let id = uri.strip_prefix(REQUEST_URI_PREFIX).ok_or_else(gone)?;
    let key = Key::secret("pushed", id);
    let record = ctx.store.get(&key).await.map_err(store_page)?.ok_or_else(gone)?;
    let pushed: PushedRequest = serde_json::from_slice(&record).map_err(|_| gone())?;
    // Checked before the request is taken: another client does not use it up.
    if params.get("client_id") != Some(&pushed.client)
        || params.is_repeated("client_id")
        || ctx.clock.now_ms() >= pushed.expires_ms
    {
        return Err(gone());
    }
    ctx.store.take(&key).await.map_err(store_page)?.ok_or_else(gone)?;
    Params::parse(pushed.text.as_bytes()).map_err(|_| gone())
}

/// Stores the parameters of a request and returns its `request_uri`. The record counts for the network of the caller.
pub(super) async fn push(
    services: &Services,
    client: OAuthClient,
    params: &Params,
    caller: ClientAddress,
) -> Result<String, OAuthError> {
    let ctx = &services.ctx;
    let id = ctx.new_secret();
    let expires_ms = ctx.clock.now_ms() + PUSHED_REQUEST_LIFETIME.as_millis() as u64;
    let pushed = PushedRequest { client: client.id, text: params.to_text(), expires_ms };
    let value = serde_json::to_vec(&pushed).unwrap_or_default();
    services.authorizations.reserve(caller, value.len(), PUSHED_REQUEST_LIFETIME)?;
    ctx.store.put(&Key::secret("pushed", &id), &value, PUSHED_REQUEST_LIFETIME).await?;
    Ok(format!("{REQUEST_URI_PREFIX}{id}"))
}
