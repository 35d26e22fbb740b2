//! The gateway as a client: configured, by a metadata document of its own, or registered (RFC 7591).

use axum::{
    Json,
    extract::{Path, State},
    response::{IntoResponse, Response},
};
use gatewright_core::read_json;
use http::{StatusCode, header};
use secrecy::ExposeSecret as _;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{
    discovery::ServerMetadata,
    vault::{Provider, UpstreamVault},
};
use crate::{context::Context, crypto::sha256_hex, store::Key, tuning::UPSTREAM_REGISTRATION_LIFETIME};

/// Why the gateway has no client identity at an authorization server.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum IdentityError {
    /// The gateway cannot register itself there.
    #[error(
        "{why}; register the gateway there, with the redirect URI {callback}, and set `apps.{app}.auth.clientId`"
    )]
    NeedsClientId { why: &'static str, callback: String, app: String },
    /// A registration failed.
    #[error("{0}")]
    Failed(String),
}

/// Our client identity at an authorization server.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct ClientIdentity {
    pub(super) id: String,
    pub(super) secret: Option<String>,
    /// The secret is sent in the form instead of the header.
    pub(super) in_form: bool,
}

/// The path segment of an issuer: 32 hexadecimal digits of its SHA-256.
///
/// Each issuer sends its answers to an address of its own (RFC 9700 §4.4.2.2), so that no code of one is ever presented to another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct IssuerTag(String);

impl IssuerTag {
    pub(super) fn of(issuer: &str) -> Self {
        Self(sha256_hex(issuer)[..32].to_owned())
    }

    /// Parses a path segment.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let fits = text.len() == 32 && text.bytes().all(|c| matches!(c, b'0'..=b'9' | b'a'..=b'f'));
        fits.then(|| Self(text.to_owned()))
    }

    /// Returns our redirect URI at the issuer.
    pub(super) fn callback(&self, ctx: &Context) -> String {
        ctx.url(&format!("/oauth/connect/{}/callback", self.0))
    }

    fn document_url(&self, ctx: &Context) -> String {
        ctx.url(&format!("/oauth/connect/{}/client.json", self.0))
    }
}

fn metadata(ctx: &Context, issuer: &IssuerTag) -> Value {
    json!({
        "client_name": ctx.deployment.name,
        "redirect_uris": [issuer.callback(ctx)],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": "none",
    })
}

/// Serves our client ID metadata document for an issuer.
pub(super) async fn document(State(vault): State<UpstreamVault>, Path(issuer): Path<String>) -> Response {
    let ctx = &vault.0.services.ctx;
    let Some(issuer) = IssuerTag::parse(&issuer) else { return StatusCode::NOT_FOUND.into_response() };
    let mut document = metadata(ctx, &issuer);
    document["client_id"] = json!(issuer.document_url(ctx));
    ([(header::CACHE_CONTROL, "public, max-age=300")], Json(document)).into_response()
}

impl Provider {
    /// Returns our identity at `server`. Registers the gateway when that is the only way.
    pub(super) async fn identity(
        &self,
        ctx: &Context,
        server: &ServerMetadata,
    ) -> Result<ClientIdentity, IdentityError> {
        let takes = |method: &str| {
            // Basic is what a server without the field takes (RFC 8414 §2).
            let methods = server.token_endpoint_auth_methods_supported.as_deref();
            methods.map_or(method == "client_secret_basic", |all| all.iter().any(|record| record == method))
        };
        if let Some(id) = &self.settings.client_id {
            let secret = self.settings.client_secret.as_ref().map(|secret| secret.expose_secret().to_owned());
            let in_form = !takes("client_secret_basic") && takes("client_secret_post");
            return Ok(ClientIdentity { id: id.clone(), secret, in_form });
        }
        let issuer = IssuerTag::of(&server.issuer);
        if server.takes_documents(ctx) {
            return Ok(ClientIdentity { id: issuer.document_url(ctx), secret: None, in_form: false });
        }
        if let Some(endpoint) = &server.registration_endpoint {
            return self.registered(ctx, server, endpoint).await.map_err(IdentityError::Failed);
        }
        let why = match (server.is_unnamed, server.client_id_metadata_document_supported) {
            (true, _) => {
                "only the endpoints of its authorization server are known, and no metadata says how the gateway could register itself"
            }
            (false, true) => {
                "its authorization server takes only clients that it reads about at an https address, and `publicUrl` is none"
            }
            (false, false) => "its authorization server registers no clients by itself",
        };
        let (callback, app) = (issuer.callback(ctx), self.settings.app.clone());
        Err(IdentityError::NeedsClientId { why, callback, app })
    }

    async fn registered(
        &self,
        ctx: &Context,
        server: &ServerMetadata,
        endpoint: &str,
    ) -> Result<ClientIdentity, String> {
        let issuer = IssuerTag::of(&server.issuer);
        let callback = issuer.callback(ctx);
        let key = Key::named("upstreamclient", &[&server.issuer, &callback]);
        let read = |sealed: Vec<u8>| -> Option<ClientIdentity> {
            serde_json::from_slice(&ctx.sealer.open(key.as_str(), &sealed)?).ok()
        };
        let store = |error: crate::store::StoreError| error.to_string();
        let record = ctx.store.get(&key).await.map_err(store)?;
        if let Some(identity) = record.and_then(read) {
            return Ok(identity);
        }
        #[derive(Deserialize)]
        struct Registered {
            client_id: String,
            client_secret: Option<String>,
            token_endpoint_auth_method: Option<String>,
        }
        let answer =
            self.fetcher.post_json(endpoint, &metadata(ctx, &issuer), 64 * 1024).await.map_err(|error| {
                format!("its authorization server refused to register the gateway: {error}")
            })?;
        let made: Registered = read_json(&answer.body)
            .map_err(|_| "the answer to our registration cannot be read".to_owned())?;
        let in_form = made.token_endpoint_auth_method.as_deref() == Some("client_secret_post");
        let secret =
            made.client_secret.filter(|_| made.token_endpoint_auth_method.as_deref() != Some("none"));
        let identity = ClientIdentity { id: made.client_id, secret, in_form };
        let plain = serde_json::to_vec(&identity).unwrap_or_default();
        let sealed = ctx.sealer.seal(&*ctx.entropy, key.as_str(), &plain);
        if ctx.store.put_new(&key, &sealed, UPSTREAM_REGISTRATION_LIFETIME).await.map_err(store)? {
            return Ok(identity);
        }
        // Another instance registered us meanwhile, or what was record cannot be read any more.
        match ctx.store.get(&key).await.map_err(store)?.and_then(read) {
            Some(theirs) => Ok(theirs),
            None => {
                ctx.store.put(&key, &sealed, UPSTREAM_REGISTRATION_LIFETIME).await.map_err(store)?;
                Ok(identity)
            }
        }
    }
}
