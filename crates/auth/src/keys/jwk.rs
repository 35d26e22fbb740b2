//! JSON Web Keys (RFC 7517) and the key pairs they stand for.

use aws_lc_rs::{
    rand::SystemRandom,
    rsa::{KeyPairComponents, PublicKeyComponents},
    signature::{
        self, ECDSA_P256_SHA256_FIXED, ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED, ED25519,
        EcdsaKeyPair, Ed25519KeyPair, RSA_PKCS1_SHA256, RsaKeyPair, RsaPublicKeyComponents,
        UnparsedPublicKey,
    },
};
use gatewright_core::read_json;
use serde::{Deserialize, Serialize};

use crate::crypto::{b64, sha256, unb64};

/// Bytes of a `kid`, and of an entry of `key_ops`.
const MAX_NAME_BYTES: usize = 512;
/// Entries of `key_ops`. RFC 7517 §4.3 has eight values.
const MAX_OPERATIONS: usize = 16;

/// A signature algorithm, by its JOSE name.
#[expect(missing_docs, reason = "each is its JOSE name (RFC 7518 §3.1, RFC 8037)")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
pub enum Algorithm {
    RS256,
    RS384,
    RS512,
    PS256,
    PS384,
    PS512,
    ES256,
    ES384,
    EdDSA,
}

/// A key that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// Not a JWK or a set of JWKs.
    #[error("is not a JSON Web Key or a set of them: {0}")]
    Malformed(String),
    /// There is no private part to sign with.
    #[error("has no private part; a signing key needs `d`")]
    PublicOnly,
    /// The type, curve or algorithm is not one of those supported, or they do not fit together.
    #[error(
        "has an unsupported type or algorithm ({0}); use RSA (RS256), EC P-256 (ES256) or OKP Ed25519 (EdDSA)"
    )]
    Unsupported(String),
    /// An RSA modulus shorter than 2048 bits.
    #[error("is too weak: RSA needs at least 2048 bits")]
    Weak,
    /// Its `use` or `key_ops` is for something else.
    #[error("is not for signatures, by its `use` or `key_ops`")]
    NotForSignatures,
    /// A part is longer than that of any supported key.
    #[error("has a part that is longer than those of supported keys, which are RSA keys of up to 8192 bits")]
    TooLong,
    /// The parts do not make a key.
    #[error("is damaged: its parts do not make a key")]
    Damaged,
}

/// A JSON Web Key. Its `Debug` shows no private part.
#[derive(Clone, Default, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the fields are those of RFC 7517 and RFC 7518 §6")]
pub struct Jwk {
    #[serde(default)]
    pub kty: String,
    #[serde(rename = "use", skip_serializing_if = "Option::is_none")]
    pub usage: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key_ops: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub alg: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kid: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub crv: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub n: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub e: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub x: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub y: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub d: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub q: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dp: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dq: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub qi: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub k: Option<String>,
}

impl std::fmt::Debug for Jwk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Jwk").field("kty", &self.kty).field("kid", &self.kid).finish_non_exhaustive()
    }
}

/// A set of keys (RFC 7517 §5).
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct JwkSet {
    /// The keys.
    pub keys: Vec<Jwk>,
}

impl JwkSet {
    /// Reads one JWK or a set.
    ///
    /// # Errors
    /// The text is neither, or the set is empty.
    pub fn parse(text: &str) -> Result<Self, KeyError> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Either {
            Set(JwkSet),
            One(Box<Jwk>),
        }
        let malformed = |why: &str| KeyError::Malformed(why.to_owned());
        let value: serde_json::Value = read_json(text).map_err(|_| malformed("not JSON"))?;
        let read: Either = serde_json::from_value(value).map_err(|_| malformed("wrong members"))?;
        let keys = match read {
            Either::Set(set) => set.keys,
            Either::One(key) => vec![*key],
        };
        if keys.is_empty() || keys.iter().any(|key| key.kty.is_empty()) {
            return Err(malformed("no `kty`"));
        }
        Ok(Self { keys })
    }
}

