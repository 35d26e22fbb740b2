//! The authorization endpoint: validation, login, redirect (RFC 6749 §4.1, RFC 7636, RFC 8707, RFC 9207).

use std::collections::HashMap;

use axum::{
    Extension, Form,
    extract::{Query, State},
    http::StatusCode,
    response::{Html, IntoResponse, Redirect, Response},
};
use url::Url;

use super::{
    clients::{KnownClient, find_client},
    options::MockTestUser,
    response::error_response,
    state::{AuthorizationCode, CODE_LIFETIME, Issuer, Login, SharedIssuer},
};
use crate::base::{lock, text::random_text, unix_now};

type Parameters = HashMap<String, String>;

/// An error that a fault makes this endpoint answer.
#[derive(Clone)]
pub(super) struct ForcedError(pub(super) String);

/// The client of a request. The error is a page for the user.
async fn client_of(issuer: &SharedIssuer, parameters: &Parameters) -> Result<KnownClient, Box<Response>> {
    let page = |error: &str, description: &str| {
        Box::new(error_response(StatusCode::BAD_REQUEST, error, description))
    };
    match parameters.get("client_id").filter(|id| !id.is_empty()) {
        Some(id) => find_client(issuer, id).await.map_err(|problem| page("invalid_client", &problem)),
        None => Err(page("invalid_request", "`client_id` is missing")),
    }
}

/// A valid authorization request: the code to issue, and where to redirect.
struct AuthorizationRequest {
    code: AuthorizationCode,
    redirect_uri: Url,
}

/// Validates a request. An error response is a page for the user if the client or its redirect URI is not valid, otherwise
/// a redirect to the client (RFC 6749 §4.1.2.1).
fn validate(
    issuer: &Issuer,
    client: &KnownClient,
    parameters: &Parameters,
    forced: Option<&ForcedError>,
) -> Result<AuthorizationRequest, Box<Response>> {
    let get = |name: &str| parameters.get(name).map(String::as_str).filter(|value| !value.is_empty());
    let page = |error: &str, description: &str| {
        Box::new(error_response(StatusCode::BAD_REQUEST, error, description))
    };
    let redirect_text = client
        .redirect_uri(issuer, get("redirect_uri"))
        .ok_or_else(|| page("invalid_request", "`redirect_uri` is not one of the client's"))?;
    let redirect_uri =
        Url::parse(&redirect_text).map_err(|_| page("invalid_request", "`redirect_uri` is no URL"))?;
    let reject = |error: &str, description: &str| {
        let answer = [("error", error), ("error_description", description)];
        Err(Box::new(redirect(issuer, redirect_uri.clone(), &answer, parameters)))
    };
    if let Some(ForcedError(error)) = forced {
        return reject(error.as_str(), "broken on purpose");
    }
    if !client.may("authorization_code") {
        return reject("unauthorized_client", "the client may not use this grant");
    }
    if get("response_type") != Some("code") {
        return reject("unsupported_response_type", "`response_type` must be `code`");
    }
    let Some(challenge) = get("code_challenge") else {
        return reject("invalid_request", "`code_challenge` is missing: PKCE is required");
    };
    // A SHA-256 digest in Base64url (RFC 7636 §4.2).
    let is_digest = challenge.len() == 43
        && challenge.bytes().all(|c| c.is_ascii_alphanumeric() || c == b'-' || c == b'_');
    if !is_digest {
        return reject("invalid_request", "`code_challenge` is no S256 challenge");
    }
    if get("code_challenge_method") != Some("S256") {
        return reject("invalid_request", "`code_challenge_method` must be `S256`");
    }
    let resource = get("resource");
    if resource.is_some_and(|uri| Url::parse(uri).map_or(true, |uri| uri.fragment().is_some())) {
        return reject("invalid_target", "`resource` must be an absolute URI without a fragment");
    }
    let known = &issuer.options.protected_resources;
    if resource.is_some_and(|uri| !known.is_empty() && !known.iter().any(|known| known == uri)) {
        return reject("invalid_target", "`resource` is not one this server issues tokens for");
    }
    let code = AuthorizationCode {
        client_id: client.id.clone(),
        family: random_text(),
        jkt: get("dpop_jkt").map(str::to_owned),
        redirect_uri: redirect_text,
        challenge: challenge.to_owned(),
        scopes: get("scope").unwrap_or_default().split_ascii_whitespace().map(str::to_owned).collect(),
        resource: resource.map(str::to_owned),
        user: MockTestUser::new(""),
        login: Login { at: unix_now(), nonce: get("nonce").map(str::to_owned) },
        expires: unix_now() + CODE_LIFETIME,
    };
    Ok(AuthorizationRequest { code, redirect_uri })
}

