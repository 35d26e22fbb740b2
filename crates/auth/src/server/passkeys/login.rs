//! Login with a passkey alone, at the login page.

use std::sync::Arc;

use axum::{body::Body, extract::State, response::Response};
use gatewright_core::read_json;
use http::{Request, request::Parts};
use serde::Deserialize;
use webauthn_rp::DiscoverableAuthentication64;

use super::ceremony::{Ceremony, take};
use crate::{
    authorizations::SubmittedStep,
    crypto::b64,
    error::OAuthError,
    lockout::remaining_lock,
    net::ClientAddress,
    records::{AuthorizationRequest, LoginFailure, Session},
    relying_party::CeremonyError,
    server::{
        flow::{failed, locked, signed_in},
        services::Services,
    },
    store::{Key, PasskeyStore as _},
    tuning::LOCKOUT_WINDOW,
    web::responses::{bad_request, error_page, store_page},
};

pub(in crate::server) async fn submit(
    State(services): State<Arc<Services>>,
    request: Request<Body>,
) -> Response {
    let (parts, body) = request.into_parts();
    match log_in(&services, &parts, body).await {
        Ok(response) | Err(response) => response,
    }
}

/// Outcome of a login.
enum Outcome {
    /// The session of the user.
    SignedIn(Box<Session>),
    /// The response was refused. The subject of the passkey's user, when there is one.
    Refused(Option<String>),
}

async fn log_in(services: &Services, parts: &Parts, body: Body) -> Result<Response, Response> {
    let ctx = &services.ctx;
    let ip = ctx.caller(parts);
    ctx.limit_caller("login", &[], ip, ctx.config.limits.login).await.map_err(error_page)?;
    let SubmittedStep { params, id, stored } =
        services.authorizations.read_step(parts, body, "login").await?;
    if stored.request.logged_in || services.relying_party.is_none() {
        return Err(bad_request("This step is not open."));
    }
    let failed = async |failure| failed(services, &id, &stored, failure).await.map_err(store_page);
    let ceremony = Ceremony { step: "login", browser: &stored.browser, subject: &id };
    let field = params.get("ceremony").unwrap_or_default();
    let Some(state) = take(ctx, field, &ceremony).await.map_err(store_page)? else {
        return failed(LoginFailure::PageExpired).await;
    };
    let response = params.get("credential").unwrap_or_default();
    let outcome = match verify(services, &state, response, ip).await {
        Ok(outcome) => outcome,
        Err(error) => return failed(locked(services, error).map_err(error_page)?).await,
    };
    match outcome {
        Outcome::SignedIn(session) => {
            for event in ["passkey.login", "login.ok"] {
                ctx.record_event(event, Some(&session.sub), client_of(&stored.request), Some(ip), None);
            }
            signed_in(services, &parts.headers, &id, stored, &session).await.map_err(store_page)
        }
        Outcome::Refused(sub) => {
            ctx.record_event("login.failed", sub.as_deref(), client_of(&stored.request), Some(ip), None);
            failed(LoginFailure::Passkey).await
        }
    }
}

/// Returns `true` if the response has a user handle. The crate that reads it relies on that.
fn names_user(response: &str) -> bool {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Credential {
        #[expect(dead_code, reason = "it need only be a text")]
        user_handle: String,
    }
    read_json::<Credential>(response).is_ok()
}

/// Verifies the response of an authenticator. Failures are counted like wrong passwords, by account and network, in counters of their own:
/// wrong passwords do not lock out the passkeys of an account, nor the other way round.
async fn verify(
    services: &Services,
    state: &[u8],
    response: &str,
    ip: ClientAddress,
) -> Result<Outcome, OAuthError> {
    let ctx = &services.ctx;
    let by_network = Key::named("wrong", &["ip", &ip.to_string()]);
    let limit = ctx.config.limits.wrong_passwords;
    check_failures(services, &by_network, limit * 10).await?;
    let read = match names_user(response) {
        true => {
            DiscoverableAuthentication64::from_json_custom(response.as_bytes()).map_err(|why| why.to_string())
        }
        false => Err("it names no user".to_owned()),
    };
    let response = match read {
        Ok(response) => response,
        Err(error) => {
            return refuse(services, CeremonyError::Unreadable(error), None, ip).await;
        }
    };
    let unknown = || CeremonyError::Ceremony("the passkey is not known".into());
    let (id, handle) = (b64(response.raw_id()), b64(response.response().user_handle()));
    let Some(sub) = ctx.store.passkey_owner(&id).await? else {
        return refuse(services, unknown(), None, ip).await;
    };
    check_failures(services, &account_counter(&sub, ip), limit).await?;
    let set = ctx.store.passkeys(&sub).await?.unwrap_or_default();
    let (Some(passkey), Some(party)) =
        (set.passkeys.iter().find(|passkey| passkey.id == id), &services.relying_party)
    else {
        return refuse(services, unknown(), None, ip).await;
    };
    if handle != set.handle {
        let why = CeremonyError::Ceremony("the passkey is of another user".into());
        return refuse(services, why, Some(&sub), ip).await;
    }
    let Some(user) = services.users.by_subject(&sub).filter(|user| !user.config.disabled) else {
        let why = CeremonyError::Ceremony("the user may not sign in".into());
        return refuse(services, why, Some(&sub), ip).await;
    };
    let used = match party.finish_login(state, &response, passkey, &set.handle, ctx.clock.now_ms()) {
        Ok(used) => used,
        Err(why) => return refuse(services, why, Some(&sub), ip).await,
    };
    if !ctx.store.use_passkey(&sub, &id, used).await? {
        let why = CeremonyError::Ceremony("the passkey was used elsewhere meanwhile".into());
        return refuse(services, why, Some(&sub), ip).await;
    }
    ctx.store.remove(&account_counter(&sub, ip)).await?;
    Ok(Outcome::SignedIn(Box::new(services.users.session_of(user))))
}

fn account_counter(sub: &str, ip: ClientAddress) -> Key {
    Key::named("wrong", &["passkey", sub, &ip.to_string()])
}

/// Counts a failure, of the network and of the account if it is known.
async fn refuse(
    services: &Services,
    why: CeremonyError,
    sub: Option<&str>,
    ip: ClientAddress,
) -> Result<Outcome, OAuthError> {
    let ctx = &services.ctx;
    tracing::info!(reason = %why, "a login with a passkey was refused");
    ctx.store.hit(&Key::named("wrong", &["ip", &ip.to_string()]), LOCKOUT_WINDOW).await?;
    if let Some(sub) = sub {
        ctx.store.hit(&account_counter(sub, ip), LOCKOUT_WINDOW).await?;
        if matches!(why, CeremonyError::Cloned) {
            ctx.record_event("passkey.clone_suspected", Some(sub), None, Some(ip), None);
        }
    }
    Ok(Outcome::Refused(sub.map(str::to_owned)))
}

/// Refuses a login when a counter has reached its limit.
async fn check_failures(services: &Services, counter: &Key, limit: u64) -> Result<(), OAuthError> {
    let store = &*services.ctx.store;
    match remaining_lock(store, &[(counter, limit)]).await? {
        Some(left) => Err(OAuthError::too_many(left)),
        None => Ok(()),
    }
}

fn client_of(request: &AuthorizationRequest) -> Option<&str> {
    Some(request.grant.client.as_str()).filter(|client| !client.is_empty())
}
