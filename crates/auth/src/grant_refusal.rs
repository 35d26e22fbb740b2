//! Reasons for which codes and refresh tokens are refused.

/// The reason of an `invalid_grant` response.
///
/// The response is the same for all of them, so that it tells nothing about codes and tokens. The reason is in the log, and in the extensions of
/// the response, for programs that serve the router.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum GrantRefusal {
    /// It has not the form of those that this server issues.
    Malformed,
    /// It was never issued, is forgotten, or its family has ended.
    Unknown,
    /// It was used before. Its family ends.
    Replayed,
    /// A newer one took its place, and refresh tokens no longer rotate.
    Superseded,
    /// It was issued to another client.
    OtherClient,
    /// Its time is over.
    Expired,
    /// The redirect URI is not that of the authorization request.
    RedirectUri,
    /// The code verifier does not fit the challenge (RFC 7636 §4.6).
    CodeVerifier,
    /// The request does not prove the DPoP key that it is bound to (RFC 9449 §10).
    DpopKey,
    /// The client, or the server, uses no refresh tokens any more.
    RefreshDisabled,
    /// The user, the client, the consent or the session was revoked.
    Revoked,
    /// None of its scopes may be granted any more.
    NoScopes,
    /// The identity provider no longer confirms the user.
    ProviderRefused,
}

impl GrantRefusal {
    /// Returns the reason as the log names it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Malformed => "malformed",
            Self::Unknown => "unknown",
            Self::Replayed => "replayed",
            Self::Superseded => "superseded",
            Self::OtherClient => "other_client",
            Self::Expired => "expired",
            Self::RedirectUri => "redirect_uri",
            Self::CodeVerifier => "code_verifier",
            Self::DpopKey => "dpop_key",
            Self::RefreshDisabled => "refresh_disabled",
            Self::Revoked => "revoked",
            Self::NoScopes => "no_scopes",
            Self::ProviderRefused => "provider_refused",
        }
    }
}
