//! Values that go out to one caller and come back from it: ids of tasks, and the state of a request that asks for input.
//!
//! Both are encrypted and authenticated (AES-256-GCM) for subject, client and endpoint of the caller and for the object they belong to, so that
//! nobody else can use them, or read what the server wrote there. Records in shared stores are sealed the same way.

use aws_lc_rs::{
    aead::{AES_256_GCM, Aad, NONCE_LEN, Nonce, RandomizedNonceKey},
    digest, hmac,
};
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::Principal;

/// Longest sealed value that is looked at, in bytes.
const LONGEST: usize = 1 << 20;

/// The key that values are sealed with. Instances of one server share it; otherwise it is made when the process starts.
#[derive(Clone)]
pub struct SealKey([u8; 32]);

impl SealKey {
    /// The key that comes of a secret which instances share.
    pub fn derived(secret: &[u8]) -> Self {
        let mut context = digest::Context::new(&digest::SHA256);
        context.update(b"gatewright sealed values v1\0");
        context.update(secret);
        Self::of(context.finish().as_ref())
    }

    fn of(bytes: &[u8]) -> Self {
        let mut key = [0; 32];
        key.copy_from_slice(&bytes[..32]);
        Self(key)
    }

    /// A key of this process alone.
    ///
    /// # Panics
    /// The system has no random numbers.
    pub fn random() -> Self {
        let mut key = [0; 32];
        getrandom::fill(&mut key).expect("the system's random numbers");
        Self(key)
    }

    /// A digest of `object` that only holders of the key can compute. Digests for different purposes have nothing in common.
    pub fn digest(&self, purpose: &str, object: &[u8]) -> [u8; 32] {
        let mut context = hmac::Context::with_key(&hmac::Key::new(hmac::HMAC_SHA256, &self.0));
        context.update(&(purpose.len() as u64).to_be_bytes());
        context.update(purpose.as_bytes());
        context.update(object);
        let mut digest = [0; 32];
        digest.copy_from_slice(context.sign().as_ref());
        digest
    }
}

impl std::fmt::Debug for SealKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SealKey(..)")
    }
}

/// A task, as its sealed id names it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct OpenTask {
    /// The app.
    pub(crate) app: String,
    /// The tool that made it, in the colon form.
    pub(crate) tool: String,
    /// The app's own id of the task.
    pub(crate) id: String,
    /// Scopes of the tool when it was called.
    pub(crate) scopes: Vec<String>,
}

/// Seals and opens.
pub(crate) struct Sealer(RandomizedNonceKey);

impl std::fmt::Debug for Sealer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Sealer(..)")
    }
}

impl Sealer {
    pub(crate) fn new(key: &SealKey) -> Self {
        Self(RandomizedNonceKey::new(&AES_256_GCM, &key.0).expect("32 bytes are a key"))
    }

    pub(crate) fn task(&self, principal: &Principal, task: &OpenTask) -> String {
        self.seal(&about("task", "", principal), task)
    }

    /// The task of `principal` that `sealed` names; none for anything else.
    pub(crate) fn open_task(&self, principal: &Principal, sealed: &str) -> Option<OpenTask> {
        self.open(&about("task", "", principal), sealed)
    }

    /// Seals the state of a request for `object`, such as a tool's name.
    pub(crate) fn state(&self, principal: &Principal, object: &str, state: &str) -> String {
        self.seal(&about("state", object, principal), &state)
    }

    pub(crate) fn open_state(&self, principal: &Principal, object: &str, sealed: &str) -> Option<String> {
        self.open(&about("state", object, principal), sealed)
    }

    /// Seals the state of a call of `tool` that needs an approval. No state of an app or a script is one.
    pub(crate) fn approval(&self, principal: &Principal, tool: &str, state: &impl Serialize) -> String {
        self.seal(&about("approval", tool, principal), state)
    }

    pub(crate) fn open_approval<T: DeserializeOwned>(
        &self,
        principal: &Principal,
        tool: &str,
        sealed: &str,
    ) -> Option<T> {
        self.open(&about("approval", tool, principal), sealed)
    }

    /// Seals the id of a call for `object` that is held open.
    pub(crate) fn seal_open_call(&self, principal: &Principal, object: &str, id: &str) -> String {
        self.seal(&about("held", object, principal), &id)
    }

    pub(crate) fn unseal_open_call(
        &self,
        principal: &Principal,
        object: &str,
        sealed: &str,
    ) -> Option<String> {
        self.open(&about("held", object, principal), sealed)
    }

    fn seal(&self, about: &[u8], value: &impl Serialize) -> String {
        let mut text = serde_json::to_vec(value).expect("texts can be written as JSON");
        seal(&self.0, about, &mut text);
        URL_SAFE_NO_PAD.encode(text)
    }

    fn open<T: DeserializeOwned>(&self, about: &[u8], sealed: &str) -> Option<T> {
        if sealed.len() > LONGEST {
            return None;
        }
        let text = open(&self.0, about, URL_SAFE_NO_PAD.decode(sealed).ok()?)?;
        serde_json::from_slice(&text).ok()
    }
}

/// Seals records of one object for a store that others can read, with a key of their own.
pub struct RecordSealer(RandomizedNonceKey);

impl std::fmt::Debug for RecordSealer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("RecordSealer(..)")
    }
}

impl RecordSealer {
    /// Seals records of `object`, such as the id of an execution. Nothing sealed for another purpose or object opens.
    pub fn new(key: &SealKey, purpose: &str, object: &[u8]) -> Self {
        let key = key.digest(purpose, object);
        Self(RandomizedNonceKey::new(&AES_256_GCM, &key).expect("32 bytes are a key"))
    }

