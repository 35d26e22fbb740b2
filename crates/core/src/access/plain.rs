//! Plain URIs: those that have one spelling, so that a comparison of texts decides what they name.
//!
//! It lists what is allowed. Whatever else a parser, a decoder or a file system could read as another URI is not plain.

use std::net::Ipv4Addr;

/// Returns `true` if `uri` is `scheme://authority/path` in the only spelling that it has, with a port exactly if `with_port` says so.
///
/// A `file` URI has no authority, others have a host name. The path has no empty segments, none that ends in a dot or a space, no `;`,
/// and percent-encodes only what cannot stand there otherwise; query and fragment are not plain.
pub(super) fn is_plain(uri: &str, with_port: bool) -> bool {
    let Some((scheme, rest)) = uri.split_once("://") else { return false };
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let is_web = matches!(scheme, "http" | "https" | "ws" | "wss" | "ftp");
    let is_file = scheme == "file";
    // To the web and for files, `https://host` is `https://host/` (WHATWG URL §4.4).
    let path_is_plain = match path.strip_prefix('/') {
        Some(path) => path.split('/').all(is_plain_segment),
        None => !is_web && !is_file,
    };
    let authority_is_plain = match (is_file, with_port) {
        (true, _) => authority.is_empty(),
        (false, false) => is_plain_host(authority, is_web),
        (false, true) => authority
            .rsplit_once(':')
            .is_some_and(|(host, port)| is_plain_host(host, is_web) && is_plain_port(port)),
    };
    is_plain_scheme(scheme) && authority_is_plain && path_is_plain
}

fn is_plain_scheme(scheme: &str) -> bool {
    let may_follow = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"+.-".contains(&byte);
    scheme.starts_with(|first: char| first.is_ascii_lowercase()) && scheme.bytes().all(may_follow)
}

/// A lower-case name whose labels are neither empty nor encoded (IDNA). On the web, numbers are an IPv4 address of four parts.
fn is_plain_host(host: &str, is_web: bool) -> bool {
    let is_label = |label: &str| {
        let is_name = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-_".contains(&byte);
        !label.is_empty() && !label.starts_with("xn--") && label.bytes().all(is_name)
    };
    let last = host.rsplit('.').next().unwrap_or_default();
    let is_number = last.bytes().all(|byte| byte.is_ascii_digit()) || last.starts_with("0x");
    host.split('.').all(is_label) && (!is_web || !is_number || host.parse::<Ipv4Addr>().is_ok())
}

fn is_plain_port(port: &str) -> bool {
    !port.starts_with(['0', '+']) && port.parse::<u16>().is_ok()
}

fn is_plain_segment(segment: &str) -> bool {
    if segment.is_empty() || segment.ends_with('.') || segment.ends_with("%20") {
        return false;
    }
    let mut bytes = segment.bytes();
    while let Some(byte) = bytes.next() {
        let is_plain = match byte {
            b'%' => is_plain_escape(bytes.next(), bytes.next()),
            // Some servers cut a segment at `;`, which is therefore not among the sub-delimiters here.
            byte => byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,=".contains(&byte),
        };
        if !is_plain {
            return false;
        }
    }
    true
}