impl Jwk {
    /// The key without its private parts.
    pub fn public(&self) -> Self {
        Self {
            kty: self.kty.clone(),
            usage: Some("sig".to_owned()),
            alg: self.algorithm().ok().map(|alg| format!("{alg:?}")),
            kid: Some(self.kid.clone().unwrap_or_else(|| self.thumbprint())),
            crv: self.crv.clone(),
            n: self.n.clone(),
            e: self.e.clone(),
            x: self.x.clone(),
            y: self.y.clone(),
            ..Self::default()
        }
    }

    /// Returns whether any private or symmetric part is present.
    pub fn has_private_part(&self) -> bool {
        [&self.d, &self.p, &self.q, &self.dp, &self.dq, &self.qi, &self.k].iter().any(|part| part.is_some())
    }

    /// The thumbprint (RFC 7638).
    pub fn thumbprint(&self) -> String {
        let part = |part: &Option<String>| part.clone().unwrap_or_default();
        let text = match self.kty.as_str() {
            "RSA" => format!(r#"{{"e":"{}","kty":"RSA","n":"{}"}}"#, part(&self.e), part(&self.n)),
            "EC" => format!(
                r#"{{"crv":"{}","kty":"EC","x":"{}","y":"{}"}}"#,
                part(&self.crv),
                part(&self.x),
                part(&self.y)
            ),
            _ => format!(r#"{{"crv":"{}","kty":"{}","x":"{}"}}"#, part(&self.crv), self.kty, part(&self.x)),
        };
        b64(sha256(text))
    }

    /// Returns `true` if its `use` and `key_ops` (RFC 7517 §4.2, §4.3), where it has them, allow signatures to be verified with it.
    fn may_verify(&self) -> bool {
        self.usage.as_deref().is_none_or(|usage| usage == "sig")
            && self.key_ops.as_ref().is_none_or(|all| all.iter().any(|one| one == "verify" || one == "sign"))
    }

    /// Returns `true` if no public part is longer than that of any supported key, in base64url: RSA has up to 8192 bits, EC up to 384.
    fn is_bounded(&self) -> bool {
        let parts =
            [(&self.n, 1400), (&self.e, 16), (&self.x, 64), (&self.y, 64), (&self.kid, MAX_NAME_BYTES)];
        parts.into_iter().all(|(part, most)| part.as_ref().is_none_or(|part| part.len() <= most))
            && self.key_ops.as_ref().is_none_or(|all| {
                all.len() <= MAX_OPERATIONS && all.iter().all(|one| one.len() <= MAX_NAME_BYTES)
            })
    }

    /// Returns the algorithm of the key: its `alg`, or the default of its type.
    pub fn algorithm(&self) -> Result<Algorithm, KeyError> {
        use Algorithm::{ES256, ES384, EdDSA, PS256, PS384, PS512, RS256, RS384, RS512};
        let named = self.alg.as_deref();
        let unsupported = || {
            KeyError::Unsupported(format!(
                "{} {} {}",
                self.kty,
                self.crv.as_deref().unwrap_or("-"),
                named.unwrap_or("-")
            ))
        };
        match (self.kty.as_str(), self.crv.as_deref(), named) {
            ("RSA", None, None | Some("RS256")) => Ok(RS256),
            ("RSA", None, Some("RS384")) => Ok(RS384),
            ("RSA", None, Some("RS512")) => Ok(RS512),
            ("RSA", None, Some("PS256")) => Ok(PS256),
            ("RSA", None, Some("PS384")) => Ok(PS384),
            ("RSA", None, Some("PS512")) => Ok(PS512),
            ("EC", Some("P-256"), None | Some("ES256")) => Ok(ES256),
            ("EC", Some("P-384"), None | Some("ES384")) => Ok(ES384),
            ("OKP", Some("Ed25519"), None | Some("EdDSA" | "Ed25519")) => Ok(EdDSA),
            _ => Err(unsupported()),
        }
    }
}

fn bytes(part: &Option<String>) -> Result<Vec<u8>, KeyError> {
    part.as_deref().and_then(unb64).ok_or(KeyError::Damaged)
}

fn without_zeros(mut bytes: Vec<u8>) -> Vec<u8> {
    let zeros = bytes.iter().take_while(|b| **b == 0).count();
    bytes.drain(..zeros);
    bytes
}

/// A parsed private key, ready to sign.
pub struct SigningKey {
    pair: Pair,
    algorithm: Algorithm,
    kid: String,
    public: Jwk,
}

enum Pair {
    Rsa(Box<RsaKeyPair>),
    Ec(EcdsaKeyPair),
    Ed(Ed25519KeyPair),
}

impl std::fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SigningKey").field("kid", &self.kid).finish_non_exhaustive()
    }
}

