//! Revocation (RFC 7009), introspection (RFC 7662) and userinfo.

use std::sync::Arc;

use axum::{
    body::Body,
    extract::State,
    response::{IntoResponse, Response},
};
use http::{Request, StatusCode, header};
use serde_json::{Value, json};

use super::{
    Core,
    client_auth::KnownAs,
    form::{OAuthError, no_store, read_form},
};
use crate::{
    ceiling::{GrantedScopes, RecordedScopes},
    clients::OAuthClient,
    dpop,
    keys::{Claims, Expected, Refused, Token},
    records::Grant,
    store::{FamilyId, Key, StoreError},
};

/// The types of our access tokens.
pub(crate) const ACCESS: [&str; 1] = ["at+jwt"];

impl Core {
    /// The claims of an access token of ours for `audiences`, whether its family lives or not.
    pub(crate) async fn own_claims(&self, text: &str, audiences: &[&str]) -> Result<Claims, Refused> {
        let token = Token::parse(text)?;
        let ring = self.ring.snapshot_knowing(token.header.kid.as_deref().unwrap_or_default()).await;
        let issuer = self.deployment.public_url.as_str();
        token.verify_in(&ring, &Expected { types: &ACCESS, issuer, audiences, now_s: self.clock.now_s() })
    }

    /// The grant behind an access token, when there still is one. Whether it stands, [`Core::live_scopes`] says.
    pub(crate) async fn grant_of(&self, claims: &Claims) -> Result<Option<(FamilyId, Grant)>, StoreError> {
        let family = claims.get("family").and_then(Value::as_str).and_then(FamilyId::parse);
        let Some(family) = family else { return Ok(None) };
        let Some(held) = self.store.family(&family).await? else { return Ok(None) };
        let grant: Grant = serde_json::from_slice(&held).map_err(|_| StoreError::Corrupt)?;
        Ok(Some((family, grant)))
    }

    /// The scopes that an access token of `family` grants now; `None` when its grant has ended, or the client it was given to is not
    /// known any more. One question to the store.
    pub(crate) async fn live_scopes(
        &self,
        family: &FamilyId,
        grant: &Grant,
        claims: &Claims,
    ) -> Result<Option<GrantedScopes>, StoreError> {
        let client = self.known_as(&grant.client);
        let mut keys = vec![Key::family(family)];
        keys.extend(Self::cutoffs(grant));
        if let KnownAs::Registered(key) = &client {
            keys.push(key.clone());
        }
        let mut held = self.store.get_many(&keys).await?;
        let registered: OAuthClient;
        let limit = match client {
            KnownAs::Anonymous if self.config.allow_default_public => None,
            KnownAs::Configured(client) => client.scopes.as_deref(),
            // Codes and refresh tokens apply the scopes that the document names.
            KnownAs::Document if crate::cimd::check(&grant.client, &self.config.cimd).is_some() => None,
            KnownAs::Registered(_) => {
                let Some(record) = held.pop().flatten() else { return Ok(None) };
                registered = serde_json::from_slice(&record).map_err(|_| StoreError::Corrupt)?;
                registered.scopes.as_deref()
            }
            KnownAs::Anonymous | KnownAs::Document => return Ok(None),
        };
        let mut held = held.into_iter();
        let lives = held.next().flatten().is_some();
        if !lives || !self.stands_with(grant, held.flatten()) {
            return Ok(None);
        }
        let ceiling = self.ceiling_of(&grant.sub, &grant.client, limit);
        Ok(Some(ceiling.narrow(&RecordedScopes::of_claims(claims))))
    }

    /// The grant behind an access token and the scopes it grants now, when the grant stands.
    async fn live_token(&self, claims: &Claims) -> Result<Option<(Grant, GrantedScopes)>, StoreError> {
        let Some((family, grant)) = self.grant_of(claims).await? else { return Ok(None) };
        let scopes = self.live_scopes(&family, &grant, claims).await?;
        Ok(scopes.map(|scopes| (grant, scopes)))
    }
}

pub(super) async fn revoke(State(core): State<Arc<Core>>, request: Request<Body>) -> Response {
    let (parts, body) = request.into_parts();
    core.revoke(&parts, body).await.unwrap_or_else(IntoResponse::into_response)
}

pub(super) async fn introspect(State(core): State<Arc<Core>>, request: Request<Body>) -> Response {
    let (parts, body) = request.into_parts();
    core.introspect(&parts, body).await.unwrap_or_else(IntoResponse::into_response)
}

impl Core {
    async fn revoke(&self, parts: &http::request::Parts, body: Body) -> Result<Response, OAuthError> {
        let ip = self.caller(parts);
        self.limit("revoke", &[&ip.to_string()], self.config.limits.revoke).await?;
        let params = read_form(parts, body).await?;
        let client = self.authenticate_client(parts, &params, &ip.to_string()).await?;
        let token = params.need("token", "token is required")?;
        let done = Ok(no_store(StatusCode::OK, &json!({})));
        let Some((family, grant, jti)) = self.behind(token).await? else { return done };
        // Another client's token is left alone, and that is not told.
        if grant.client == client.id {
            self.end(&family).await?;
            self.tell("token.revoked", Some(&grant.sub), Some(&client.id), Some(ip), jti.as_deref());
        }
        done
    }

