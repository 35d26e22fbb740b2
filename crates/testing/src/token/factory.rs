//! The token factory.

use std::{
    path::Path,
    sync::Arc,
    time::{SystemTime, UNIX_EPOCH},
};

use serde_json::{Map, Value, json};

use super::{TestKey, jwks, key::KeyFileError};

/// Whose tokens, for whom, and for how long.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenFactoryOptions {
    /// `iss`. Default `https://test-issuer.local`.
    pub issuer: String,
    /// `aud`. Default `test-audience`.
    pub audience: String,
    /// Lifetime in seconds. Default 3600.
    pub expires_in_seconds: i64,
}

impl Default for TokenFactoryOptions {
    fn default() -> Self {
        Self {
            issuer: "https://test-issuer.local".into(),
            audience: "test-audience".into(),
            expires_in_seconds: 3600,
        }
    }
}

/// What one token says.
#[derive(Debug, Clone, PartialEq)]
pub struct CreateTokenOptions {
    /// Who it speaks for.
    pub sub: String,
    /// What they may do; `scope` holds them with spaces between. With none there is no `scope`.
    pub scopes: Vec<String>,
    /// Their address.
    pub email: Option<String>,
    /// Their name.
    pub name: Option<String>,
    /// Further claims; they replace those the factory sets, `iss` and `aud` included.
    pub claims: Map<String, Value>,
    /// Lifetime in seconds. Default: the factory's.
    pub expires_in: Option<i64>,
}

impl CreateTokenOptions {
    /// A token for `sub`, without scopes.
    pub fn new(sub: impl Into<String>) -> Self {
        Self {
            sub: sub.into(),
            scopes: Vec::new(),
            email: None,
            name: None,
            claims: Map::new(),
            expires_in: None,
        }
    }

    /// What they may do.
    #[must_use]
    pub fn scopes<S: Into<String>>(mut self, scopes: impl IntoIterator<Item = S>) -> Self {
        self.scopes = scopes.into_iter().map(Into::into).collect();
        self
    }

    /// Their address.
    #[must_use]
    pub fn email(mut self, email: impl Into<String>) -> Self {
        self.email = Some(email.into());
        self
    }

    /// Their name.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// One more claim.
    #[must_use]
    pub fn claim(mut self, name: impl Into<String>, value: impl Into<Value>) -> Self {
        self.claims.insert(name.into(), value.into());
        self
    }

    /// Lifetime in seconds; below zero it is over already.
    #[must_use]
    pub fn expires_in(mut self, seconds: i64) -> Self {
        self.expires_in = Some(seconds);
        self
    }
}

/// Makes RS256 tokens (`at+jwt`, RFC 9068). All factories of a process share one key.
#[derive(Debug, Clone)]
pub struct TokenFactory {
    options: TokenFactoryOptions,
    key: Arc<TestKey>,
}

impl Default for TokenFactory {
    fn default() -> Self {
        Self::new(TokenFactoryOptions::default())
    }
}

impl TokenFactory {
    /// A factory of these tokens.
    pub fn new(options: TokenFactoryOptions) -> Self {
        Self { options, key: TestKey::shared() }
    }

    /// Signs with the RSA key in a PKCS#8 PEM file, which is made when it is not there: processes that name the same file
    /// sign with the same key.
    ///
    /// # Errors
    /// The file cannot be read or made, or holds no such key.
    pub fn key_file(self, path: impl AsRef<Path>) -> Result<Self, KeyFileError> {
        Ok(Self { options: self.options, key: TestKey::in_file(path.as_ref())? })
    }

    /// A token.
    pub fn create_test_token(&self, options: &CreateTokenOptions) -> String {
        self.signed(options, options.expires_in.unwrap_or(self.options.expires_in_seconds))
    }

    /// A token of `test-admin` with the scope `*`.
    pub fn create_admin_token(&self) -> String {
        self.create_test_token(&CreateTokenOptions::new("test-admin").scopes(["*"]))
    }

    /// A token of `test-user` with the scopes `read write`.
    pub fn create_user_token(&self) -> String {
        self.create_test_token(&CreateTokenOptions::new("test-user").scopes(["read", "write"]))
    }

    /// A token of `anonymous` without scopes.
    pub fn create_anonymous_token(&self) -> String {
        self.create_test_token(&CreateTokenOptions::new("anonymous"))
    }

