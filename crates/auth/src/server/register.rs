//! Dynamic client registration (RFC 7591) and its management (RFC 7592).

use std::sync::Arc;

use axum::{
    body::Body,
    extract::{Path, State},
    response::{IntoResponse, Response},
};
use gatewright_core::Portion;
use http::{Request, StatusCode, request::Parts};
use secrecy::ExposeSecret as _;
use serde_json::{Value, json};

use super::services::Services;
use crate::{
    clients::{AuthMethod, ClientMetadata, OAuthClient, Origin},
    context::Context,
    crypto::{mint, same, sha256_hex},
    error::{OAuthError, no_store},
    error_codes::Code,
    grants::Revocation,
    net::ClientAddress,
    store::Key,
    tuning::REGISTRATION_WINDOW,
    web::params::{bearer, has_type, read_body},
};

/// Registrations of a network with which it still gets one of those that are kept for networks with few.
const LAST_OF_ONE: u64 = 1;

pub(super) async fn register(State(services): State<Arc<Services>>, request: Request<Body>) -> Response {
    let (parts, body) = request.into_parts();
    create(&services, &parts, body).await.unwrap_or_else(IntoResponse::into_response)
}

pub(super) async fn read(
    State(services): State<Arc<Services>>,
    Path(id): Path<String>,
    request: Request<Body>,
) -> Response {
    let (parts, _) = request.into_parts();
    match authorized(&services, &parts, &id).await {
        Ok(client) => no_store(StatusCode::OK, &described(&services.ctx, &client)),
        Err(error) => error.into_response(),
    }
}

pub(super) async fn replace(
    State(services): State<Arc<Services>>,
    Path(id): Path<String>,
    request: Request<Body>,
) -> Response {
    let (parts, body) = request.into_parts();
    update(&services, &parts, body, &id).await.unwrap_or_else(IntoResponse::into_response)
}

pub(super) async fn delete(
    State(services): State<Arc<Services>>,
    Path(id): Path<String>,
    request: Request<Body>,
) -> Response {
    let (parts, _) = request.into_parts();
    remove(&services, &parts, &id).await.unwrap_or_else(IntoResponse::into_response)
}

fn invalid_metadata(text: &'static str) -> OAuthError {
    OAuthError::new(Code::InvalidClientMetadata, text)
}

fn invalid_token() -> OAuthError {
    OAuthError::new(Code::InvalidToken, "the token is not usable here")
        .with_challenge("Bearer error=\"invalid_token\"")
}

/// Refuses requests while registration is off.
fn check_enabled(ctx: &Context) -> Result<(), OAuthError> {
    match ctx.config.dcr_enabled {
        true => Ok(()),
        false => Err(OAuthError::new(Code::NotFound, "registration is off")),
    }
}

/// Refuses `client_credentials` to a client that registers itself: it would give anyone every scope, without a user.
fn check_grants(ctx: &Context, client: &OAuthClient) -> Result<(), OAuthError> {
    if ctx.config.dcr.initial_access_token.is_none() && client.may("client_credentials") {
        return Err(invalid_metadata("client_credentials is not open to clients that register themselves"));
    }
    Ok(())
}

/// Reads the metadata of a request. A client that wants ID tokens signed in one way is not given others (OpenID Connect Registration 1.0
/// §2).
async fn read_metadata(services: &Services, parts: &Parts, body: Body) -> Result<ClientMetadata, OAuthError> {
    if !has_type(parts, "application/json") {
        return Err(invalid_metadata("the body must be application/json"));
    }
    let metadata = ClientMetadata::parse(&read_body(parts, body).await?)?;
    if let Some(algorithm) = &metadata.id_token_signed_response_alg
        && !services.tokens.keys.snapshot().await.algorithms().contains(algorithm)
    {
        let text = "id_token_signed_response_alg is none of id_token_signing_alg_values_supported";
        return Err(invalid_metadata(text));
    }
    Ok(metadata)
}

/// Counts a registration by `caller`. Where anyone may register, one network gets a quarter of those that are left for the day. As many more are for networks
/// that registered none before, however many others took the rest.
async fn count_registration(ctx: &Context, caller: ClientAddress) -> Result<(), OAuthError> {
    let (all, last, most) =
        (Key::single("registrations"), Key::single("last-registrations"), ctx.config.dcr.most_per_day);
    if ctx.config.dcr.initial_access_token.is_none() {
        let (counted, of_last) = (counted(ctx, &all).await?, counted(ctx, &last).await?);
        let free = bounded(most.saturating_sub(counted.saturating_add(1)));
        let mut has_few = counted >= most;
        // What nobody gets any more is not counted for its network either.
        for (network, times) in caller.networks().filter(|_| counted < most || of_last < most) {
            let key = Key::named("registrations", &[&network.to_string()]);
            let own = ctx.store.hit(&key, REGISTRATION_WINDOW).await?;
            has_few &= own.count <= LAST_OF_ONE.saturating_mul(times);
            if counted < most
                && !Portion::QuarterOfFree.allows(bounded(own.count - 1), bounded(times), 1, free)
            {
                return Err(OAuthError::too_many(own.resets_in));
            }
        }
        if has_few && ctx.store.hit(&last, REGISTRATION_WINDOW).await?.count <= most {
            return Ok(());
        }
    }
    let hit = ctx.store.hit(&all, REGISTRATION_WINDOW).await?;
    match hit.count > most {
        true => Err(OAuthError::too_many(hit.resets_in).with_status(StatusCode::SERVICE_UNAVAILABLE)),
        false => Ok(()),
    }
}

