//! Password hashes: argon2id in PHC form.

use argon2::{Algorithm, Argon2, Params, Version};
use base64::{Engine as _, engine::general_purpose::STANDARD_NO_PAD};

use crate::{clock::Entropy, crypto::same};

/// Memory in KiB, passes, and lanes: the minimum of OWASP for argon2id.
const COST: (u32, u32, u32) = (19_456, 2, 1);

/// A parsed `$argon2id$v=19$m=…,t=…,p=…$salt$hash`.
#[derive(Clone)]
pub(crate) struct PasswordHash {
    params: Params,
    salt: Vec<u8>,
    hash: Vec<u8>,
}

impl std::fmt::Debug for PasswordHash {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("PasswordHash(..)")
    }
}

impl PasswordHash {
    /// Parses a hash. Costs below the minimum are refused.
    pub(crate) fn parse(text: &str) -> Result<Self, &'static str> {
        let wrong = "is not an argon2id hash; make one with `gatewright user hash`";
        let mut parts = text.split('$');
        let head = (parts.next(), parts.next(), parts.next());
        if head != (Some(""), Some("argon2id"), Some("v=19")) {
            return Err(wrong);
        }
        let (mut memory, mut passes, mut lanes) = (None, None, None);
        for pair in parts.next().ok_or(wrong)?.split(',') {
            let (name, value) = pair.split_once('=').ok_or(wrong)?;
            let value = value.parse::<u32>().map_err(|_| wrong)?;
            match name {
                "m" => memory = Some(value),
                "t" => passes = Some(value),
                "p" => lanes = Some(value),
                _ => return Err(wrong),
            }
        }
        let (memory, passes, lanes) = (memory.ok_or(wrong)?, passes.ok_or(wrong)?, lanes.ok_or(wrong)?);
        if memory < COST.0 || passes < COST.1 {
            return Err("is weaker than 19 MiB and 2 passes; make a new one with `gatewright user hash`");
        }
        if memory > 1 << 20 || passes > 32 || lanes > 16 {
            return Err("asks for more memory or time than a login may take");
        }
        let salt = parts.next().and_then(|text| STANDARD_NO_PAD.decode(text).ok()).ok_or(wrong)?;
        let hash = parts.next().and_then(|text| STANDARD_NO_PAD.decode(text).ok()).ok_or(wrong)?;
        if parts.next().is_some() || salt.len() < 8 || hash.len() < 16 {
            return Err(wrong);
        }
        let params = Params::new(memory, passes, lanes, Some(hash.len())).map_err(|_| wrong)?;
        Ok(Self { params, salt, hash })
    }

    /// Returns memory, passes, lanes and length: the parameters that determine the time of a check.
    pub(crate) fn cost(&self) -> (u32, u32, u32, usize) {
        (self.params.m_cost(), self.params.t_cost(), self.params.p_cost(), self.hash.len())
    }

    /// Returns a hash of the same cost for which no password is known.
    fn decoy(&self) -> Self {
        Self {
            params: self.params.clone(),
            salt: b"gatewright-decoy".to_vec(),
            hash: vec![0; self.hash.len()],
        }
    }

    /// Returns whether `password` matches. Takes tens of milliseconds: call it off the async threads.
    pub(crate) fn verify(&self, password: &str) -> bool {
        let mut out = vec![0; self.hash.len()];
        let argon = Argon2::new(Algorithm::Argon2id, Version::V0x13, self.params.clone());
        argon.hash_password_into(password.as_bytes(), &self.salt, &mut out).is_ok() && same(out, &self.hash)
    }
}

/// A hash for which no password is known, with the cost of new hashes.
const DECOY: &str =
    "$argon2id$v=19$m=19456,t=2,p=1$Z2F0ZXdyaWdodC1kZWNveQ$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";

