//! Names of stored records, and the digests of secrets in them.

use crate::crypto::{b64, hex, sha256, sha256_hex, unb64};

/// The SHA-256 of a secret. Stores get nothing else of it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Digest(String);

impl Digest {
    /// The digest of `secret`.
    pub fn of(secret: &str) -> Self {
        Self(sha256_hex(secret))
    }

    /// 64 hexadecimal digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A token family: all tokens of one authorization.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct FamilyId(String);

impl FamilyId {
    /// A new family, named by 16 random bytes.
    pub fn mint(entropy: &dyn crate::Entropy) -> Self {
        let mut bytes = [0; 16];
        entropy.fill(&mut bytes);
        Self(b64(bytes))
    }

    /// Reads the 22 base64url characters of a family's name.
    pub fn parse(text: &str) -> Option<Self> {
        (text.len() == 22 && unb64(text).is_some_and(|b| b.len() == 16)).then(|| Self(text.to_owned()))
    }

    /// Returns the family that a code or refresh token names: its part before the dot.
    pub fn of_token(token: &str) -> Option<Self> {
        let (family, secret) = token.split_once('.')?;
        (secret.len() == 43).then(|| Self::parse(family)).flatten()
    }

    /// 22 base64url characters.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The name of a record, without the prefix of the store.
///
/// Values that a caller chooses (ids, names, addresses) are hashed, so that no character in them has a meaning in a store.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Key(String);

impl Key {
    /// A record named by a secret: `pending`, `session`, `vault`, …
    pub fn secret(kind: &'static str, secret: &str) -> Self {
        Self(format!("{kind}:{}", sha256_hex(secret)))
    }

    /// A record named by a secret whose digest is known.
    pub(crate) fn of_digest(kind: &'static str, digest: &str) -> Self {
        Self(format!("{kind}:{digest}"))
    }

    /// A record named by public values.
    pub fn named(kind: &'static str, parts: &[&str]) -> Self {
        let mut all = Vec::new();
        for part in parts {
            all.extend_from_slice(&(part.len() as u64).to_be_bytes());
            all.extend_from_slice(part.as_bytes());
        }
        Self(format!("{kind}:{}", hex(&sha256(all)[..20])))
    }

    /// The one record of its kind.
    pub fn single(kind: &'static str) -> Self {
        Self(kind.to_owned())
    }

    pub(crate) fn code(digest: &Digest) -> Self {
        Self(format!("code:{}", digest.0))
    }

    pub(crate) fn refresh(digest: &Digest) -> Self {
        Self(format!("refresh:{}", digest.0))
    }

    /// The record of a family. A family lives as long as it exists.
    pub fn family(family: &FamilyId) -> Self {
        Self(format!("family:{}", family.0))
    }

    /// The name after the store's prefix.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}
