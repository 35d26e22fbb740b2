//! Our identity at an authorization server: named by the user, or registered for this sign-in (RFC 7591).

use anyhow::bail;
use serde::Deserialize;
use serde_json::json;

use super::{
    discovery::Discovered,
    http::{Http, refusal},
};

/// A public client.
#[derive(Deserialize)]
pub struct Client {
    #[serde(rename = "client_id")]
    pub id: String,
}

/// The client to ask as: the one that is `named`, or a new one that redirects to `redirect`.
///
/// # Errors
/// None is named, and the server registers none.
pub async fn client(
    http: &Http,
    server: &Discovered,
    named: Option<&str>,
    redirect: Option<&str>,
) -> anyhow::Result<Client> {
    if let Some(id) = named {
        return Ok(Client { id: id.to_owned() });
    }
    let issuer = &server.metadata.issuer;
    let Some(endpoint) = &server.metadata.registration_endpoint else {
        bail!(
            "the authorization server {issuer} registers no clients by itself: name one that it knows with --client-id. At a gateway, either set \
             `auth.dcrEnabled: true`, or add to `auth.clients` {{ clientId: cli, redirectUris: [\"http://127.0.0.1/callback\"] }}"
        );
    };
    let grants = match redirect {
        Some(_) => ["authorization_code", "refresh_token"],
        None => ["urn:ietf:params:oauth:grant-type:device_code", "refresh_token"],
    };
    let mut metadata = json!({
        "client_name": "Gatewright command line",
        "grant_types": grants,
        "token_endpoint_auth_method": "none",
    });
    if let Some(redirect) = redirect {
        metadata["redirect_uris"] = json!([redirect]);
        metadata["response_types"] = json!(["code"]);
    }
    let (status, body) = http.json(endpoint, &metadata).await?;
    if !status.is_success() {
        let what = format!(
            "{issuer} registers no client for the command line; name one that it knows with --client-id"
        );
        return Err(refusal(status, &body).because(&what));
    }
    match serde_json::from_slice(&body) {
        Ok(client) => Ok(client),
        Err(_) => bail!("the registration at {issuer} cannot be read"),
    }
}