    async fn introspect(&self, parts: &http::request::Parts, body: Body) -> Result<Response, OAuthError> {
        let ip = self.caller(parts).to_string();
        self.limit("revoke", &[&ip], self.config.limits.revoke).await?;
        let params = read_form(parts, body).await?;
        if params.get("client_id").is_none()
            && params.get("client_assertion").is_none()
            && !parts.headers.contains_key(header::AUTHORIZATION)
        {
            return Err(OAuthError::invalid_client());
        }
        let client = self.authenticate_client(parts, &params, &ip).await?;
        if client.is_public() {
            return Err(OAuthError::invalid_client());
        }
        let token = params.need("token", "token is required")?;
        let inactive = || no_store(StatusCode::OK, &json!({"active": false}));
        // Only the resource server a token is meant for learns anything about it.
        let Some(resource) = client.introspects.as_deref() else { return Ok(inactive()) };
        let Ok(claims) = self.own_claims(token, &[resource]).await else { return Ok(inactive()) };
        let Some((_, scopes)) = self.live_token(&claims).await? else { return Ok(inactive()) };
        let mut body = Value::Object(claims);
        body["scope"] = json!(scopes.to_text());
        body["active"] = json!(true);
        body["token_type"] = json!(if body.get("cnf").is_some() { "DPoP" } else { "Bearer" });
        Ok(no_store(StatusCode::OK, &body))
    }
}

/// Who the holder of a token is.
pub(super) async fn userinfo(State(core): State<Arc<Core>>, request: Request<Body>) -> Response {
    let (parts, _) = request.into_parts();
    let refused = |error: &'static str| {
        OAuthError {
            status: StatusCode::UNAUTHORIZED,
            challenge: Some(format!("Bearer error=\"{error}\"")),
            ..OAuthError::new(error, "the access token is not usable here")
        }
        .into_response()
    };
    let bearer = parts
        .headers
        .get(header::AUTHORIZATION)
        .and_then(|v| v.to_str().ok())
        .and_then(|v| v.split_once(' '));
    let is = |wanted: &str| bearer.filter(|(scheme, _)| scheme.eq_ignore_ascii_case(wanted));
    let (token, is_bound) = match (is("bearer"), is("dpop")) {
        (Some((_, token)), _) => (token, false),
        (None, Some((_, token))) => (token, true),
        (None, None) => return refused("invalid_token"),
    };
    let Ok(claims) = core.own_claims(token, &[&core.deployment.resource]).await else {
        return refused("invalid_token");
    };
    // A bound token needs its proof, and only a bound one has any (RFC 9449 §7).
    match (claims.get("cnf").map(|cnf| cnf.get("jkt").and_then(Value::as_str)), is_bound) {
        (None, false) => {}
        (Some(Some(jkt)), true) => {
            match dpop::of_resource(&core, &parts, &core.url("/oauth/userinfo"), token).await {
                Ok(Some(shown)) if shown == jkt => {}
                Ok(_) => return refused("invalid_token"),
                Err(error) => return error.into_response(),
            }
        }
        _ => return refused("invalid_token"),
    }
    let (grant, scopes) = match core.live_token(&claims).await {
        Ok(Some(live)) => live,
        Ok(None) => return refused("invalid_token"),
        Err(error) => return error.into_response(),
    };
    let has = |scope: &str| scopes.contains(scope);
    if !grant.is_of_user() || !has("openid") {
        let text = match grant.is_of_user() {
            true => "userinfo needs a scope that the token does not grant: openid",
            false => "userinfo is about a user, and the token is of none; a token with the scope openid is",
        };
        let challenge =
            format!("Bearer error=\"insufficient_scope\", scope=\"openid\", error_description=\"{text}\"");
        return OAuthError {
            status: StatusCode::FORBIDDEN,
            challenge: Some(challenge),
            ..OAuthError::new("insufficient_scope", text)
        }
        .into_response();
    }
    let mut body = json!({"sub": grant.sub});
    if let Some(name) = grant.sub.strip_prefix("user:") {
        let user = core.users.get(name).map(|user| &user.config);
        if has("profile") {
            body["preferred_username"] = json!(name);
            body["name"] = json!(user.and_then(|user| user.name.as_deref()).unwrap_or(name));
        }
        if let (true, Some(email)) = (has("email"), user.and_then(|user| user.email.as_ref())) {
            body["email"] = json!(email);
        }
    }
    let person = &grant.person;
    if let (true, Some(name)) = (has("profile"), &person.name) {
        body["name"] = json!(name);
    }
    if let (true, Some(email)) = (has("email"), &person.email) {
        body["email"] = json!(email);
    }
    no_store(StatusCode::OK, &body)
}
