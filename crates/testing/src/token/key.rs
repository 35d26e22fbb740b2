//! RSA keys: made once per process, or kept in a file that several processes sign with.

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

/// A file of a key cannot be used.
#[derive(Debug, Clone, thiserror::Error)]
#[error("the key file {file} cannot be used: {problem}")]
pub struct KeyFileError {
    /// Which file.
    pub file: String,
    /// What is wrong, and what to do.
    pub problem: String,
}

/// A key that signs RS256.
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
    /// A new key of 2048 bits.
    pub(crate) fn generate() -> Arc<Self> {
        Self::of(KeyPair::generate(KeySize::Rsa2048).expect("the crypto library makes RSA keys of 2048 bits"))
    }

    fn of(pair: KeyPair) -> Arc<Self> {
        let der: PublicKeyX509Der<'_> = pair.public_key().as_der().expect("a public key has a DER form");
        let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, der.as_ref());
        let id = format!("test-{}", URL_SAFE_NO_PAD.encode(&digest.as_ref()[..8]));
        Arc::new(Self { id, pair })
    }

    /// The key every factory of this process signs with.
    pub(crate) fn shared() -> Arc<Self> {
        static KEY: OnceLock<Arc<TestKey>> = OnceLock::new();
        KEY.get_or_init(Self::generate).clone()
    }

    /// A key nobody publishes.
    pub(crate) fn stranger() -> Arc<Self> {
        static KEY: OnceLock<Arc<TestKey>> = OnceLock::new();
        KEY.get_or_init(Self::generate).clone()
    }

    /// The key in a PKCS#8 PEM file. When there is no file, one is made that only its owner may read.
    pub(crate) fn in_file(path: &Path) -> Result<Arc<Self>, KeyFileError> {
        let wrong = |problem: String| KeyFileError { file: path.display().to_string(), problem };
        if !path.exists() {
            let made = Self::generate();
            let der: Pkcs8V1Der<'_> = made.pair.as_der().expect("a private key has a PKCS#8 form");
            let pem = pem::encode(&pem::Pem::new("PRIVATE KEY", der.as_ref()));
            let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
            // Written whole under another name first: whoever comes at the same time reads all of it or makes his own.
            let mut file = tempfile::NamedTempFile::new_in(dir).map_err(|error| wrong(error.to_string()))?;
            file.write_all(pem.as_bytes()).map_err(|error| wrong(error.to_string()))?;
            match file.persist_noclobber(path) {
                Ok(_) => return Ok(made),
                Err(error) if error.error.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(wrong(error.error.to_string())),
            }
        }
        const ADVICE: &str = "it must hold an RSA key of 2048 bits or more as PKCS#8 PEM \
                              (`openssl genpkey -algorithm RSA -out FILE`); name a file that is not there to get a new key";
        let text = std::fs::read(path).map_err(|error| wrong(error.to_string()))?;
        let pem = pem::parse(&text).map_err(|_| wrong(format!("it holds no PEM; {ADVICE}")))?;
        if pem.tag() != "PRIVATE KEY" {
            return Err(wrong(format!("it holds `{}`, not `PRIVATE KEY`; {ADVICE}", pem.tag())));
        }
        let pair = KeyPair::from_pkcs8(pem.contents())
            .map_err(|_| wrong(format!("it holds no key this crate signs with; {ADVICE}")))?;
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

    /// A compact JWS. `kid` is what the header says, which need not be this key's.
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
}

impl TestKey {
    /// The claims of a token this key signed.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_file_is_made_once_and_read_again() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("key.pem");
        let made = TestKey::in_file(&path).unwrap();
        assert_eq!(TestKey::in_file(&path).unwrap().id, made.id);
        use std::os::unix::fs::PermissionsExt as _;
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o077, 0);
    }

    #[test]
    fn a_bad_key_file_says_what_it_should_hold() {
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
