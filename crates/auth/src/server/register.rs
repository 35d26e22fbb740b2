//! Dynamic client registration (RFC 7591) and its management (RFC 7592).

use std::{sync::Arc, time::Duration};

use axum::{
    body::Body,
    extract::{Path, State},
    response::{IntoResponse, Response},
};
use http::{Request, StatusCode, header, request::Parts};
use secrecy::ExposeSecret as _;
use serde_json::{Value, json};

use super::{
    Core,
    form::{OAuthError, no_store, read_body},
};
use crate::{
    client_metadata::{ClientMetadata, MetadataError},
    clients::{AuthMethod, OAuthClient, Origin},
    crypto::{mint, same, sha256_hex},
    store::{Key, StoreError},
};

const DAY: Duration = Duration::from_secs(86_400);

pub(super) async fn register(State(core): State<Arc<Core>>, request: Request<Body>) -> Response {
    let (parts, body) = request.into_parts();
    core.register(&parts, body).await.unwrap_or_else(IntoResponse::into_response)
}

pub(super) async fn read(
    State(core): State<Arc<Core>>,
    Path(id): Path<String>,
    request: Request<Body>,
) -> Response {
    let (parts, _) = request.into_parts();
    match core.managed(&parts, &id).await {
        Ok(client) => no_store(StatusCode::OK, &core.described(&client)),
        Err(error) => error.into_response(),
    }
}

pub(super) async fn replace(
    State(core): State<Arc<Core>>,
    Path(id): Path<String>,
    request: Request<Body>,
) -> Response {
    let (parts, body) = request.into_parts();
    core.replace_client(&parts, body, &id).await.unwrap_or_else(IntoResponse::into_response)
}

pub(super) async fn delete(
    State(core): State<Arc<Core>>,
    Path(id): Path<String>,
    request: Request<Body>,
) -> Response {
    let (parts, _) = request.into_parts();
    core.delete_client(&parts, &id).await.unwrap_or_else(IntoResponse::into_response)
}

fn bearer(parts: &Parts) -> Option<&str> {
    let value = parts.headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    value
        .split_once(' ')
        .filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"))
        .map(|(_, token)| token.trim())
}

/// Who registers itself gets tokens only through a user: `client_credentials` would hand anyone every scope.
fn needs_a_user(core: &Core, client: &OAuthClient) -> Result<(), OAuthError> {
    if core.config.dcr.initial_access_token.is_none() && client.may("client_credentials") {
        return Err(OAuthError::new(
            "invalid_client_metadata",
            "client_credentials is not open to clients that register themselves",
        ));
    }
    Ok(())
}

fn invalid_token() -> OAuthError {
    OAuthError {
        status: StatusCode::UNAUTHORIZED,
        challenge: Some("Bearer error=\"invalid_token\"".into()),
        ..OAuthError::new("invalid_token", "the token is not usable here")
    }
}

async fn metadata(body: Body) -> Result<ClientMetadata, OAuthError> {
    Ok(ClientMetadata::parse(&read_body(body).await?)?)
}

impl From<MetadataError> for OAuthError {
    fn from(error: MetadataError) -> Self {
        Self::new(error.code(), error.to_string())
    }
}

impl Core {
    fn is_open(&self) -> Result<(), OAuthError> {
        if self.config.dcr_enabled {
            return Ok(());
        }
        Err(OAuthError {
            status: StatusCode::NOT_FOUND,
            ..OAuthError::new("not_found", "registration is off")
        })
    }

    async fn register(&self, parts: &Parts, body: Body) -> Result<Response, OAuthError> {
        self.is_open()?;
        let ip = self.caller(parts);
        self.limit("register", &[&ip.to_string()], self.config.limits.register).await?;
        if let Some(token) = &self.config.dcr.initial_access_token
            && !bearer(parts).is_some_and(|shown| same(shown, token.expose_secret()))
        {
            return Err(invalid_token());
        }
        let id = format!("gwc_{}", mint::<16>(&*self.entropy));
        let metadata = metadata(body).await?;
        self.signs_as_wanted(&metadata).await?;
        let mut client = metadata.into_client(id, AuthMethod::ClientSecretBasic, Origin::Registered)?;
        needs_a_user(self, &client)?;
        let all = self.store.hit(&Key::single("registrations"), DAY).await?;
        if all.count > self.config.dcr.most_per_day {
            return Err(OAuthError {
                status: StatusCode::SERVICE_UNAVAILABLE,
                ..OAuthError::too_many(all.resets_in)
            });
        }
        let management = mint::<32>(&*self.entropy);
        client.management = Some(sha256_hex(&management));
        client.issued_s = self.clock.now_s();
        let needs_secret =
            matches!(client.method, AuthMethod::ClientSecretBasic | AuthMethod::ClientSecretPost);
        let secret = needs_secret.then(|| mint::<32>(&*self.entropy));
        client.secret = secret.as_ref().map(sha256_hex);
        self.keep_client(&client, Duration::from_secs(self.config.dcr.unused_ttl)).await?;
        self.tell("client.registered", None, Some(&client.id), Some(ip), None);
        let mut body = self.described(&client);
        body["registration_access_token"] = json!(management);
        if let Some(secret) = secret {
            body["client_secret"] = json!(secret);
            body["client_secret_expires_at"] = json!(0);
        }
        Ok(no_store(StatusCode::CREATED, &body))
    }

