//! Expectations of HTTP mocks: the calls they match, their responses, and the calls they answered.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use regex::Regex;
use serde_json::Value;
use tokio::sync::watch;

use super::{
    call::HttpCall,
    matching::{BodyMatcher, TextMatcher, UrlMatcher},
    response::{HttpResponse, NetworkFailure},
};
use crate::{base::lock, protocol::ClientError};

/// The calls a mock matches, and its response.
#[derive(Clone)]
pub struct HttpMockOptions {
    pub(super) url: UrlMatcher,
    pub(super) methods: Vec<String>,
    pub(super) headers: Vec<(String, TextMatcher)>,
    pub(super) query: Vec<(String, TextMatcher)>,
    pub(super) form: Vec<(String, TextMatcher)>,
    pub(super) body: Option<BodyMatcher>,
    respond: Respond,
    times: Option<u32>,
}

/// The response to a call, and to which one of the mock it is, from 0.
type Respond = Arc<dyn Fn(&HttpCall, usize) -> HttpResponse + Send + Sync>;

impl std::fmt::Debug for HttpMockOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let method = if self.methods.is_empty() { "any method".into() } else { self.methods.join("|") };
        write!(f, "{method} {:?}", self.url)
    }
}

impl HttpMockOptions {
    /// A mock that answers requests to this URL with `response`.
    pub fn new(url: impl Into<UrlMatcher>, response: impl Into<HttpResponse>) -> Self {
        let response = response.into();
        Self::with(url, move |_| response.clone())
    }

    /// A mock that answers requests to this URL with the return value of `respond`.
    pub fn with(
        url: impl Into<UrlMatcher>,
        respond: impl Fn(&HttpCall) -> HttpResponse + Send + Sync + 'static,
    ) -> Self {
        Self::responding(url.into(), Arc::new(move |call, _| respond(call)))
    }

    /// A mock that answers the first request to this URL with the first response, the second with the second, and so on; the last one
    /// answers all further requests.
    ///
    /// # Panics
    /// There is no response.
    pub fn sequence<R: Into<HttpResponse>>(
        url: impl Into<UrlMatcher>,
        responses: impl IntoIterator<Item = R>,
    ) -> Self {
        let all: Vec<HttpResponse> = responses.into_iter().map(Into::into).collect();
        assert!(!all.is_empty(), "a sequence of responses holds at least one");
        Self::responding(url.into(), Arc::new(move |_, at| all[at.min(all.len() - 1)].clone()))
    }

    fn responding(url: UrlMatcher, respond: Respond) -> Self {
        Self {
            url,
            methods: Vec::new(),
            headers: Vec::new(),
            query: Vec::new(),
            form: Vec::new(),
            body: None,
            respond,
            times: None,
        }
    }

    /// Matches only this method; may be repeated for several methods.
    #[must_use]
    pub fn method(mut self, method: &str) -> Self {
        self.methods.push(method.to_uppercase());
        self
    }

    /// Matches only calls with this header.
    #[must_use]
    pub fn header(mut self, name: &str, value: impl Into<TextMatcher>) -> Self {
        self.headers.push((name.to_owned(), value.into()));
        self
    }

    /// Matches only calls with this query parameter, whatever the order and the encoding of the query.
    #[must_use]
    pub fn query(mut self, name: &str, value: impl Into<TextMatcher>) -> Self {
        self.query.push((name.to_owned(), value.into()));
        self
    }

    /// Matches only forms with this field.
    #[must_use]
    pub fn body_form(mut self, name: &str, value: impl Into<TextMatcher>) -> Self {
        self.form.push((name.to_owned(), value.into()));
        self
    }

    /// Matches only bodies that contain this text.
    #[must_use]
    pub fn body_text(mut self, text: impl Into<String>) -> Self {
        self.body = Some(BodyMatcher::Text(text.into()));
        self
    }

    /// Matches only JSON bodies that contain all of this: see [`is_subset`](crate::is_subset).
    #[must_use]
    pub fn body_json(mut self, json: Value) -> Self {
        self.body = Some(BodyMatcher::Json(json));
        self
    }

    /// Matches only bodies that match this regular expression.
    #[must_use]
    pub fn body_regex(mut self, regex: Regex) -> Self {
        self.body = Some(BodyMatcher::Regex(regex));
        self
    }

    /// Matches only bodies for which `predicate` returns true.
    #[must_use]
    pub fn body_predicate(mut self, predicate: impl Fn(&str) -> bool + Send + Sync + 'static) -> Self {
        self.body = Some(BodyMatcher::Predicate(Arc::new(predicate)));
        self
    }

