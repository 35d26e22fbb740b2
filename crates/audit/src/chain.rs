//! The digests that hold lines together.

use serde::Deserialize;
use sha2::{Digest as _, Sha256};

/// What every line ends with, before the digest.
const MARK: &str = ",\"chain\":\"";

pub(crate) fn sha256_hex(text: &[u8]) -> String {
    hex(&Sha256::digest(text))
}

/// Bytes as lower-case hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let both = |byte: &u8| [DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]];
    let mut text = String::with_capacity(2 * bytes.len());
    text.extend(bytes.iter().flat_map(both).map(char::from));
    text
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

/// The digest a line carries.
pub(crate) fn carried(line: &str) -> Option<String> {
    #[derive(Deserialize)]
    struct Line {
        chain: String,
    }
    serde_json::from_str::<Line>(line).ok().map(|line| line.chain)
}

/// The line up to its digest.
pub(crate) fn body(line: &str) -> Option<&str> {
    line.rfind(MARK).map(|at| &line[..at])
}
