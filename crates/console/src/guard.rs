//! Protection of the console against requests that other web pages make a browser send.
//!
//! Every request must name an address or a known host (against DNS rebinding). Every POST must come from the console's own origin and
//! carry the token of a page that the console served (against cross-site request forgery).

use std::{net::IpAddr, sync::Arc};

use axum::{
    extract::{Request, State},
    middleware::Next,
    response::{Html, IntoResponse, Response},
};
use data_encoding::HEXLOWER;
use gatewright_pages::{Frame, Width};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header, uri::Authority};
use maud::html;

/// Content security policy: pages load only our own style and script, and connect only to us.
const POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src data:; \
form-action 'self'; frame-ancestors 'none'; base-uri 'none'";

/// Name of the form field that carries the token.
pub(crate) const FIELD: &str = "csrf";

/// The known hosts and the token of forms.
#[derive(Debug)]
pub(crate) struct RequestGuard {
    hosts: Vec<String>,
    token: String,
}

impl RequestGuard {
    /// A guard that allows `hosts` besides addresses and `localhost`. Names have no port; case does not matter.
    pub(crate) fn new(hosts: impl IntoIterator<Item = String>) -> Self {
        let mut bytes = [0_u8; 32];
        getrandom::fill(&mut bytes).expect("the system gives random bytes");
        let token = HEXLOWER.encode(&bytes);
        Self { hosts: hosts.into_iter().map(|host| bare(&host)).collect(), token }
    }

    /// The token of forms. It lives as long as the process.
    pub(crate) fn token(&self) -> &str {
        &self.token
    }

    /// Compares `sent` with the token in constant time.
    pub(crate) fn is_token(&self, sent: &str) -> bool {
        let differ = self.token.bytes().zip(sent.bytes()).fold(0, |sum, (a, b)| sum | (a ^ b));
        sent.len() == self.token.len() && differ == 0
    }

    /// The host that a request names, if it is allowed.
    fn allowed_host(&self, headers: &HeaderMap) -> Option<Authority> {
        let mut named = headers.get_all(header::HOST).iter();
        let (Some(host), None) = (named.next(), named.next()) else { return None };
        let host = host.to_str().ok().filter(|host| !host.contains('@'))?;
        let authority = Authority::try_from(host).ok()?;
        let name = bare(authority.host());
        // A page can give our address a name of its own, but cannot make a browser send an address that it did not connect to.
        let plain = name == "localhost" || name.parse::<IpAddr>().is_ok();
        (plain || self.hosts.contains(&name)).then_some(authority)
    }
}

fn bare(host: &str) -> String {
    host.trim_start_matches('[').trim_end_matches(']').trim_end_matches('.').to_ascii_lowercase()
}

/// Returns true if the browser states that a page of this origin sent the request. A client that sends neither header is refused:
/// all current browsers send at least one.
fn same_origin(headers: &HeaderMap, host: &Authority) -> bool {
    let text = |name: &HeaderName| headers.get(name).map(|value| value.to_str().unwrap_or("?"));
    let site = text(&HeaderName::from_static("sec-fetch-site"));
    let origin = text(&header::ORIGIN);
    let ours = |origin: &str| {
        ["http://", "https://"].iter().any(|scheme| {
            origin.strip_prefix(scheme).is_some_and(|rest| rest.eq_ignore_ascii_case(host.as_str()))
        })
    };
    (site.is_some() || origin.is_some())
        && site.is_none_or(|site| site == "same-origin")
        && origin.is_none_or(ours)
}

/// Middleware that applies the checks, and adds security headers to every response.
pub(crate) async fn enforce(
    State(guard): State<Arc<RequestGuard>>,
    request: Request,
    next: Next,
) -> Response {
    let reading = [Method::GET, Method::HEAD].contains(request.method());
    let mut response = match guard.allowed_host(request.headers()) {
        None => refuse(
            StatusCode::MISDIRECTED_REQUEST,
            "The Host header names another host. Open the console by its address, or list the name in `admin.allowedHosts`.",
        ),
        Some(host) if !reading && !same_origin(request.headers(), &host) => {
            refuse(StatusCode::FORBIDDEN, "The console accepts forms only from its own pages.")
        }
        Some(_) => next.run(request).await,
    };
    let headers = response.headers_mut();
    headers.entry(header::CONTENT_SECURITY_POLICY).or_insert(HeaderValue::from_static(POLICY));
    for (name, value) in [
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (header::REFERRER_POLICY, "same-origin"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    response
}

/// A page with the reason.
fn refuse(status: StatusCode, why: &'static str) -> Response {
    tracing::info!(status = status.as_u16(), "the console refused a request: {why}");
    let title = if status == StatusCode::FORBIDDEN { "Not from here" } else { "Another host" };
    let frame = Frame {
        title,
        width: Width::Slim,
        body: html! { h1 { (title) } p { (why) } },
        footer: None,
        script: None,
    };
    let policy = frame.policy("'none'").parse::<HeaderValue>().expect("a policy is plain text");
    let mut response = (status, Html(frame.html())).into_response();
    response.headers_mut().insert(header::CONTENT_SECURITY_POLICY, policy);
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        pairs
            .iter()
            .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)))
            .collect()
    }

    #[test]
    fn only_addresses_and_known_names_are_allowed() {
        let guard = RequestGuard::new(["ops.internal".to_owned()]);
        for good in [
            "localhost:9464",
            "127.0.0.1",
            "[::1]:1",
            "127.8.8.8:80",
            "10.0.0.1:9464",
            "OPS.internal:9464",
            "localhost.",
        ] {
            assert!(guard.allowed_host(&headers(&[("host", good)])).is_some(), "{good}");
        }
        for bad in ["evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "a@localhost", ""] {
            assert!(guard.allowed_host(&headers(&[("host", bad)])).is_none(), "{bad}");
        }
        assert!(guard.allowed_host(&HeaderMap::new()).is_none());
    }

    #[test]
    fn a_form_of_another_origin_is_refused_whatever_it_says() {
        let host = Authority::from_static("localhost:9464");
        for good in [
            &[("sec-fetch-site", "same-origin"), ("origin", "http://localhost:9464")][..],
            &[("origin", "http://localhost:9464")],
            &[("sec-fetch-site", "same-origin")],
        ] {
            assert!(same_origin(&headers(good), &host), "{good:?}");
        }
        for bad in [
            &[][..],
            &[("sec-fetch-site", "same-site"), ("origin", "http://localhost:9464")],
            &[("sec-fetch-site", "cross-site")],
            &[("sec-fetch-site", "same-origin"), ("origin", "http://localhost:3000")],
            &[("origin", "null")],
            &[("origin", "http://localhost")],
            &[("origin", "http://localhost:9464.evil.example")],
        ] {
            assert!(!same_origin(&headers(bad), &host), "{bad:?}");
        }
    }

    #[test]
    fn a_token_must_be_whole() {
        let guard = RequestGuard::new([]);
        let token = guard.token().to_owned();
        assert!(token.len() == 64 && guard.is_token(&token));
        assert!(
            !guard.is_token("") && !guard.is_token(&token[..63]) && !guard.is_token(&format!("{token}0"))
        );
        assert_ne!(token, RequestGuard::new([]).token());
    }
}
