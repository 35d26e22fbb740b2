//! The flow of an authorization request: login, consent, code. The stored request alone decides which step comes next.

use axum::response::Response;
use http::{HeaderMap, StatusCode, header, request::Parts};

use super::{
    request_check::{VerifiedRequest, record_login, verify},
    services::Services,
    views::{consent_page, login_page},
};
use crate::{
    accounts::AccountApplication,
    authorizations::Stored,
    clients::Origin,
    config::SessionMode,
    crypto::sha256_hex,
    error::OAuthError,
    error_codes::Code,
    net::ClientAddress,
    records::{AuthorizationRequest, LoginFailure, Session},
    store::StoreError,
    web::responses::{bad_request, error_page, redirect, store_page, with_query},
};

/// An authorization request on its way through the flow.
pub(crate) struct Step<'a> {
    pub(crate) id: &'a str,
    /// The cookie of the browser.
    pub(crate) browser: &'a str,
    pub(crate) caller: ClientAddress,
    /// `prompt=none`: no page is shown.
    pub(crate) silent: bool,
    /// Status of a redirect: 302 after GET, 303 after POST.
    pub(crate) status: StatusCode,
}

/// Begins a login that no client requested. `request` makes it for the cookie of the browser.
pub(crate) async fn begin(
    services: &Services,
    parts: &Parts,
    request: impl FnOnce(&str) -> AuthorizationRequest,
) -> Result<Response, Response> {
    let Services { ctx, authorizations, .. } = services;
    let (browser, caller) = (authorizations.browser_cookie(&parts.headers), ctx.caller(parts));
    let request = request(&browser.value);
    let id = authorizations.begin(caller, &request).await.map_err(error_page)?;
    let step = Step { id: &id, browser: &browser.value, caller, silent: false, status: StatusCode::FOUND };
    let mut response = advance(services, step, request).await;
    authorizations.set_browser_cookie(&browser, &mut response);
    Ok(response)
}

/// Takes the next step: the login page, the consent page, or the code.
pub(crate) async fn advance(services: &Services, step: Step<'_>, request: AuthorizationRequest) -> Response {
    match try_advance(services, &step, request).await {
        Ok(response) => response,
        Err(error) => store_page(error),
    }
}

async fn try_advance(
    services: &Services,
    step: &Step<'_>,
    request: AuthorizationRequest,
) -> Result<Response, StoreError> {
    let Services { ctx, authorizations, .. } = services;
    if !request.logged_in {
        if step.silent {
            return reject(services, step, &request, Code::LoginRequired, "a login is needed").await;
        }
        return match &services.provider {
            Some(provider) => provider.begin(authorizations, step.id, request, step.status).await,
            None => Ok(login_page(services, step.id, &request, step.browser)),
        };
    }
    if let Some(path) = &request.return_path {
        authorizations.discard(step.id).await?;
        return Ok(redirect(step.status, &ctx.url(path)));
    }
    let verified = match verify(services, step.id, request, step.caller).await {
        Ok(verified) => verified,
        Err(response) => return Ok(response),
    };
    let AuthorizationRequest { login, grant, force_consent, .. } = &verified.request;
    if login.subject.as_ref().is_some_and(|sub| *sub != grant.sub) {
        let text = "another user signed in than the one id_token_hint names";
        return reject(services, step, &verified.request, Code::LoginRequired, text).await;
    }
    let can_be_impersonated = verified.client.can_be_impersonated(&grant.redirect);
    if step.silent && can_be_impersonated {
        let text = "a public client on this machine gets nothing without the user";
        return reject(services, step, &verified.request, Code::InteractionRequired, text).await;
    }
    // Only a client that the operator configured can be trusted without asking.
    let is_trusted = !ctx.config.consent.enabled && verified.client.origin == Origin::Configured;
    if is_trusted || verified.scopes.is_empty() {
        return finish(services, step.id, verified, step.status).await;
    }
    let remembered = services.consents.remembered(&verified.consent()).await?;
    // A consent was given to the program that had the address then: on the user's machine another may have it now (RFC 8252 §8.6).
    if !force_consent
        && !can_be_impersonated
        && let Some(consent) = &remembered
        && verified.scopes.names().iter().all(|scope| consent.allowed.contains(scope))
    {
        return finish(services, step.id, verified, step.status).await;
    }
    if step.silent {
        return reject(services, step, &verified.request, Code::ConsentRequired, "consent is needed").await;
    }
    Ok(consent_page(services, step.id, &verified, step.browser, remembered.as_ref()))
}

/// Ends a request with an error for the client.
async fn reject(
    services: &Services,
    step: &Step<'_>,
    request: &AuthorizationRequest,
    code: Code,
    text: &str,
) -> Result<Response, StoreError> {
    Ok(match use_up(services, step.id).await? {
        Ok(()) => error_redirect(services, request, code, text, step.status),
        Err(over) => over,
    })
}

