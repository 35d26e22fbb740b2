//! The digests that chain lines together, and the events about the file itself.

use data_encoding::HEXLOWER;
use serde::de::IgnoredAny;
use sha2::{Digest as _, Sha256};

/// Event of the first line after a file was exchanged ([`AuditFile::reopen`](super::AuditFile::reopen)); `previous` is the last digest of
/// the file before.
pub const CONTINUES: &str = "audit.continues";

/// Event of a line in place of events that could not be written; `count` of them.
pub const LOST: &str = "audit.lost";

/// Event of a line after one that a crash cut in two.
pub const TORN: &str = "audit.torn";

/// End of every line, before the digest.
const MARK: &str = ",\"chain\":\"";

/// The SHA-256 of a text as lower-case hexadecimal digits.
pub fn sha256_hex(text: &[u8]) -> String {
    hex(&Sha256::digest(text))
}

/// Bytes as lower-case hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    HEXLOWER.encode(bytes)
}

/// The digest of a line: over the one before, and the line itself up to its own digest.
pub(crate) fn link(before: &str, body: &[u8]) -> String {
    let parts = [before.as_bytes(), b"\n", body];
    hex(&parts.iter().fold(Sha256::new(), |digest, part| digest.chain_update(part)).finalize())
}

/// Makes a JSON object's text a line, with its digest at the end; returns the digest.
pub(crate) fn seal(before: &str, object: &mut Vec<u8>) -> String {
    object.pop_if(|last| *last == b'}');
    let chain = link(before, object);
    for part in [MARK, &chain, "\"}\n"] {
        object.extend(part.as_bytes());
    }
    chain
}

/// A line taken apart: what the digest is over, and the digest it carries. None for anything but a JSON object that ends with
/// its digest: what came after it would be under no digest, and many readers take the last of two members of one name.
pub(crate) fn parts(line: &str) -> Option<(&str, &str)> {
    let (body, digest) = line.strip_suffix("\"}")?.rsplit_once(MARK)?;
    let is_digest =
        digest.len() == 64 && digest.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    let is_object = line.starts_with('{') && serde_json::from_str::<IgnoredAny>(line).is_ok();
    (is_digest && is_object).then_some((body, digest))
}
