//! Digests of requests: an approval is for exactly one object with exactly one list of arguments.

use std::fmt;

use rmcp::model::JsonObject;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

/// SHA-256 of the object of a request and its canonical arguments.
///
/// Canonical arguments are the JSON text without spaces whose objects have their keys in the order of their UTF-8 bytes: two spellings of
/// the same values have the same digest. Those of a tool call are the ones that the tool gets: after the defaults of its input schema were
/// filled in.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct RequestDigest([u8; 32]);

impl RequestDigest {
    /// The digest for `object`: the text of a [`RequestObject`](super::RequestObject).
    pub fn of(object: &str, arguments: &JsonObject) -> Self {
        let mut hasher = Sha256::new();
        // No object has this byte in its name.
        hasher.update(object);
        hasher.update([0xff]);
        members(&mut hasher, arguments);
        Self(hasher.finalize().into())
    }

    /// The digest of these bytes, as [`RequestDigest::as_bytes`] gave them.
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Its bytes.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Display for RequestDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&data_encoding::HEXLOWER.encode(&self.0))
    }
}

impl fmt::Debug for RequestDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RequestDigest({self})")
    }
}

/// An approval of one request. On the extensions of its context it lets the request pass where policies ask for one; a request with another
/// digest still needs its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Approved(pub RequestDigest);

fn write(hasher: &mut Sha256, value: &Value) {
    match value {
        Value::Array(items) => {
            hasher.update("[");
            for (at, item) in items.iter().enumerate() {
                hasher.update(if at == 0 { "" } else { "," });
                write(hasher, item);
            }
            hasher.update("]");
        }
        Value::Object(object) => members(hasher, object),
        // Writing a scalar to memory cannot fail.
        scalar => hasher.update(scalar.to_string()),
    }
}

fn members(hasher: &mut Sha256, object: &JsonObject) {
    let mut members: Vec<_> = object.iter().collect();
    members.sort_unstable_by_key(|(key, _)| key.as_bytes());
    hasher.update("{");
    for (at, (key, value)) in members.into_iter().enumerate() {
        hasher.update(if at == 0 { "" } else { "," });
        hasher.update(Value::String(key.clone()).to_string());
        hasher.update(":");
        write(hasher, value);
    }
    hasher.update("}");
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn of(object: &str, arguments: Value) -> String {
        RequestDigest::of(object, arguments.as_object().unwrap()).to_string()
    }

    #[test]
    fn the_order_of_keys_does_not_count_and_everything_else_does() {
        let one = of("crm:pay", json!({"to": "ann", "sum": {"amount": 5, "unit": "EUR"}, "tags": [1, 2]}));
        assert_eq!(
            one,
            of("crm:pay", json!({"tags": [1, 2], "sum": {"unit": "EUR", "amount": 5}, "to": "ann"}))
        );
        for (object, other) in [
            ("crm:pay2", json!({"to": "ann", "sum": {"amount": 5, "unit": "EUR"}, "tags": [1, 2]})),
            ("crm:pay", json!({"to": "ann", "sum": {"amount": 5, "unit": "EUR"}, "tags": [2, 1]})),
            ("crm:pay", json!({"to": "ann", "sum": {"amount": 50, "unit": "EUR"}, "tags": [1, 2]})),
            ("crm:pay", json!({"to": "ann", "sum": {"amount": 5, "unit": "EUR"}, "tags": [1, 2], "x": null})),
            ("crm:pay", json!({"to": "ann", "sum": {"amount": "5", "unit": "EUR"}, "tags": [1, 2]})),
        ] {
            assert_ne!(one, of(object, other.clone()), "{object} {other}");
        }
        assert_ne!(of("a", json!({"b\":1,\"c": 2})), of("a", json!({"b": 1, "c": 2})));
        assert_ne!(of("a", json!({"b": [[1], 2]})), of("a", json!({"b": [[1, 2]]})));
    }

    #[test]
    fn the_digest_is_that_of_the_documented_text() {
        let text = b"crm:pay\xff{\"a\":[1,\"x\"],\"b\":null}";
        let expected = data_encoding::HEXLOWER.encode(&Sha256::digest(text));
        assert_eq!(of("crm:pay", json!({"b": null, "a": [1, "x"]})), expected);
    }
}
