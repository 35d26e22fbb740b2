//! What a mock wants, and what it saw.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use regex::Regex;
use serde_json::Value;
use tokio::sync::watch;

use super::HttpResponse;
use crate::{ClientError, lock, partial::is_subset};

/// One request of the server under test.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct HttpCall {
    /// The whole URL; without the port when it is the scheme's own.
    pub url: String,
    /// In capitals.
    pub method: String,
    /// Names in small letters, in order.
    pub headers: Vec<(String, String)>,
    /// The body, when there is one: as text, or with U+FFFD where it is none.
    pub body: Option<String>,
}

impl HttpCall {
    /// A header, by its name in any case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(found, _)| found.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_str())
    }

    /// Whether it asks to go on as a WebSocket (RFC 6455 §4.1), which no mock can answer.
    pub fn is_websocket(&self) -> bool {
        self.header("upgrade").is_some_and(|to| to.eq_ignore_ascii_case("websocket"))
    }

    /// The body as JSON.
    pub fn json(&self) -> Option<Value> {
        serde_json::from_str(self.body.as_deref()?).ok()
    }
}

impl std::fmt::Display for HttpCall {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.method, self.url)?;
        if self.is_websocket() {
            f.write_str(" (a WebSocket, which the HTTP mock does not speak)")?;
        }
        match &self.body {
            Some(body) => write!(f, " {}", crate::shorten(body, 200)),
            None => Ok(()),
        }
    }
}

type Predicate<T> = Arc<dyn Fn(&T) -> bool + Send + Sync>;

/// Which URLs a mock wants.
#[derive(Clone)]
pub enum UrlMatcher {
    /// That are or hold this text.
    Text(String),
    /// That hold a match.
    Regex(Regex),
    /// That please this.
    That(Predicate<str>),
}

impl UrlMatcher {
    /// URLs that please `wanted`.
    pub fn that(wanted: impl Fn(&str) -> bool + Send + Sync + 'static) -> Self {
        Self::That(Arc::new(wanted))
    }

    fn wants(&self, url: &str) -> bool {
        match self {
            Self::Text(text) => url.contains(text.as_str()),
            Self::Regex(regex) => regex.is_match(url),
            Self::That(wanted) => wanted(url),
        }
    }
}

impl std::fmt::Debug for UrlMatcher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            Self::Regex(regex) => write!(f, "/{regex}/"),
            Self::That(_) => f.write_str("a URL that pleases a function"),
        }
    }
}

/// Which texts a mock wants: a header's value.
#[derive(Debug, Clone)]
pub enum TextMatcher {
    /// Exactly this.
    Text(String),
    /// With a match.
    Regex(Regex),
}

impl TextMatcher {
    fn wants(&self, text: &str) -> bool {
        match self {
            Self::Text(wanted) => wanted == text,
            Self::Regex(regex) => regex.is_match(text),
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

#[derive(Clone)]
enum BodyMatcher {
    Text(String),
    Json(Value),
    Regex(Regex),
    That(Predicate<str>),
}

/// What a mock wants and answers.
#[derive(Clone)]
pub struct HttpMockOptions {
    url: UrlMatcher,
    methods: Vec<String>,
    headers: Vec<(String, TextMatcher)>,
    body: Option<BodyMatcher>,
    respond: Arc<dyn Fn(&HttpCall) -> HttpResponse + Send + Sync>,
    times: Option<u32>,
}

impl std::fmt::Debug for HttpMockOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let method = if self.methods.is_empty() { "any method".into() } else { self.methods.join("|") };
        write!(f, "{method} {:?}", self.url)
    }
}

impl HttpMockOptions {
    /// Answers requests of this URL.
    pub fn new(url: impl Into<UrlMatcher>, response: impl Into<HttpResponse>) -> Self {
        let response = response.into();
        Self::with(url, move |_| response.clone())
    }

    /// Answers requests of this URL with what `respond` makes of them.
    pub fn with(
        url: impl Into<UrlMatcher>,
        respond: impl Fn(&HttpCall) -> HttpResponse + Send + Sync + 'static,
    ) -> Self {
        Self {
            url: url.into(),
            methods: Vec::new(),
            headers: Vec::new(),
            body: None,
            respond: Arc::new(respond),
            times: None,
        }
    }

    /// Only this method; given again, this one too.
    #[must_use]
    pub fn method(mut self, method: &str) -> Self {
        self.methods.push(method.to_uppercase());
        self
    }

    /// Only with this header.
    #[must_use]
    pub fn header(mut self, name: &str, value: impl Into<TextMatcher>) -> Self {
        self.headers.push((name.to_owned(), value.into()));
        self
    }

    /// Only with a body that holds this text.
    #[must_use]
    pub fn body_text(mut self, text: impl Into<String>) -> Self {
        self.body = Some(BodyMatcher::Text(text.into()));
        self
    }

