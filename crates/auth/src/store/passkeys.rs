//! Passkeys of users, kept as two kinds of records: `passkeys:…` (all of one user) and `passkey:…` (whose a credential id is).
//!
//! Every change is one compare-and-swap of the user's record, so that two instances never lose each other's change.

use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use super::{Key, Records, StoreError};

/// Records of passkeys live as long as keys do; each use begins it anew.
const FOREVER: Duration = Duration::from_secs(10 * 365 * 86_400);
/// Other changes of the same user's record that one change gives way to.
const TRIES: usize = 16;

/// A registered passkey. Nothing in it is secret: the private key never leaves the authenticator.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Passkey {
    /// The credential id, base64url.
    pub id: String,
    /// What the user calls it.
    pub name: String,
    /// The public key and what was agreed at the registration, as `webauthn_rp` writes it.
    pub key: Vec<u8>,
    /// What changes with use: signature counter, backup state, attachment.
    pub state: [u8; 7],
    /// Whether it was backed up (synced to other devices) when it was last seen.
    pub backed_up: bool,
    /// How the authenticator can be reached, a bit set.
    pub transports: u8,
    /// Milliseconds since the epoch.
    pub created_ms: u64,
    /// Last login with it, in milliseconds since the epoch.
    pub used_ms: Option<u64>,
}

/// The passkeys of one user.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PasskeySet {
    /// The user handle that authenticators keep with them: 64 random bytes, base64url. It says nothing about the user.
    pub handle: String,
    /// In the order they were added.
    pub passkeys: Vec<Passkey>,
}

/// What became of a passkey that was to be added.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Added {
    /// It is kept.
    Added,
    /// The credential is registered already, by this user or another.
    Taken,
    /// The user has as many as allowed.
    Full,
    /// The user's passkeys belong to another handle: another registration was quicker.
    OtherHandle,
}

/// A login with a passkey, as it is noted.
#[derive(Debug, Clone, Copy)]
pub struct Use {
    /// The state that the login was checked against.
    pub before: [u8; 7],
    /// The state after it.
    pub after: [u8; 7],
    /// Whether the passkey is backed up.
    pub backed_up: bool,
    /// When, in milliseconds since the epoch.
    pub at_ms: u64,
}

/// Passkeys of users: every store of records keeps them.
#[async_trait]
pub trait PasskeyStore: Records {
    /// The passkeys of `sub`; `None` when there never was one.
    async fn passkeys(&self, sub: &str) -> Result<Option<PasskeySet>, StoreError> {
        Ok(read(self.get(&of_user(sub)).await?)?.map(|(set, _)| set))
    }

    /// Whose passkey `id` is.
    async fn passkey_owner(&self, id: &str) -> Result<Option<String>, StoreError> {
        let held = self.get(&of_credential(id)).await?;
        held.map(|sub| String::from_utf8(sub).map_err(|_| StoreError::Corrupt)).transpose()
    }

    /// Atomic: adds a passkey of `sub`, whose handle is `handle`, unless that makes more than `most` or the id is known.
    async fn add_passkey(
        &self,
        sub: &str,
        handle: &str,
        passkey: &Passkey,
        most: usize,
    ) -> Result<Added, StoreError> {
        let name = of_credential(&passkey.id);
        if !self.put_new(&name, sub.as_bytes(), FOREVER).await? {
            return Ok(Added::Taken);
        }
        let mut added = Added::Added;
        let outcome = change(self, sub, true, &mut |set| {
            if set.passkeys.is_empty() {
                set.handle = handle.to_owned();
            }
            added = match () {
                () if set.handle != handle => Added::OtherHandle,
                () if set.passkeys.len() >= most => Added::Full,
                () => Added::Added,
            };
            if added == Added::Added {
                set.passkeys.push(passkey.clone());
            }
            added == Added::Added
        })
        .await;
        if !matches!(outcome, Ok(true)) {
            self.remove(&name).await?;
        }
        outcome.map(|_| added)
    }

    /// Atomic: notes a login. `false` when the passkey is gone, or was used otherwise since its state was read: of two logins with
    /// one counter value at most one succeeds.
    async fn use_passkey(&self, sub: &str, id: &str, used: Use) -> Result<bool, StoreError> {
        let done = change(self, sub, false, &mut |set| {
            let held = set.passkeys.iter_mut().find(|held| held.id == id && held.state == used.before);
            let Some(held) = held else { return false };
            (held.state, held.backed_up, held.used_ms) = (used.after, used.backed_up, Some(used.at_ms));
            true
        })
        .await?;
        if done {
            self.put(&of_credential(id), sub.as_bytes(), FOREVER).await?;
        }
        Ok(done)
    }

    /// Atomic: gives a passkey another name. `false` when it is not there.
    async fn rename_passkey(&self, sub: &str, id: &str, name: &str) -> Result<bool, StoreError> {
        change(self, sub, false, &mut |set| {
            let held = set.passkeys.iter_mut().find(|held| held.id == id);
            held.map(|held| name.clone_into(&mut held.name)).is_some()
        })
        .await
    }

    /// Atomic: forgets a passkey of `sub`. `false` when it is not there.
    async fn remove_passkey(&self, sub: &str, id: &str) -> Result<bool, StoreError> {
        let done = change(self, sub, false, &mut |set| {
            let before = set.passkeys.len();
            set.passkeys.retain(|held| held.id != id);
            set.passkeys.len() < before
        })
        .await?;
        if done {
            self.remove(&of_credential(id)).await?;
        }
        Ok(done)
    }
}

impl<T: Records + ?Sized> PasskeyStore for T {}

fn of_user(sub: &str) -> Key {
    Key::named("passkeys", &[sub])
}

fn of_credential(id: &str) -> Key {
    Key::named("passkey", &[id])
}

fn read(held: Option<Vec<u8>>) -> Result<Option<(PasskeySet, Vec<u8>)>, StoreError> {
    let Some(bytes) = held else { return Ok(None) };
    let set = serde_json::from_slice(&bytes).map_err(|_| StoreError::Corrupt)?;
    Ok(Some((set, bytes)))
}

/// Swaps the user's record for a changed one until nobody comes between. `false` when `with` wants no change.
async fn change<S: Records + ?Sized>(
    store: &S,
    sub: &str,
    begin: bool,
    with: &mut (dyn FnMut(&mut PasskeySet) -> bool + Send),
) -> Result<bool, StoreError> {
    let key = of_user(sub);
    for _ in 0..TRIES {
        let held = read(store.get(&key).await?)?;
        let (mut set, before) = match held {
            Some((set, before)) => (set, Some(before)),
            None if begin => (PasskeySet::default(), None),
            None => return Ok(false),
        };
        if !with(&mut set) {
            return Ok(false);
        }
        let after = serde_json::to_vec(&set).map_err(|_| StoreError::Corrupt)?;
        let done = match before {
            Some(before) => store.replace(&key, &before, &after, FOREVER).await?,
            None => store.put_new(&key, &after, FOREVER).await?,
        };
        if done {
            return Ok(true);
        }
    }
    Err(StoreError::Unavailable("the passkeys of a user are being changed all the time".into()))
}