impl SigningKey {
    /// Parses a private JWK.
    ///
    /// # Errors
    /// See [`KeyError`].
    pub fn from_jwk(jwk: &Jwk) -> Result<Self, KeyError> {
        let algorithm = jwk.algorithm()?;
        if jwk.d.is_none() {
            return Err(KeyError::PublicOnly);
        }
        let damaged = |_| KeyError::Damaged;
        let pair = match algorithm {
            Algorithm::RS256 => {
                let modulus = without_zeros(bytes(&jwk.n)?);
                if modulus.len() < 256 {
                    return Err(KeyError::Weak);
                }
                let components = KeyPairComponents {
                    public_key: PublicKeyComponents { n: modulus, e: without_zeros(bytes(&jwk.e)?) },
                    d: bytes(&jwk.d)?,
                    p: bytes(&jwk.p)?,
                    q: bytes(&jwk.q)?,
                    dP: bytes(&jwk.dp)?,
                    dQ: bytes(&jwk.dq)?,
                    qInv: bytes(&jwk.qi)?,
                };
                Pair::Rsa(Box::new(RsaKeyPair::from_components(&components).map_err(|_| KeyError::Damaged)?))
            }
            Algorithm::ES256 => {
                let public = uncompressed(jwk)?;
                let private = bytes(&jwk.d)?;
                let alg = &ECDSA_P256_SHA256_FIXED_SIGNING;
                Pair::Ec(
                    EcdsaKeyPair::from_private_key_and_public_key(alg, &private, &public).map_err(damaged)?,
                )
            }
            Algorithm::EdDSA => {
                let (seed, public) = (bytes(&jwk.d)?, bytes(&jwk.x)?);
                Pair::Ed(Ed25519KeyPair::from_seed_and_public_key(&seed, &public).map_err(damaged)?)
            }
            other => return Err(KeyError::Unsupported(format!("{other:?} for signing"))),
        };
        let public = jwk.public();
        let kid = public.kid.clone().unwrap_or_default();
        Ok(Self { pair, algorithm, kid, public })
    }

    /// The signature of `message` in JOSE form. RSA takes about a quarter of a millisecond: call it off the async threads.
    pub fn sign(&self, message: &[u8]) -> Vec<u8> {
        let random = SystemRandom::new();
        let done = "signing fails only when memory runs out";
        match &self.pair {
            Pair::Rsa(pair) => {
                let mut signature = vec![0; pair.public_modulus_len()];
                pair.sign(&RSA_PKCS1_SHA256, &random, message, &mut signature).expect(done);
                signature
            }
            Pair::Ec(pair) => pair.sign(&random, message).expect(done).as_ref().to_vec(),
            Pair::Ed(pair) => pair.sign(message).as_ref().to_vec(),
        }
    }

    /// Returns whether signing is too slow for an async thread.
    pub(crate) fn is_slow(&self) -> bool {
        matches!(self.pair, Pair::Rsa(_))
    }

    /// The algorithm of its signatures.
    pub fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// The key's name in token headers: its `kid`, or its thumbprint.
    pub fn kid(&self) -> &str {
        &self.kid
    }

    /// The public JWK.
    pub fn public(&self) -> &Jwk {
        &self.public
    }
}

fn uncompressed(jwk: &Jwk) -> Result<Vec<u8>, KeyError> {
    Ok([vec![4], bytes(&jwk.x)?, bytes(&jwk.y)?].concat())
}

/// A parsed public key, ready to verify.
#[derive(Clone)]
pub struct VerifyingKey {
    algorithm: Algorithm,
    /// The key says itself that it is for this algorithm alone (`alg`, RFC 7517 §4.4).
    is_for_one: bool,
    material: Material,
}

#[derive(Clone)]
enum Material {
    Rsa { n: Vec<u8>, e: Vec<u8> },
    Point(Vec<u8>),
}

impl std::fmt::Debug for VerifyingKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("VerifyingKey").field("algorithm", &self.algorithm).finish_non_exhaustive()
    }
}