    /// A client that wants ID tokens signed in one way is not given others (OpenID Connect Registration 1.0 §2).
    async fn signs_as_wanted(&self, metadata: &ClientMetadata) -> Result<(), OAuthError> {
        let Some(wanted) = &metadata.id_token_signed_response_alg else { return Ok(()) };
        if self.algorithms().await.contains(wanted) {
            return Ok(());
        }
        let text = "id_token_signed_response_alg is none of id_token_signing_alg_values_supported";
        Err(OAuthError::new("invalid_client_metadata", text))
    }

    async fn keep_client(&self, client: &OAuthClient, life: Duration) -> Result<(), OAuthError> {
        let value = serde_json::to_vec(client).unwrap_or_default();
        Ok(self.store.put(&Key::named("client", &[&client.id]), &value, life).await?)
    }

    /// Notes that a registered client got tokens: it is kept at least as long as they live. Written once a day at most.
    pub(super) async fn keep_in_use(&self, client: &OAuthClient) {
        let (now_s, settings) = (self.clock.now_s(), &self.config);
        let pause = (settings.dcr.unused_ttl / 8).min(DAY.as_secs());
        if client.origin != Origin::Registered || now_s < client.used_s.saturating_add(pause) {
            return;
        }
        if let Err(error) = self.renew_client(client, now_s).await {
            tracing::warn!(client.id, %error, "the use of a registered client could not be noted");
        }
    }

    async fn renew_client(&self, client: &OAuthClient, now_s: u64) -> Result<(), StoreError> {
        let key = Key::named("client", &[&client.id]);
        let Some(held) = self.store.get(&key).await? else { return Ok(()) };
        let mut now: OAuthClient = serde_json::from_slice(&held).map_err(|_| StoreError::Corrupt)?;
        now.used_s = now_s;
        let value = serde_json::to_vec(&now).unwrap_or_default();
        // A registration that is changed or deleted meanwhile stays as it is then.
        self.store.replace(&key, &held, &value, self.client_life()).await.map(drop)
    }

    /// How long a registration in use lives: as long as an unused one and as the tokens it may just have got, whose issue is noted once a day.
    fn client_life(&self) -> Duration {
        let tokens = self.family_life(self.config.refresh.enabled);
        Duration::from_secs(self.config.dcr.unused_ttl).max(tokens) + DAY
    }

    fn described(&self, client: &OAuthClient) -> Value {
        let mut body = json!({
            "client_id": client.id,
            "client_id_issued_at": client.issued_s,
            "client_name": client.name,
            "redirect_uris": client.redirect_uris,
            "grant_types": client.grants,
            "response_types": ["code"],
            "token_endpoint_auth_method": client.method,
            "registration_client_uri": self.url(&format!("/oauth/register/{}", client.id)),
        });
        if let Some(scopes) = &client.scopes {
            body["scope"] = json!(scopes.join(" "));
        }
        if let Some(jwks) = &client.jwks {
            body["jwks"] = json!(jwks);
        }
        body
    }

    /// The registered client `id`, when the request shows its management token.
    async fn managed(&self, parts: &Parts, id: &str) -> Result<OAuthClient, OAuthError> {
        self.is_open()?;
        let ip = self.caller(parts).to_string();
        self.limit("register", &[&ip], self.config.limits.register).await?;
        let held = self.store.get(&Key::named("client", &[id])).await?.ok_or_else(invalid_token)?;
        let client: OAuthClient =
            serde_json::from_slice(&held).map_err(|_| crate::store::StoreError::Corrupt)?;
        let shown = bearer(parts).map(sha256_hex).unwrap_or_default();
        if client.management.as_ref().is_some_and(|held| same(held, &shown)) {
            Ok(client)
        } else {
            Err(invalid_token())
        }
    }

    async fn replace_client(&self, parts: &Parts, body: Body, id: &str) -> Result<Response, OAuthError> {
        let before = self.managed(parts, id).await?;
        let metadata = metadata(body).await?;
        self.signs_as_wanted(&metadata).await?;
        if metadata.client_id.as_deref() != Some(id) {
            return Err(OAuthError::new("invalid_client_metadata", "client_id must be the client's own"));
        }
        let mut client = metadata.into_client(before.id.clone(), before.method, Origin::Registered)?;
        needs_a_user(self, &client)?;
        if client.method != before.method {
            return Err(OAuthError::new(
                "invalid_client_metadata",
                "the authentication method cannot be changed",
            ));
        }
        client.secret = before.secret;
        client.management = before.management;
        client.issued_s = before.issued_s;
        client.used_s = before.used_s;
        self.keep_client(&client, self.client_life()).await?;
        // Access tokens are limited to the scopes that the client may have now.
        self.store.announce().await;
        Ok(no_store(StatusCode::OK, &self.described(&client)))
    }

    async fn delete_client(&self, parts: &Parts, id: &str) -> Result<Response, OAuthError> {
        let client = self.managed(parts, id).await?;
        self.store.remove(&Key::named("client", &[id])).await?;
        self.cut("client", id).await?;
        self.tell("client.deleted", None, Some(&client.id), Some(self.caller(parts)), None);
        Ok(StatusCode::NO_CONTENT.into_response())
    }
}