    /// Number of times the mock responds. Default: unlimited.
    #[must_use]
    pub fn times(mut self, times: u32) -> Self {
        self.times = Some(times);
        self
    }

    fn matches(&self, call: &HttpCall) -> bool {
        let any = |values: Vec<String>, matcher: &TextMatcher| values.iter().any(|one| matcher.matches(one));
        (self.methods.is_empty() || self.methods.contains(&call.method))
            && self.url.matches(&call.url)
            && self
                .headers
                .iter()
                .all(|(name, one)| call.header(name).is_some_and(|found| one.matches(found)))
            && self.query.iter().all(|(name, one)| any(call.query(name), one))
            && self.form.iter().all(|(name, one)| any(call.form(name), one))
            && self.body.as_ref().is_none_or(|body| body.matches(call))
    }
}

/// An added mock and the calls it answered.
pub(super) struct Expectation {
    pub(super) options: HttpMockOptions,
    /// The scope that the mock belongs to.
    pub(super) scope: Option<u64>,
    calls: Mutex<Vec<HttpCall>>,
    count: watch::Sender<usize>,
}

impl Expectation {
    pub(super) fn new(options: HttpMockOptions, scope: Option<u64>) -> Self {
        Self { options, scope, calls: Mutex::default(), count: watch::Sender::new(0) }
    }

    /// The response, if the mock matches the call and has uses left.
    pub(super) fn answer(&self, call: &HttpCall) -> Option<HttpResponse> {
        let mut calls = lock(&self.calls);
        let left = self.options.times.is_none_or(|times| calls.len() < times as usize);
        if !left || !self.options.matches(call) {
            return None;
        }
        calls.push(call.clone());
        let count = calls.len();
        drop(calls);
        self.count.send_replace(count);
        Some((self.options.respond)(call, count - 1))
    }

    /// The failure of the tunnel to a server, if the mock matches the tunnel and its next response is such a failure.
    pub(super) fn refuses(&self, tunnel: &HttpCall) -> bool {
        let used = lock(&self.calls).len();
        let left = self.options.times.is_none_or(|times| used < times as usize);
        left && self.options.matches(tunnel)
            && (self.options.respond)(tunnel, used).failure == Some(NetworkFailure::Refused)
    }

    /// A description of the uses, if none is left.
    pub(super) fn used_up(&self) -> Option<String> {
        let (times, used) = (self.options.times? as usize, lock(&self.calls).len());
        (used >= times).then(|| format!("it has answered {used} of {times} times"))
    }

    pub(super) fn is_pending(&self) -> bool {
        lock(&self.calls).len() < self.options.times.unwrap_or(1) as usize
    }

    /// A description of the unused calls of a mock with `times`.
    pub(super) fn missing(&self) -> Option<String> {
        let (times, used) = (self.options.times? as usize, lock(&self.calls).len());
        (used < times).then(|| format!("{:?} (used {used} of {times} times)", self.options))
    }
}

/// An added mock. Dropping the handle does not remove it.
#[derive(Clone)]
pub struct HttpMockHandle {
    pub(super) expectation: Arc<Expectation>,
}

impl std::fmt::Debug for HttpMockHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HttpMockHandle").field("options", &self.expectation.options).finish_non_exhaustive()
    }
}

impl std::fmt::Display for HttpMockHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}", self.expectation.options)
    }
}

impl HttpMockHandle {
    /// The number of requests it answered.
    pub fn call_count(&self) -> usize {
        lock(&self.expectation.calls).len()
    }

    /// The requests it answered.
    pub fn calls(&self) -> Vec<HttpCall> {
        lock(&self.expectation.calls).clone()
    }

    /// Waits until it has answered `count` requests. Default timeout: 5 s.
    ///
    /// # Errors
    /// The requests did not arrive in time.
    pub async fn wait_for_calls(
        &self,
        count: usize,
        timeout: Option<Duration>,
    ) -> Result<Vec<HttpCall>, ClientError> {
        let after = timeout.unwrap_or(Duration::from_secs(5));
        let mut changed = self.expectation.count.subscribe();
        let enough = changed.wait_for(|seen| *seen >= count);
        match tokio::time::timeout(after, enough).await {
            Ok(_) => Ok(self.calls()),
            Err(_) => Err(ClientError::TimedOut {
                method: format!("{:?}", self.expectation.options),
                after,
                hint: format!("; {count} calls were wanted, {} came", self.call_count()),
            }),
        }
    }
}
