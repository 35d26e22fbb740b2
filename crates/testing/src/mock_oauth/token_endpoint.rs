//! The token endpoint: `authorization_code` with PKCE, `refresh_token` with rotation, `client_credentials`, `anonymous`.

use axum::{
    extract::State,
    http::{HeaderMap, StatusCode, Uri, header},
    response::{IntoResponse as _, Response},
};
use serde_json::{Value, json};

use super::{
    client_auth::authenticate,
    clients::KnownClient,
    fault::Fault,
    form::{Form, TokenError},
    options::MockTestUser,
    proof,
    response::json_response,
    state::{AuthorizationCode, Issuer, Login, RefreshGrant, SharedIssuer},
};
use crate::{
    base::{lock, text::random_text, unix_now},
    token::{CreateTokenOptions, TokenFactory, sha256},
};

/// Client, user and scopes that tokens are issued for.
struct Grant {
    client_id: String,
    user: MockTestUser,
    scopes: Vec<String>,
    resource: Option<String>,
    /// The DPoP key that the tokens are bound to.
    jkt: Option<String>,
}

/// A login, which refresh tokens continue.
struct Session {
    login: Login,
    family: String,
    /// True for clients whose refresh tokens are bound to the DPoP key.
    public: bool,
}

pub(super) async fn token(
    State(issuer): State<SharedIssuer>,
    uri: Uri,
    headers: HeaderMap,
    body: String,
) -> Response {
    match grant(&issuer, &uri, &headers, &body).await {
        Ok(body) => json_response(StatusCode::OK, &body),
        Err(error) => error.into_response(),
    }
}

async fn grant(
    issuer: &SharedIssuer,
    uri: &Uri,
    headers: &HeaderMap,
    body: &str,
) -> Result<Value, TokenError> {
    if uri.query().is_some_and(|query| !query.is_empty()) {
        return Err(TokenError::invalid_request("parameters belong in the body"));
    }
    let form = Form::parse(headers.get(header::CONTENT_TYPE), body)?;
    let grant_type = form.require("grant_type")?;
    let known = ["authorization_code", "refresh_token", "client_credentials", "anonymous"];
    if !known.contains(&grant_type) {
        return Err(TokenError::bad_request("unsupported_grant_type", "this grant is not supported"));
    }
    let client = match grant_type {
        "anonymous" => None,
        _ => Some(authenticate(issuer, headers, &form).await?),
    };
    let mut issuer = lock(issuer);
    if client.as_ref().is_some_and(|client| !client.may(grant_type)) {
        return Err(TokenError::bad_request("unauthorized_client", "the client may not use this grant"));
    }
    let jkt = proof::check(&mut issuer, headers, "POST", "/oauth/token", None)?;
    if client.as_ref().is_some_and(|client| client.dpop_bound) && jkt.is_none() {
        return Err(TokenError::bad_request("invalid_dpop_proof", "the client's tokens need a DPoP proof"));
    }
    let Some(client) = client else {
        return Ok(issuer.without_user("anonymous", Vec::new(), &form, jkt));
    };
    match grant_type {
        "authorization_code" => issuer.redeem_code(&client, &form, jkt),
        "refresh_token" => issuer.refresh(&client, &form, jkt),
        _ if client.is_public() => {
            Err(TokenError::bad_request("unauthorized_client", "a public client cannot use this grant"))
        }
        _ => {
            let scopes = form.get("scope").unwrap_or_default().split_ascii_whitespace().map(str::to_owned);
            Ok(issuer.without_user(&client.id, scopes.collect(), &form, jkt))
        }
    }
}

/// True if a text can be a code verifier (RFC 7636 §4.1).
fn is_code_verifier(text: &str) -> bool {
    let is_unreserved = |c: u8| c.is_ascii_alphanumeric() || b"-._~".contains(&c);
    (43..=128).contains(&text.len()) && text.bytes().all(is_unreserved)
}

impl Issuer {
    /// Tokens of a client, or of nobody (RFC 6749 §4.4).
    fn without_user(&mut self, client: &str, scopes: Vec<String>, form: &Form, jkt: Option<String>) -> Value {
        let grant = Grant {
            client_id: client.to_owned(),
            user: MockTestUser::new(client),
            scopes,
            resource: form.get("resource").map(str::to_owned),
            jkt,
        };
        self.issue(grant, None)
    }