/// Redirects to the client with `answer`, `state` and `iss` (RFC 9207).
fn redirect(issuer: &Issuer, mut uri: Url, answer: &[(&str, &str)], parameters: &Parameters) -> Response {
    {
        let mut query = uri.query_pairs_mut();
        query.extend_pairs(answer);
        if let Some(state) = parameters.get("state") {
            query.append_pair("state", state);
        }
        query.append_pair("iss", &issuer.advertised());
    }
    Redirect::to(uri.as_str()).into_response()
}

/// Issues a code to `user` and redirects with it.
fn approve(
    issuer: &mut Issuer,
    request: AuthorizationRequest,
    user: MockTestUser,
    parameters: &Parameters,
) -> Response {
    let AuthorizationRequest { code, redirect_uri } = request;
    let secret = random_text();
    issuer.codes.insert(secret.clone(), AuthorizationCode { user, ..code });
    redirect(issuer, redirect_uri, &[("code", &secret)], parameters)
}

pub(super) async fn authorize(
    State(issuer): State<SharedIssuer>,
    forced: Option<Extension<ForcedError>>,
    Query(parameters): Query<Parameters>,
) -> Response {
    let client = match client_of(&issuer, &parameters).await {
        Ok(client) => client,
        Err(response) => return *response,
    };
    let mut issuer = lock(&issuer);
    let forced = forced.as_ref().map(|Extension(forced)| forced);
    let request = match validate(&issuer, &client, &parameters, forced) {
        Ok(request) => request,
        Err(response) => return *response,
    };
    let user = issuer.options.test_user.clone();
    if !issuer.options.auto_approve {
        return login_page(&parameters, user.as_ref());
    }
    approve(&mut issuer, request, user.unwrap_or_else(|| MockTestUser::new("test-user")), &parameters)
}

fn login_page(parameters: &Parameters, user: Option<&MockTestUser>) -> Response {
    let escape = |text: &str| {
        text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
    };
    let mut fields: Vec<String> = parameters
        .iter()
        .map(|(name, value)| {
            format!(r#"<input type="hidden" name="{}" value="{}">"#, escape(name), escape(value))
        })
        .collect();
    fields.sort();
    let sub = escape(user.map_or("test-user", |user| &user.sub));
    Html(format!(
        r#"<!doctype html><title>Mock login</title><form method="post" action="/oauth/authorize/submit">{}
<label>Subject <input name="sub" value="{sub}"></label>
<button name="decision" value="approve">Log in</button><button name="decision" value="deny">Deny</button></form>"#,
        fields.concat()
    ))
    .into_response()
}

pub(super) async fn submit(
    State(issuer): State<SharedIssuer>,
    forced: Option<Extension<ForcedError>>,
    Form(parameters): Form<Parameters>,
) -> Response {
    let client = match client_of(&issuer, &parameters).await {
        Ok(client) => client,
        Err(response) => return *response,
    };
    let mut issuer = lock(&issuer);
    let forced = forced.as_ref().map(|Extension(forced)| forced);
    let request = match validate(&issuer, &client, &parameters, forced) {
        Ok(request) => request,
        Err(response) => return *response,
    };
    if parameters.get("decision").is_some_and(|decision| decision == "deny") {
        return redirect(&issuer, request.redirect_uri, &[("error", "access_denied")], &parameters);
    }
    let sub = parameters.get("sub").map_or("test-user", String::as_str);
    let known = issuer.options.test_user.clone().filter(|user| user.sub == sub);
    let user = known.unwrap_or_else(|| MockTestUser::new(sub));
    approve(&mut issuer, request, user, &parameters)
}
