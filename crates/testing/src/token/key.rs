//! Signing keys of every algorithm: one per process, or one in a file that several processes share.

use std::{
    io::Write as _,
    path::Path,
    sync::{Arc, OnceLock},
};

use aws_lc_rs::{
    encoding::{AsDer, Pkcs8V1Der, PublicKeyX509Der},
    hmac,
    rand::SystemRandom,
    rsa::{KeyPair, KeySize},
    signature::{EcdsaKeyPair, Ed25519KeyPair, KeyPair as _, RSA_PKCS1_SHA256},
};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use serde_json::{Value, json};

use super::{algorithm::Algorithm, jws};
use crate::base::text::random_text;

/// A key file cannot be used.
#[derive(Debug, Clone, thiserror::Error)]
#[error("the key file {file} cannot be used: {problem}")]
pub struct KeyFileError {
    /// The file.
    pub file: String,
    /// The problem, and how to fix it.
    pub problem: String,
}

/// A key, and the algorithm it signs with.
pub(crate) struct TestKey {
    pub(crate) id: String,
    algorithm: Algorithm,
    pair: Pair,
}

enum Pair {
    Rsa(Box<KeyPair>),
    Ec(EcdsaKeyPair),
    Ed(Ed25519KeyPair),
    Secret(Vec<u8>),
    None,
}

impl std::fmt::Debug for TestKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TestKey").field("id", &self.id).finish_non_exhaustive()
    }
}

const GENERATED: &str = "the crypto library generates such keys";

impl Pair {
    fn generate(algorithm: Algorithm) -> Self {
        if let Some(curve) = algorithm.ec() {
            return Self::Ec(EcdsaKeyPair::generate(curve).expect(GENERATED));
        }
        match algorithm {
            Algorithm::EdDSA => Self::Ed(Ed25519KeyPair::generate().expect(GENERATED)),
            Algorithm::HS256 | Algorithm::HS384 | Algorithm::HS512 => {
                // Three random texts: as long as the longest digest needs (RFC 7518 §3.2).
                Self::Secret([random_text(), random_text(), random_text()].concat().into_bytes())
            }
            Algorithm::None => Self::None,
            _ => Self::Rsa(Box::new(KeyPair::generate(KeySize::Rsa2048).expect(GENERATED))),
        }
    }

    /// Reads a key for an algorithm; of PKCS#8, or a shared secret as it is.
    fn read(algorithm: Algorithm, der: &[u8]) -> Option<Self> {
        if let Some(curve) = algorithm.ec() {
            return EcdsaKeyPair::from_pkcs8(curve, der).ok().map(Self::Ec);
        }
        match algorithm {
            Algorithm::EdDSA => Ed25519KeyPair::from_pkcs8(der).ok().map(Self::Ed),
            _ => KeyPair::from_pkcs8(der).ok().map(|pair| Self::Rsa(Box::new(pair))),
        }
    }

    /// The private key as PKCS#8; `None` for a shared secret.
    fn pkcs8(&self) -> Option<Vec<u8>> {
        const FORM: &str = "a private key has a PKCS#8 form";
        Some(match self {
            Self::Rsa(pair) => {
                let der: Pkcs8V1Der<'_> = pair.as_der().expect(FORM);
                der.as_ref().to_vec()
            }
            Self::Ec(pair) => pair.to_pkcs8v1().expect(FORM).as_ref().to_vec(),
            Self::Ed(pair) => pair.to_pkcs8v1().expect(FORM).as_ref().to_vec(),
            Self::Secret(_) | Self::None => return None,
        })
    }

    /// Bytes that identify the key: of its public part, or a digest of the secret.
    fn identity(&self) -> Vec<u8> {
        match self {
            Self::Rsa(pair) => {
                let der: PublicKeyX509Der<'_> =
                    pair.public_key().as_der().expect("a public key has a DER form");
                der.as_ref().to_vec()
            }
            Self::Ec(pair) => pair.public_key().as_ref().to_vec(),
            Self::Ed(pair) => pair.public_key().as_ref().to_vec(),
            Self::Secret(secret) => secret.clone(),
            Self::None => Vec::new(),
        }
    }
}

impl TestKey {
    /// Generates a key: RSA of 2048 bits, a key on the curve of the algorithm, or a random secret.
    pub(crate) fn generate(algorithm: Algorithm) -> Arc<Self> {
        Self::of(algorithm, Pair::generate(algorithm))
    }

