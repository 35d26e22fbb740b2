//! Conditions of HTTP mocks on URLs, headers and bodies.

use std::sync::Arc;

use regex::Regex;
use serde_json::Value;

use super::call::HttpCall;
use crate::base::json::is_subset;

type Predicate = Arc<dyn Fn(&str) -> bool + Send + Sync>;

/// A condition on the URL of a call.
#[derive(Clone)]
pub enum UrlMatcher {
    /// The URL contains this text.
    Text(String),
    /// The URL matches this regular expression.
    Regex(Regex),
    /// The predicate returns true for the URL.
    Predicate(Predicate),
}

impl UrlMatcher {
    /// Matches URLs for which `predicate` returns true.
    pub fn predicate(predicate: impl Fn(&str) -> bool + Send + Sync + 'static) -> Self {
        Self::Predicate(Arc::new(predicate))
    }

    pub(super) fn matches(&self, url: &str) -> bool {
        match self {
            Self::Text(text) => url.contains(text.as_str()),
            Self::Regex(regex) => regex.is_match(url),
            Self::Predicate(predicate) => predicate(url),
        }
    }
}

impl UrlMatcher {
    /// The port, if the URL is one of this machine.
    pub(super) fn local_port(&self) -> Option<u16> {
        let Self::Text(text) = self else { return None };
        let text = if text.contains("://") { text.clone() } else { format!("http://{text}") };
        let url = url::Url::parse(&text).ok()?;
        let local = match url.host()? {
            url::Host::Domain(name) => name == "localhost",
            url::Host::Ipv4(address) => address.is_loopback(),
            url::Host::Ipv6(address) => address.is_loopback(),
        };
        url.port_or_known_default().filter(|_| local)
    }
}

impl std::fmt::Debug for UrlMatcher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            Self::Regex(regex) => write!(f, "/{regex}/"),
            Self::Predicate(_) => f.write_str("a URL that matches a predicate"),
        }
    }
}

/// A condition on the value of a header, a query parameter or a form field.
#[derive(Clone)]
pub enum TextMatcher {
    /// The value equals this text.
    Text(String),
    /// The value matches this regular expression.
    Regex(Regex),
}

impl TextMatcher {
    pub(super) fn matches(&self, text: &str) -> bool {
        match self {
            Self::Text(expected) => expected == text,
            Self::Regex(regex) => regex.is_match(text),
        }
    }
}

impl std::fmt::Debug for TextMatcher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Text(text) => write!(f, "{text:?}"),
            Self::Regex(regex) => write!(f, "/{regex}/"),
        }
    }
}

macro_rules! from_text {
    ($($matcher:ty),+) => {$(
        impl From<&str> for $matcher {
            fn from(text: &str) -> Self {
                Self::Text(text.to_owned())
            }
        }
        impl From<String> for $matcher {
            fn from(text: String) -> Self {
                Self::Text(text)
            }
        }
        impl From<Regex> for $matcher {
            fn from(regex: Regex) -> Self {
                Self::Regex(regex)
            }
        }
    )+};
}
from_text!(UrlMatcher, TextMatcher);

/// A condition on the body of a call.
#[derive(Clone)]
pub(super) enum BodyMatcher {
    Text(String),
    Json(Value),
    Regex(Regex),
    Predicate(Predicate),
}

impl BodyMatcher {
    pub(super) fn matches(&self, call: &HttpCall) -> bool {
        let body = call.body.as_deref().unwrap_or_default();
        match self {
            Self::Text(text) => body.contains(text.as_str()),
            Self::Json(json) => call.json().is_some_and(|found| is_subset(json, &found)),
            Self::Regex(regex) => regex.is_match(body),
            Self::Predicate(predicate) => predicate(body),
        }
    }
}