    /// Seals `value` as the record `name` of the object.
    ///
    /// # Panics
    /// The value has 64 GiB or more.
    pub fn seal(&self, name: &[u8], mut value: Vec<u8>) -> Vec<u8> {
        seal(&self.0, name, &mut value);
        value
    }

    /// The value that was sealed as the record `name` of the object; none for anything else.
    pub fn open(&self, name: &[u8], sealed: Vec<u8>) -> Option<Vec<u8>> {
        open(&self.0, name, sealed)
    }
}

/// Encrypts `bytes` in place, and adds the tag and the nonce.
fn seal(key: &RandomizedNonceKey, about: &[u8], bytes: &mut Vec<u8>) {
    let nonce = key.seal_in_place_append_tag(Aad::from(about), bytes).expect("it is short enough");
    bytes.extend_from_slice(nonce.as_ref());
}

fn open(key: &RandomizedNonceKey, about: &[u8], mut sealed: Vec<u8>) -> Option<Vec<u8>> {
    let nonce = sealed.split_off(sealed.len().checked_sub(NONCE_LEN)?);
    let nonce = Nonce::try_assume_unique_for_key(&nonce).ok()?;
    let length = key.open_in_place(nonce, Aad::from(about), &mut sealed).ok()?.len();
    sealed.truncate(length);
    Some(sealed)
}

/// The context of a sealed value. Each part is preceded by its length, so that no two lists of parts give the same bytes.
fn about(kind: &str, object: &str, principal: &Principal) -> Vec<u8> {
    let client = principal.client_id.as_deref();
    let parts = [kind, object, &principal.subject, client.unwrap_or_default()];
    let mut about = vec![u8::from(client.is_some())];
    // The main endpoint adds nothing.
    for part in parts.into_iter().chain(principal.endpoint.as_deref()) {
        about.extend_from_slice(&(part.len() as u64).to_be_bytes());
        about.extend_from_slice(part.as_bytes());
    }
    about
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Scopes;

    fn principal(subject: &str, client: Option<&str>) -> Principal {
        Principal {
            subject: subject.into(),
            client_id: client.map(Into::into),
            scopes: Scopes::All,
            ..Principal::local()
        }
    }

    #[test]
    fn only_the_same_subject_client_and_endpoint_open_a_task_and_only_with_the_same_key() {
        let sealer = Sealer::new(&SealKey::derived(b"shared"));
        let task = OpenTask {
            app: "a".to_owned(),
            tool: "a:slow".to_owned(),
            id: "7".to_owned(),
            scopes: vec!["a:run".to_owned()],
        };
        let ada = principal("ada", Some("desk"));
        let sealed = sealer.task(&ada, &task);
        assert_eq!(sealer.open_task(&ada, &sealed), Some(task.clone()));
        assert_eq!(Sealer::new(&SealKey::derived(b"shared")).open_task(&ada, &sealed), Some(task));
        for other in [
            principal("bob", Some("desk")),
            principal("ada", Some("other")),
            principal("ada", None),
            ada.clone().at(Some("support".into())),
        ] {
            assert_eq!(sealer.open_task(&other, &sealed), None, "{other:?}");
        }
        assert_eq!(Sealer::new(&SealKey::random()).open_task(&ada, &sealed), None);
        for junk in ["", "a:7", "x", &sealed[1..], &"A".repeat(LONGEST + 1)] {
            assert_eq!(sealer.open_task(&ada, junk), None);
        }
    }

    #[test]
    fn the_state_of_one_object_is_not_that_of_another_nor_the_id_of_a_task() {
        let sealer = Sealer::new(&SealKey::random());
        let ada = principal("ada", None);
        let sealed = sealer.state(&ada, "a:ask", "where we are");
        assert_eq!(sealer.open_state(&ada, "a:ask", &sealed).as_deref(), Some("where we are"));
        assert_eq!(sealer.open_state(&ada, "a:other", &sealed), None);
        assert_eq!(sealer.open_state(&principal("bob", None), "a:ask", &sealed), None);
        assert_eq!(sealer.open_task(&ada, &sealed), None);
    }

    #[test]
    fn a_record_opens_under_its_own_name_object_and_purpose_only() {
        let key = SealKey::derived(b"shared");
        let sealer = RecordSealer::new(&key, "execution", b"1");
        let sealed = sealer.seal(b"chunk 0", b"plain text".to_vec());
        assert_ne!(sealed, sealer.seal(b"chunk 0", b"plain text".to_vec()), "each nonce is new");
        assert!(!sealed.windows(5).any(|part| part == b"plain"));
        assert_eq!(sealer.open(b"chunk 0", sealed.clone()).unwrap(), b"plain text");
        assert_eq!(sealer.open(b"chunk 1", sealed.clone()), None);
        for other in [
            RecordSealer::new(&key, "execution", b"2"),
            RecordSealer::new(&key, "approval", b"1"),
            RecordSealer::new(&SealKey::random(), "execution", b"1"),
        ] {
            assert_eq!(other.open(b"chunk 0", sealed.clone()), None);
        }
        let mut changed = sealed.clone();
        changed[0] ^= 1;
        for junk in [Vec::new(), vec![0; 11], vec![0; 28], changed, sealed[1..].to_vec()] {
            assert_eq!(sealer.open(b"chunk 0", junk), None);
        }
    }
}
