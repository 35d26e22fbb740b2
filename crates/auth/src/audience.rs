//! Audiences of tokens (RFC 7519 §4.1.3).

use serde_json::Value;

use crate::keys::Claims;

/// Returns the audiences that a token names: one, or a list.
pub(crate) fn audiences_of(claims: &Claims) -> impl Iterator<Item = &str> {
    let all = match claims.get("aud") {
        Some(Value::Array(all)) => all.as_slice(),
        Some(one) => std::slice::from_ref(one),
        None => &[],
    };
    all.iter().filter_map(Value::as_str)
}

/// Returns whether a token names one of `audiences`, byte for byte.
pub(crate) fn is_for(claims: &Claims, audiences: &[String]) -> bool {
    audiences_of(claims).any(|named| audiences.iter().any(|one| one == named))
}
