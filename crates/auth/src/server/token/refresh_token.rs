//! The refresh token grant (RFC 6749 §6), with rotation (RFC 9700 §4.14).

use std::time::Duration;

use axum::response::{IntoResponse as _, Response};
use gatewright_core::Groups;

use super::{
    authorization_code::{bind, check_resources, family_left},
    request::RefreshRequest,
};
use crate::{
    ceiling::GrantedScopes,
    clients::OAuthClient,
    crypto::{Sealer, b64, unb64},
    error::OAuthError,
    error_codes::Code,
    grant_refusal::GrantRefusal,
    net::ClientAddress,
    provider::{ProviderStatus, status_of},
    records::Grant,
    server::services::Services,
    store::{Digest, FamilyId, Rotated, Rotation, StoreError},
    tokens::TokenGrant,
    tuning::ROTATION_GRACE,
    web::{params::Params, responses::ProviderUnavailable},
};

/// Name under which a token's successor is encrypted with the token.
const SUCCESSOR: &str = "successor";

pub(super) async fn refresh(
    services: &Services,
    client: &OAuthClient,
    params: &Params,
    jkt: Option<String>,
    ip: ClientAddress,
) -> Result<Response, OAuthError> {
    let RefreshRequest { token, family } = RefreshRequest::parse(params)?;
    let ctx = &services.ctx;
    let settings = &ctx.config.refresh;
    let digest = Digest::of(token);
    let found = ctx
        .store
        .find(&digest, &family)
        .await?
        .ok_or_else(|| OAuthError::invalid_grant(GrantRefusal::Unknown))?;
    let mut grant: Grant = serde_json::from_slice(&found.grant).map_err(|_| StoreError::Corrupt)?;
    if grant.client != client.id {
        return Err(OAuthError::invalid_grant(GrantRefusal::OtherClient));
    }
    if !grant.refreshes || !settings.enabled {
        return Err(OAuthError::invalid_grant(GrantRefusal::RefreshDisabled));
    }
    let end_ms = grant.issued_ms + settings.absolute_ttl * 1000;
    let ended = if ctx.clock.now_ms() >= end_ms {
        Some(GrantRefusal::Expired)
    } else {
        (!services.grants.is_active(&grant).await?).then_some(GrantRefusal::Revoked)
    };
    if let Some(refusal) = ended {
        services.grants.end_family(&family).await?;
        return Err(OAuthError::invalid_grant(refusal));
    }
    if client.is_public() && grant.jkt != jkt {
        // Its first use was by the holder of another key, or of none: one of the two is not the client.
        if !found.current {
            services.grants.end_family(&family).await?;
            return Err(reused(services, &grant, ip));
        }
        // A public client's refresh tokens are bound to the key they were issued for (RFC 9449 §5).
        if grant.jkt.is_some() {
            return Err(OAuthError::new(Code::InvalidDpopProof, "the refresh token is bound to another key"));
        }
    }
    let scopes = requested_scopes(services, client, &grant, params)?;
    check_resources(services, &grant, params)?;
    let groups = match status_of(ctx, &services.grants, services.provider.as_ref(), &grant).await? {
        ProviderStatus::Confirmed(groups) => groups,
        ProviderStatus::Refused => {
            services.grants.end_family(&family).await?;
            return Err(OAuthError::invalid_grant(GrantRefusal::ProviderRefused));
        }
        ProviderStatus::Unavailable => return Ok(provider_unavailable()),
    };
    let refresh = if settings.rotate_refresh_token || client.is_public() {
        let new = rotate(services, token, &digest, &family, &grant, ip).await?;
        bind(services, client, &mut grant, &found.grant, &family, &new, jkt.as_deref()).await?;
        Some(new)
    } else if found.current {
        None
    } else {
        return Err(OAuthError::invalid_grant(GrantRefusal::Superseded));
    };
    if let Some(groups) = groups.filter(|groups| *groups != grant.person.groups) {
        let current = refresh.as_deref().map_or(digest, Digest::of);
        keep_groups(services, &family, &current, groups).await?;
    }
    let jkt = jkt.as_deref();
    let issue = TokenGrant { grant: &grant, family: &family, scopes, jkt, refresh, nonce: None };
    services.tokens.issue("token.refreshed", issue, ip).await
}

