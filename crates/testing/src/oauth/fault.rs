//! Faults on demand.

use std::{str::FromStr, time::Duration};

/// What is broken.
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
    /// `/userinfo`.
    Userinfo,
    /// Every endpoint.
    All,
}

/// How it is broken.
#[derive(Debug, Clone, PartialEq)]
pub enum Fault {
    /// Answers after this time.
    Slow(Duration),
    /// Answers with this status and `server_error`.
    Status(u16),
    /// Answers with text that is no JSON.
    Garbage,
    /// Metadata and the `iss` of answers and tokens name this issuer.
    WrongIssuer(String),
    /// Tokens are expired when they are issued.
    ExpiredTokens,
    /// Tokens are signed with a key that the key set does not show, as after a rotation nobody published.
    UnpublishedKey,
    /// Tokens have this `aud`, whatever was asked for.
    WrongAudience(String),
    /// ID tokens have another `nonce` than the one that was sent.
    WrongNonce,
}

impl FromStr for Endpoint {
    type Err = String;

    /// `metadata`, `jwks`, `register`, `authorize`, `token`, `userinfo` or `all`.
    fn from_str(text: &str) -> Result<Self, String> {
        Ok(match text {
            "metadata" => Self::Metadata,
            "jwks" => Self::Jwks,
            "register" => Self::Register,
            "authorize" => Self::Authorize,
            "token" => Self::Token,
            "userinfo" => Self::Userinfo,
            "all" => Self::All,
            _ => {
                return Err(format!(
                    "there is no endpoint `{text}`; there are metadata, jwks, register, authorize, token, userinfo and all"
                ));
            }
        })
    }
}

impl FromStr for Fault {
    type Err = String;

    /// `slow:MILLISECONDS`, `status:CODE`, `garbage`, `wrong-issuer:URL`, `expired-tokens`, `unpublished-key`, `wrong-nonce` or
    /// `wrong-audience:TEXT`.
    fn from_str(text: &str) -> Result<Self, String> {
        const KNOWN: &str = "there are slow:MILLISECONDS, status:CODE, garbage, wrong-issuer:URL, expired-tokens, unpublished-key, wrong-nonce and \
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
    fn faults_are_read_from_text_and_bad_ones_say_what_there_is() {
        let fault = |text: &str| text.parse::<Fault>();
        assert_eq!(fault("slow:250"), Ok(Fault::Slow(Duration::from_millis(250))));
        assert_eq!(fault("status:503"), Ok(Fault::Status(503)));
        assert_eq!(fault("garbage"), Ok(Fault::Garbage));
        assert_eq!(fault("expired-tokens"), Ok(Fault::ExpiredTokens));
        assert_eq!(fault("unpublished-key"), Ok(Fault::UnpublishedKey));
        assert_eq!(fault("wrong-nonce"), Ok(Fault::WrongNonce));
        assert_eq!(
            fault("wrong-issuer:https://a.example"),
            Ok(Fault::WrongIssuer("https://a.example".into()))
        );
        assert_eq!(fault("wrong-audience:x"), Ok(Fault::WrongAudience("x".into())));
        for bad in ["slow", "slow:fast", "status:1000", "broken", "wrong-issuer:", "garbage:x"] {
            let error = fault(bad).unwrap_err();
            assert!(error.contains(bad) && error.len() > bad.len() + 10, "{error}");
        }
        assert_eq!("jwks".parse(), Ok(Endpoint::Jwks));
        assert!("keys".parse::<Endpoint>().unwrap_err().contains("jwks"));
    }
}
