//! The error codes of the endpoints: as the endpoints send them, and described for the reference.

use http::StatusCode;

/// An error code that a client can meet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Code {
    AccessDenied,
    ConsentRequired,
    InsufficientScope,
    InteractionRequired,
    InvalidClient,
    InvalidClientMetadata,
    InvalidDpopProof,
    InvalidGrant,
    InvalidRedirectUri,
    InvalidRequest,
    InvalidScope,
    InvalidSoftwareStatement,
    InvalidTarget,
    InvalidToken,
    LoginRequired,
    NotFound,
    RegistrationNotSupported,
    RequestNotSupported,
    TemporarilyUnavailable,
    UnauthorizedClient,
    UnsupportedGrantType,
    UnsupportedResponseType,
    UseDpopNonce,
}

impl Code {
    /// The code as `error` of an answer states it.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::AccessDenied => "access_denied",
            Self::ConsentRequired => "consent_required",
            Self::InsufficientScope => "insufficient_scope",
            Self::InteractionRequired => "interaction_required",
            Self::InvalidClient => "invalid_client",
            Self::InvalidClientMetadata => "invalid_client_metadata",
            Self::InvalidDpopProof => "invalid_dpop_proof",
            Self::InvalidGrant => "invalid_grant",
            Self::InvalidRedirectUri => "invalid_redirect_uri",
            Self::InvalidRequest => "invalid_request",
            Self::InvalidScope => "invalid_scope",
            Self::InvalidSoftwareStatement => "invalid_software_statement",
            Self::InvalidTarget => "invalid_target",
            Self::InvalidToken => "invalid_token",
            Self::LoginRequired => "login_required",
            Self::NotFound => "not_found",
            Self::RegistrationNotSupported => "registration_not_supported",
            Self::RequestNotSupported => "request_not_supported",
            Self::TemporarilyUnavailable => "temporarily_unavailable",
            Self::UnauthorizedClient => "unauthorized_client",
            Self::UnsupportedGrantType => "unsupported_grant_type",
            Self::UnsupportedResponseType => "unsupported_response_type",
            Self::UseDpopNonce => "use_dpop_nonce",
        }
    }

    /// The usual status of an answer with the code.
    pub(crate) const fn status(self) -> StatusCode {
        match self {
            Self::InvalidClient | Self::InvalidToken => StatusCode::UNAUTHORIZED,
            Self::InsufficientScope => StatusCode::FORBIDDEN,
            Self::NotFound => StatusCode::NOT_FOUND,
            Self::TemporarilyUnavailable => StatusCode::SERVICE_UNAVAILABLE,
            Self::AccessDenied
            | Self::ConsentRequired
            | Self::InteractionRequired
            | Self::InvalidClientMetadata
            | Self::InvalidDpopProof
            | Self::InvalidGrant
            | Self::InvalidRedirectUri
            | Self::InvalidRequest
            | Self::InvalidScope
            | Self::InvalidSoftwareStatement
            | Self::InvalidTarget
            | Self::LoginRequired
            | Self::RegistrationNotSupported
            | Self::RequestNotSupported
            | Self::UnauthorizedClient
            | Self::UnsupportedGrantType
            | Self::UnsupportedResponseType
            | Self::UseDpopNonce => StatusCode::BAD_REQUEST,
        }
    }
}

/// An error code, described.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ErrorCode {
    /// `error` of the answer, or of the address a browser is sent back to.
    pub code: &'static str,
    /// Meaning, with its source.
    pub meaning: &'static str,
    /// Advice to the client's author.
    pub advice: &'static str,
}

const fn code(code: Code, meaning: &'static str, advice: &'static str) -> ErrorCode {
    ErrorCode { code: code.as_str(), meaning, advice }
}