/// Upper-case digits of a printable ASCII character that has to be encoded in a path and delimits nothing.
fn is_plain_escape(high: Option<u8>, low: Option<u8>) -> bool {
    let digit = |byte: Option<u8>| match byte? {
        byte @ b'0'..=b'9' => Some(byte - b'0'),
        byte @ b'A'..=b'F' => Some(byte - b'A' + 10),
        _ => None,
    };
    matches!((digit(high), digit(low)), (Some(high), Some(low)) if b" \"<>[]^`{|}".contains(&(high * 16 + low)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use url::Url;

    use crate::{ScopeRule, UriPattern, access::scopes_of_uri};

    const PROTECTED: [&str; 4] = [
        "https://api.example.com/secret/1",
        "http://127.0.0.1/secret/1",
        "file:///srv/board/x.txt",
        "note://box/secret",
    ];
    const PATTERNS: [&str; 4] = [
        "https://api.example.com/secret/*",
        "http://127.0.0.1/secret/*",
        "file:///srv/board/*",
        "note://box/secret",
    ];
    const TOKENS: [&str; 42] = [
        "/",
        "//",
        "///",
        "./",
        "../",
        "x/../",
        "/.",
        "/..",
        "?",
        "#",
        "?/../",
        "#/../",
        "?x",
        "#x",
        "\\",
        "\\..\\",
        "\t",
        "\n",
        " ",
        "\u{b}",
        "%2e",
        "%2E%2E/",
        "%2F",
        "%5C",
        "%00",
        "%25",
        ":443",
        ":80",
        ":",
        ":0",
        "@",
        "a@",
        ".",
        ";x",
        "%20",
        "%E2%80%8B",
        "\u{200b}",
        "%C2%AD",
        "\u{ad}",
        "%E3%80%82",
        "\u{ff0e}",
        "localhost",
    ];

    #[derive(Debug, Clone)]
    enum Edit {
        Insert(prop::sample::Index, &'static str),
        Encode(prop::sample::Index, bool),
        Upper(prop::sample::Index),
        Delete(prop::sample::Index),
        /// The full-width form, percent-encoded or not (U+FF01 and following).
        Widen(prop::sample::Index, bool),
    }

    fn edit() -> impl Strategy<Value = Edit> {
        let at = any::<prop::sample::Index>;
        prop_oneof![
            3 => (at(), prop::sample::select(&TOKENS[..])).prop_map(|(at, token)| Edit::Insert(at, token)),
            1 => (at(), any::<bool>()).prop_map(|(at, upper)| Edit::Encode(at, upper)),
            1 => at().prop_map(Edit::Upper),
            1 => at().prop_map(Edit::Delete),
            1 => (at(), any::<bool>()).prop_map(|(at, encoded)| Edit::Widen(at, encoded)),
        ]
    }

    fn edited(uri: &str, edits: &[Edit]) -> String {
        let mut chars: Vec<char> = uri.chars().collect();
        let escaped = |text: &str| text.bytes().map(|byte| format!("%{byte:02X}")).collect::<String>();
        for edit in edits {
            let (Edit::Insert(at, _)
            | Edit::Encode(at, _)
            | Edit::Upper(at)
            | Edit::Delete(at)
            | Edit::Widen(at, _)) = edit;
            let at = at.index(chars.len().max(1)).min(chars.len().saturating_sub(1));
            let Some(old) = chars.get(at).copied() else { continue };
            let new = match edit {
                Edit::Insert(_, token) => format!("{token}{old}"),
                Edit::Encode(_, true) => escaped(&old.to_string()),
                Edit::Encode(_, false) => escaped(&old.to_string()).to_lowercase(),
                Edit::Upper(_) => old.to_uppercase().collect(),
                Edit::Delete(_) => String::new(),
                Edit::Widen(_, encoded) => {
                    let wide = if old.is_ascii_graphic() { u32::from(old) + 0xfee0 } else { u32::from(old) };
                    let wide = char::from_u32(wide).unwrap_or(old).to_string();
                    if *encoded { escaped(&wide) } else { wide }
                }
            };
            chars.splice(at..=at, new.chars());
        }
        chars.into_iter().collect()
    }

    fn percent_decoded(text: &str) -> String {
        let hex = |at: usize| text.get(at..at + 2).and_then(|digits| u8::from_str_radix(digits, 16).ok());
        let (mut bytes, mut at) = (Vec::new(), 0);
        while at < text.len() {
            match (text.as_bytes()[at], hex(at + 1)) {
                (b'%', Some(byte)) => {
                    bytes.push(byte);
                    at += 3;
                }
                (byte, _) => {
                    bytes.push(byte);
                    at += 1;
                }
            }
        }
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// The URIs that servers may read in one: by a URL parser, and by cutting off the scheme and resolving the rest as a path.
    fn readings(uri: &str) -> Vec<String> {
        let resolved = |text: &str| {
            let Some((scheme, rest)) = text.split_once(':') else { return text.to_owned() };
            let mut segments = Vec::new();
            for segment in rest.split(['/', '\\']) {
                match segment.trim_end_matches([' ', '.']) {
                    "" if segment == ".." => drop(segments.pop()),
                    "" => {}
                    segment => segments.push(segment.split(';').next().unwrap_or_default()),
                }
            }
            format!("{} {}", scheme.trim().to_lowercase(), segments.join("/"))
        };
        let cut = |text: &str| text.split(['?', '#']).next().unwrap_or_default().to_owned();
        let (once, bare) = (percent_decoded(uri), cut(uri));
        let mut readings = vec![
            resolved(uri),
            resolved(&bare),
            resolved(&once),
            resolved(&cut(&once)),
            resolved(&percent_decoded(&bare)),
            resolved(&percent_decoded(&once)),
        ];
        if let Ok(mut url) = Url::parse(uri) {
            readings.push(url.to_string());
            url.set_query(None);
            url.set_fragment(None);
            readings.extend([url.to_string(), percent_decoded(url.as_str())]);
            readings.push(url.as_str().trim_end_matches('/').to_owned());
        }
        readings
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 8_000, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn whatever_a_server_may_read_as_a_protected_uri_needs_its_scope(
            which in 0..PROTECTED.len(), edits in prop::collection::vec(edit(), 0..4),
        ) {
            let rule = |(pattern, number): (&&str, usize)| {
                (UriPattern::new(pattern), ScopeRule { scopes: vec![number.to_string()] })
            };
            let rules: Vec<_> = PATTERNS.iter().zip(0..).map(rule).collect();
            let uri = edited(PROTECTED[which], &edits);
            let known = readings(PROTECTED[which]);
            if readings(&uri).iter().any(|reading| known.contains(reading)) {
                let number = which.to_string();
                prop_assert!(scopes_of_uri(&rules, &uri, false).contains(&number.as_str()), "{uri:?}");
            }
        }
    }
}