/// Returns the scopes of the new access token: those of the request, or of the grant, as far as they are still allowed.
fn requested_scopes(
    services: &Services,
    client: &OAuthClient,
    grant: &Grant,
    params: &Params,
) -> Result<GrantedScopes, OAuthError> {
    let beyond = || OAuthError::new(Code::InvalidScope, "a scope is not part of the grant");
    let ceiling = services.grants.ceiling(&grant.sub, client);
    let scopes = match params.get("scope") {
        None => ceiling.narrow(&grant.scopes),
        Some(text) => ceiling.narrow(&grant.scopes.select(text).ok_or_else(beyond)?),
    };
    match scopes.is_empty() {
        true => Err(OAuthError::new(Code::InvalidScope, "none of the scopes can be granted any more")),
        false => Ok(scopes),
    }
}

/// Records the groups that the identity provider named, for all access tokens of the family that are not cached. If the grant changes at the same
/// time, the next refresh records them.
async fn keep_groups(
    services: &Services,
    family: &FamilyId,
    current: &Digest,
    groups: Groups,
) -> Result<(), StoreError> {
    let ctx = &services.ctx;
    let Some(found) = ctx.store.find(current, family).await? else { return Ok(()) };
    let mut grant: Grant = serde_json::from_slice(&found.grant).map_err(|_| StoreError::Corrupt)?;
    grant.person.groups = groups;
    let changed = serde_json::to_vec(&grant).unwrap_or_default();
    let left = family_left(ctx, &grant);
    ctx.store.replace_grant(family, current, (&found.grant, &changed), left).await.map(drop)
}

/// Puts a new refresh token in the place of `token`. A retry within [`ROTATION_GRACE`] gets the same one.
async fn rotate(
    services: &Services,
    token: &str,
    digest: &Digest,
    family: &FamilyId,
    grant: &Grant,
    ip: ClientAddress,
) -> Result<String, OAuthError> {
    let ctx = &services.ctx;
    let new = format!("{}.{}", family.as_str(), ctx.new_secret());
    let sealer = Sealer::from_secret(token.as_bytes());
    let sealed = b64(sealer.seal(&*ctx.entropy, SUCCESSOR, new.as_bytes()));
    let rotation = Rotation {
        old: digest,
        family,
        new: &Digest::of(&new),
        sealed: sealed.as_bytes(),
        ttl: Duration::from_secs(ctx.config.refresh.refresh_token_ttl),
        now_ms: ctx.clock.now_ms(),
        grace: ROTATION_GRACE,
    };
    match ctx.store.rotate(rotation).await? {
        Rotated::Fresh => Ok(new),
        Rotated::Retried(sealed) => {
            let sealed = std::str::from_utf8(&sealed).ok().and_then(unb64);
            let plain = sealed.and_then(|sealed| sealer.open(SUCCESSOR, &sealed));
            plain
                .and_then(|bytes| String::from_utf8(bytes).ok())
                .ok_or_else(|| OAuthError::invalid_grant(GrantRefusal::Unknown))
        }
        Rotated::Replayed => {
            ctx.store.announce().await;
            Err(reused(services, grant, ip))
        }
        Rotated::Unknown => Err(OAuthError::invalid_grant(GrantRefusal::Unknown)),
    }
}

/// Records that a refresh token of `grant` was used again, and refuses it.
fn reused(services: &Services, grant: &Grant, ip: ClientAddress) -> OAuthError {
    let (sub, client) = (Some(grant.sub.as_str()), Some(grant.client.as_str()));
    services.ctx.record_event("token.reuse_detected", sub, client, Some(ip), None);
    OAuthError::invalid_grant(GrantRefusal::Replayed)
}

/// The identity provider that the user signed in at does not answer. The refresh token is still good.
fn provider_unavailable() -> Response {
    let text = "the sign-in service does not answer; try again later";
    let error = OAuthError { retry_after_s: Some(5), ..OAuthError::new(Code::TemporarilyUnavailable, text) };
    let mut response = error.into_response();
    response.extensions_mut().insert(ProviderUnavailable);
    response
}
