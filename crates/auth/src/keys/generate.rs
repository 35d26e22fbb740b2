//! Generation of signing keys.

use aws_lc_rs::{
    encoding::AsBigEndian as _,
    signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair as _},
};

use super::{
    jwk::{Algorithm, Jwk, KeyError},
    rsa,
};
use crate::crypto::b64;

impl Jwk {
    /// Generates a private key for `algorithm`: ES256, EdDSA, or RS256 with 2048 bits (some tenths of a second).
    ///
    /// # Errors
    /// The algorithm is any other.
    pub fn generate(algorithm: Algorithm) -> Result<Self, KeyError> {
        let failed = |_| KeyError::Damaged;
        let mut jwk = match algorithm {
            Algorithm::ES256 => {
                let pair = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).map_err(failed)?;
                let point = pair.public_key().as_ref();
                let private = pair.private_key().as_be_bytes().map_err(failed)?;
                Jwk {
                    kty: "EC".into(),
                    crv: Some("P-256".into()),
                    x: Some(b64(&point[1..33])),
                    y: Some(b64(&point[33..])),
                    d: Some(b64(private.as_ref())),
                    ..Jwk::default()
                }
            }
            Algorithm::EdDSA => {
                let pair = Ed25519KeyPair::generate().map_err(failed)?;
                let seed = pair.seed().and_then(|seed| seed.as_be_bytes()).map_err(failed)?;
                Jwk {
                    kty: "OKP".into(),
                    crv: Some("Ed25519".into()),
                    x: Some(b64(pair.public_key().as_ref())),
                    d: Some(b64(seed.as_ref())),
                    ..Jwk::default()
                }
            }
            Algorithm::RS256 => rsa::generate()?,
            other => return Err(KeyError::Unsupported(format!("{other:?} for generated keys"))),
        };
        jwk.alg = Some(format!("{algorithm:?}"));
        jwk.kid = Some(jwk.thumbprint());
        Ok(jwk)
    }
}