    /// Only with a JSON body that holds all of this: see [`is_subset`](crate::is_subset).
    #[must_use]
    pub fn body_json(mut self, json: Value) -> Self {
        self.body = Some(BodyMatcher::Json(json));
        self
    }

    /// Only with a body that holds a match.
    #[must_use]
    pub fn body_regex(mut self, regex: Regex) -> Self {
        self.body = Some(BodyMatcher::Regex(regex));
        self
    }

    /// Only with a body that pleases `wanted`.
    #[must_use]
    pub fn body_that(mut self, wanted: impl Fn(&str) -> bool + Send + Sync + 'static) -> Self {
        self.body = Some(BodyMatcher::That(Arc::new(wanted)));
        self
    }

    /// How often it answers. Default: without end.
    #[must_use]
    pub fn times(mut self, times: u32) -> Self {
        self.times = Some(times);
        self
    }

    fn wants(&self, call: &HttpCall) -> bool {
        let body = call.body.as_deref().unwrap_or_default();
        (self.methods.is_empty() || self.methods.contains(&call.method))
            && self.url.wants(&call.url)
            && self
                .headers
                .iter()
                .all(|(name, wanted)| call.header(name).is_some_and(|value| wanted.wants(value)))
            && match &self.body {
                None => true,
                Some(BodyMatcher::Text(text)) => body.contains(text.as_str()),
                Some(BodyMatcher::Json(json)) => call.json().is_some_and(|found| is_subset(json, &found)),
                Some(BodyMatcher::Regex(regex)) => regex.is_match(body),
                Some(BodyMatcher::That(wanted)) => wanted(body),
            }
    }
}

pub(super) struct Entry {
    options: HttpMockOptions,
    calls: Mutex<Vec<HttpCall>>,
    count: watch::Sender<usize>,
}

impl Entry {
    pub(super) fn new(options: HttpMockOptions) -> Self {
        Self { options, calls: Mutex::default(), count: watch::Sender::new(0) }
    }

    /// The answer, when this mock wants the call and has uses left.
    pub(super) fn answer(&self, call: &HttpCall) -> Option<HttpResponse> {
        let mut calls = lock(&self.calls);
        let left = self.options.times.is_none_or(|times| calls.len() < times as usize);
        if !left || !self.options.wants(call) {
            return None;
        }
        calls.push(call.clone());
        let count = calls.len();
        drop(calls);
        self.count.send_replace(count);
        Some((self.options.respond)(call))
    }

    pub(super) fn is_pending(&self) -> bool {
        lock(&self.calls).len() < self.options.times.unwrap_or(1) as usize
    }

    /// What a mock with `times` that was used less often lacks.
    pub(super) fn missing(&self) -> Option<String> {
        let (times, used) = (self.options.times? as usize, lock(&self.calls).len());
        (used < times).then(|| format!("{:?} (used {used} of {times} times)", self.options))
    }
}

/// A mock that was added. Dropping it changes nothing.
#[derive(Clone)]
pub struct HttpMockHandle {
    pub(super) entry: Arc<Entry>,
}

impl std::fmt::Debug for HttpMockHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HttpMockHandle").field("options", &self.entry.options).finish_non_exhaustive()
    }
}

impl std::fmt::Display for HttpMockHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}", self.entry.options)
    }
}

impl HttpMockHandle {
    /// How often it answered.
    pub fn call_count(&self) -> usize {
        lock(&self.entry.calls).len()
    }

    /// The requests it answered.
    pub fn calls(&self) -> Vec<HttpCall> {
        lock(&self.entry.calls).clone()
    }

    /// Waits until it answered `count` requests. `timeout` is 5 s when absent.
    ///
    /// # Errors
    /// It did not in time.
    pub async fn wait_for_calls(
        &self,
        count: usize,
        timeout: Option<Duration>,
    ) -> Result<Vec<HttpCall>, ClientError> {
        let after = timeout.unwrap_or(Duration::from_secs(5));
        let mut changed = self.entry.count.subscribe();
        let enough = changed.wait_for(|seen| *seen >= count);
        match tokio::time::timeout(after, enough).await {
            Ok(_) => Ok(self.calls()),
            Err(_) => Err(ClientError::TimedOut {
                method: format!("{:?}", self.entry.options),
                after,
                hint: format!("; {count} calls were wanted, {} came", self.call_count()),
            }),
        }
    }
}

/// Mocks that were not used, and requests no mock wanted.
#[derive(Debug, Clone, PartialEq)]
pub struct NotDone {
    /// Mocks with `times` that were used less often, in words.
    pub pending: Vec<String>,
    /// Requests no mock wanted.
    pub unmatched: Vec<HttpCall>,
}

impl std::fmt::Display for NotDone {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("HTTP mocks and requests do not fit together")?;
        for pending in &self.pending {
            write!(f, "\n  not used: {pending}")?;
        }
        for call in &self.unmatched {
            write!(f, "\n  no mock wants: {call}")?;
        }
        Ok(())
    }
}

impl std::error::Error for NotDone {}
