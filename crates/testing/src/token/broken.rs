//! Tokens that a server must refuse, each for one reason.

use std::str::FromStr;

use serde_json::{Value, json};

use super::{algorithm::Algorithm, key::TestKey};

/// The one defect of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Defect {
    /// Signed by another key than the header names.
    Signature,
    /// The claims were changed after the signature (the subject is `admin`).
    Tampered,
    /// Expired an hour ago.
    Expired,
    /// Valid from an hour from now on (`nbf`).
    NotYetValid,
    /// Without `exp`.
    NoExpiry,
    /// For another audience.
    Audience,
    /// Without `aud`.
    NoAudience,
    /// Of another issuer.
    Issuer,
    /// Names a key that the issuer does not have.
    Kid,
    /// `alg: none`, and no signature.
    AlgNone,
    /// HS256 with the public key as secret, for servers that let the token choose the algorithm.
    AlgConfusion,
    /// Signed as it should be, by a key that the token itself brings along in its header (`jwk`).
    EmbeddedKey,
    /// An ID token, not an access token (`typ: JWT` and `nonce`).
    IdToken,
    /// Names a critical extension that nobody knows (`crit`).
    Critical,
    /// No JWT: two parts only.
    Malformed,
}

impl Defect {
    /// Every defect, with its name on the command line.
    pub const ALL: [(&'static str, Self); 15] = [
        ("signature", Self::Signature),
        ("tampered", Self::Tampered),
        ("expired", Self::Expired),
        ("not-yet-valid", Self::NotYetValid),
        ("no-expiry", Self::NoExpiry),
        ("audience", Self::Audience),
        ("no-audience", Self::NoAudience),
        ("issuer", Self::Issuer),
        ("kid", Self::Kid),
        ("alg-none", Self::AlgNone),
        ("alg-confusion", Self::AlgConfusion),
        ("embedded-key", Self::EmbeddedKey),
        ("id-token", Self::IdToken),
        ("critical", Self::Critical),
        ("malformed", Self::Malformed),
    ];

    /// Signs claims with this defect. `lifetime` is that of the claims, in seconds.
    pub(super) fn apply(self, key: &TestKey, mut claims: Value, lifetime: i64) -> String {
        let mut header = json!({"alg": key.algorithm().name(), "typ": "at+jwt", "kid": key.id});
        let now = claims["exp"].as_i64().unwrap_or_default() - lifetime;
        let remove = |claims: &mut Value, name: &str| {
            if let Some(claims) = claims.as_object_mut() {
                claims.shift_remove(name);
            }
        };
        match self {
            Self::Signature => return key.unpublished().sign_header(&header, &claims),
            Self::Tampered => {
                let signed = key.sign_header(&header, &claims);
                claims["sub"] = "admin".into();
                let changed = key.sign_header(&header, &claims);
                let signature = signed.rsplit_once('.').map_or("", |(_, signature)| signature);
                let payload = changed.rsplit_once('.').map_or("", |(payload, _)| payload);
                return format!("{payload}.{signature}");
            }
            Self::Expired => {
                claims["iat"] = (now - 7200).into();
                claims["exp"] = (now - 3600).into();
            }
            Self::NotYetValid => {
                claims["nbf"] = (now + 3600).into();
                claims["exp"] = (now + 7200).into();
            }
            Self::NoExpiry => remove(&mut claims, "exp"),
            Self::Audience => claims["aud"] = "https://another-audience.example".into(),
            Self::NoAudience => remove(&mut claims, "aud"),
            Self::Issuer => claims["iss"] = "https://another-issuer.example".into(),
            Self::Kid => header["kid"] = "no-such-key".into(),
            Self::AlgNone => {
                header["alg"] = "none".into();
                return TestKey::generate(Algorithm::None).sign_header(&header, &claims);
            }
            Self::AlgConfusion => {
                header["alg"] = "HS256".into();
                return key.confused().sign_header(&header, &claims);
            }
            Self::EmbeddedKey => {
                let own = key.unpublished();
                header["jwk"] = own.public_jwk().unwrap_or_default();
                return own.sign_header(&header, &claims);
            }
            Self::IdToken => {
                header["typ"] = "JWT".into();
                claims["nonce"] = "n".into();
                ["client_id", "scope", "jti"].iter().for_each(|name| remove(&mut claims, name));
            }
            Self::Critical => {
                header["crit"] = json!(["urn:example:unknown"]);
                header["urn:example:unknown"] = true.into();
            }
            Self::Malformed => {
                let signed = key.sign_header(&header, &claims);
                return signed.rsplit_once('.').map_or(signed.clone(), |(two, _)| two.to_owned());
            }
        }
        key.sign_header(&header, &claims)
    }
}

impl FromStr for Defect {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let names = Self::ALL.map(|(name, _)| name);
        Self::ALL
            .into_iter()
            .find(|(name, _)| *name == text)
            .map(|(_, defect)| defect)
            .ok_or_else(|| format!("`{text}`: {}", gatewright_findings::unknown("defect", text, names)))
    }
}
