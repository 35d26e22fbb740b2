//! A passkey authenticator in software, whose every answer can be bent.

use aws_lc_rs::{
    digest::{SHA256, digest},
    rand::SystemRandom,
    signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, KeyPair as _},
};
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use ciborium::Value as Cbor;
use serde_json::{Value, json};

use super::site::Answer;

pub(crate) const PRESENT: u8 = 1;
pub(crate) const VERIFIED: u8 = 4;
pub(crate) const BACKUP_ELIGIBLE: u8 = 8;
pub(crate) const BACKED_UP: u8 = 16;
const ATTESTED: u8 = 64;

pub(crate) struct Authenticator {
    key: EcdsaKeyPair,
    pub(crate) id: Vec<u8>,
    pub(crate) handle: Vec<u8>,
    pub(crate) origin: String,
    pub(crate) rp_id: String,
    pub(crate) flags: u8,
    pub(crate) counter: u32,
    /// Another challenge than the one asked for.
    pub(crate) challenge: Option<String>,
    /// Another type of ceremony than the one asked for.
    pub(crate) kind: Option<&'static str>,
    pub(crate) cross_origin: bool,
    pub(crate) spoil_signature: bool,
}

pub(crate) fn b64(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

fn sha256(bytes: &[u8]) -> Vec<u8> {
    digest(&SHA256, bytes).as_ref().to_vec()
}

/// The options that a page's passkey button asks for.
pub(crate) fn options(page: &Answer) -> Value {
    let text =
        page.text.split("data-options=\"").nth(1).unwrap_or_else(|| panic!("a button in {}", page.text));
    let text = text.split('"').next().unwrap();
    let plain = text.replace("&quot;", "\"").replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&");
    serde_json::from_str(&plain).unwrap()
}

impl Authenticator {
    pub(crate) fn new() -> Self {
        let mut id = vec![0; 32];
        aws_lc_rs::rand::fill(&mut id).unwrap();
        Self {
            key: EcdsaKeyPair::generate(&ECDSA_P256_SHA256_ASN1_SIGNING).unwrap(),
            id,
            handle: Vec::new(),
            origin: "https://mcp.example".into(),
            rp_id: "mcp.example".into(),
            flags: PRESENT | VERIFIED,
            counter: 0,
            challenge: None,
            kind: None,
            cross_origin: false,
            spoil_signature: false,
        }
    }

    fn client_data(&self, kind: &str, options: &Value) -> Vec<u8> {
        let challenge = self.challenge.as_deref().unwrap_or_else(|| options["challenge"].as_str().unwrap());
        let kind = self.kind.unwrap_or(kind);
        json!({"type": kind, "challenge": challenge, "origin": self.origin, "crossOrigin": self.cross_origin})
            .to_string()
            .into_bytes()
    }

    fn data(&self, flags: u8) -> Vec<u8> {
        [sha256(self.rp_id.as_bytes()), vec![flags], self.counter.to_be_bytes().to_vec()].concat()
    }

    /// The answer to `navigator.credentials.create`, as the script of the page sends it.
    pub(crate) fn create(&mut self, options: &Value) -> String {
        self.handle = URL_SAFE_NO_PAD.decode(options["user"]["id"].as_str().unwrap()).unwrap();
        let point = self.key.public_key().as_ref().to_vec();
        let number = |n: i32| Cbor::Integer(n.into());
        let cose = Cbor::Map(vec![
            (number(1), number(2)),
            (number(3), number(-7)),
            (number(-1), number(1)),
            (number(-2), Cbor::Bytes(point[1..33].to_vec())),
            (number(-3), Cbor::Bytes(point[33..].to_vec())),
        ]);
        let mut data = self.data(self.flags | ATTESTED);
        data.extend([0; 16]);
        data.extend(u16::try_from(self.id.len()).unwrap().to_be_bytes());
        data.extend(&self.id);
        ciborium::into_writer(&cose, &mut data).unwrap();
        let text = |text: &str| Cbor::Text(text.into());
        let object = Cbor::Map(vec![
            (text("fmt"), text("none")),
            (text("attStmt"), Cbor::Map(Vec::new())),
            (text("authData"), Cbor::Bytes(data)),
        ]);
        let mut attestation = Vec::new();
        ciborium::into_writer(&object, &mut attestation).unwrap();
        json!({
            "attestationObject": b64(attestation),
            "authenticatorAttachment": "platform",
            "clientDataJSON": b64(self.client_data("webauthn.create", options)),
            "clientExtensionResults": {},
            "transports": ["internal"],
            "type": "public-key",
        })
        .to_string()
    }

    /// The answer to `navigator.credentials.get`.
    pub(crate) fn get(&mut self, options: &Value) -> String {
        let (client, data) = (self.client_data("webauthn.get", options), self.data(self.flags));
        let signed = [data.clone(), sha256(&client)].concat();
        let mut signature = self.key.sign(&SystemRandom::new(), &signed).unwrap().as_ref().to_vec();
        if self.spoil_signature {
            *signature.last_mut().unwrap() ^= 1;
        }
        json!({
            "authenticatorAttachment": "platform",
            "authenticatorData": b64(data),
            "clientDataJSON": b64(client),
            "clientExtensionResults": {},
            "id": b64(&self.id),
            "signature": b64(signature),
            "type": "public-key",
            "userHandle": b64(&self.handle),
        })
        .to_string()
    }
}