/// Returns the redirect that tells the client of an error.
pub(crate) fn error_redirect(
    services: &Services,
    request: &AuthorizationRequest,
    code: Code,
    text: &str,
    status: StatusCode,
) -> Response {
    if request.return_path.is_some() {
        return bad_request("The sign-in was not completed.");
    }
    let pairs = [("error", code.as_str()), ("error_description", text)];
    back_to_client(services, request, &pairs, status)
}

/// Redirects to the client with `pairs`, its `state` if it sent one, and the issuer (RFC 9207).
fn back_to_client(
    services: &Services,
    request: &AuthorizationRequest,
    pairs: &[(&str, &str)],
    status: StatusCode,
) -> Response {
    let mut pairs = pairs.to_vec();
    pairs.extend((!request.state.is_empty()).then_some(("state", request.state.as_str())));
    pairs.push(("iss", &services.ctx.deployment.public_url));
    redirect(status, &with_query(&request.grant.redirect, &pairs))
}

/// Uses a request up, before its client hears anything of it. The page in place of that, if another answer came first.
pub(super) async fn use_up(services: &Services, id: &str) -> Result<Result<(), Response>, StoreError> {
    let is_first = services.authorizations.consume(id).await?;
    Ok(if is_first { Ok(()) } else { Err(bad_request("This sign-in is over.")) })
}

/// Uses the request up and sends its code to the client.
async fn finish(
    services: &Services,
    id: &str,
    verified: VerifiedRequest,
    status: StatusCode,
) -> Result<Response, StoreError> {
    match use_up(services, id).await? {
        Ok(()) => complete(services, verified, status).await,
        Err(over) => Ok(over),
    }
}

/// Sends the code of a request that was used up to the client.
pub(super) async fn complete(
    services: &Services,
    verified: VerifiedRequest,
    status: StatusCode,
) -> Result<Response, StoreError> {
    let VerifiedRequest { request, client, scopes, at_ms, .. } = verified;
    if scopes.is_empty() {
        return Ok(error_redirect(services, &request, Code::AccessDenied, "nothing was allowed", status));
    }
    let code = services.tokens.issue_code(&request.grant, &scopes, at_ms).await?;
    let (id, name, scopes) = (client.id, client.name, scopes.names().to_vec());
    let application = AccountApplication { client: id, name, scopes, at_ms };
    services.accounts.add_application(&request.grant.sub, application).await?;
    Ok(back_to_client(services, &request, &[("code", code.as_str())], status))
}

/// Records a try to sign in that failed, and goes on to the login page, which shows it: a reload of that page does not repeat the try.
pub(super) async fn failed(
    services: &Services,
    id: &str,
    stored: &Stored,
    failure: LoginFailure,
) -> Result<Response, StoreError> {
    let request = AuthorizationRequest { failure: Some(failure), ..stored.request.clone() };
    // Where another request of the browser came between, the page shows the outcome of that one.
    services.authorizations.save(id, &stored.record, &request).await?;
    let page = with_query(&services.ctx.url("/oauth/login"), &[("pending", id)]);
    Ok(redirect(StatusCode::SEE_OTHER, &page))
}

/// Returns the failure of a login that was refused without a check; the error itself, when it was refused for another reason.
pub(super) fn locked(services: &Services, error: OAuthError) -> Result<LoginFailure, OAuthError> {
    match (error.status, error.retry_after_s) {
        (StatusCode::TOO_MANY_REQUESTS, Some(seconds)) => {
            Ok(LoginFailure::Locked { until_ms: services.ctx.clock.now_ms() + seconds * 1000 })
        }
        _ => Err(error),
    }
}

/// Starts the session of a user who just signed in, and goes on to the next step.
pub(crate) async fn signed_in(
    services: &Services,
    headers: &HeaderMap,
    id: &str,
    stored: Stored,
    session: &Session,
) -> Result<Response, StoreError> {
    let Stored { mut request, record, .. } = stored;
    let (mut cookie, mut session_id) = (None, None);
    if services.ctx.config.session_mode == SessionMode::Stateful {
        let (id, value) = services.sessions.start(headers, session).await?;
        (cookie, session_id) = (Some(value), Some(sha256_hex(id)));
    }
    // A login that no client requested has no client. One whose document is not in the cache is looked up in the next step.
    match services.clients.find_known(&request.grant.client).await? {
        Some(client) => {
            record_login(services, &mut request, &client, session, session_id, session.started_ms);
        }
        None => request.log_in(session, session_id, session.started_ms),
    }
    let binding = services.authorizations.bind(id, &mut request);
    if !services.authorizations.save(id, &record, &request).await? {
        return Ok(bad_request("This sign-in went on elsewhere."));
    }
    let next = with_query(&services.ctx.url("/oauth/consent"), &[("pending", id)]);
    let mut response = redirect(StatusCode::SEE_OTHER, &next);
    for cookie in cookie.into_iter().chain([binding]) {
        response.headers_mut().append(header::SET_COOKIE, cookie);
    }
    Ok(response)
}
