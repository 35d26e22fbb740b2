//! The `auth` fixture: a token factory and prebuilt users.

use serde_json::Value;

use super::factory::{CreateTokenOptions, TokenFactory};

/// Options of the `auth` fixture's tokens: the same as the factory's.
pub type TokenOptions = CreateTokenOptions;

/// Prebuilt users.
#[derive(Debug, Clone, PartialEq)]
pub struct Users {
    /// `test-admin`, scope `*`.
    pub admin: TokenOptions,
    /// `test-user`, scopes `read write`.
    pub user: TokenOptions,
    /// `test-readonly`, scope `read`.
    pub read_only: TokenOptions,
}

impl Default for Users {
    fn default() -> Self {
        Self {
            admin: TokenOptions::new("test-admin").scopes(["*"]),
            user: TokenOptions::new("test-user").scopes(["read", "write"]),
            read_only: TokenOptions::new("test-readonly").scopes(["read"]),
        }
    }
}

/// Signs tokens of one issuer. A fixture.
#[derive(Debug, Clone)]
pub struct Auth {
    factory: TokenFactory,
    /// Prebuilt users, for [`Auth::create_token`].
    pub users: Users,
}

impl Default for Auth {
    fn default() -> Self {
        Self::new(TokenFactory::default())
    }
}

impl Auth {
    /// Uses the tokens of `factory`.
    pub fn new(factory: TokenFactory) -> Self {
        Self { factory, users: Users::default() }
    }

    /// The token factory.
    pub fn factory(&self) -> &TokenFactory {
        &self.factory
    }

    /// Creates a signed token.
    pub fn create_token(&self, options: &TokenOptions) -> String {
        self.factory.create_test_token(options)
    }

    /// Creates a signed token that expired an hour ago.
    pub fn create_expired_token(&self, options: &TokenOptions) -> String {
        self.factory.create_expired_token(options)
    }

    /// Creates a token with a signature that the issuer's keys do not verify.
    pub fn create_invalid_token(&self, options: &TokenOptions) -> String {
        self.factory.create_token_with_invalid_signature(options)
    }

    /// The issuer's public keys.
    pub fn get_jwks(&self) -> Value {
        self.factory.get_public_jwks()
    }

    /// The `iss` of the tokens.
    pub fn get_issuer(&self) -> &str {
        self.factory.get_issuer()
    }

    /// The `aud` of the tokens.
    pub fn get_audience(&self) -> &str {
        self.factory.get_audience()
    }
}
