//! Short texts for reports, and random ones.

/// The first `most` characters, and the number of bytes left out.
pub(crate) fn shorten(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        None => text.to_owned(),
        Some((at, _)) => format!("{}… ({} more bytes)", &text[..at], text.len() - at),
    }
}

/// One line of a report: control characters are escaped, and what is longer than any name is cut.
#[cfg(feature = "suites")]
pub(crate) fn one_line(text: &str) -> String {
    gatewright_findings::printable(text, 2_000)
}

/// 128 random bits, Base64url-encoded.
pub(crate) fn random_text() -> String {
    use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).expect("the operating system provides random bytes");
    URL_SAFE_NO_PAD.encode(bytes)
}