impl VerifyingKey {
    /// Parses the public part of a JWK. Symmetric keys are refused.
    ///
    /// # Errors
    /// See [`KeyError`].
    pub fn from_jwk(jwk: &Jwk) -> Result<Self, KeyError> {
        let algorithm = jwk.algorithm()?;
        if !jwk.is_bounded() {
            return Err(KeyError::TooLong);
        }
        if !jwk.may_verify() {
            return Err(KeyError::NotForSignatures);
        }
        let material = match jwk.kty.as_str() {
            "RSA" => {
                let n = without_zeros(bytes(&jwk.n)?);
                if n.len() < 256 {
                    return Err(KeyError::Weak);
                }
                Material::Rsa { n, e: without_zeros(bytes(&jwk.e)?) }
            }
            "EC" => Material::Point(uncompressed(jwk)?),
            _ => Material::Point(bytes(&jwk.x)?),
        };
        Ok(Self { algorithm, is_for_one: jwk.alg.is_some(), material })
    }

    /// Returns whether the key verifies signatures of `algorithm`.
    pub fn serves(&self, algorithm: Algorithm) -> bool {
        self.algorithm == algorithm
    }

    /// Returns the key for another algorithm of its type, unless it names its own.
    pub(crate) fn for_algorithm(&self, algorithm: Algorithm) -> Option<Self> {
        use Algorithm::{PS256, PS384, PS512, RS256, RS384, RS512};
        let rsa = matches!(algorithm, RS256 | RS384 | RS512 | PS256 | PS384 | PS512);
        let is_open = !self.is_for_one && rsa && matches!(self.material, Material::Rsa { .. });
        (self.algorithm == algorithm || is_open).then(|| Self { algorithm, ..self.clone() })
    }

    /// Returns whether the key made `signature` for `message`.
    pub fn verify(&self, message: &[u8], signature: &[u8]) -> bool {
        match &self.material {
            Material::Rsa { n, e } => {
                let parameters = match self.algorithm {
                    Algorithm::RS384 => &signature::RSA_PKCS1_2048_8192_SHA384,
                    Algorithm::RS512 => &signature::RSA_PKCS1_2048_8192_SHA512,
                    Algorithm::PS256 => &signature::RSA_PSS_2048_8192_SHA256,
                    Algorithm::PS384 => &signature::RSA_PSS_2048_8192_SHA384,
                    Algorithm::PS512 => &signature::RSA_PSS_2048_8192_SHA512,
                    _ => &signature::RSA_PKCS1_2048_8192_SHA256,
                };
                RsaPublicKeyComponents { n, e }.verify(parameters, message, signature).is_ok()
            }
            Material::Point(point) => {
                let algorithm: &'static dyn signature::VerificationAlgorithm = match self.algorithm {
                    Algorithm::ES256 => &ECDSA_P256_SHA256_FIXED,
                    Algorithm::ES384 => &ECDSA_P384_SHA384_FIXED,
                    _ => &ED25519,
                };
                UnparsedPublicKey::new(algorithm, point).verify(message, signature).is_ok()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_verifies_only_what_its_use_key_ops_and_alg_allow() {
        let rsa = Jwk { alg: None, usage: None, ..crate::keys::rsa::generate().unwrap().public() };
        let reads = |change: &dyn Fn(&mut Jwk)| {
            let mut jwk = rsa.clone();
            change(&mut jwk);
            VerifyingKey::from_jwk(&jwk)
        };
        let ops = |all: &[&str]| Some(all.iter().map(|one| (*one).to_owned()).collect());
        for wrong in [
            reads(&|jwk| jwk.usage = Some("enc".to_owned())),
            reads(&|jwk| jwk.key_ops = ops(&["encrypt", "wrapKey"])),
            reads(&|jwk| jwk.key_ops = ops(&[])),
        ] {
            assert!(matches!(wrong, Err(KeyError::NotForSignatures)), "{wrong:?}");
        }
        let open = reads(&|jwk| jwk.key_ops = ops(&["verify"])).unwrap();
        assert!(open.for_algorithm(Algorithm::PS256).is_some_and(|key| key.serves(Algorithm::PS256)));
        let named = reads(&|jwk| jwk.alg = Some("RS256".to_owned())).unwrap();
        assert!(named.for_algorithm(Algorithm::RS256).is_some());
        assert!(named.for_algorithm(Algorithm::PS256).is_none());
    }
}