    /// A token that expired an hour ago.
    pub fn create_expired_token(&self, options: &CreateTokenOptions) -> String {
        self.signed(options, -3600)
    }

    /// A token signed by another key than the one its header names.
    pub fn create_token_with_invalid_signature(&self, options: &CreateTokenOptions) -> String {
        let expires_in = options.expires_in.unwrap_or(self.options.expires_in_seconds);
        TestKey::stranger().sign("at+jwt", &self.key.id, &self.claims(options, expires_in))
    }

    /// The public keys, as a JWK set.
    pub fn get_public_jwks(&self) -> Value {
        jwks(&[&self.key])
    }

    /// The `iss` of the tokens.
    pub fn get_issuer(&self) -> &str {
        &self.options.issuer
    }

    /// The `aud` of the tokens.
    pub fn get_audience(&self) -> &str {
        &self.options.audience
    }

    /// The claims of a token of this issuer: signed by its key, with its `iss` and `aud`, not expired.
    ///
    /// # Errors
    /// It is not, in words.
    pub fn verify(&self, token: &str) -> Result<Value, &'static str> {
        let claims = self.key.verified(token).ok_or("the signature is not the issuer's")?;
        if claims["iss"] != self.options.issuer {
            return Err("the issuer is another");
        }
        let for_us = |audience: &Value| *audience == self.options.audience;
        if !for_us(&claims["aud"]) && !claims["aud"].as_array().is_some_and(|all| all.iter().any(for_us)) {
            return Err("the audience is another");
        }
        if claims["exp"].as_i64().is_none_or(|expires| expires <= now()) {
            return Err("the token is expired");
        }
        Ok(claims)
    }

    /// What a token says, whoever signed it; null when it is no token.
    pub fn unverified_claims(token: &str) -> Value {
        use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
        let claims = token.split('.').nth(1).and_then(|part| URL_SAFE_NO_PAD.decode(part).ok());
        claims.and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default()
    }

    fn signed(&self, options: &CreateTokenOptions, expires_in: i64) -> String {
        self.key.sign("at+jwt", &self.key.id, &self.claims(options, expires_in))
    }

    fn claims(&self, options: &CreateTokenOptions, expires_in: i64) -> Value {
        let now = now();
        // An expired token was valid once.
        let issued = if expires_in < 0 { now + 2 * expires_in } else { now };
        let mut claims = json!({
            "iss": self.options.issuer,
            "aud": self.options.audience,
            "sub": options.sub,
            "client_id": "test-client",
            "iat": issued,
            "exp": now + expires_in,
            "jti": crate::random_text(),
        });
        // RFC 6749 §3.3: a scope has at least one part. Without any there is no claim.
        if !options.scopes.is_empty() {
            claims["scope"] = options.scopes.join(" ").into();
        }
        for (name, value) in [("email", &options.email), ("name", &options.name)] {
            if let Some(value) = value {
                claims[name] = value.as_str().into();
            }
        }
        for (name, value) in &options.claims {
            claims[name] = value.clone();
        }
        claims
    }
}

/// What the mock authorization server needs.
#[cfg(feature = "oauth")]
impl TokenFactory {
    pub(crate) fn with_issuer(&self, issuer: &str) -> Self {
        let options = TokenFactoryOptions { issuer: issuer.to_owned(), ..self.options.clone() };
        Self { options, key: self.key.clone() }
    }

    pub(crate) fn with_key(&self, key: Arc<TestKey>) -> Self {
        Self { options: self.options.clone(), key }
    }

    pub(crate) fn key(&self) -> &Arc<TestKey> {
        &self.key
    }

    /// The same as an ID token (OpenID Connect Core §2): of type `JWT`, and about the user alone.
    pub(crate) fn create_id_token(&self, options: &CreateTokenOptions) -> String {
        let mut claims = self.claims(options, options.expires_in.unwrap_or(self.options.expires_in_seconds));
        if let Some(claims) = claims.as_object_mut() {
            for of_access_tokens in ["client_id", "scope", "jti"] {
                claims.shift_remove(of_access_tokens);
            }
        }
        self.key.sign("JWT", &self.key.id, &claims)
    }
}

pub(crate) fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
}
