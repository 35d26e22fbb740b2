//! RSA keys, made once per process.

use std::sync::{Arc, OnceLock};

use aws_lc_rs::{
    encoding::AsDer,
    rand::SystemRandom,
    rsa::{KeyPair, KeySize},
    signature::{KeyPair as _, RSA_PKCS1_SHA256},
};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use serde_json::{Value, json};

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
        let pair =
            KeyPair::generate(KeySize::Rsa2048).expect("the crypto library makes RSA keys of 2048 bits");
        let der = pair.public_key().as_der().expect("a public key has a DER form");
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
