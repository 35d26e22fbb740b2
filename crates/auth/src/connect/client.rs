//! The gateway as a client: configured, by a metadata document of its own, or registered (RFC 7591).

use std::time::Duration;

use axum::{
    Json,
    extract::{Path, State},
    response::{IntoResponse, Response},
};
use http::{StatusCode, header};
use secrecy::ExposeSecret as _;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{Provider, UpstreamVault, discovery::Server};
use crate::{crypto::sha256_hex, server::Core, store::Key};

/// How long a registration is used before a new one is made.
const REGISTRATION_LIFE: Duration = Duration::from_secs(180 * 86_400);

/// Why a server without registration and client documents connects nobody.
pub(super) const NEEDS_CLIENT_ID: &str =
    "its authorization server registers no clients by itself; set `auth.clientId`";

/// Who we are at an authorization server.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Identity {
    pub(super) id: String,
    pub(super) secret: Option<String>,
    /// Whether the secret goes into the form in place of the header.
    pub(super) in_form: bool,
}

/// The part of our addresses that stands for an issuer: 32 hexadecimal digits of its SHA-256.
///
/// Each issuer sends its answers to an address of its own (RFC 9700 §4.4.2.2), so that no code of one is ever presented to another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct IssuerTag(String);

impl IssuerTag {
    pub(super) fn of(issuer: &str) -> Self {
        Self(sha256_hex(issuer)[..32].to_owned())
    }

    /// Reads it from an address; `None` for anything else.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let fits = text.len() == 32 && text.bytes().all(|c| matches!(c, b'0'..=b'9' | b'a'..=b'f'));
        fits.then(|| Self(text.to_owned()))
    }

    /// Our redirect address at the issuer.
    pub(super) fn callback(&self, core: &Core) -> String {
        core.url(&format!("/oauth/connect/{}/callback", self.0))
    }

    fn document_url(&self, core: &Core) -> String {
        core.url(&format!("/oauth/connect/{}/client.json", self.0))
    }
}

fn metadata(core: &Core, issuer: &IssuerTag) -> Value {
    json!({
        "client_name": core.deployment.name,
        "redirect_uris": [issuer.callback(core)],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": "none",
    })
}

/// Our client ID metadata document for an issuer.
pub(super) async fn document(State(vault): State<UpstreamVault>, Path(issuer): Path<String>) -> Response {
    let core = &vault.0.core;
    let Some(issuer) = IssuerTag::parse(&issuer) else { return StatusCode::NOT_FOUND.into_response() };
    let mut document = metadata(core, &issuer);
    document["client_id"] = json!(issuer.document_url(core));
    ([(header::CACHE_CONTROL, "public, max-age=300")], Json(document)).into_response()
}

impl Provider {
    /// Who we are at `server`; registers us when that is the only way.
    pub(super) async fn identity(&self, core: &Core, server: &Server) -> Result<Identity, String> {
        let takes = |method: &str| {
            // Basic is what a server without the field takes (RFC 8414 §2).
            let methods = server.token_endpoint_auth_methods_supported.as_deref();
            methods.map_or(method == "client_secret_basic", |all| all.iter().any(|held| held == method))
        };
        if let Some(id) = &self.settings.client_id {
            let secret = self.settings.client_secret.as_ref().map(|secret| secret.expose_secret().to_owned());
            let in_form = !takes("client_secret_basic") && takes("client_secret_post");
            return Ok(Identity { id: id.clone(), secret, in_form });
        }
        // A document of ours can be read from elsewhere only when we are reached with https.
        if server.client_id_metadata_document_supported && core.deployment.is_https() {
            let id = IssuerTag::of(&server.issuer).document_url(core);
            return Ok(Identity { id, secret: None, in_form: false });
        }
        let Some(endpoint) = &server.registration_endpoint else {
            return Err(NEEDS_CLIENT_ID.to_owned());
        };
        self.registered(core, server, endpoint).await
    }

    async fn registered(&self, core: &Core, server: &Server, endpoint: &str) -> Result<Identity, String> {
        let issuer = IssuerTag::of(&server.issuer);
        let callback = issuer.callback(core);
        let key = Key::named("upstreamclient", &[&server.issuer, &callback]);
        let read = |sealed: Vec<u8>| -> Option<Identity> {
            serde_json::from_slice(&core.sealer.open(key.as_str(), &sealed)?).ok()
        };
        let store = |error: crate::store::StoreError| error.to_string();
        let held = core.store.get(&key).await.map_err(store)?;
        if let Some(identity) = held.and_then(read) {
            return Ok(identity);
        }
        #[derive(Deserialize)]
        struct Registered {
            client_id: String,
            client_secret: Option<String>,
            token_endpoint_auth_method: Option<String>,
        }
        let answer =
            self.fetcher.post_json(endpoint, &metadata(core, &issuer), 64 * 1024).await.map_err(|error| {
                format!("its authorization server refused to register the gateway: {error}")
            })?;
        let made: Registered = serde_json::from_slice(&answer.body)
            .map_err(|_| "the answer to our registration cannot be read".to_owned())?;
        let in_form = made.token_endpoint_auth_method.as_deref() == Some("client_secret_post");
        let secret =
            made.client_secret.filter(|_| made.token_endpoint_auth_method.as_deref() != Some("none"));
        let identity = Identity { id: made.client_id, secret, in_form };
        let plain = serde_json::to_vec(&identity).unwrap_or_default();
        let sealed = core.sealer.seal(&*core.entropy, key.as_str(), &plain);
        if core.store.put_new(&key, &sealed, REGISTRATION_LIFE).await.map_err(store)? {
            return Ok(identity);
        }
        // Another instance registered us meanwhile, or what was held cannot be read any more.
        match core.store.get(&key).await.map_err(store)?.and_then(read) {
            Some(theirs) => Ok(theirs),
            None => {
                core.store.put(&key, &sealed, REGISTRATION_LIFE).await.map_err(store)?;
                Ok(identity)
            }
        }
    }
}
