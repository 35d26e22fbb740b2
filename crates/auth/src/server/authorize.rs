//! The authorization endpoint (RFC 6749 §3.1, OpenID Connect Core §3.1.2).

use std::sync::Arc;

use axum::{body::Body, extract::State, response::Response};
use http::{HeaderMap, Method, Request, StatusCode};

use super::{
    flow::{Step, advance},
    pushed::pushed_or,
    request_check::record_login,
    services::Services,
};
use crate::{
    clients::OAuthClient,
    config::SessionMode,
    crypto::{sha256_hex, unb64},
    error::OAuthError,
    error_codes::Code,
    net::ClientAddress,
    pages,
    records::{AuthorizationRequest, Grant, LoginRequest},
    tuning::AUTHORIZATION_LIFETIME,
    web::{
        params::{Params, read_form},
        responses::{bad_request, error_page, page, redirect, store_page, with_query},
    },
};

const MAX_QUERY_BYTES: usize = 16 * 1024;
const MAX_NONCE_BYTES: usize = 1024;
const MAX_HINT_CHARS: usize = 256;

/// Supported values of `prompt` (OpenID Connect Core §3.1.2.1). An account is chosen by signing in with it.
pub(super) const PROMPTS: [&str; 4] = ["none", "login", "consent", "select_account"];

pub(super) async fn endpoint(State(services): State<Arc<Services>>, request: Request<Body>) -> Response {
    let (parts, body) = request.into_parts();
    let ctx = &services.ctx;
    let caller = ctx.caller(&parts);
    if let Err(error) = ctx.limit_caller("authorize", &[], caller, ctx.config.limits.authorize).await {
        return error_page(error);
    }
    let (params, status) = if parts.method == Method::POST {
        match read_form(&parts, body).await {
            Ok(params) => (params, StatusCode::SEE_OTHER),
            Err(error) => return error_page(error),
        }
    } else {
        if parts.uri.query().is_some_and(|query| query.len() > MAX_QUERY_BYTES) {
            return page(StatusCode::URI_TOO_LONG, "The request is too long.");
        }
        match Params::of_query(&parts) {
            Ok(params) => (params, StatusCode::FOUND),
            Err(error) => return error_page(error),
        }
    };
    match start(&services, &parts.headers, params, caller, status).await {
        Ok(response) | Err(response) => response,
    }
}

async fn start(
    services: &Services,
    headers: &HeaderMap,
    params: Params,
    caller: ClientAddress,
    status: StatusCode,
) -> Result<Response, Response> {
    let Services { ctx, authorizations, .. } = services;
    let params = pushed_or(services, params).await?;
    let (client, redirect_uri) = client_and_redirect_uri(services, &params, caller).await?;
    let state = params.state().map_err(error_page)?;
    let rejected = |error: OAuthError| {
        let mut pairs = vec![("error", error.code.as_str()), ("error_description", &*error.description)];
        pairs.extend(state.map(|state| ("state", state)));
        pairs.push(("iss", &ctx.deployment.public_url));
        redirect(status, &with_query(&redirect_uri, &pairs))
    };
    let grant = read_grant(services, &params, &client, &redirect_uri).map_err(rejected)?;
    let login = read_login(services, &params, &client.id).await.map_err(rejected)?;
    let browser = authorizations.browser_cookie(headers);
    let mut request = AuthorizationRequest {
        grant,
        client_name: client.name.clone(),
        state: state.unwrap_or_default().to_owned(),
        browser: sha256_hex(&browser.value),
        expires_ms: ctx.clock.now_ms() + AUTHORIZATION_LIFETIME.as_millis() as u64,
        logged_in: false,
        force_consent: params.has_prompt("consent"),
        upstream: None,
        return_path: None,
        login,
        signed_in: None,
        failure: None,
    };
    use_session(services, headers, &client, &mut request).await?;
    let id = authorizations.begin(caller, &request).await.map_err(error_page)?;
    let silent = params.has_prompt("none");
    let step = Step { id: &id, browser: &browser.value, caller, silent, status };
    let mut response = advance(services, step, request).await;
    authorizations.set_browser_cookie(&browser, &mut response);
    Ok(response)
}

/// Signs the request in with the browser's session, when that is recent enough and of the right user.
async fn use_session(
    services: &Services,
    headers: &HeaderMap,
    client: &OAuthClient,
    request: &mut AuthorizationRequest,
) -> Result<(), Response> {
    let ctx = &services.ctx;
    if ctx.config.session_mode != SessionMode::Stateful || request.login.force {
        return Ok(());
    }
    // Read before the session is: a revocation in between ends the request, too.
    let now_ms = ctx.clock.now_ms();
    let age_s = |auth_s: u64| (now_ms / 1000).saturating_sub(auth_s);
    let Some((id, session)) = services.sessions.current(headers).await.map_err(store_page)? else {
        return Ok(());
    };
    let login = &request.login;
    let is_recent = login.max_age.is_none_or(|max| max > 0 && age_s(session.auth_s) <= max);
    if is_recent && login.subject.as_ref().is_none_or(|sub| *sub == session.sub) {
        record_login(services, request, client, &session, Some(sha256_hex(id)), now_ms);
    }
    Ok(())
}

