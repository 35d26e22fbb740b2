//! Bytes in arguments: base64, and `data:` URIs (RFC 2397).

use base64::{
    Engine as _, alphabet,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};
use serde_json::Value;

const LENIENT: GeneralPurposeConfig = GeneralPurposeConfig::new()
    .with_decode_padding_mode(DecodePaddingMode::Indifferent)
    .with_decode_allow_trailing_bits(true);
const STANDARD: GeneralPurpose = GeneralPurpose::new(&alphabet::STANDARD, LENIENT);
const URL_SAFE: GeneralPurpose = GeneralPurpose::new(&alphabet::URL_SAFE, LENIENT);

/// Longest type of a file, in bytes.
const LONGEST_TYPE: usize = 500;

/// A file in an argument.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct File {
    pub(crate) bytes: Vec<u8>,
    /// Its type, where a `data:` URI names one.
    pub(crate) media_type: Option<String>,
    /// Its name, where a `data:` URI names one (`;name=`).
    pub(crate) name: Option<String>,
}

/// Reads a file.
///
/// # Errors
/// The value is neither base64 nor a `data:` URI.
pub(crate) fn file(value: &Value) -> Result<File, String> {
    let Value::String(text) = value else {
        return Err("must be a string: the bytes in base64, or a `data:` URI".to_owned());
    };
    if let Some(rest) =
        text.get(..5).filter(|scheme| scheme.eq_ignore_ascii_case("data:")).map(|_| &text[5..])
    {
        return data_uri(rest).ok_or_else(|| "is a `data:` URI that cannot be read".to_owned());
    }
    match decoded(text) {
        Some(bytes) => Ok(File { bytes, media_type: None, name: None }),
        None if text.contains("://") => {
            Err("is an address, which the gateway does not read; pass the bytes in base64, or a `data:` URI"
                .to_owned())
        }
        None => Err("must be the bytes in base64, or a `data:` URI".to_owned()),
    }
}

fn decoded(text: &str) -> Option<Vec<u8>> {
    let text: String = text.chars().filter(|c| !c.is_ascii_whitespace()).collect();
    STANDARD.decode(&text).or_else(|_| URL_SAFE.decode(&text)).ok()
}

fn data_uri(rest: &str) -> Option<File> {
    let (head, data) = rest.split_once(',')?;
    let mut parts = head.split(';');
    let kind = parts.next().unwrap_or_default().trim();
    let (mut is_base64, mut name, mut media_type) = (false, None, kind.to_owned());
    for part in parts {
        match part.trim().split_once('=') {
            None => is_base64 |= part.trim().eq_ignore_ascii_case("base64"),
            Some(("name" | "filename", value)) => {
                name = Some(percent_encoding::percent_decode_str(value).decode_utf8_lossy().into_owned());
            }
            Some((key, value)) if !kind.is_empty() => media_type.push_str(&format!(";{key}={value}")),
            Some(_) => {}
        }
    }
    let data: Vec<u8> = percent_encoding::percent_decode_str(data).collect();
    let bytes = if is_base64 { decoded(std::str::from_utf8(&data).ok()?)? } else { data };
    let is_type = media_type.len() <= LONGEST_TYPE
        && media_type.contains('/')
        && media_type.bytes().all(|byte| byte.is_ascii_graphic());
    Some(File { bytes, media_type: Some(media_type).filter(|_| is_type), name })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn files_are_base64_in_any_spelling_or_data_uris() {
        let bytes = |text: &str| file(&json!(text)).map(|file| file.bytes);
        for text in ["+/8=", "+/8", "-_8", "+/\n8 =", "data:;base64,+/8=", "data:a/b;base64,%2B%2F8%3D"] {
            assert_eq!(bytes(text).as_deref(), Ok(&[0xfb, 0xff][..]), "{text}");
        }
        assert_eq!(bytes("data:,a%20b").as_deref(), Ok(&b"a b"[..]));
        assert_eq!(
            file(&json!("data:image/png;name=a%20b.png;base64,AA==")),
            Ok(File { bytes: vec![0], media_type: Some("image/png".into()), name: Some("a b.png".into()) })
        );
        assert_eq!(
            file(&json!("data:text/plain;charset=utf-8,x")).unwrap().media_type.as_deref(),
            Some("text/plain;charset=utf-8")
        );
        let long = file(&json!(format!("data:a/{},x", "b".repeat(1_000)))).unwrap();
        assert_eq!(long.media_type, None, "headers are short");
        for bad in [
            json!("not base64!"),
            json!("file:///etc/passwd"),
            json!("https://a.example/x"),
            json!("data:x"),
            json!(7),
        ] {
            assert!(file(&bad).is_err(), "{bad}");
        }
    }
}
