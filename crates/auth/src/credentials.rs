//! Tokens and API keys in the headers of a request.

use http::{header, request::Parts};

use crate::api_keys::is_api_key;

/// Token of an `Authorization` header.
pub(crate) enum Credentials<'a> {
    None,
    Bearer(&'a str),
    Dpop(&'a str),
}

/// Reads the only `Authorization` header, or the only API key in an `X-API-Key` header. Tokens anywhere else are ignored. `None` if it
/// cannot be read.
pub(crate) fn credentials(parts: &Parts) -> Option<Credentials<'_>> {
    let keys = parts.headers.get_all("x-api-key").iter().filter_map(|value| value.to_str().ok());
    // Keys of others, such as those of a proxy, are none of ours.
    let mut keys = keys.filter(|value| is_api_key(value));
    let mut headers = parts.headers.get_all(header::AUTHORIZATION).iter();
    let (key, value) = (keys.next(), headers.next());
    if keys.next().is_some() || headers.next().is_some() || (key.is_some() && value.is_some()) {
        return None;
    }
    let Some(value) = value else { return Some(key.map_or(Credentials::None, Credentials::Bearer)) };
    let (scheme, token) = value.to_str().ok().and_then(|text| text.split_once(' '))?;
    let token = token.trim();
    let is_token =
        !token.is_empty() && token.bytes().all(|c| c.is_ascii_alphanumeric() || b"-._~+/=".contains(&c));
    match scheme {
        _ if !is_token => None,
        scheme if scheme.eq_ignore_ascii_case("bearer") => Some(Credentials::Bearer(token)),
        scheme if scheme.eq_ignore_ascii_case("dpop") => Some(Credentials::Dpop(token)),
        _ => None,
    }
}