    fn of(algorithm: Algorithm, pair: Pair) -> Arc<Self> {
        let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, &pair.identity());
        let id = format!("test-{}", URL_SAFE_NO_PAD.encode(&digest.as_ref()[..8]));
        Arc::new(Self { id, algorithm, pair })
    }

    /// The RSA key shared by all factories of this process.
    pub(crate) fn shared() -> Arc<Self> {
        static KEY: OnceLock<Arc<TestKey>> = OnceLock::new();
        KEY.get_or_init(|| Self::generate(Algorithm::RS256)).clone()
    }

    /// A key for the same algorithm that no key set contains.
    pub(crate) fn unpublished(&self) -> Arc<Self> {
        static KEY: OnceLock<Arc<TestKey>> = OnceLock::new();
        match self.algorithm {
            Algorithm::RS256 => KEY.get_or_init(|| Self::generate(Algorithm::RS256)).clone(),
            other => Self::generate(other),
        }
    }

    pub(crate) fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// A key that signs with the public part of this one as a shared secret: for tests of servers that mix up the two.
    pub(super) fn confused(&self) -> Arc<Self> {
        let pem = match &self.pair {
            Pair::Rsa(pair) => {
                let der: PublicKeyX509Der<'_> =
                    pair.public_key().as_der().expect("a public key has a DER form");
                pem::encode_config(
                    &pem::Pem::new("PUBLIC KEY", der.as_ref()),
                    pem::EncodeConfig::new().set_line_ending(pem::LineEnding::LF),
                )
                .into_bytes()
            }
            other => other.identity(),
        };
        Arc::new(Self { id: self.id.clone(), algorithm: Algorithm::HS256, pair: Pair::Secret(pem) })
    }

    /// Reads the key in a file: PKCS#8 PEM, or the secret of an HMAC algorithm as it is. A missing file is created, readable by its owner
    /// only. Without an algorithm, it is RS256, ES256, ES384 or EdDSA by the kind of the key.
    pub(crate) fn in_file(path: &Path, wanted: Option<Algorithm>) -> Result<Arc<Self>, KeyFileError> {
        let failure = |problem: String| KeyFileError { file: path.display().to_string(), problem };
        let algorithm = wanted.unwrap_or_default();
        if algorithm == Algorithm::None {
            return Err(failure("`none` signs nothing and has no key".into()));
        }
        if !path.exists() {
            let created = Self::generate(algorithm);
            let text = match (created.pair.pkcs8(), &created.pair) {
                (Some(der), _) => pem::encode(&pem::Pem::new("PRIVATE KEY", der)).into_bytes(),
                (None, Pair::Secret(secret)) => secret.clone(),
                (None, _) => Vec::new(),
            };
            let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
            // Written under a temporary name first, so that a concurrent process reads a complete file or none.
            let mut file =
                tempfile::NamedTempFile::new_in(dir).map_err(|error| failure(error.to_string()))?;
            file.write_all(&text).map_err(|error| failure(error.to_string()))?;
            match file.persist_noclobber(path) {
                Ok(_) => return Ok(created),
                Err(error) if error.error.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(failure(error.error.to_string())),
            }
        }
        const ADVICE: &str = "it must hold an RSA key of 2048 bits or more, or a key on P-256, P-384 or Ed25519, as PKCS#8 PEM \
                              (`openssl genpkey -algorithm RSA -out FILE`); name a file that is not there to get a new key";
        let text = std::fs::read(path).map_err(|error| failure(error.to_string()))?;
        if algorithm.hmac().is_some() {
            let secret = text.trim_ascii();
            if secret.is_empty() {
                return Err(failure("it is empty; it must hold the shared secret".into()));
            }
            return Ok(Self::of(algorithm, Pair::Secret(secret.to_vec())));
        }
        let pem = pem::parse(&text).map_err(|_| failure(format!("it holds no PEM; {ADVICE}")))?;
        if pem.tag() != "PRIVATE KEY" {
            return Err(failure(format!("it holds `{}`, not `PRIVATE KEY`; {ADVICE}", pem.tag())));
        }
        let kinds = [Algorithm::RS256, Algorithm::ES256, Algorithm::ES384, Algorithm::EdDSA];
        let found =
            kinds.into_iter().find_map(|kind| Pair::read(kind, pem.contents()).map(|pair| (kind, pair)));
        let (kind, pair) =
            found.ok_or_else(|| failure(format!("it holds no key this crate signs with; {ADVICE}")))?;
        let algorithm = wanted.unwrap_or(kind);
        let fits = algorithm == kind || (matches!(pair, Pair::Rsa(_)) && algorithm.rsa().is_some());
        if !fits {
            return Err(failure(format!("it holds a key for {kind}, not for {algorithm}")));
        }
        Ok(Self::of(algorithm, pair))
    }

    /// The public key; `None` for a shared secret, which is never published.
    pub(crate) fn public_jwk(&self) -> Option<Value> {
        let mut jwk = match &self.pair {
            Pair::Rsa(pair) => {
                let public = pair.public_key();
                json!({
                    "kty": "RSA",
                    "n": URL_SAFE_NO_PAD.encode(public.modulus().big_endian_without_leading_zero()),
                    "e": URL_SAFE_NO_PAD.encode(public.exponent().big_endian_without_leading_zero()),
                })
            }
            Pair::Ec(pair) => {
                // An uncompressed point: 4, x, y.
                let point = &pair.public_key().as_ref()[1..];
                let (x, y) = point.split_at(point.len() / 2);
                let curve = if self.algorithm == Algorithm::ES384 { "P-384" } else { "P-256" };
                json!({"kty": "EC", "crv": curve, "x": URL_SAFE_NO_PAD.encode(x), "y": URL_SAFE_NO_PAD.encode(y)})
            }
            Pair::Ed(pair) => {
                json!({"kty": "OKP", "crv": "Ed25519", "x": URL_SAFE_NO_PAD.encode(pair.public_key().as_ref())})
            }
            Pair::Secret(_) | Pair::None => return None,
        };
        jwk["alg"] = self.algorithm.name().into();
        jwk["use"] = "sig".into();
        jwk["kid"] = self.id.as_str().into();
        Some(jwk)
    }

    /// Signs a compact JWS. `kid` goes into the header and need not be this key's id.
    pub(crate) fn sign(&self, typ: &str, kid: &str, claims: &Value) -> String {
        self.sign_header(&json!({"alg": self.algorithm.name(), "typ": typ, "kid": kid}), claims)
    }

    /// Signs a compact JWS with this header, which need not name the algorithm of the key.
    pub(super) fn sign_header(&self, header: &Value, claims: &Value) -> String {
        const SIGNED: &str = "the key signs with its algorithm";
        let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let signed = format!("{}.{}", part(header), part(claims));
        let (bytes, random) = (signed.as_bytes(), SystemRandom::new());
        let signature = match &self.pair {
            Pair::Rsa(pair) => {
                let mut signature = vec![0; pair.public_modulus_len()];
                let encoding = self.algorithm.rsa().unwrap_or(&RSA_PKCS1_SHA256);
                pair.sign(encoding, &random, bytes, &mut signature)
                    .expect("the buffer has the length of the modulus");
                signature
            }
            Pair::Ec(pair) => pair.sign(&random, bytes).expect(SIGNED).as_ref().to_vec(),
            Pair::Ed(pair) => pair.sign(bytes).as_ref().to_vec(),
            Pair::Secret(secret) => {
                let algorithm = self.algorithm.hmac().unwrap_or(hmac::HMAC_SHA256);
                hmac::sign(&hmac::Key::new(algorithm, secret), bytes).as_ref().to_vec()
            }
            Pair::None => Vec::new(),
        };
        format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature))
    }

    /// The claims of a token, if this key signed it.
    pub(crate) fn verified(&self, token: &str) -> Option<Value> {
        let (header, claims) = jws::unverified(token)?;
        let is_ours = match (&self.pair, self.public_jwk()) {
            (Pair::Secret(secret), _) => {
                let (signed, signature) = token.rsplit_once('.')?;
                let signature = URL_SAFE_NO_PAD.decode(signature).ok()?;
                let key = hmac::Key::new(self.algorithm.hmac()?, secret);
                header["alg"] == self.algorithm.name()
                    && hmac::verify(&key, signed.as_bytes(), &signature).is_ok()
            }
            (_, Some(jwk)) => jws::is_signed_by(token, &jwk),
            (_, None) => false,
        };
        is_ours.then_some(claims)
    }
}

/// The public keys as a JWK set.
pub(crate) fn jwks(keys: &[&TestKey]) -> Value {
    json!({"keys": keys.iter().filter_map(|key| key.public_jwk()).collect::<Vec<_>>()})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_file_is_created_once_and_read_again() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("key.pem");
        let created = TestKey::in_file(&path, None).unwrap();
        assert_eq!(TestKey::in_file(&path, None).unwrap().id, created.id);
        use std::os::unix::fs::PermissionsExt as _;
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o077, 0);
    }

    #[test]
    fn an_invalid_key_file_is_reported_with_its_requirements() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("key.pem");
        for (text, part) in [
            ("hello", "holds no PEM"),
            ("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", "holds `CERTIFICATE`"),
            (
                "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n",
                "no key this crate signs with",
            ),
        ] {
            std::fs::write(&path, text).unwrap();
            let error = TestKey::in_file(&path, None).unwrap_err().to_string();
            assert!(error.contains(part) && error.contains("openssl genpkey"), "{error}");
        }
        let error = TestKey::in_file(&dir.path().join("no/such/dir/key.pem"), None).unwrap_err();
        assert!(error.problem.contains("No such file"), "{error}");
    }
}