    /// Redeems an authorization code (RFC 6749 §4.1.3, RFC 7636 §4.6, RFC 8707 §2.2).
    fn redeem_code(
        &mut self,
        client: &KnownClient,
        form: &Form,
        jkt: Option<String>,
    ) -> Result<Value, TokenError> {
        let invalid = TokenError::invalid_grant;
        let text = form.require("code")?;
        let verifier = form.require("code_verifier")?;
        if !is_code_verifier(verifier) {
            return Err(TokenError::invalid_request("`code_verifier` is malformed"));
        }
        // A code is consumed by the first attempt, even a failed one; a second ends what the first one got.
        let Some(code) = self.codes.remove(text) else {
            if let Some(family) = self.used.get(text).cloned() {
                self.end_family(&family);
            }
            return Err(invalid("the code is unknown or was used"));
        };
        self.used.insert(text.to_owned(), code.family.clone());
        if code.expires < unix_now() {
            return Err(invalid("the code is expired"));
        }
        if code.client_id != client.id {
            return Err(invalid("the code was given to another client"));
        }
        if form.get("redirect_uri").is_some_and(|uri| uri != code.redirect_uri) {
            return Err(invalid("`redirect_uri` is not the one the code was asked with"));
        }
        if sha256(verifier) != code.challenge {
            return Err(invalid("`code_verifier` does not fit the code's challenge"));
        }
        if code.jkt.is_some() && code.jkt != jkt {
            return Err(invalid("the code is bound to another DPoP key"));
        }
        let resource = form.get("resource").map(str::to_owned).or_else(|| code.resource.clone());
        if code.resource.is_some() && resource != code.resource {
            return Err(TokenError::bad_request(
                "invalid_target",
                "`resource` is not the one the code was asked with",
            ));
        }
        let AuthorizationCode { user, scopes, login, family, .. } = code;
        let session = Session { login, family, public: client.is_public() };
        Ok(self.issue(Grant { client_id: client.id.clone(), user, scopes, resource, jkt }, Some(session)))
    }

    /// Redeems a refresh token, which is replaced by a new one (RFC 6749 §6); using it again ends the family.
    fn refresh(
        &mut self,
        client: &KnownClient,
        form: &Form,
        jkt: Option<String>,
    ) -> Result<Value, TokenError> {
        let invalid = TokenError::invalid_grant;
        let token = form.require("refresh_token")?;
        let Some(known) = self.refresh_tokens.get(token).cloned() else {
            if let Some(family) = self.used.get(token).cloned() {
                self.end_family(&family);
            }
            return Err(invalid("the refresh token is unknown or was used"));
        };
        if known.client_id != client.id {
            return Err(invalid("the refresh token was given to another client"));
        }
        if known.jkt.is_some() && known.jkt != jkt {
            let description = "the refresh token is bound to another DPoP key";
            return Err(TokenError::bad_request("invalid_dpop_proof", description));
        }
        if known.expires < unix_now() {
            return Err(invalid("the refresh token is expired"));
        }
        let scopes: Vec<String> = match form.get("scope") {
            Some(scope) => scope.split_ascii_whitespace().map(str::to_owned).collect(),
            None => known.scopes.clone(),
        };
        if scopes.iter().any(|scope| !known.scopes.contains(scope)) {
            return Err(TokenError::bad_request("invalid_scope", "more was asked for than was granted"));
        }
        if let Some(resource) = form.get("resource")
            && known.resource.as_deref().is_some_and(|known| known != resource)
        {
            return Err(TokenError::bad_request("invalid_target", "`resource` is not the one of the login"));
        }
        self.refresh_tokens.remove(token);
        self.used.insert(token.to_owned(), known.family.clone());
        let session = Session { login: known.login, family: known.family, public: client.is_public() };
        let (client_id, user, resource) = (known.client_id, known.user, known.resource);
        Ok(self.issue(Grant { client_id, user, scopes, resource, jkt }, Some(session)))
    }

    /// Issues an access token; for a login also a refresh token, and an ID token for the scope `openid`.
    fn issue(&mut self, grant: Grant, session: Option<Session>) -> Value {
        let Grant { client_id, user, scopes, resource, jkt } = grant;
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
            true => self.factory.with_key(self.factory.key().unpublished()),
            false => self.factory.clone(),
        };
        if let Some(jkt) = &jkt {
            options = options.claim("cnf", json!({"jkt": jkt}));
        }
        let access_token = signer.create_test_token(&options);
        if let Some(session) = &session
            && let Some(jti) = TokenFactory::unverified_claims(&access_token)["jti"].as_str()
        {
            self.families.insert(jti.to_owned(), session.family.clone());
        }
        let mut body = json!({
            "access_token": access_token,
            "token_type": if jkt.is_some() { "DPoP" } else { "Bearer" },
            "expires_in": self.options.access_token_ttl_seconds,
            "scope": scopes.join(" "),
        });
        if let Some(Session { login, .. }) = &session
            && scopes.iter().any(|scope| scope == "openid")
        {
            let mut id = options.claim("aud", client_id.as_str()).claim("auth_time", login.at);
            if let Some(nonce) = &login.nonce {
                let wrong = self.has_fault(&Fault::WrongNonce);
                id = id.claim("nonce", if wrong { "another nonce" } else { nonce.as_str() });
            }
            body["id_token"] = signer.create_id_token(&id).into();
        }
        if let Some(Session { login, family, public }) = session {
            let secret = random_text();
            let refresh = RefreshGrant {
                client_id,
                family,
                jkt: jkt.filter(|_| public),
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
