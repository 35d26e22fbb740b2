//! The secret that encrypts stored keys and tokens, and the handling of its loss.
//!
//! It comes from `encryptionKey`, else it is made once and kept in the store: encrypted with each configured signing key, or, where
//! there is none, as it is. The store remembers which of the three it was, so that a start without the configuration it was written
//! with can tell what is lost from what is only misplaced.

use secrecy::ExposeSecret as _;

use crate::{
    clock::Entropy,
    config::{AuthConfig, StorageKind},
    crypto::{Sealer, mint},
    store::{Key, Store, StoreError},
    tuning::FOREVER,
};

/// Record that names the secret with which the store's records were last encrypted.
const MARK: &str = "sealedby";
const BY_ENCRYPTION_KEY: &[u8] = b"encryptionKey";

/// The sealer of a configuration.
pub(crate) struct OpenedSealer {
    pub(crate) sealer: Sealer,
    /// Stored keys that it cannot decrypt are lost for good: the store's own secret was encrypted with a signing key that is no
    /// longer configured. Keys encrypted with an `encryptionKey` are not lost: that key can be restored.
    pub(crate) may_give_up: bool,
}

/// Opens the sealer of a configuration.
pub(crate) async fn open(
    config: &AuthConfig,
    store: &dyn Store,
    entropy: &dyn Entropy,
) -> Result<OpenedSealer, StoreError> {
    if let Some(secret) = &config.encryption_key {
        let sealer = Sealer::from_secret(secret.expose_secret().as_bytes());
        return Ok(OpenedSealer { sealer, may_give_up: false });
    }
    let mark = store.get(&Key::single(MARK)).await?;
    let may_give_up = mark.is_none_or(|mark| mark != BY_ENCRYPTION_KEY);
    Ok(OpenedSealer { sealer: open_kept(config, store, entropy).await?, may_give_up })
}

/// Records which secret the store's records are encrypted with from now on.
pub(crate) async fn record_secret(config: &AuthConfig, store: &dyn Store) -> Result<(), StoreError> {
    let by: &[u8] = match (&config.encryption_key, &config.local.sign_key) {
        (Some(_), _) => BY_ENCRYPTION_KEY,
        (None, Some(_)) => b"signKey",
        (None, None) => b"store",
    };
    store.put(&Key::single(MARK), by, FOREVER).await
}

/// Returns the sealer with the secret that is made once and kept in the store.
///
/// With a signing key the secret is itself encrypted with each configured key, so that a key can be exchanged by way of a set that holds the
/// new one and the old one.
async fn open_kept(
    config: &AuthConfig,
    store: &dyn Store,
    entropy: &dyn Entropy,
) -> Result<Sealer, StoreError> {
    let keys = config.local.sign_key.as_ref().and_then(|key| key.keys().ok()).unwrap_or_default();
    let locks: Vec<(Key, Sealer)> = keys
        .iter()
        .filter_map(|key| {
            let private = Sealer::from_secret(key.d.as_ref()?.as_bytes());
            Some((Key::named("sealkey", &[&key.thumbprint()]), private))
        })
        .collect();
    if locks.is_empty() {
        return open_unguarded(config, store, entropy).await;
    }
    let mut secret = None;
    for (key, lock) in &locks {
        if let Some(stored) = store.get(key).await? {
            secret = lock.open(key.as_str(), &stored);
            if secret.is_some() {
                break;
            }
        }
    }
    let mut secret = secret.unwrap_or_else(|| mint::<32>(entropy).into_bytes());
    for (key, lock) in &locks {
        let sealed = lock.seal(entropy, key.as_str(), &secret);
        // Another instance may have made the secret meanwhile: then its secret is ours.
        if !store.put_new(key, &sealed, FOREVER).await?
            && let Some(stored) = store.get(key).await?
            && let Some(theirs) = lock.open(key.as_str(), &stored)
        {
            secret = theirs;
        }
    }
    Ok(Sealer::from_secret(&secret))
}

async fn open_unguarded(
    config: &AuthConfig,
    store: &dyn Store,
    entropy: &dyn Entropy,
) -> Result<Sealer, StoreError> {
    if config.token_storage.kind != StorageKind::Memory {
        tracing::warn!(
            "no `encryptionKey` and no `signKey`: the secret that encrypts vaults and keys lies in the store beside them"
        );
    }
    let key = Key::single("sealkey");
    loop {
        if let Some(secret) = store.get(&key).await? {
            return Ok(Sealer::from_secret(&secret));
        }
        store.put_new(&key, mint::<32>(entropy).as_bytes(), FOREVER).await?;
    }
}