/// Hashes to verify passwords of unknown names with: as many as users have, each with the cost of one of theirs.
///
/// A name has always the same one. So an unknown name takes as long as some user's does, and the time of an answer tells no names,
/// even where users' hashes differ in cost.
pub(crate) struct Decoys(Vec<PasswordHash>);

impl Decoys {
    /// Decoys beside `hashes`. Their order is of no account, so that all instances choose alike.
    pub(crate) fn like<'a>(hashes: impl IntoIterator<Item = &'a PasswordHash>) -> Self {
        let mut all: Vec<PasswordHash> = hashes.into_iter().map(PasswordHash::decoy).collect();
        all.sort_by_key(PasswordHash::cost);
        if all.is_empty() {
            all.extend(PasswordHash::parse(DECOY));
        }
        Self(all)
    }

    /// Returns the decoy of a name with this keyed digest.
    pub(crate) fn pick(&self, digest: [u8; 32]) -> Option<&PasswordHash> {
        let number = digest.iter().take(8).fold(0u64, |number, byte| (number << 8) | u64::from(*byte));
        self.0.get(usize::try_from(number % self.0.len().max(1) as u64).unwrap_or(0))
    }
}

/// The argon2id hash of `password` in PHC form, for `local.users[].passwordHash`.
pub fn hash_password(entropy: &dyn Entropy, password: &str) -> String {
    let (memory, passes, lanes) = COST;
    let mut salt = [0; 16];
    entropy.fill(&mut salt);
    let mut hash = [0; 32];
    let params = Params::new(memory, passes, lanes, Some(32)).expect("the least cost is a valid cost");
    Argon2::new(Algorithm::Argon2id, Version::V0x13, params)
        .hash_password_into(password.as_bytes(), &salt, &mut hash)
        .expect("a password of any length has a hash");
    format!(
        "$argon2id$v=19$m={memory},t={passes},p={lanes}${}${}",
        STANDARD_NO_PAD.encode(salt),
        STANDARD_NO_PAD.encode(hash)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::SystemEntropy;

    #[test]
    fn b17_hashes_are_argon2id_of_at_least_19_mib_and_weaker_ones_are_refused() {
        let text = hash_password(&SystemEntropy, "correct horse");
        let hash = PasswordHash::parse(&text).unwrap();
        assert!(hash.verify("correct horse") && !hash.verify("correct hors"));
        assert!(PasswordHash::parse(&text.replace("m=19456", "m=4096")).is_err());
        assert!(PasswordHash::parse(&text.replace("t=2", "t=1")).is_err());
        assert!(PasswordHash::parse(&text.replace("argon2id", "argon2i")).is_err());
        assert!(PasswordHash::parse("plain").is_err());
    }

    #[test]
    fn b15_decoys_cost_what_the_hashes_of_users_cost() {
        let hash = |cost: &str| PasswordHash::parse(&DECOY.replace("m=19456,t=2,p=1", cost)).unwrap();
        let costs = |decoys: &Decoys| -> std::collections::BTreeSet<_> {
            (0..100u32).map(|n| decoys.pick(crate::crypto::sha256(n.to_be_bytes())).unwrap().cost()).collect()
        };
        let (dear, cheap) = (hash("m=65536,t=3,p=4"), hash("m=19456,t=2,p=1"));
        assert_eq!(costs(&Decoys::like([&dear])), [dear.cost()].into(), "not the cost of new hashes");
        assert_eq!(costs(&Decoys::like([&dear, &dear, &cheap])), [dear.cost(), cheap.cost()].into());
        assert_eq!(costs(&Decoys::like([])), [cheap.cost()].into());
        let (one, other) = (Decoys::like([&dear, &cheap]), Decoys::like([&cheap, &dear]));
        for name in ["ann", "bob", "eve"] {
            let digest = crate::crypto::sha256(name);
            assert_eq!(one.pick(digest).unwrap().cost(), other.pick(digest).unwrap().cost(), "{name}");
        }
    }
}
