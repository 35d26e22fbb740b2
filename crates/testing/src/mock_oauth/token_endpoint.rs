//! The token endpoint: `authorization_code` with PKCE, `refresh_token` with rotation, `anonymous`.

use std::collections::HashMap;

use axum::{
    Form,
    extract::State,
    http::{HeaderMap, StatusCode, header},
    response::Response,
};
use base64::{
    Engine,
    engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD},
};
use serde_json::{Value, json};

use super::{
    fault::Fault,
    options::MockTestUser,
    response::{error_response, json_response},
    state::{AuthorizationCode, Issuer, Login, RefreshGrant, SharedIssuer},
};
use crate::{
    base::{lock, text::random_text, unix_now},
    token::{CreateTokenOptions, TestKey},
};

type Parameters = HashMap<String, String>;

/// Client, user and scopes that tokens are issued for.
struct Grant {
    client_id: String,
    user: MockTestUser,
    scopes: Vec<String>,
    resource: Option<String>,
}

/// Status, `error` and `error_description` of a failed request.
type TokenError = (StatusCode, &'static str, &'static str);

const fn bad_request(error: &'static str, description: &'static str) -> TokenError {
    (StatusCode::BAD_REQUEST, error, description)
}

/// A parameter that is present and not empty.
fn get<'a>(parameters: &'a Parameters, name: &str) -> Option<&'a str> {
    parameters.get(name).map(String::as_str).filter(|value| !value.is_empty())
}

pub(super) async fn token(
    State(issuer): State<SharedIssuer>,
    headers: HeaderMap,
    Form(parameters): Form<Parameters>,
) -> Response {
    let mut issuer = lock(&issuer);
    match issuer.grant(&headers, &parameters) {
        Ok(body) => json_response(StatusCode::OK, &body),
        Err((status, error, description)) => error_response(status, error, description),
    }
}

/// Client id and secret from HTTP Basic (RFC 6749 §2.3.1).
fn basic(headers: &HeaderMap) -> Option<(String, String)> {
    let value = headers.get(header::AUTHORIZATION)?.to_str().ok()?.strip_prefix("Basic ")?;
    let text = String::from_utf8(STANDARD.decode(value).ok()?).ok()?;
    let (id, secret) = text.split_once(':')?;
    let plain =
        |text: &str| url::form_urlencoded::parse(text.as_bytes()).next().map(|(name, _)| name.into_owned());
    Some((plain(id)?, plain(secret).unwrap_or_default()))
}

impl Issuer {
    fn grant(&mut self, headers: &HeaderMap, parameters: &Parameters) -> Result<Value, TokenError> {
        let grant_type =
            get(parameters, "grant_type").ok_or(bad_request("invalid_request", "`grant_type` is missing"))?;
        if grant_type == "anonymous" {
            let grant = Grant {
                client_id: "anonymous".to_owned(),
                user: MockTestUser::new("anonymous"),
                scopes: Vec::new(),
                resource: get(parameters, "resource").map(str::to_owned),
            };
            return Ok(self.issue(grant, None));
        }
        let client_id = self.authenticate_client(headers, parameters)?;
        let (grant, login) = match grant_type {
            "authorization_code" => self.redeem_code(client_id, parameters)?,
            "refresh_token" => self.refresh(client_id, parameters)?,
            _ => return Err(bad_request("unsupported_grant_type", "this grant is not supported")),
        };
        Ok(self.issue(grant, Some(login)))
    }

