//! The access mode that a client asks for: `?mode=` on the address, or a header.

use gatewright_core::AccessMode;
use http::request::Parts;
use url::form_urlencoded;

/// Header with the access mode. Like `?mode=`, it counts when a session is opened, and for each request outside sessions.
pub(crate) const HEADER: &str = "gatewright-mode";
const PARAMETER: &str = "mode";

/// An access mode that is none, or several that differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BadMode;

/// The mode that a request asks for.
pub(crate) fn asked(parts: &Parts) -> Result<Option<AccessMode>, BadMode> {
    let query = parts.uri.query().unwrap_or_default().as_bytes();
    let in_query = form_urlencoded::parse(query)
        .filter(|(name, _)| name == PARAMETER)
        .map(|(_, value)| AccessMode::named(&value));
    let named = parts.headers.get_all(HEADER).iter();
    let in_headers = named.map(|value| value.to_str().ok().and_then(|value| AccessMode::named(value.trim())));
    let mut asked = None;
    for mode in in_headers.chain(in_query) {
        let mode = mode.ok_or(BadMode)?;
        if asked.is_some_and(|before| before != mode) {
            return Err(BadMode);
        }
        asked = Some(mode);
    }
    Ok(asked)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(uri: &str, headers: &[&str]) -> Result<Option<AccessMode>, BadMode> {
        let mut request = http::Request::get(uri);
        for value in headers {
            request = request.header(HEADER, *value);
        }
        asked(&request.body(()).unwrap().into_parts().0)
    }

    #[test]
    fn a_mode_is_read_from_the_address_or_the_header_and_both_must_agree() {
        let (direct, code) = (Ok(Some(AccessMode::Direct)), Ok(Some(AccessMode::Code)));
        assert_eq!(ask("/mcp", &[]), Ok(None));
        assert_eq!(ask("/mcp?x=1&mode=direct", &[]), direct);
        assert_eq!(ask("/mcp", &["code"]), code);
        assert_eq!(ask("/mcp?mode=code", &["code"]), code);
        for (uri, headers) in [
            ("/mcp?mode=code", &["direct"] as &[&str]),
            ("/mcp?mode=code&mode=direct", &[]),
            ("/mcp", &["code", "direct"]),
            ("/mcp?mode=", &[]),
            ("/mcp?mode=DIRECT", &[]),
            ("/mcp", &["all"]),
        ] {
            assert_eq!(ask(uri, headers), Err(BadMode), "{uri} {headers:?}");
        }
    }
}