/// Every code, in alphabetical order.
pub const ERRORS: [ErrorCode; 23] = [
    code(
        Code::AccessDenied,
        "The user said no, or nothing was left that could be granted (RFC 6749 §4.1.2.1).",
        "Tell the user; ask again when they want to.",
    ),
    code(
        Code::ConsentRequired,
        "`prompt=none`, and the user did not allow this yet (OpenID Connect Core §3.1.2.6).",
        "Ask again without `prompt=none`.",
    ),
    code(
        Code::InsufficientScope,
        "The token lacks scopes (RFC 6750 §3.1); `scope` of the challenge names those that are needed.",
        "Authorize again and ask for these scopes too.",
    ),
    code(
        Code::InteractionRequired,
        "`prompt=none` of a public client whose address is on the user's computer, which another program could claim (OpenID Connect \
         Core §3.1.2.6, RFC 8252 §8.6).",
        "Ask again without `prompt=none`.",
    ),
    code(
        Code::InvalidClient,
        "The client is not known, or did not prove itself as it registered to (RFC 6749 §5.2).",
        "Check `client_id`, the secret or key, and `token_endpoint_auth_method`.",
    ),
    code(
        Code::InvalidClientMetadata,
        "A field of a registration or client document cannot be accepted (RFC 7591 §3.2.2).",
        "Correct what `error_description` names.",
    ),
    code(
        Code::InvalidDpopProof,
        "The DPoP proof does not fit the request, the token or the key (RFC 9449 §5).",
        "Make a new proof for each request, with the key that the token is bound to.",
    ),
    code(
        Code::InvalidGrant,
        "The code or refresh token is unknown, expired, used, revoked or of another client, the verifier does not fit, or the \
         identity provider does not confirm the user any more (RFC 6749 §5.2).",
        "Authorize again; never retry with the same code.",
    ),
    code(
        Code::InvalidRedirectUri,
        "A redirect URI of a registration cannot be accepted (RFC 7591 §3.2.2).",
        "Use https, a loopback address, or a scheme in reverse-domain form.",
    ),
    code(
        Code::InvalidRequest,
        "A parameter is missing, repeated, malformed or too long (RFC 6749 §4.1.2.1, §5.2).",
        "Correct what `error_description` names.",
    ),
    code(
        Code::InvalidScope,
        "None of the scopes can be granted, or a refresh asks for more than was granted (RFC 6749 §5.2).",
        "Ask for scopes of `scopes_supported`.",
    ),
    code(
        Code::InvalidSoftwareStatement,
        "Software statements are not accepted (RFC 7591 §3.2.2).",
        "Register without one.",
    ),
    code(
        Code::InvalidTarget,
        "`resource` is not served here, or not part of the grant (RFC 8707 §2).",
        "Use `resource` of the protected resource metadata, to the letter.",
    ),
    code(
        Code::InvalidToken,
        "The access token is malformed, expired, revoked, or for another audience or issuer (RFC 6750 §3.1).",
        "Refresh it, then authorize again.",
    ),
    code(
        Code::LoginRequired,
        "`prompt=none` and nobody is signed in, or only an older login or another user than was asked for (OpenID Connect Core \
         §3.1.2.6).",
        "Ask again without `prompt=none`, or without `id_token_hint` and `max_age`.",
    ),
    code(
        Code::NotFound,
        "Dynamic registration is off.",
        "Register the client in `auth.clients`, or use a client metadata document.",
    ),
    code(
        Code::RegistrationNotSupported,
        "`registration` in an authorization request (OpenID Connect Core §3.1.2.6).",
        "Register at the registration endpoint.",
    ),
    code(
        Code::RequestNotSupported,
        "`request` in an authorization request (OpenID Connect Core §3.1.2.6).",
        "Send the parameters themselves, or push them (RFC 9126).",
    ),
    code(
        Code::TemporarilyUnavailable,
        "Too many requests (status 429), or the token store or the identity provider does not answer (503).",
        "Wait as long as `Retry-After` says, then send the same again. If a code is refused then, sign in again: a store that hung may have used it up.",
    ),
    code(
        Code::UnauthorizedClient,
        "The client may not use this grant (RFC 6749 §5.2).",
        "Name the grant in `grantTypes` of the client.",
    ),
    code(
        Code::UnsupportedGrantType,
        "The grant type is not supported, or is off (RFC 6749 §5.2).",
        "Use one of `grant_types_supported`.",
    ),
    code(
        Code::UnsupportedResponseType,
        "Another `response_type` than `code` (RFC 6749 §4.1.2.1).",
        "Use the code flow with PKCE.",
    ),
    code(
        Code::UseDpopNonce,
        "The DPoP proof needs the nonce of the `DPoP-Nonce` header (RFC 9449 §8).",
        "Make a proof with that nonce and send the request again.",
    ),
];
