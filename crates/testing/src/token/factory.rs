//! The token factory: signed tokens with chosen claims.

use std::{path::Path, sync::Arc};

use serde_json::{Map, Value, json};

use super::{
    algorithm::Algorithm,
    broken::Defect,
    key::{KeyFileError, TestKey, jwks},
};
use crate::base::{text::random_text, unix_now};

/// Issuer, audience and lifetime of tokens.
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

/// The claims of one token.
#[derive(Debug, Clone, PartialEq)]
pub struct CreateTokenOptions {
    /// The subject.
    pub sub: String,
    /// The scopes, joined with spaces into `scope`. Without any the token has no `scope`.
    pub scopes: Vec<String>,
    /// `email`.
    pub email: Option<String>,
    /// `name`.
    pub name: Option<String>,
    /// Further claims; they replace those the factory sets, including `iss` and `aud`.
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

    /// Sets the scopes.
    #[must_use]
    pub fn scopes<S: Into<String>>(mut self, scopes: impl IntoIterator<Item = S>) -> Self {
        self.scopes = scopes.into_iter().map(Into::into).collect();
        self
    }

    /// Sets `email`.
    #[must_use]
    pub fn email(mut self, email: impl Into<String>) -> Self {
        self.email = Some(email.into());
        self
    }

    /// Sets `name`.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Adds a claim.
    #[must_use]
    pub fn claim(mut self, name: impl Into<String>, value: impl Into<Value>) -> Self {
        self.claims.insert(name.into(), value.into());
        self
    }

    /// Sets the lifetime in seconds; a negative one makes an expired token.
    #[must_use]
    pub fn expires_in(mut self, seconds: i64) -> Self {
        self.expires_in = Some(seconds);
        self
    }
}

/// Creates access tokens (`at+jwt`, RFC 9068), by default with RS256 and a key that all factories of a process share.
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
    /// A factory with this issuer, audience and lifetime.
    pub fn new(options: TokenFactoryOptions) -> Self {
        Self { options, key: TestKey::shared() }
    }

    /// Signs with a new key for this algorithm.
    #[must_use]
    pub fn algorithm(self, algorithm: Algorithm) -> Self {
        if self.key.algorithm() == algorithm {
            return self;
        }
        Self { options: self.options, key: TestKey::generate(algorithm) }
    }

    /// Signs with the key in a PKCS#8 PEM file, which is created if it does not exist (RSA). Processes that use the same file
    /// sign with the same key, with RS256, ES256, ES384 or EdDSA by its kind.
    ///
    /// # Errors
    /// The file cannot be read or created, or does not contain such a key.
    pub fn key_file(self, path: impl AsRef<Path>) -> Result<Self, KeyFileError> {
        Ok(Self { options: self.options, key: TestKey::in_file(path.as_ref(), None)? })
    }

    /// As [`TokenFactory::key_file`], for this algorithm. The file of an HMAC algorithm holds the shared secret as it is.
    ///
    /// # Errors
    /// As [`TokenFactory::key_file`], or the key is of another kind.
    pub fn key_file_for(self, path: impl AsRef<Path>, algorithm: Algorithm) -> Result<Self, KeyFileError> {
        Ok(Self { options: self.options, key: TestKey::in_file(path.as_ref(), Some(algorithm))? })
    }

    /// Creates a token that a server must refuse, because of this one defect.
    pub fn create_broken_token(&self, options: &CreateTokenOptions, defect: Defect) -> String {
        let lifetime = options.expires_in.unwrap_or(self.options.expires_in_seconds);
        defect.apply(&self.key, self.claims(options, lifetime), lifetime)
    }

    /// Creates a token.
    pub fn create_test_token(&self, options: &CreateTokenOptions) -> String {
        self.signed(options, options.expires_in.unwrap_or(self.options.expires_in_seconds))
    }

    /// Creates a token of `test-admin` with the scope `*`.
    pub fn create_admin_token(&self) -> String {
        self.create_test_token(&CreateTokenOptions::new("test-admin").scopes(["*"]))
    }

    /// Creates a token of `test-user` with the scopes `read write`.
    pub fn create_user_token(&self) -> String {
        self.create_test_token(&CreateTokenOptions::new("test-user").scopes(["read", "write"]))
    }

    /// Creates a token of `anonymous` without scopes.
    pub fn create_anonymous_token(&self) -> String {
        self.create_test_token(&CreateTokenOptions::new("anonymous"))
    }

    /// Creates a token that expired an hour ago.
    pub fn create_expired_token(&self, options: &CreateTokenOptions) -> String {
        self.signed(options, -3600)
    }

    /// Creates a token signed by a different key than the one its header names.
    pub fn create_token_with_invalid_signature(&self, options: &CreateTokenOptions) -> String {
        let expires_in = options.expires_in.unwrap_or(self.options.expires_in_seconds);
        self.key.unpublished().sign("at+jwt", &self.key.id, &self.claims(options, expires_in))
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

    /// Verifies a token and returns its claims: signed by this key, with this `iss` and `aud`, not expired.
    ///
    /// # Errors
    /// The first check that failed, in words.
    pub fn verify(&self, token: &str) -> Result<Value, &'static str> {
        let claims = self.key.verified(token).ok_or("the signature is not the issuer's")?;
        if claims["iss"] != self.options.issuer {
            return Err("the issuer is another");
        }
        let is_ours = |audience: &Value| *audience == self.options.audience;
        if !is_ours(&claims["aud"]) && !claims["aud"].as_array().is_some_and(|all| all.iter().any(is_ours)) {
            return Err("the audience is another");
        }
        if claims["exp"].as_i64().is_none_or(|expires| expires <= unix_now()) {
            return Err("the token is expired");
        }
        Ok(claims)
    }

    /// Claims of a token, without verifying its signature; null if it is not a JWT.
    pub fn unverified_claims(token: &str) -> Value {
        use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
        let claims = token.split('.').nth(1).and_then(|part| URL_SAFE_NO_PAD.decode(part).ok());
        claims.and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default()
    }

    fn signed(&self, options: &CreateTokenOptions, expires_in: i64) -> String {
        self.key.sign("at+jwt", &self.key.id, &self.claims(options, expires_in))
    }

    fn claims(&self, options: &CreateTokenOptions, expires_in: i64) -> Value {
        let now = unix_now();
        // An expired token must have been valid before.
        let issued = if expires_in < 0 { now + 2 * expires_in } else { now };
        let mut claims = json!({
            "iss": self.options.issuer,
            "aud": self.options.audience,
            "sub": options.sub,
            "client_id": "test-client",
            "iat": issued,
            "exp": now + expires_in,
            "jti": random_text(),
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

/// For the mock authorization server.
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

    /// Creates an ID token (OpenID Connect Core §2): type `JWT`, without the claims of access tokens.
    pub(crate) fn create_id_token(&self, options: &CreateTokenOptions) -> String {
        let mut claims = self.claims(options, options.expires_in.unwrap_or(self.options.expires_in_seconds));
        if let Some(claims) = claims.as_object_mut() {
            for claim in ["client_id", "scope", "jti", "cnf"] {
                claims.shift_remove(claim);
            }
        }
        self.key.sign("JWT", &self.key.id, &claims)
    }
}
