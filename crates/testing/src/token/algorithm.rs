//! Signature algorithms of JWTs (RFC 7518 §3.1, RFC 8037).

use std::{fmt, str::FromStr};

use aws_lc_rs::{
    hmac,
    signature::{self, EcdsaSigningAlgorithm, RsaSignatureEncoding, VerificationAlgorithm},
};

/// A signature algorithm, named as in the header of a JWT.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "each variant is named after its algorithm")]
pub enum Algorithm {
    #[default]
    RS256,
    RS384,
    RS512,
    PS256,
    PS384,
    PS512,
    ES256,
    ES384,
    EdDSA,
    HS256,
    HS384,
    HS512,
    /// No signature at all (`alg: none`), which no server may accept.
    None,
}

impl Algorithm {
    /// Every algorithm.
    pub const ALL: [Self; 13] = [
        Self::RS256,
        Self::RS384,
        Self::RS512,
        Self::PS256,
        Self::PS384,
        Self::PS512,
        Self::ES256,
        Self::ES384,
        Self::EdDSA,
        Self::HS256,
        Self::HS384,
        Self::HS512,
        Self::None,
    ];

    /// The name in the header of a JWT.
    pub const fn name(self) -> &'static str {
        match self {
            Self::RS256 => "RS256",
            Self::RS384 => "RS384",
            Self::RS512 => "RS512",
            Self::PS256 => "PS256",
            Self::PS384 => "PS384",
            Self::PS512 => "PS512",
            Self::ES256 => "ES256",
            Self::ES384 => "ES384",
            Self::EdDSA => "EdDSA",
            Self::HS256 => "HS256",
            Self::HS384 => "HS384",
            Self::HS512 => "HS512",
            Self::None => "none",
        }
    }

    pub(super) fn rsa(self) -> Option<&'static RsaSignatureEncoding> {
        Some(match self {
            Self::RS256 => &signature::RSA_PKCS1_SHA256,
            Self::RS384 => &signature::RSA_PKCS1_SHA384,
            Self::RS512 => &signature::RSA_PKCS1_SHA512,
            Self::PS256 => &signature::RSA_PSS_SHA256,
            Self::PS384 => &signature::RSA_PSS_SHA384,
            Self::PS512 => &signature::RSA_PSS_SHA512,
            _ => return None,
        })
    }

    pub(super) fn ec(self) -> Option<&'static EcdsaSigningAlgorithm> {
        match self {
            Self::ES256 => Some(&signature::ECDSA_P256_SHA256_FIXED_SIGNING),
            Self::ES384 => Some(&signature::ECDSA_P384_SHA384_FIXED_SIGNING),
            _ => None,
        }
    }

    pub(super) fn hmac(self) -> Option<hmac::Algorithm> {
        match self {
            Self::HS256 => Some(hmac::HMAC_SHA256),
            Self::HS384 => Some(hmac::HMAC_SHA384),
            Self::HS512 => Some(hmac::HMAC_SHA512),
            _ => None,
        }
    }

    /// The verification with a public key; `None` for shared secrets and `none`.
    pub(super) fn verification(self) -> Option<&'static dyn VerificationAlgorithm> {
        Some(match self {
            Self::RS256 => &signature::RSA_PKCS1_2048_8192_SHA256,
            Self::RS384 => &signature::RSA_PKCS1_2048_8192_SHA384,
            Self::RS512 => &signature::RSA_PKCS1_2048_8192_SHA512,
            Self::PS256 => &signature::RSA_PSS_2048_8192_SHA256,
            Self::PS384 => &signature::RSA_PSS_2048_8192_SHA384,
            Self::PS512 => &signature::RSA_PSS_2048_8192_SHA512,
            Self::ES256 => &signature::ECDSA_P256_SHA256_FIXED,
            Self::ES384 => &signature::ECDSA_P384_SHA384_FIXED,
            Self::EdDSA => &signature::ED25519,
            Self::HS256 | Self::HS384 | Self::HS512 | Self::None => return None,
        })
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Algorithm {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|one| one.name().eq_ignore_ascii_case(text)).ok_or_else(|| {
            let names = Self::ALL.map(Self::name);
            format!("`{text}`: {}", gatewright_findings::unknown("algorithm", text, names))
        })
    }
}
