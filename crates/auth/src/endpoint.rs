//! Addresses of endpoints, as metadata of other servers names them.

use std::ops::Deref;

use serde::Deserialize;
use url::Url;

use crate::redirect_uri;

const MAX_BYTES: usize = 2048;

/// An absolute web address without a fragment (RFC 6749 §3.1) or credentials, to which a browser or a request may be sent.
/// [`Fetcher::allows`](crate::fetch::Fetcher::allows) decides whether it has to be public and https.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct EndpointUrl(String);

impl Deref for EndpointUrl {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for EndpointUrl {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, &'static str> {
        let sound = |url: &Url| {
            matches!(url.scheme(), "https" | "http")
                && text.starts_with(&format!("{}://", url.scheme()))
                && redirect_uri::has_plain_authority(&text, url)
        };
        let is_text =
            text.len() <= MAX_BYTES && text.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\');
        if is_text && !text.contains('#') && Url::parse(&text).is_ok_and(|url| sound(&url)) {
            return Ok(Self(text));
        }
        Err("an endpoint is not an absolute https address without a fragment")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_is_an_absolute_web_address_without_fragment_credentials_or_other_readings() {
        for good in [
            "https://as.example/authorize",
            "https://as.example",
            "https://as.example:8443/t/1/authorize?tenant=a,b",
            "http://127.0.0.1:9000/authorize",
            "https://[2001:db8::1]/a",
        ] {
            assert!(EndpointUrl::try_from(good.to_owned()).is_ok(), "{good}");
        }
        let long = format!("https://as.example/{}", "a".repeat(2048));
        for bad in [
            "",
            "/authorize",
            "//as.example/authorize",
            "javascript:alert(1)",
            "data:text/html,x",
            "file:///etc/passwd",
            "com.example.app:/cb",
            "https:as.example/a",
            "https:///as.example/a",
            "HTTPS://as.example/a",
            " https://as.example/a",
            "https://as.example/a#f",
            "https://as.example/a#",
            "https://user@as.example/a",
            "https://@as.example/a",
            "https://as.example,evil.example/a",
            "https://as.example;x/a",
            "https://as.example:/a",
            "https://as.example:0/a",
            "https://as.example:0443/a",
            "https://as.example\\@evil.example/a",
            "https://as.example/a\r\nx: y",
            "https://h\u{f6}st.example/a",
            &long,
        ] {
            assert!(EndpointUrl::try_from(bad.to_owned()).is_err(), "{bad:?}");
        }
    }
}
