//! Verification of tokens that others signed, with a key as JWK: proofs of possession and assertions of clients.

use aws_lc_rs::signature::{RsaPublicKeyComponents, UnparsedPublicKey};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use serde_json::Value;

use super::algorithm::Algorithm;

/// Header and claims of a compact JWS, not verified.
pub(crate) fn unverified(token: &str) -> Option<(Value, Value)> {
    let mut parts = token.split('.').map(|part| URL_SAFE_NO_PAD.decode(part).ok());
    let header = serde_json::from_slice(&parts.next()??).ok()?;
    let claims = serde_json::from_slice(&parts.next()??).ok()?;
    Some((header, claims))
}

/// True if the key signed the token, with the algorithm that the header names.
pub(crate) fn is_signed_by(token: &str, jwk: &Value) -> bool {
    verify(token, jwk).is_some()
}

fn verify(token: &str, jwk: &Value) -> Option<()> {
    let (signed, signature) = token.rsplit_once('.')?;
    let (header, _) = unverified(token)?;
    let algorithm: Algorithm = header["alg"].as_str()?.parse().ok()?;
    if jwk["alg"].as_str().is_some_and(|wanted| wanted != algorithm.name()) {
        return None;
    }
    let part = |name: &str| URL_SAFE_NO_PAD.decode(jwk[name].as_str()?).ok();
    let signature = URL_SAFE_NO_PAD.decode(signature).ok()?;
    let by = algorithm.verification()?;
    let verified = match (jwk["kty"].as_str()?, jwk["crv"].as_str(), algorithm) {
        ("EC", Some("P-256"), Algorithm::ES256) | ("EC", Some("P-384"), Algorithm::ES384) => {
            let point = [vec![4], part("x")?, part("y")?].concat();
            UnparsedPublicKey::new(by, point).verify(signed.as_bytes(), &signature)
        }
        ("OKP", Some("Ed25519"), Algorithm::EdDSA) => {
            UnparsedPublicKey::new(by, part("x")?).verify(signed.as_bytes(), &signature)
        }
        ("RSA", _, rsa) => {
            let key = RsaPublicKeyComponents { n: part("n")?, e: part("e")? };
            let by = match rsa {
                Algorithm::RS256 => &aws_lc_rs::signature::RSA_PKCS1_2048_8192_SHA256,
                Algorithm::RS384 => &aws_lc_rs::signature::RSA_PKCS1_2048_8192_SHA384,
                Algorithm::RS512 => &aws_lc_rs::signature::RSA_PKCS1_2048_8192_SHA512,
                Algorithm::PS256 => &aws_lc_rs::signature::RSA_PSS_2048_8192_SHA256,
                Algorithm::PS384 => &aws_lc_rs::signature::RSA_PSS_2048_8192_SHA384,
                Algorithm::PS512 => &aws_lc_rs::signature::RSA_PSS_2048_8192_SHA512,
                _ => return None,
            };
            key.verify(by, signed.as_bytes(), &signature)
        }
        _ => return None,
    };
    verified.ok()
}

/// The SHA-256 thumbprint of a public key (RFC 7638); `None` if it lacks a member.
#[cfg(feature = "oauth")]
pub(crate) fn thumbprint(jwk: &Value) -> Option<String> {
    let get = |name: &str| Some(&jwk[name]).filter(|value| value.is_string());
    // In the order of RFC 7638 §3.2, without spaces.
    let canonical = match get("kty")?.as_str()? {
        "EC" => format!(r#"{{"crv":{},"kty":"EC","x":{},"y":{}}}"#, get("crv")?, get("x")?, get("y")?),
        "OKP" => format!(r#"{{"crv":{},"kty":"OKP","x":{}}}"#, get("crv")?, get("x")?),
        "RSA" => format!(r#"{{"e":{},"kty":"RSA","n":{}}}"#, get("e")?, get("n")?),
        _ => return None,
    };
    Some(sha256(&canonical))
}

/// The SHA-256 digest of a text, Base64url-encoded.
#[cfg(feature = "oauth")]
pub(crate) fn sha256(text: &str) -> String {
    URL_SAFE_NO_PAD.encode(aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, text.as_bytes()))
}
