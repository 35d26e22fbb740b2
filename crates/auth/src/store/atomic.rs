//! The atomic steps over any transaction that reads and writes records.
//!
//! The memory and SQLite stores run these under their lock; the Redis store has the same steps as Lua scripts.
//!
//! A code is `L<family ms>,<refresh ms>,<records that end the grant>;<grant>` while live and `U<family>` once used. A family is the digest of its current
//! token (64 characters) followed by the grant. A refresh token is `L` while current and `R<rotated at ms>;<sealed successor>` after.

use std::time::Duration;

use super::{CODE_TOMBSTONE, CodeLife, Digest, FamilyId, Hit, Key, Redeemed, Rotated, Rotation, StoreError};

/// Placeholder for the digest in a family without a refresh token.
pub(super) const NO_TOKEN: &str = "----------------------------------------------------------------";

/// Records inside one transaction.
pub(super) trait Transaction {
    /// Returns the value and the time at which it expires.
    fn get(&mut self, key: &Key) -> Result<Option<(Vec<u8>, u64)>, StoreError>;
    fn set(&mut self, key: &Key, value: &[u8], expires_ms: u64) -> Result<(), StoreError>;
    fn remove(&mut self, key: &Key) -> Result<(), StoreError>;
    fn now_ms(&self) -> u64;
}

pub(super) fn ms(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX / 4).min(u64::MAX / 4)
}

pub(super) fn code_record(grant: &[u8], life: CodeLife, revocations: &[Key]) -> Vec<u8> {
    let names: Vec<&str> = revocations.iter().map(Key::as_str).collect();
    let (family, refresh) = (ms(life.family), life.refresh.map_or(0, ms));
    let mut value = format!("L{family},{refresh},{};", names.join(" ")).into_bytes();
    value.extend_from_slice(grant);
    value
}

pub(super) fn family_record(current: &str, grant: &[u8]) -> Vec<u8> {
    let mut value = current.as_bytes().to_vec();
    value.extend_from_slice(grant);
    value
}

/// Splits a family into the digest of its current token and the grant.
pub(super) fn read_family(mut value: Vec<u8>) -> Result<(String, Vec<u8>), StoreError> {
    if value.len() < NO_TOKEN.len() {
        return Err(StoreError::Corrupt);
    }
    let grant = value.split_off(NO_TOKEN.len());
    Ok((String::from_utf8(value).map_err(|_| StoreError::Corrupt)?, grant))
}

fn read_code(value: &[u8]) -> Option<(u64, u64, &[u8])> {
    let at = value.iter().position(|b| *b == b';')?;
    let mut parts = std::str::from_utf8(&value[1..at]).ok()?.splitn(3, ',');
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?, &value[at + 1..]))
}

pub(super) fn redeem(
    t: &mut impl Transaction,
    code: &Digest,
    family: &FamilyId,
    refresh: &Digest,
) -> Result<Redeemed, StoreError> {
    let key = Key::code(code);
    let Some((value, _)) = t.get(&key)? else { return Ok(Redeemed::Unknown) };
    if value.first() == Some(&b'U') {
        t.remove(&Key::family(family))?;
        return Ok(Redeemed::Replayed);
    }
    let (family_ms, refresh_ms, grant) = read_code(&value).ok_or(StoreError::Corrupt)?;
    let now = t.now_ms();
    t.set(&key, format!("U{}", family.as_str()).as_bytes(), now + ms(CODE_TOMBSTONE))?;
    let current = if refresh_ms == 0 { NO_TOKEN } else { refresh.as_str() };
    t.set(&Key::family(family), &family_record(current, grant), now + family_ms)?;
    if refresh_ms != 0 {
        t.set(&Key::refresh(refresh), b"L", now + refresh_ms.min(family_ms))?;
    }
    Ok(Redeemed::Fresh(grant.to_vec()))
}

pub(super) fn rotate(t: &mut impl Transaction, rotation: &Rotation<'_>) -> Result<Rotated, StoreError> {
    let (old_key, family_key) = (Key::refresh(rotation.old), Key::family(rotation.family));
    let Some((old, _)) = t.get(&old_key)? else { return Ok(Rotated::Unknown) };
    let Some((family, until)) = t.get(&family_key)? else { return Ok(Rotated::Unknown) };
    let (current, grant) = read_family(family)?;
    if old == b"L" && current == rotation.old.as_str() {
        let mut tombstone = format!("R{};{};", rotation.now_ms, rotation.new.as_str()).into_bytes();
        tombstone.extend_from_slice(rotation.sealed);
        t.set(&old_key, &tombstone, until)?;
        t.set(&family_key, &family_record(rotation.new.as_str(), &grant), until)?;
        let expires = (t.now_ms() + ms(rotation.ttl)).min(until);
        t.set(&Key::refresh(rotation.new), b"L", expires)?;
        return Ok(Rotated::Fresh);
    }
    let Some((rotated_at, successor, sealed)) = read_tombstone(&old) else {
        return Err(StoreError::Corrupt);
    };
    let in_grace = rotation.now_ms.saturating_sub(rotated_at) <= ms(rotation.grace);
    if in_grace && current == successor {
        return Ok(Rotated::Retried(sealed.to_vec()));
    }
    t.remove(&family_key)?;
    Ok(Rotated::Replayed)
}

fn read_tombstone(value: &[u8]) -> Option<(u64, &str, &[u8])> {
    let mut parts = value.strip_prefix(b"R")?.splitn(3, |b| *b == b';');
    let at = std::str::from_utf8(parts.next()?).ok()?.parse().ok()?;
    Some((at, std::str::from_utf8(parts.next()?).ok()?, parts.next()?))
}

pub(super) fn put_new(
    t: &mut impl Transaction,
    key: &Key,
    value: &[u8],
    ttl: Duration,
) -> Result<bool, StoreError> {
    if t.get(key)?.is_some() {
        return Ok(false);
    }
    let expires = t.now_ms() + ms(ttl);
    t.set(key, value, expires)?;
    Ok(true)
}

pub(super) fn replace(
    t: &mut impl Transaction,
    key: &Key,
    expected: &[u8],
    value: &[u8],
    ttl: Duration,
) -> Result<bool, StoreError> {
    if t.get(key)?.is_none_or(|(stored, _)| stored != expected) {
        return Ok(false);
    }
    let expires = t.now_ms() + ms(ttl);
    t.set(key, value, expires)?;
    Ok(true)
}

pub(super) fn take(t: &mut impl Transaction, key: &Key) -> Result<Option<Vec<u8>>, StoreError> {
    let stored = t.get(key)?;
    t.remove(key)?;
    Ok(stored.map(|(value, _)| value))
}

pub(super) fn hit(t: &mut impl Transaction, key: &Key, window: Duration) -> Result<Hit, StoreError> {
    let now = t.now_ms();
    let (count, expires) = match t.get(key)? {
        Some((value, expires)) => {
            let text = std::str::from_utf8(&value).map_err(|_| StoreError::Corrupt)?;
            (text.parse::<u64>().map_err(|_| StoreError::Corrupt)? + 1, expires)
        }
        None => (1, now + ms(window)),
    };
    t.set(key, count.to_string().as_bytes(), expires)?;
    Ok(Hit { count, resets_in: Duration::from_millis(expires.saturating_sub(now)) })
}