    /// The grant of an authorization code (RFC 6749 §4.1.3, RFC 7636 §4.6, RFC 8707 §2.2).
    fn redeem_code(
        &mut self,
        client_id: String,
        parameters: &Parameters,
    ) -> Result<(Grant, Login), TokenError> {
        let invalid = |description| bad_request("invalid_grant", description);
        let code = get(parameters, "code").ok_or(bad_request("invalid_request", "`code` is missing"))?;
        // A code is consumed by the first attempt, even a failed one.
        let code = self.codes.remove(code).ok_or(invalid("the code is unknown or was used"))?;
        if code.expires < unix_now() {
            return Err(invalid("the code is expired"));
        }
        if code.client_id != client_id {
            return Err(invalid("the code was given to another client"));
        }
        if get(parameters, "redirect_uri").is_some_and(|uri| uri != code.redirect_uri) {
            return Err(invalid("`redirect_uri` is not the one the code was asked with"));
        }
        let verifier = get(parameters, "code_verifier").ok_or(invalid("`code_verifier` is missing"))?;
        let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, verifier.as_bytes());
        if URL_SAFE_NO_PAD.encode(digest) != code.challenge {
            return Err(invalid("`code_verifier` does not fit the code's challenge"));
        }
        let resource = get(parameters, "resource").map(str::to_owned).or_else(|| code.resource.clone());
        if code.resource.is_some() && resource != code.resource {
            return Err(bad_request("invalid_target", "`resource` is not the one the code was asked with"));
        }
        let AuthorizationCode { user, scopes, login, .. } = code;
        Ok((Grant { client_id, user, scopes, resource }, login))
    }

    /// The grant of a refresh token, which is replaced by a new one (RFC 6749 §6).
    fn refresh(&mut self, client_id: String, parameters: &Parameters) -> Result<(Grant, Login), TokenError> {
        let invalid = |description| bad_request("invalid_grant", description);
        let token = get(parameters, "refresh_token")
            .ok_or(bad_request("invalid_request", "`refresh_token` is missing"))?;
        let known = self.refresh_tokens.get(token).cloned();
        let known = known.ok_or(invalid("the refresh token is unknown or was used"))?;
        if known.client_id != client_id {
            return Err(invalid("the refresh token was given to another client"));
        }
        self.refresh_tokens.remove(token);
        if known.expires < unix_now() {
            return Err(invalid("the refresh token is expired"));
        }
        let scopes: Vec<String> = match get(parameters, "scope") {
            Some(scope) => scope.split_ascii_whitespace().map(str::to_owned).collect(),
            None => known.scopes.clone(),
        };
        if scopes.iter().any(|scope| !known.scopes.contains(scope)) {
            return Err(bad_request("invalid_scope", "more was asked for than was granted"));
        }
        Ok((Grant { client_id, user: known.user, scopes, resource: known.resource }, known.login))
    }

    /// Authenticates the client: `client_id` and `client_secret` must be those of the options, if set.
    fn authenticate_client(
        &self,
        headers: &HeaderMap,
        parameters: &Parameters,
    ) -> Result<String, TokenError> {
        const INVALID_CLIENT: TokenError =
            (StatusCode::UNAUTHORIZED, "invalid_client", "wrong client or secret");
        let get = |name: &str| parameters.get(name).cloned();
        let (id, secret) = match basic(headers) {
            Some((id, secret)) => (id, Some(secret)),
            None => (
                get("client_id").ok_or(bad_request("invalid_request", "`client_id` is missing"))?,
                get("client_secret"),
            ),
        };
        let known = self.options.client_id.as_ref().is_none_or(|known| *known == id);
        let authenticated =
            self.options.client_secret.as_ref().is_none_or(|known| secret.as_ref() == Some(known));
        if known && authenticated { Ok(id) } else { Err(INVALID_CLIENT) }
    }

    /// Issues an access token; for a login also a refresh token, and an ID token for the scope `openid`.
    fn issue(&mut self, grant: Grant, login: Option<Login>) -> Value {
        let Grant { client_id, user, scopes, resource } = grant;
        let lifetime = match self.has_fault(&Fault::ExpiredTokens) {
            true => -60,
            false => self.options.access_token_ttl_seconds,
        };
        let mut options =
            CreateTokenOptions::new(&user.sub).scopes(scopes.iter().cloned()).expires_in(lifetime);
        options.claims = user.claims();
        options = options.claim("client_id", client_id.as_str()).claim("iss", self.advertised());
        if let Some(audience) = self.wrong_audience().or_else(|| resource.clone()) {
            options = options.claim("aud", audience);
        }
        let signer = match self.has_fault(&Fault::UnpublishedKey) {
            true => self.factory.with_key(TestKey::unpublished()),
            false => self.factory.clone(),
        };
        let mut body = json!({
            "access_token": signer.create_test_token(&options),
            "token_type": "Bearer",
            "expires_in": self.options.access_token_ttl_seconds,
            "scope": scopes.join(" "),
        });
        if let Some(login) = &login
            && scopes.iter().any(|scope| scope == "openid")
        {
            let mut id = options.claim("aud", client_id.as_str()).claim("auth_time", login.at);
            if let Some(nonce) = &login.nonce {
                let wrong = self.has_fault(&Fault::WrongNonce);
                id = id.claim("nonce", if wrong { "another nonce" } else { nonce.as_str() });
            }
            body["id_token"] = signer.create_id_token(&id).into();
        }
        if let Some(login) = login {
            let secret = random_text();
            let refresh = RefreshGrant {
                client_id,
                scopes,
                resource,
                user,
                login: Login { nonce: None, ..login },
                expires: unix_now() + self.options.refresh_token_ttl_seconds,
            };
            self.refresh_tokens.insert(secret.clone(), refresh);
            body["refresh_token"] = secret.into();
        }
        body
    }
}
