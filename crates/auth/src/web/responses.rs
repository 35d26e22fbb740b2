//! Pages and redirects.

use axum::response::{IntoResponse, Response};
use gatewright_pages::wait;
use http::{HeaderValue, StatusCode, header};
use url::{Host, Origin, Url};

use crate::{error::OAuthError, pages, store::StoreError};

/// Marks a response with status 503 that the token store did not cause, so that it is not counted as its failure.
#[derive(Clone, Copy)]
pub(crate) struct ProviderUnavailable;

/// A page with an error.
pub(crate) fn page(status: StatusCode, text: &str) -> Response {
    pages::error(status, text).into_response()
}

/// A page with status 400.
pub(crate) fn bad_request(text: &str) -> Response {
    page(StatusCode::BAD_REQUEST, text)
}

/// An [`OAuthError`] as a page.
pub(crate) fn error_page(error: OAuthError) -> Response {
    let text = match (error.status, error.retry_after_s) {
        (StatusCode::TOO_MANY_REQUESTS, Some(seconds)) => {
            format!("There were too many tries. Try again in {}.", wait(seconds)).into()
        }
        (StatusCode::SERVICE_UNAVAILABLE, _) => "The service is not available at the moment.".into(),
        _ => error.description,
    };
    let mut response = page(error.status, &text);
    if let Some(seconds) = error.retry_after_s {
        response.headers_mut().insert(header::RETRY_AFTER, seconds.into());
    }
    response
}

/// A [`StoreError`] as a page.
pub(crate) fn store_page(error: StoreError) -> Response {
    error_page(error.into())
}

/// Returns `target` with `pairs` added to its query.
pub(crate) fn with_query(target: &str, pairs: &[(&str, &str)]) -> String {
    let mut query = url::form_urlencoded::Serializer::new(String::new());
    query.extend_pairs(pairs);
    let separator = if target.contains('?') { '&' } else { '?' };
    format!("{target}{separator}{}", query.finish())
}

/// A redirect that must not be cached: 302 after GET, 303 after POST.
pub(crate) fn redirect(status: StatusCode, target: &str) -> Response {
    let mut response = status.into_response();
    let headers = response.headers_mut();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    match HeaderValue::try_from(ascii(target)) {
        Ok(target) => {
            headers.insert(header::LOCATION, target);
            response
        }
        Err(_) => bad_request("The address to go back to is not usable."),
    }
}

/// The address with characters beyond ASCII percent-encoded (RFC 3987 §3.1).
fn ascii(address: &str) -> String {
    let mut ascii = String::with_capacity(address.len());
    for byte in address.bytes() {
        match byte.is_ascii() {
            true => ascii.push(byte.into()),
            false => ascii.push_str(&format!("%{byte:02X}")),
        }
    }
    ascii
}

/// Returns the sources that the answer to a form may lead to, for `form-action` in a page's policy: where it redirects to, and addresses with `https`, for browsers
/// apply the policy to further redirects as well (CSP Level 3 §6.3.1), such as that of a provider to its login.
pub(crate) fn form_target(redirect: &str) -> Option<String> {
    let url = Url::parse(redirect).ok()?;
    let own = match url.origin() {
        _ if url.scheme() == "https" => return Some("https:".to_owned()),
        // A host source is a name or an IPv4 address (§2.3.1): browsers ignore one in brackets, and would block the redirect.
        Origin::Tuple(_, Host::Ipv6(_), _) | Origin::Opaque(_) => format!("{}:", url.scheme()),
        origin @ Origin::Tuple(..) => origin.ascii_serialization(),
    };
    Some(format!("{own} https:"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_leads_to_its_redirect_and_on_from_there() {
        for (redirect, sources) in [
            ("http://[::1]:6587/cb?a=b", "http: https:"),
            ("https://[2001:db8::1]/", "https:"),
            ("http://127.0.0.1:6587/cb", "http://127.0.0.1:6587 https:"),
            ("https://c.example/cb", "https:"),
            ("com.example.app:/cb", "com.example.app: https:"),
        ] {
            assert_eq!(form_target(redirect).as_deref(), Some(sources), "{redirect}");
        }
    }

    #[test]
    fn a_redirect_has_no_character_beyond_ascii() {
        let response = redirect(StatusCode::FOUND, "https://a.example/ü?b=1");
        assert_eq!(response.headers()[header::LOCATION], "https://a.example/%C3%BC?b=1");
    }
}