/// Returns the client and the redirect URI of a request. An error about either must not redirect.
async fn client_and_redirect_uri(
    services: &Services,
    params: &Params,
    caller: ClientAddress,
) -> Result<(OAuthClient, String), Response> {
    if params.is_repeated("client_id") || params.is_repeated("redirect_uri") {
        return Err(bad_request("The request names its application or its address more than once."));
    }
    let id = params
        .get("client_id")
        .ok_or_else(|| bad_request("The request does not say which application it is from."))?;
    let client = services.clients.find(id, caller).await.map_err(|error| match error.code {
        Code::InvalidClient if error.description == OAuthError::invalid_client().description => {
            bad_request("This application is not known here (invalid_client).")
        }
        Code::InvalidClient => bad_request(&format!(
            "This application is not known here (invalid_client): {}.",
            error.description
        )),
        _ => error_page(error),
    })?;
    let redirect_uri = client
        .redirect_uri_or_log(params.get("redirect_uri"))
        .ok_or_else(|| bad_request("The address to go back to is not registered for this application."))?;
    Ok((client, redirect_uri))
}

/// Checks the parameters of a request whose client and redirect URI are known, and returns the requested grant.
///
/// # Errors
/// An error that may be sent to the redirect URI.
pub(super) fn read_grant(
    services: &Services,
    params: &Params,
    client: &OAuthClient,
    redirect_uri: &str,
) -> Result<Grant, OAuthError> {
    let invalid = OAuthError::invalid_request;
    if !params.repeated.is_empty() {
        return Err(invalid("a parameter is repeated"));
    }
    if params.get("request").is_some() {
        return Err(OAuthError::new(Code::RequestNotSupported, "request objects are not supported"));
    }
    if !services.ctx.config.state_optional {
        params.require("state", "state is required")?;
    }
    match params.require("response_type", "response_type is required")? {
        "code" => {}
        _ => return Err(OAuthError::new(Code::UnsupportedResponseType, "only code is supported")),
    }
    if params.get("response_mode").is_some_and(|mode| mode != "query") {
        return Err(invalid("only response_mode=query is supported"));
    }
    let challenge = code_challenge(params)?;
    if !client.may("authorization_code") {
        return Err(OAuthError::new(Code::UnauthorizedClient, "the client may not use this grant"));
    }
    if params.get("registration").is_some() {
        let text = "clients register at their own endpoint";
        return Err(OAuthError::new(Code::RegistrationNotSupported, text));
    }
    check_openid(params)?;
    let jkt = params.get("dpop_jkt").map(str::to_owned);
    if jkt.as_ref().is_some_and(|jkt| jkt.len() != 43) {
        return Err(invalid("dpop_jkt is not a thumbprint"));
    }
    let refreshes = services.ctx.config.refresh.enabled && client.may("refresh_token");
    Ok(Grant {
        client: client.id.clone(),
        scopes: services.grants.ceiling("", client).request(params.get("scope"))?.record(),
        resources: services.grants.resources(&params.resources)?,
        redirect: redirect_uri.to_owned(),
        challenge: challenge.to_owned(),
        jkt,
        refreshes,
        nonce: params.get("nonce").map(str::to_owned),
        ..Grant::default()
    })
}

/// Returns the S256 code challenge (RFC 7636 §4.3).
fn code_challenge(params: &Params) -> Result<&str, OAuthError> {
    let challenge = params.require("code_challenge", "code_challenge is required")?;
    if params.get("code_challenge_method") != Some("S256") {
        return Err(OAuthError::invalid_request("code_challenge_method must be S256"));
    }
    if challenge.len() != 43 || unb64(challenge).is_none_or(|bytes| bytes.len() != 32) {
        return Err(OAuthError::invalid_request("code_challenge is not an S256 challenge"));
    }
    Ok(challenge)
}

/// A number of seconds in digits alone: `+5` and an empty text are none.
fn seconds(text: &str) -> Option<u64> {
    text.parse().ok().filter(|_| text.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Checks `prompt`, `max_age` and `nonce` (OpenID Connect Core §3.1.2.1).
fn check_openid(params: &Params) -> Result<(), OAuthError> {
    let problem = if params.prompts().any(|value| !PROMPTS.contains(&value)) {
        "prompt may hold none, login, consent and select_account"
    } else if params.has_prompt("none") && params.prompts().count() > 1 {
        "prompt=none stands alone"
    } else if params.get("max_age").is_some_and(|text| seconds(text).is_none()) {
        "max_age is a number of seconds"
    } else if params.get("nonce").is_some_and(|nonce| nonce.len() > MAX_NONCE_BYTES) {
        "the nonce is too long"
    } else {
        return Ok(());
    };
    Err(OAuthError::invalid_request(problem))
}

/// Returns the login parameters of a request.
async fn read_login(services: &Services, params: &Params, client: &str) -> Result<LoginRequest, OAuthError> {
    let subject = match params.get("id_token_hint") {
        None => None,
        Some(text) => match services.tokens.id_token_hint(text).await {
            Ok(hint) if hint.client == client => Some(hint.sub),
            _ => {
                let text = "id_token_hint is not an ID token that this server gave this client";
                return Err(OAuthError::invalid_request(text));
            }
        },
    };
    Ok(LoginRequest {
        force: params.has_prompt("login") || params.has_prompt("select_account"),
        max_age: params.get("max_age").and_then(seconds),
        hint: params.get("login_hint").map(|hint| pages::plain(hint, MAX_HINT_CHARS)),
        subject,
    })
}