/// Returns what was counted under `key`.
async fn counted(ctx: &Context, key: &Key) -> Result<u64, OAuthError> {
    let record = ctx.store.get(key).await?.unwrap_or_default();
    Ok(std::str::from_utf8(&record).ok().and_then(|text| text.parse().ok()).unwrap_or(0))
}

fn bounded(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

async fn create(services: &Services, parts: &Parts, body: Body) -> Result<Response, OAuthError> {
    let ctx = &services.ctx;
    check_enabled(ctx)?;
    let ip = ctx.caller(parts);
    ctx.limit_caller("register", &[], ip, ctx.config.limits.register).await?;
    if let Some(token) = &ctx.config.dcr.initial_access_token
        && !bearer(parts).is_some_and(|sent| same(sent, token.expose_secret()))
    {
        return Err(invalid_token());
    }
    let id = format!("gwc_{}", mint::<16>(&*ctx.entropy));
    let metadata = read_metadata(services, parts, body).await?;
    let mut client = metadata.into_client(id, AuthMethod::ClientSecretBasic, Origin::Registered)?;
    check_grants(ctx, &client)?;
    count_registration(ctx, ip).await?;
    let management = ctx.new_secret();
    client.management = Some(sha256_hex(&management));
    client.issued_s = ctx.clock.now_s();
    let needs_secret = matches!(client.method, AuthMethod::ClientSecretBasic | AuthMethod::ClientSecretPost);
    let secret = needs_secret.then(|| ctx.new_secret());
    client.secret = secret.as_ref().map(sha256_hex);
    services.clients.register(&client).await?;
    ctx.record_event("client.registered", None, Some(&client.id), Some(ip), None);
    let mut body = described(ctx, &client);
    body["registration_access_token"] = json!(management);
    if let Some(secret) = secret {
        body["client_secret"] = json!(secret);
        body["client_secret_expires_at"] = json!(0);
    }
    Ok(no_store(StatusCode::CREATED, &body))
}

/// Returns a registration as the answers state it.
fn described(ctx: &Context, client: &OAuthClient) -> Value {
    let mut body = json!({
        "client_id": client.id,
        "client_id_issued_at": client.issued_s,
        "client_name": client.name,
        "redirect_uris": client.redirect_uris,
        "grant_types": client.grants,
        "response_types": ["code"],
        "token_endpoint_auth_method": client.method,
        "dpop_bound_access_tokens": client.dpop_bound,
        "registration_client_uri": ctx.url(&format!("/oauth/register/{}", client.id)),
    });
    if let Some(scopes) = &client.scopes {
        body["scope"] = json!(scopes.join(" "));
    }
    if let Some(jwks) = &client.jwks {
        body["jwks"] = json!(jwks);
    }
    body
}

/// Returns the registered client `id`, when the request has its registration access token.
async fn authorized(services: &Services, parts: &Parts, id: &str) -> Result<OAuthClient, OAuthError> {
    let ctx = &services.ctx;
    check_enabled(ctx)?;
    ctx.limit_caller("register", &[], ctx.caller(parts), ctx.config.limits.register).await?;
    let client = services.clients.registered(id).await?.ok_or_else(invalid_token)?;
    let sent = bearer(parts).map(sha256_hex).unwrap_or_default();
    match client.management.as_ref().is_some_and(|digest| same(digest, &sent)) {
        true => Ok(client),
        false => Err(invalid_token()),
    }
}

async fn update(services: &Services, parts: &Parts, body: Body, id: &str) -> Result<Response, OAuthError> {
    let before = authorized(services, parts, id).await?;
    let metadata = read_metadata(services, parts, body).await?;
    if metadata.client_id.as_deref() != Some(id) {
        return Err(invalid_metadata("client_id must be the client's own"));
    }
    let mut client = metadata.into_client(before.id.clone(), before.method, Origin::Registered)?;
    check_grants(&services.ctx, &client)?;
    if client.method != before.method {
        return Err(invalid_metadata("the authentication method cannot be changed"));
    }
    client.secret = before.secret;
    client.management = before.management;
    client.issued_s = before.issued_s;
    client.used_s = before.used_s;
    services.clients.update(&client).await?;
    // Access tokens are limited to the scopes that the client may have now.
    services.ctx.store.announce().await;
    let ip = services.ctx.caller(parts);
    services.ctx.record_event("client.updated", None, Some(&client.id), Some(ip), None);
    Ok(no_store(StatusCode::OK, &described(&services.ctx, &client)))
}

async fn remove(services: &Services, parts: &Parts, id: &str) -> Result<Response, OAuthError> {
    let client = authorized(services, parts, id).await?;
    services.clients.remove(id).await?;
    services.grants.revoke(Revocation::Client(id)).await?;
    let ip = services.ctx.caller(parts);
    services.ctx.record_event("client.deleted", None, Some(&client.id), Some(ip), None);
    Ok(StatusCode::NO_CONTENT.into_response())
}
