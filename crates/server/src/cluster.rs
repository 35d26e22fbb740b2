//! Several instances behind one name: which instance holds a session.
//!
//! A session lives in the process that opened it. Its id names that process, sealed with a key that the instances share, so
//! that any of them knows where a session is without asking. So does the state of a request whose call is held open for answers. Requests
//! reach the other instance through `relay`.

use std::fmt;

use aws_lc_rs::{
    aead::{AES_256_GCM, Aad, NONCE_LEN, Nonce, RandomizedNonceKey},
    digest,
    hkdf::{HKDF_SHA256, Prk, Salt},
};
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use bytes::Bytes;
use gatewright_core::{SealKey, off_thread};
use http::HeaderMap;
use schemars::JsonSchema;
use secrecy::{ExposeSecret as _, SecretString};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

/// Shortest key, in bytes.
const SHORTEST_KEY: usize = 32;
pub(crate) const SESSION_ID: &str = "mcp-session-id";

/// The `http.cluster` section: what instances behind one load balancer share.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ClusterConfig {
    /// The same secret on every instance, at least 32 characters. Sessions opened under another key are unknown.
    #[schemars(with = "String")]
    pub key: ClusterKey,
    /// Redis that carries requests between instances, as an address in the forms of `auth.tokenStorage.config.url`. Default: the
    /// Redis of `auth.tokenStorage`; one of the two is needed.
    #[serde(default, skip_serializing)]
    #[schemars(with = "Option<String>")]
    pub redis: Option<ClusterRedis>,
    /// Removed: instances reach each other through Redis. Any value is an error.
    #[serde(default, skip_serializing)]
    pub advertise: Option<Value>,
}

/// The address of a Redis, which may hold a password.
#[derive(Clone, Deserialize)]
pub struct ClusterRedis(SecretString);

impl ClusterRedis {
    /// The address, with its password.
    pub fn expose(&self) -> &str {
        self.0.expose_secret()
    }
}

impl PartialEq for ClusterRedis {
    fn eq(&self, other: &Self) -> bool {
        self.expose() == other.expose()
    }
}

impl Eq for ClusterRedis {}

impl fmt::Debug for ClusterRedis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ClusterRedis(..)")
    }
}

/// The shared secret.
#[derive(Clone)]
pub struct ClusterKey {
    digest: [u8; 32],
    text: SecretString,
}

impl PartialEq for ClusterKey {
    fn eq(&self, other: &Self) -> bool {
        self.digest == other.digest
    }
}

impl Eq for ClusterKey {}

impl ClusterKey {
    /// The secret that all keys are derived from (HKDF, RFC 5869).
    pub(crate) fn secret(&self) -> Prk {
        Salt::new(HKDF_SHA256, b"gatewright http.cluster.key").extract(&self.digest)
    }

    /// The key for values that any of the instances opens.
    pub fn seal_key(&self) -> SealKey {
        SealKey::derived(&self.digest)
    }

    /// The secret as it is configured, to be judged.
    pub fn expose(&self) -> &str {
        self.text.expose_secret()
    }
}

impl fmt::Debug for ClusterKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ClusterKey(..)")
    }
}

impl Serialize for ClusterKey {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str("[redacted]")
    }
}

impl<'de> Deserialize<'de> for ClusterKey {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        if text.len() < SHORTEST_KEY {
            let problem = format!("the cluster's key must have at least {SHORTEST_KEY} characters");
            return Err(serde::de::Error::custom(problem));
        }
        let digest = digest::digest(&digest::SHA256, text.as_bytes());
        let mut key = Self { digest: [0; 32], text: text.into() };
        key.digest.copy_from_slice(digest.as_ref());
        Ok(key)
    }
}

/// A key for AES-256-GCM, derived for one purpose.
pub(crate) fn derived(secret: &Prk, purpose: &[&[u8]]) -> RandomizedNonceKey {
    let mut bytes = [0; 32];
    secret
        .expand(purpose, HKDF_SHA256)
        .and_then(|key| key.fill(&mut bytes))
        .expect("32 bytes are one block of HKDF-SHA256");
    RandomizedNonceKey::new(&AES_256_GCM, &bytes).expect("32 bytes are a key")
}

