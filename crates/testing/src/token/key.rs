//! RSA signing keys: one per process, or one in a file that several processes share.

use std::{
    io::Write as _,
    path::Path,
    sync::{Arc, OnceLock},
};

use aws_lc_rs::{
    encoding::{AsDer, Pkcs8V1Der, PublicKeyX509Der},
    rand::SystemRandom,
    rsa::{KeyPair, KeySize},
    signature::{KeyPair as _, RSA_PKCS1_SHA256},
};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use serde_json::{Value, json};

/// A key file cannot be used.
#[derive(Debug, Clone, thiserror::Error)]
#[error("the key file {file} cannot be used: {problem}")]
pub struct KeyFileError {
    /// The file.
    pub file: String,
    /// The problem, and how to fix it.
    pub problem: String,
}

/// An RSA key for RS256.
pub(crate) struct TestKey {
    pub(crate) id: String,
    pair: KeyPair,
}

impl std::fmt::Debug for TestKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TestKey").field("id", &self.id).finish_non_exhaustive()
    }
}

impl TestKey {
    /// Generates a key of 2048 bits.
    pub(crate) fn generate() -> Arc<Self> {
        Self::of(
            KeyPair::generate(KeySize::Rsa2048).expect("the crypto library generates RSA keys of 2048 bits"),
        )
    }

    fn of(pair: KeyPair) -> Arc<Self> {
        let der: PublicKeyX509Der<'_> = pair.public_key().as_der().expect("a public key has a DER form");
        let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, der.as_ref());
        let id = format!("test-{}", URL_SAFE_NO_PAD.encode(&digest.as_ref()[..8]));
        Arc::new(Self { id, pair })
    }

    /// The key shared by all factories of this process.
    pub(crate) fn shared() -> Arc<Self> {
        static KEY: OnceLock<Arc<TestKey>> = OnceLock::new();
        KEY.get_or_init(Self::generate).clone()
    }

    /// A key that no key set contains.
    pub(crate) fn unpublished() -> Arc<Self> {
        static KEY: OnceLock<Arc<TestKey>> = OnceLock::new();
        KEY.get_or_init(Self::generate).clone()
    }

    /// Reads the key in a PKCS#8 PEM file. A missing file is created, readable by its owner only.
    pub(crate) fn in_file(path: &Path) -> Result<Arc<Self>, KeyFileError> {
        let failure = |problem: String| KeyFileError { file: path.display().to_string(), problem };
        if !path.exists() {
            let created = Self::generate();
            let der: Pkcs8V1Der<'_> = created.pair.as_der().expect("a private key has a PKCS#8 form");
            let pem = pem::encode(&pem::Pem::new("PRIVATE KEY", der.as_ref()));
            let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
            // Written under a temporary name first, so that a concurrent process reads a complete file or none.
            let mut file =
                tempfile::NamedTempFile::new_in(dir).map_err(|error| failure(error.to_string()))?;
            file.write_all(pem.as_bytes()).map_err(|error| failure(error.to_string()))?;
            match file.persist_noclobber(path) {
                Ok(_) => return Ok(created),
                Err(error) if error.error.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(failure(error.error.to_string())),
            }
        }
        const ADVICE: &str = "it must hold an RSA key of 2048 bits or more as PKCS#8 PEM \
                              (`openssl genpkey -algorithm RSA -out FILE`); name a file that is not there to get a new key";
        let text = std::fs::read(path).map_err(|error| failure(error.to_string()))?;
        let pem = pem::parse(&text).map_err(|_| failure(format!("it holds no PEM; {ADVICE}")))?;
        if pem.tag() != "PRIVATE KEY" {
            return Err(failure(format!("it holds `{}`, not `PRIVATE KEY`; {ADVICE}", pem.tag())));
        }
        let pair = KeyPair::from_pkcs8(pem.contents())
            .map_err(|_| failure(format!("it holds no key this crate signs with; {ADVICE}")))?;
        Ok(Self::of(pair))
    }

    pub(crate) fn public_jwk(&self) -> Value {
        let public = self.pair.public_key();
        json!({
            "kty": "RSA", "alg": "RS256", "use": "sig", "kid": self.id,
            "n": URL_SAFE_NO_PAD.encode(public.modulus().big_endian_without_leading_zero()),
            "e": URL_SAFE_NO_PAD.encode(public.exponent().big_endian_without_leading_zero()),
        })
    }

    /// Signs a compact JWS. `kid` goes into the header and need not be this key's id.
    pub(crate) fn sign(&self, typ: &str, kid: &str, claims: &Value) -> String {
        let header = json!({"alg": "RS256", "typ": typ, "kid": kid});
        let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let signed = format!("{}.{}", part(&header), part(claims));
        let mut signature = vec![0; self.pair.public_modulus_len()];
        self.pair
            .sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), signed.as_bytes(), &mut signature)
            .expect("the buffer has the length of the modulus");
        format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature))
    }

    /// The claims of a token, if this key signed it.
    pub(crate) fn verified(&self, token: &str) -> Option<Value> {
        let (signed, signature) = token.rsplit_once('.')?;
        let signature = URL_SAFE_NO_PAD.decode(signature).ok()?;
        let public = self.pair.public_key().as_ref().to_vec();
        aws_lc_rs::signature::UnparsedPublicKey::new(
            &aws_lc_rs::signature::RSA_PKCS1_2048_8192_SHA256,
            public,
        )
        .verify(signed.as_bytes(), &signature)
        .ok()?;
        let (_, claims) = signed.split_once('.')?;
        serde_json::from_slice(&URL_SAFE_NO_PAD.decode(claims).ok()?).ok()
    }
}

/// The public keys as a JWK set.
pub(crate) fn jwks(keys: &[&TestKey]) -> Value {
    json!({"keys": keys.iter().map(|key| key.public_jwk()).collect::<Vec<_>>()})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_file_is_created_once_and_read_again() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("key.pem");
        let created = TestKey::in_file(&path).unwrap();
        assert_eq!(TestKey::in_file(&path).unwrap().id, created.id);
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
            let error = TestKey::in_file(&path).unwrap_err().to_string();
            assert!(error.contains(part) && error.contains("openssl genpkey"), "{error}");
        }
        let error = TestKey::in_file(&dir.path().join("no/such/dir/key.pem")).unwrap_err();
        assert!(error.problem.contains("No such file"), "{error}");
    }
}
