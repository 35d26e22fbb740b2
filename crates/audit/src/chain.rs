//! The digests that hold lines together.

use serde::Deserialize;
use sha2::{Digest as _, Sha256};

/// What every line ends with, before the digest.
const MARK: &str = ",\"chain\":\"";

pub(crate) fn sha256_hex(text: &[u8]) -> String {
    Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The digest of a line: over the one before, and the line itself up to its own digest.
pub(crate) fn link(before: &str, body: &str) -> String {
    sha256_hex(format!("{before}\n{body}").as_bytes())
}

/// A JSON object's text with its digest at the end; and the digest.
pub(crate) fn sealed(before: &str, object: &str) -> (String, String) {
    let body = object.strip_suffix('}').unwrap_or(object);
    let chain = link(before, body);
    (format!("{body}{MARK}{chain}\"}}\n"), chain)
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
