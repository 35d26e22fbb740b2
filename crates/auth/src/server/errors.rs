//! The error codes of these endpoints, for the reference.

/// An error code that a client can meet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ErrorCode {
    /// `error` of the answer, or of the address a browser is sent back to.
    pub code: &'static str,
    /// What it means, with its source.
    pub meaning: &'static str,
    /// What to do about it.
    pub advice: &'static str,
}

const fn code(code: &'static str, meaning: &'static str, advice: &'static str) -> ErrorCode {
    ErrorCode { code, meaning, advice }
}

/// Every code, sorted.
pub const ERRORS: [ErrorCode; 23] = [
    code(
        "access_denied",
        "The user said no, or nothing was left that could be granted (RFC 6749 §4.1.2.1).",
        "Tell the user; ask again when they want to.",
    ),
    code(
        "consent_required",
        "`prompt=none`, and the user did not allow this yet (OpenID Connect Core §3.1.2.6).",
        "Ask again without `prompt=none`.",
    ),
    code(
        "insufficient_scope",
        "The token lacks scopes (RFC 6750 §3.1); `scope` of the challenge names those that are needed.",
        "Authorize again and ask for these scopes too.",
    ),
    code(
        "interaction_required",
        "`prompt=none` of a public client whose address is on the user's computer, which another program could claim (OpenID Connect \
         Core §3.1.2.6, RFC 8252 §8.6).",
        "Ask again without `prompt=none`.",
    ),
    code(
        "invalid_client",
        "The client is not known, or did not prove itself as it registered to (RFC 6749 §5.2).",
        "Check `client_id`, the secret or key, and `token_endpoint_auth_method`.",
    ),
    code(
        "invalid_client_metadata",
        "A field of a registration or client document cannot be accepted (RFC 7591 §3.2.2).",
        "Correct what `error_description` names.",
    ),
    code(
        "invalid_dpop_proof",
        "The DPoP proof does not fit the request, the token or the key (RFC 9449 §5).",
        "Make a new proof for each request, with the key that the token is bound to.",
    ),
    code(
        "invalid_grant",
        "The code or refresh token is unknown, expired, used, revoked or of another client, the verifier does not fit, or the \
         identity provider does not confirm the user any more (RFC 6749 §5.2).",
        "Authorize again; never retry with the same code.",
    ),
    code(
        "invalid_redirect_uri",
        "A redirect URI of a registration cannot be accepted (RFC 7591 §3.2.2).",
        "Use https, a loopback address, or a scheme in reverse-domain form.",
    ),
    code(
        "invalid_request",
        "A parameter is missing, repeated, malformed or too long (RFC 6749 §4.1.2.1, §5.2).",
        "Correct what `error_description` names.",
    ),
    code(
        "invalid_scope",
        "None of the scopes can be granted, or a refresh asks for more than was granted (RFC 6749 §5.2).",
        "Ask for scopes of `scopes_supported`.",
    ),
    code(
        "invalid_software_statement",
        "Software statements are not accepted (RFC 7591 §3.2.2).",
        "Register without one.",
    ),
    code(
        "invalid_target",
        "`resource` is not served here, or not part of the grant (RFC 8707 §2).",
        "Use `resource` of the protected resource metadata, to the letter.",
    ),
    code(
        "invalid_token",
        "The access token is malformed, expired, revoked, or for another audience or issuer (RFC 6750 §3.1).",
        "Refresh it, then authorize again.",
    ),
    code(
        "login_required",
        "`prompt=none` and nobody is signed in, or only an older login or another user than was asked for (OpenID Connect Core \
         §3.1.2.6).",
        "Ask again without `prompt=none`, or without `id_token_hint` and `max_age`.",
    ),
    code(
        "not_found",
        "Dynamic registration is off.",
        "Register the client in `auth.clients`, or use a client metadata document.",
    ),
    code(
        "registration_not_supported",
        "`registration` in an authorization request (OpenID Connect Core §3.1.2.6).",
        "Register at the registration endpoint.",
    ),
    code(
        "request_not_supported",
        "`request` in an authorization request (OpenID Connect Core §3.1.2.6).",
        "Send the parameters themselves, or push them (RFC 9126).",
    ),
    code(
        "temporarily_unavailable",
        "Too many requests (status 429), or the token store or the identity provider does not answer (503).",
        "Wait as long as `Retry-After` says, then send the same again: nothing was used up.",
    ),
    code(
        "unauthorized_client",
        "The client may not use this grant (RFC 6749 §5.2).",
        "Name the grant in `grantTypes` of the client.",
    ),
    code(
        "unsupported_grant_type",
        "The grant type is not supported, or is off (RFC 6749 §5.2).",
        "Use one of `grant_types_supported`.",
    ),
    code(
        "unsupported_response_type",
        "Another `response_type` than `code` (RFC 6749 §4.1.2.1).",
        "Use the code flow with PKCE.",
    ),
    code(
        "use_dpop_nonce",
        "The DPoP proof needs the nonce of the `DPoP-Nonce` header (RFC 9449 §8).",
        "Make a proof with that nonce and send the request again.",
    ),
];