/// Encrypts and authenticates `text` in place, bound to `about`; the nonce comes last.
pub(crate) fn seal_in_place(key: &RandomizedNonceKey, about: &[u8], text: &mut Vec<u8>) {
    let nonce =
        key.seal_in_place_append_tag(Aad::from(about), text).expect("messages are shorter than 64 GiB");
    text.extend_from_slice(nonce.as_ref());
}

/// Undoes [`seal_in_place`].
pub(crate) fn open_in_place<'a>(
    key: &RandomizedNonceKey,
    about: &[u8],
    sealed: &'a mut [u8],
) -> Option<&'a [u8]> {
    let at = sealed.len().checked_sub(NONCE_LEN)?;
    let (sealed, nonce) = sealed.split_at_mut(at);
    let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
    key.open_in_place(nonce, Aad::from(about), sealed).ok().map(|opened| &*opened)
}

/// A process that serves: random, so that a restarted one is another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct BootId(pub(crate) [u8; 16]);

impl BootId {
    pub(crate) fn random() -> Result<Self, getrandom::Error> {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes)?;
        Ok(Self(bytes))
    }
}

impl fmt::Display for BootId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&URL_SAFE_NO_PAD.encode(self.0))
    }
}

/// This instance among the others: seals and reads the public form of session ids.
pub(crate) struct Cluster {
    pub(crate) own: BootId,
    key: RandomizedNonceKey,
}

impl Cluster {
    pub(crate) fn new(key: &ClusterKey, own: BootId) -> Self {
        Self { own, key: derived(&key.secret(), &[b"session id"]) }
    }

    /// The public form of an id of a session or state: itself, and the instance that holds it, sealed.
    pub(crate) fn seal(&self, id: &str) -> String {
        self.seal_of(self.own, id)
    }

    fn seal_of(&self, home: BootId, id: &str) -> String {
        let mut sealed = home.0.to_vec();
        seal_in_place(&self.key, id.as_bytes(), &mut sealed);
        format!("{id}.{}", URL_SAFE_NO_PAD.encode(sealed))
    }

    /// The instance that holds the session which a request names, when that is another one.
    pub(crate) fn other_instance(&self, headers: &HeaderMap) -> Option<BootId> {
        self.home_of(headers.get(SESSION_ID)?.to_str().ok()?)
    }

    /// The instance that holds the call which a message answers questions of, when that is another one.
    pub(crate) async fn instance_of_call(&self, message: &Bytes) -> Option<BootId> {
        // Few messages have one, and only those are read twice.
        if !std::str::from_utf8(message).is_ok_and(|text| text.contains("\"requestState\"")) {
            return None;
        }
        let read = message.clone();
        let state = off_thread(message.len(), move || {
            serde_json::from_slice::<Retry>(&read).ok().and_then(|retry| retry.params.request_state)
        });
        self.home_of(&state.await?)
    }

    /// The id `to`, with the instance that sealed the id `from`; none if that names no instance.
    pub(crate) fn seal_as(&self, from: &str, to: &str) -> Option<String> {
        Some(self.seal_of(self.sealed_home(from)?, to))
    }

    /// The instance that sealed this id, when that is another one.
    pub(crate) fn home_of(&self, id: &str) -> Option<BootId> {
        self.sealed_home(id).filter(|home| *home != self.own)
    }

    fn sealed_home(&self, id: &str) -> Option<BootId> {
        let (id, sealed) = id.split_once('.')?;
        let mut sealed = URL_SAFE_NO_PAD.decode(sealed).ok()?;
        let home = open_in_place(&self.key, id.as_bytes(), &mut sealed)?;
        Some(BootId(home.try_into().ok()?))
    }
}

