//! The authorization code grant (RFC 6749 §4.1.3, RFC 7636 §4.5).

use std::time::Duration;

use axum::response::Response;

use super::request::CodeRequest;
use crate::{
    clients::{OAuthClient, log_mismatch},
    context::Context,
    crypto::{b64, same, sha256},
    error::OAuthError,
    error_codes::Code,
    grant_refusal::GrantRefusal,
    net::ClientAddress,
    records::Grant,
    server::services::Services,
    store::{Digest, Exchange, Exchanged, FamilyId, Key, Redeemed, StoreError},
    tokens::TokenGrant,
    tuning::RATE_WINDOW,
    web::params::Params,
};

/// A code to redeem, of an authenticated client.
pub(super) struct Redemption<'a> {
    pub(super) client: &'a OAuthClient,
    pub(super) params: &'a Params,
    pub(super) request: CodeRequest<'a>,
    /// Thumbprint of the DPoP key that the request proves.
    pub(super) jkt: Option<String>,
    /// Counters to count in the same step, with their limits.
    pub(super) counts: &'a [(Key, u64)],
    pub(super) ip: ClientAddress,
}

pub(super) async fn redeem(services: &Services, redemption: Redemption<'_>) -> Result<Response, OAuthError> {
    let Redemption { client, params, request, jkt, counts, ip } = redemption;
    let CodeRequest { code, verifier, family } = request;
    let ctx = &services.ctx;
    // A resource that is none of this server's does not use up the code. Whatever else is wrong does, as a sign that somebody has the code
    // who should not.
    let resource = services.grants.named_resource(&params.resources)?;
    let refresh = format!("{}.{}", family.as_str(), ctx.new_secret());
    let exchange = Exchange {
        counts,
        window: RATE_WINDOW,
        code: &Digest::of(code),
        family: &family,
        refresh: &Digest::of(&refresh),
    };
    let (record, revocations) = match ctx.store.exchange(exchange).await? {
        Exchanged::Limited(resets_in) => return Err(OAuthError::too_many(resets_in)),
        Exchanged::Redeemed { code: Redeemed::Fresh(record), revocations } => (record, revocations),
        Exchanged::Redeemed { code: Redeemed::Replayed, .. } => {
            ctx.store.announce().await;
            ctx.record_event("code.reuse_detected", None, Some(&client.id), Some(ip), None);
            return Err(OAuthError::invalid_grant(GrantRefusal::Replayed));
        }
        Exchanged::Redeemed { code: Redeemed::Unknown, .. } => {
            return Err(OAuthError::invalid_grant(GrantRefusal::Unknown));
        }
    };
    // The code is used up now. A failure from here on ends the family that it has just founded.
    let mut grant: Grant = serde_json::from_slice(&record).map_err(|_| StoreError::Corrupt)?;
    let mut checked = check(services, &grant, client, params, resource.as_ref(), verifier, jkt.as_deref());
    if checked.is_ok() {
        let is_active = match revocations {
            Some(revocations) => Ok(services.grants.is_active_given(&grant, revocations)),
            None => services.grants.is_active(&grant).await,
        };
        checked = match is_active {
            Ok(true) => Ok(()),
            Ok(false) => Err(OAuthError::invalid_grant(GrantRefusal::Revoked)),
            Err(error) => Err(error.into()),
        };
    }
    let scopes = services.grants.ceiling(&grant.sub, client).narrow(&grant.scopes);
    if checked.is_ok() && scopes.is_empty() {
        checked = Err(OAuthError::invalid_grant(GrantRefusal::NoScopes));
    }
    if let Err(error) = checked {
        services.grants.end_family(&family).await?;
        return Err(error);
    }
    let refresh = grant.refreshes.then_some(refresh);
    if let Some(refresh) = &refresh {
        bind(services, client, &mut grant, &record, &family, refresh, jkt.as_deref()).await?;
    }
    let (jkt, nonce) = (jkt.as_deref(), grant.nonce.as_deref());
    let issue = TokenGrant { grant: &grant, family: &family, scopes, jkt, refresh, nonce };
    services.tokens.issue("token.issued", issue, ip).await
}

