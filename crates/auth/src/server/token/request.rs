//! Token requests, parsed.

use crate::{
    error::OAuthError, error_codes::Code, grant_refusal::GrantRefusal, scopes::ANONYMOUS, store::FamilyId,
    web::params::Params,
};

/// Grant type of a token request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum GrantType {
    AuthorizationCode,
    RefreshToken,
    ClientCredentials,
    /// Callers without a login: an extension of this server.
    Anonymous,
}

impl GrantType {
    /// Reads `grant_type`.
    pub(super) fn parse(params: &Params) -> Result<Self, OAuthError> {
        match params.require("grant_type", "grant_type is required")? {
            "authorization_code" => Ok(Self::AuthorizationCode),
            "refresh_token" => Ok(Self::RefreshToken),
            "client_credentials" => Ok(Self::ClientCredentials),
            ANONYMOUS => Ok(Self::Anonymous),
            _ => Err(Self::unsupported()),
        }
    }

    pub(super) fn unsupported() -> OAuthError {
        OAuthError::new(Code::UnsupportedGrantType, "the grant type is not supported")
    }

    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::AuthorizationCode => "authorization_code",
            Self::RefreshToken => "refresh_token",
            Self::ClientCredentials => "client_credentials",
            Self::Anonymous => ANONYMOUS,
        }
    }
}

/// Returns whether `text` can be a code verifier (RFC 7636 §4.1).
fn is_code_verifier(text: &str) -> bool {
    let is_unreserved = |c: u8| c.is_ascii_alphanumeric() || b"-._~".contains(&c);
    (43..=128).contains(&text.len()) && text.bytes().all(is_unreserved)
}

fn malformed() -> OAuthError {
    OAuthError::invalid_grant(GrantRefusal::Malformed)
}

/// A code and its verifier, well formed.
pub(super) struct CodeRequest<'a> {
    pub(super) code: &'a str,
    pub(super) verifier: &'a str,
    /// The family that the code founds.
    pub(super) family: FamilyId,
}

impl<'a> CodeRequest<'a> {
    pub(super) fn parse(params: &'a Params) -> Result<Self, OAuthError> {
        let code = params.require("code", "code is required")?;
        let verifier = params.require("code_verifier", "code_verifier is required")?;
        if !is_code_verifier(verifier) {
            return Err(OAuthError::invalid_request("code_verifier is malformed"));
        }
        let family = FamilyId::of_token(code).ok_or_else(malformed)?;
        Ok(Self { code, verifier, family })
    }
}

/// A refresh token, well formed.
pub(super) struct RefreshRequest<'a> {
    pub(super) token: &'a str,
    pub(super) family: FamilyId,
}

impl<'a> RefreshRequest<'a> {
    pub(super) fn parse(params: &'a Params) -> Result<Self, OAuthError> {
        let token = params.require("refresh_token", "refresh_token is required")?;
        let family = FamilyId::of_token(token).ok_or_else(malformed)?;
        Ok(Self { token, family })
    }
}
