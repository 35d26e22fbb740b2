//! Faults of the authorization server.

use std::{str::FromStr, time::Duration};

/// The endpoint a fault affects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Endpoint {
    /// Both metadata documents.
    Metadata,
    /// The key set.
    Jwks,
    /// `/oauth/register`.
    Register,
    /// `/oauth/authorize`.
    Authorize,
    /// `/oauth/token`.
    Token,
    /// `/oauth/revoke`.
    Revoke,
    /// `/oauth/introspect`.
    Introspect,
    /// `/userinfo`.
    Userinfo,
    /// Every endpoint.
    All,
}

/// A fault, set with [`MockOAuthServer::inject_fault`](super::MockOAuthServer::inject_fault).
#[derive(Debug, Clone, PartialEq)]
pub enum Fault {
    /// Responds after this delay.
    Slow(Duration),
    /// Responds with this status and `server_error`.
    Status(u16),
    /// Responds with text that is not JSON.
    Garbage,
    /// Responds with this OAuth error, such as `temporarily_unavailable`; the authorization endpoint sends it to the redirect URI.
    Error(String),
    /// Metadata, authorization responses and tokens name this issuer.
    WrongIssuer(String),
    /// Tokens have expired when they are issued.
    ExpiredTokens,
    /// Tokens are signed with a key that is not in the key set.
    UnpublishedKey,
    /// Tokens have this `aud`, whatever was requested.
    WrongAudience(String),
    /// ID tokens have a different `nonce` than the request.
    WrongNonce,
}

impl FromStr for Endpoint {
    type Err = String;

    /// Parses `metadata`, `jwks`, `register`, `authorize`, `token`, `revoke`, `introspect`, `userinfo` or `all`.
    fn from_str(text: &str) -> Result<Self, String> {
        Ok(match text {
            "metadata" => Self::Metadata,
            "jwks" => Self::Jwks,
            "register" => Self::Register,
            "authorize" => Self::Authorize,
            "token" => Self::Token,
            "revoke" => Self::Revoke,
            "introspect" => Self::Introspect,
            "userinfo" => Self::Userinfo,
            "all" => Self::All,
            _ => {
                return Err(format!(
                    "there is no endpoint `{text}`; there are metadata, jwks, register, authorize, token, revoke, introspect, userinfo and all"
                ));
            }
        })
    }
}

impl FromStr for Fault {
    type Err = String;

    /// Parses `slow:MILLISECONDS`, `status:CODE`, `error:CODE`, `garbage`, `wrong-issuer:URL`, `expired-tokens`, `unpublished-key`, `wrong-nonce` or
    /// `wrong-audience:TEXT`.
    fn from_str(text: &str) -> Result<Self, String> {
        const KNOWN: &str = "there are slow:MILLISECONDS, status:CODE, error:CODE, garbage, wrong-issuer:URL, expired-tokens, unpublished-key, wrong-nonce and \
                             wrong-audience:TEXT";
        let (kind, value) = text.split_once(':').unwrap_or((text, ""));
        match (kind, value) {
            ("slow", ms) => {
                let ms =
                    ms.parse().map_err(|_| format!("`{text}`: slow:MILLISECONDS takes a whole number"))?;
                Ok(Self::Slow(Duration::from_millis(ms)))
            }
            ("status", code) => match code.parse() {
                Ok(code @ 100..=999) => Ok(Self::Status(code)),
                _ => Err(format!("`{text}`: status:CODE takes an HTTP status, such as 500")),
            },
            ("error", code) if !code.is_empty() => Ok(Self::Error(code.to_owned())),
            ("garbage", "") => Ok(Self::Garbage),
            ("expired-tokens", "") => Ok(Self::ExpiredTokens),
            ("unpublished-key", "") => Ok(Self::UnpublishedKey),
            ("wrong-nonce", "") => Ok(Self::WrongNonce),
            ("wrong-issuer", url) if !url.is_empty() => Ok(Self::WrongIssuer(url.to_owned())),
            ("wrong-audience", audience) if !audience.is_empty() => {
                Ok(Self::WrongAudience(audience.to_owned()))
            }
            _ => Err(format!("there is no fault `{text}`; {KNOWN}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_faults_and_lists_the_known_ones_in_errors() {
        let fault = |text: &str| text.parse::<Fault>();
        assert_eq!(fault("slow:250"), Ok(Fault::Slow(Duration::from_millis(250))));
        assert_eq!(fault("status:503"), Ok(Fault::Status(503)));
        assert_eq!(fault("garbage"), Ok(Fault::Garbage));
        assert_eq!(fault("error:invalid_grant"), Ok(Fault::Error("invalid_grant".into())));
        assert_eq!(fault("expired-tokens"), Ok(Fault::ExpiredTokens));
        assert_eq!(fault("unpublished-key"), Ok(Fault::UnpublishedKey));
        assert_eq!(fault("wrong-nonce"), Ok(Fault::WrongNonce));
        assert_eq!(
            fault("wrong-issuer:https://a.example"),
            Ok(Fault::WrongIssuer("https://a.example".into()))
        );
        assert_eq!(fault("wrong-audience:x"), Ok(Fault::WrongAudience("x".into())));
        for bad in ["slow", "slow:fast", "error:", "status:1000", "broken", "wrong-issuer:", "garbage:x"] {
            let error = fault(bad).unwrap_err();
            assert!(error.contains(bad) && error.len() > bad.len() + 10, "{error}");
        }
        for (name, endpoint) in [
            ("metadata", Endpoint::Metadata),
            ("jwks", Endpoint::Jwks),
            ("register", Endpoint::Register),
            ("authorize", Endpoint::Authorize),
            ("token", Endpoint::Token),
            ("revoke", Endpoint::Revoke),
            ("introspect", Endpoint::Introspect),
            ("userinfo", Endpoint::Userinfo),
            ("all", Endpoint::All),
        ] {
            assert_eq!(name.parse(), Ok(endpoint));
        }
        assert!("keys".parse::<Endpoint>().unwrap_err().contains("jwks"));
    }
}
