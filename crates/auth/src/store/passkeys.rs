//! Passkeys of users, kept as two kinds of records: `passkeys:…` (all of one user) and `passkey:…` (whose a credential id is).
//!
//! Every change is one compare-and-swap of the user's record, so that two instances never lose each other's change.

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use super::{Key, Records, StoreError};
use crate::tuning::FOREVER;

/// Retries after concurrent changes of the same record.
const TRIES: usize = 16;

/// A registered passkey. Nothing in it is secret: the private key never leaves the authenticator.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Passkey {
    /// The credential id, base64url.
    pub id: String,
    /// Name that the user gave it.
    pub name: String,
    /// The public key and what was agreed at the registration, as `webauthn_rp` writes it.
    pub key: Vec<u8>,
    /// State that changes with use: signature counter, backup state, attachment.
    pub state: [u8; 7],
    /// It was backed up (synced to other devices) when it was last used.
    pub backed_up: bool,
    /// Transports of the authenticator, a bit set.
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

/// Outcome of the addition of a passkey.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AddPasskey {
    /// It was added.
    Added,
    /// The credential is registered already, by this user or another.
    Taken,
    /// The user has as many as allowed.
    Full,
    /// The user's passkeys belong to another handle: another registration was quicker.
    OtherHandle,
}

/// A login with a passkey, to record.
#[derive(Debug, Clone, Copy)]
pub struct PasskeyUse {
    /// The state that the login was checked against.
    pub before: [u8; 7],
    /// The state after it.
    pub after: [u8; 7],
    /// The passkey is backed up.
    pub backed_up: bool,
    /// Time of the login, in milliseconds since the epoch.
    pub at_ms: u64,
}

/// Passkeys of users: every store of records keeps them.
#[async_trait]
pub trait PasskeyStore: Records {
    /// The passkeys of `sub`; `None` when there never was one.
    async fn passkeys(&self, sub: &str) -> Result<Option<PasskeySet>, StoreError> {
        Ok(read(self.get(&of_user(sub)).await?)?.map(|(set, _)| set))
    }

    /// Returns the subject of the user of the passkey `id`.
    async fn passkey_owner(&self, id: &str) -> Result<Option<String>, StoreError> {
        let found = self.get(&of_credential(id)).await?;
        found.map(|sub| String::from_utf8(sub).map_err(|_| StoreError::Corrupt)).transpose()
    }

    /// Atomic: adds a passkey of `sub`, whose handle is `handle`, unless that makes more than `most` or the id is known.
    async fn add_passkey(
        &self,
        sub: &str,
        handle: &str,
        passkey: &Passkey,
        most: usize,
    ) -> Result<AddPasskey, StoreError> {
        let name = of_credential(&passkey.id);
        if !self.put_new(&name, sub.as_bytes(), FOREVER).await? {
            return Ok(AddPasskey::Taken);
        }
        let mut added = AddPasskey::Added;
        let outcome = change(self, sub, true, &mut |set| {
            if set.passkeys.is_empty() {
                set.handle = handle.to_owned();
            }
            added = match () {
                () if set.handle != handle => AddPasskey::OtherHandle,
                () if set.passkeys.len() >= most => AddPasskey::Full,
                () => AddPasskey::Added,
            };
            if added == AddPasskey::Added {
                set.passkeys.push(passkey.clone());
            }
            added == AddPasskey::Added
        })
        .await;
        if !matches!(outcome, Ok(true)) {
            self.remove(&name).await?;
        }
        outcome.map(|_| added)
    }

    /// Atomic: records a login. `false` when the passkey is gone, or was used otherwise since its state was read: of two logins with
    /// one counter value at most one succeeds.
    async fn use_passkey(&self, sub: &str, id: &str, used: PasskeyUse) -> Result<bool, StoreError> {
        let done = change(self, sub, false, &mut |set| {
            let found = set.passkeys.iter_mut().find(|found| found.id == id && found.state == used.before);
            let Some(found) = found else { return false };
            (found.state, found.backed_up, found.used_ms) = (used.after, used.backed_up, Some(used.at_ms));
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
            let found = set.passkeys.iter_mut().find(|found| found.id == id);
            found.map(|found| name.clone_into(&mut found.name)).is_some()
        })
        .await
    }

    /// Atomic: forgets a passkey of `sub`. `false` when it is not there.
    async fn remove_passkey(&self, sub: &str, id: &str) -> Result<bool, StoreError> {
        let done = change(self, sub, false, &mut |set| {
            let before = set.passkeys.len();
            set.passkeys.retain(|found| found.id != id);
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

fn read(found: Option<Vec<u8>>) -> Result<Option<(PasskeySet, Vec<u8>)>, StoreError> {
    let Some(bytes) = found else { return Ok(None) };
    let set = serde_json::from_slice(&bytes).map_err(|_| StoreError::Corrupt)?;
    Ok(Some((set, bytes)))
}

/// Replaces the user's record by a changed one, and retries after concurrent changes. Returns `false` when `with` makes no change.
async fn change<S: Records + ?Sized>(
    store: &S,
    sub: &str,
    begin: bool,
    with: &mut (dyn FnMut(&mut PasskeySet) -> bool + Send),
) -> Result<bool, StoreError> {
    let key = of_user(sub);
    for _ in 0..TRIES {
        let found = read(store.get(&key).await?)?;
        let (mut set, before) = match found {
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