/// Checks that a request matches the grant of its code.
fn check(
    services: &Services,
    grant: &Grant,
    client: &OAuthClient,
    params: &Params,
    resource: Option<&String>,
    verifier: &str,
    jkt: Option<&str>,
) -> Result<(), OAuthError> {
    let fits_challenge = !grant.challenge.is_empty() && same(b64(sha256(verifier)), &grant.challenge);
    let checks = [
        (grant.client == client.id, GrantRefusal::OtherClient),
        (services.ctx.clock.now_ms() < grant.code_expires_ms, GrantRefusal::Expired),
        (params.get("redirect_uri").is_none_or(|uri| uri == grant.redirect), GrantRefusal::RedirectUri),
        (fits_challenge, GrantRefusal::CodeVerifier),
        (grant.jkt.as_deref().is_none_or(|bound| Some(bound) == jkt), GrantRefusal::DpopKey),
    ];
    match checks.into_iter().find(|(holds, _)| !holds) {
        Some((_, GrantRefusal::RedirectUri)) => {
            let requested = params.get("redirect_uri").unwrap_or_default();
            log_mismatch(&client.id, requested, std::slice::from_ref(&grant.redirect));
            Err(OAuthError::invalid_grant(GrantRefusal::RedirectUri))
        }
        Some((_, refusal)) => Err(OAuthError::invalid_grant(refusal)),
        None => is_granted(resource, grant),
    }
}

/// Checks that the resource of a token request is part of the grant (RFC 8707 §2.2).
pub(super) fn check_resources(services: &Services, grant: &Grant, params: &Params) -> Result<(), OAuthError> {
    is_granted(services.grants.named_resource(&params.resources)?.as_ref(), grant)
}

fn is_granted(resource: Option<&String>, grant: &Grant) -> Result<(), OAuthError> {
    match resource.is_none_or(|resource| grant.resources.contains(resource)) {
        true => Ok(()),
        false => Err(OAuthError::new(Code::InvalidTarget, "the resource is not part of the grant")),
    }
}

/// Binds the refresh tokens of a public client to the key that it proved (RFC 9449 §5), before the first of them is returned. Those of
/// other clients are bound by the client's authentication.
pub(super) async fn bind(
    services: &Services,
    client: &OAuthClient,
    grant: &mut Grant,
    record: &[u8],
    family: &FamilyId,
    refresh: &str,
    jkt: Option<&str>,
) -> Result<(), OAuthError> {
    let (true, None, Some(jkt)) = (client.is_public(), &grant.jkt, jkt) else { return Ok(()) };
    let ctx = &services.ctx;
    grant.jkt = Some(jkt.to_owned());
    let bound = serde_json::to_vec(&grant).unwrap_or_default();
    let current = Digest::of(refresh);
    let left = family_left(ctx, grant);
    if ctx.store.replace_grant(family, &current, (record, &bound), left).await? {
        return Ok(());
    }
    // A retry bound them a moment ago, or the family has ended meanwhile.
    let refused = OAuthError::invalid_grant;
    let found = ctx.store.find(&current, family).await?.ok_or_else(|| refused(GrantRefusal::Unknown))?;
    if found.grant == bound { Ok(()) } else { Err(refused(GrantRefusal::DpopKey)) }
}

/// Returns the rest of the lifetime of a family with refresh tokens.
pub(super) fn family_left(ctx: &Context, grant: &Grant) -> Duration {
    let ends_ms = grant.issued_ms + ctx.family_lifetime(true).as_millis() as u64;
    Duration::from_millis(ends_ms.saturating_sub(ctx.clock.now_ms()).max(1))
}
