//! Cryptographic primitives: base64url, SHA-256, constant-time comparison and sealing.
//!
//! Signatures are in `keys`, password hashes in `password`.

use aws_lc_rs::{
    aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey},
    constant_time::verify_slices_are_equal,
    digest::{SHA256, digest},
    hkdf::{HKDF_SHA256, Salt},
};
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use data_encoding::HEXLOWER;

use crate::clock::Entropy;

/// Base64url without padding (RFC 4648 §5).
pub(crate) fn b64(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

/// Reads base64url without padding; `None` for anything else.
pub(crate) fn unb64(text: &str) -> Option<Vec<u8>> {
    URL_SAFE_NO_PAD.decode(text).ok()
}

pub(crate) fn sha256(bytes: impl AsRef<[u8]>) -> [u8; 32] {
    digest(&SHA256, bytes.as_ref()).as_ref().try_into().expect("SHA-256 is 32 bytes long")
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    HEXLOWER.encode(bytes)
}

pub(crate) fn sha256_hex(bytes: impl AsRef<[u8]>) -> String {
    hex(&sha256(bytes))
}

/// Compares in constant time.
pub(crate) fn same(a: impl AsRef<[u8]>, b: impl AsRef<[u8]>) -> bool {
    verify_slices_are_equal(&sha256(a), &sha256(b)).is_ok()
}

/// A fresh secret of `N` random bytes as base64url.
pub(crate) fn mint<const N: usize>(entropy: &dyn Entropy) -> String {
    let mut bytes = [0; N];
    entropy.fill(&mut bytes);
    b64(bytes)
}

/// Encrypts records: AES-256-GCM, one key per record name (HKDF-SHA-256), the name as associated data.
///
/// A value moved to another name, or opened with another root key, does not open.
pub struct Sealer {
    root: [u8; 32],
}

impl std::fmt::Debug for Sealer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Sealer(..)")
    }
}

impl Sealer {
    /// A sealer whose root key is derived from `secret`; every instance with the same secret opens the same records.
    pub fn from_secret(secret: &[u8]) -> Self {
        Self { root: derive(secret, b"gatewright sealer v1") }
    }

    /// Encrypts `plain` for the record called `name`.
    pub fn seal(&self, entropy: &dyn Entropy, name: &str, plain: &[u8]) -> Vec<u8> {
        let mut nonce = [0; NONCE_LEN];
        entropy.fill(&mut nonce);
        let mut sealed = plain.to_vec();
        self.key(name)
            .seal_in_place_append_tag(
                Nonce::assume_unique_for_key(nonce),
                Aad::from(name.as_bytes()),
                &mut sealed,
            )
            .expect("AES-GCM seals anything shorter than 64 GiB");
        let mut out = nonce.to_vec();
        out.append(&mut sealed);
        out
    }

    /// Decrypts a value that [`Sealer::seal`] encrypted for `name`; `None` when it is for another name or key, or was changed.
    pub fn open(&self, name: &str, sealed: &[u8]) -> Option<Vec<u8>> {
        let (nonce, rest) = sealed.split_at_checked(NONCE_LEN)?;
        let mut rest = rest.to_vec();
        let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
        let plain = self.key(name).open_in_place(nonce, Aad::from(name.as_bytes()), &mut rest).ok()?;
        Some(plain.to_vec())
    }

    /// A key for another purpose, derived from the root.
    pub(crate) fn root_for(&self, purpose: &str) -> [u8; 32] {
        derive(&self.root, format!("purpose {purpose}").as_bytes())
    }

    fn key(&self, name: &str) -> LessSafeKey {
        let bytes = derive(&self.root, name.as_bytes());
        LessSafeKey::new(UnboundKey::new(&AES_256_GCM, &bytes).expect("the key is 32 bytes long"))
    }
}

/// HKDF-SHA-256 of `secret` for the purpose `info`.
pub(crate) fn derive(secret: &[u8], info: &[u8]) -> [u8; 32] {
    let mut out = [0; 32];
    Salt::new(HKDF_SHA256, b"gatewright")
        .extract(secret)
        .expand(&[info], HKDF_SHA256)
        .and_then(|okm| okm.fill(&mut out))
        .expect("32 bytes are within what HKDF gives");
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::SystemEntropy;

    #[test]
    fn k04_a_sealed_value_opens_only_under_its_own_name_and_key() {
        let sealer = Sealer::from_secret(b"one");
        let sealed = sealer.seal(&SystemEntropy, "vault:a", b"token");
        assert_eq!(sealer.open("vault:a", &sealed).as_deref(), Some(&b"token"[..]));
        assert_eq!(sealer.open("vault:b", &sealed), None, "two records swapped");
        assert_eq!(Sealer::from_secret(b"two").open("vault:a", &sealed), None, "another key");
        let mut changed = sealed.clone();
        changed[15] ^= 1;
        assert_eq!(sealer.open("vault:a", &changed), None);
        assert!(!sealed.windows(5).any(|w| w == b"token"));
    }

    #[test]
    fn comparison_is_by_value() {
        assert!(same("a", "a") && !same("a", "b") && !same("a", "aa"));
        assert_eq!(sha256_hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    }
}
