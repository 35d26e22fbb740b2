//! Revocation (RFC 7009), introspection (RFC 7662) and user info: all that depends on the state of a token.

use axum::{
    extract::State,
    http::{HeaderMap, Method, StatusCode, header},
    response::{IntoResponse as _, Response},
};
use serde_json::{Value, json};

use super::{
    client_auth::authenticate,
    form::{Form, TokenError},
    proof,
    response::json_response,
    state::{Issuer, SharedIssuer},
};
use crate::base::{lock, unix_now};

impl Issuer {
    /// The claims of an access token of this server that is neither expired nor revoked.
    fn active(&self, token: &str) -> Option<Value> {
        let claims = self.published.iter().find_map(|key| key.verified(token))?;
        let expired = claims["exp"].as_i64().is_none_or(|expires| expires <= unix_now());
        let jti = claims["jti"].as_str().unwrap_or_default();
        let ended = self.revoked.contains(jti)
            || self.families.get(jti).is_some_and(|family| self.revoked.contains(family));
        (!expired && !ended).then_some(claims)
    }
}

pub(super) async fn revoke(State(issuer): State<SharedIssuer>, headers: HeaderMap, body: String) -> Response {
    let outcome = async {
        let form = Form::parse(headers.get(header::CONTENT_TYPE), &body)?;
        let client = authenticate(&issuer, &headers, &form).await?;
        let token = form.require("token")?;
        let mut issuer = lock(&issuer);
        // The token of another client is left alone, and the answer does not tell.
        if let Some(grant) = issuer.refresh_tokens.get(token).filter(|grant| grant.client_id == client.id) {
            let family = grant.family.clone();
            issuer.end_family(&family);
        } else if let Some(claims) = issuer.active(token)
            && claims["client_id"] == client.id.as_str()
            && let Some(jti) = claims["jti"].as_str()
        {
            issuer.revoked.insert(jti.to_owned());
        }
        Ok::<_, TokenError>(json_response(StatusCode::OK, &json!({})))
    };
    outcome.await.unwrap_or_else(TokenError::into_response)
}

pub(super) async fn introspect(
    State(issuer): State<SharedIssuer>,
    headers: HeaderMap,
    body: String,
) -> Response {
    let outcome = async {
        let form = Form::parse(headers.get(header::CONTENT_TYPE), &body)?;
        let invalid = || {
            TokenError::new(
                StatusCode::UNAUTHORIZED,
                "invalid_client",
                "introspection needs a client with a secret or a key",
            )
        };
        if form.get("client_id").is_none()
            && form.get("client_assertion").is_none()
            && !headers.contains_key(header::AUTHORIZATION)
        {
            return Err(invalid());
        }
        let client = authenticate(&issuer, &headers, &form).await?;
        if client.is_public() {
            return Err(invalid());
        }
        let token = form.require("token")?;
        let issuer = lock(&issuer);
        let mut answer = match (issuer.active(token), issuer.refresh_tokens.get(token)) {
            (Some(claims), _) => claims,
            (None, Some(grant)) if grant.expires > unix_now() => {
                json!({"sub": grant.user.sub, "client_id": grant.client_id, "scope": grant.scopes.join(" "),
                    "exp": grant.expires, "token_type": "refresh_token"})
            }
            (None, _) => return Ok(json_response(StatusCode::OK, &json!({"active": false}))),
        };
        answer["active"] = true.into();
        if answer.get("token_type").is_none() {
            answer["token_type"] = if answer.get("cnf").is_some() { "DPoP" } else { "Bearer" }.into();
        }
        Ok(json_response(StatusCode::OK, &answer))
    };
    outcome.await.unwrap_or_else(TokenError::into_response)
}

pub(super) async fn userinfo(
    State(issuer): State<SharedIssuer>,
    method: Method,
    headers: HeaderMap,
) -> Response {
    about_user(&mut lock(&issuer), &method, &headers).unwrap_or_else(TokenError::into_response)
}

fn about_user(issuer: &mut Issuer, method: &Method, headers: &HeaderMap) -> Result<Response, TokenError> {
    let header = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let (scheme, token) = header.and_then(|value| value.split_once(' ')).unwrap_or_default();
    let refused = |description: &str, challenge: &str| {
        TokenError::new(StatusCode::UNAUTHORIZED, "invalid_token", description).challenge(challenge)
    };
    let bearer = "Bearer error=\"invalid_token\"";
    let mut claims = issuer.active(token).ok_or_else(|| refused("no such token", bearer))?;
    let bound = claims["cnf"]["jkt"].as_str().map(str::to_owned);
    let jkt = match scheme.to_ascii_lowercase().as_str() {
        "dpop" => proof::check(issuer, headers, method.as_str(), "/userinfo", Some(token))?,
        "bearer" => None,
        _ => return Err(refused("no such token", bearer)),
    };
    if bound != jkt {
        return Err(refused(
            "the token is bound to a key that the request does not prove",
            "DPoP error=\"invalid_token\"",
        ));
    }
    if let Some(claims) = claims.as_object_mut() {
        for claim in ["iss", "aud", "iat", "exp", "jti", "client_id", "scope", "cnf"] {
            claims.shift_remove(claim);
        }
    }
    Ok(json_response(StatusCode::OK, &claims))
}