/// A request that may answer questions.
#[derive(Deserialize)]
struct Retry {
    params: RetryParams,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RetryParams {
    request_state: Option<String>,
}

/// The id by which the process itself knows a session.
pub(crate) fn own_id(session: &str) -> &str {
    session.split_once('.').map_or(session, |(id, _)| id)
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    const KEY: &str = "0123456789abcdef0123456789abcdef";

    fn cluster(key: &str) -> Cluster {
        let key: ClusterKey = serde_json::from_value(key.into()).unwrap();
        Cluster::new(&key, BootId::random().unwrap())
    }

    fn other_instance(cluster: &Cluster, session: &str) -> Option<BootId> {
        let session = HeaderValue::from_str(session).unwrap();
        cluster.other_instance(&HeaderMap::from_iter([(SESSION_ID.parse().unwrap(), session)]))
    }

    #[test]
    fn a_sessions_home_is_known_to_all_who_have_the_key() {
        let (a, b) = (cluster(KEY), cluster(KEY));
        let id = a.seal("7f3c");
        assert_eq!(own_id(&id), "7f3c");
        assert_eq!(other_instance(&b, &id), Some(a.own));
        assert_eq!(other_instance(&a, &id), None);
        assert_ne!(a.seal("7f3c"), id);
    }

    #[tokio::test]
    async fn the_home_of_a_held_call_is_read_from_its_state_and_from_nothing_else() {
        let (a, b) = (cluster(KEY), cluster(KEY));
        let state = a.seal("AbC-d");
        let message = |params: Value| {
            Bytes::from(serde_json::json!({"method": "tools/call", "params": params}).to_string())
        };
        let retry = message(serde_json::json!({"name": "t", "requestState": state}));
        assert_eq!(b.instance_of_call(&retry).await, Some(a.own));
        assert_eq!(a.instance_of_call(&retry).await, None);
        // Whichever instance gives a state that rests on it out.
        let around = b.seal_as(&state, "around").unwrap();
        let retry = message(serde_json::json!({"name": "t", "requestState": around}));
        assert_eq!((b.instance_of_call(&retry).await, a.instance_of_call(&retry).await), (Some(a.own), None));
        assert_eq!(b.seal_as("AbC-d", "around"), None);
        for other in [
            serde_json::json!({"name": "t", "arguments": {"requestState": state}}),
            serde_json::json!({"name": "t", "requestState": 7}),
            serde_json::json!({"name": "t", "requestState": state.replace("AbC", "AbD")}),
            serde_json::json!({"name": "t", "requestState": "AbC-d"}),
            serde_json::json!([state]),
        ] {
            assert_eq!(b.instance_of_call(&message(other.clone())).await, None, "{other}");
        }
        assert_eq!(b.instance_of_call(&Bytes::from_static(b"\"requestState\"")).await, None);
    }

    #[test]
    fn nobody_else_can_say_where_a_session_is() {
        let (a, b) = (cluster(KEY), cluster(KEY));
        let stranger = cluster("another key of thirty-two letters or more");
        let id = a.seal("7f3c");
        let sealed = id.split_once('.').unwrap().1;
        for forged in [
            stranger.seal("7f3c"),
            format!("7f3d.{sealed}"),
            format!("7f3c.{}", &sealed[1..]),
            "7f3c.".to_owned(),
            "7f3c".to_owned(),
            "7f3c.!".to_owned(),
        ] {
            assert_eq!(other_instance(&b, &forged), None, "{forged}");
        }
    }

    #[test]
    fn a_short_key_is_refused_and_neither_key_nor_address_is_shown() {
        let config = |key: &str| {
            let value = serde_json::json!({"key": key, "redis": "redis://:hunter2@db"});
            serde_json::from_value::<ClusterConfig>(value)
        };
        assert!(config("short").unwrap_err().to_string().contains("32"));
        let config = config(KEY).unwrap();
        let shown = format!("{config:?}{}", serde_json::to_string(&config).unwrap());
        assert!(!shown.contains(KEY) && !shown.contains("hunter2"), "{shown}");
    }
}
