//! The way of a request: request interceptors → mocks → the wire → response interceptors → trace.

use std::{
    sync::Arc,
    time::{Duration, Instant, SystemTime},
};

use serde_json::Value;
use tokio::task::AbortHandle;

use super::Core;
use crate::{
    ClientError, LogLevel, RequestTrace,
    client::{
        link::{Link, UNCLAIMED},
        waiting::{Answer, Told},
    },
    intercept::Decided,
    lock,
    mock::RpcRequest,
    records::RpcResponse,
    shorten,
    wire::Outgoing,
};

impl Core {
    /// Asks and gives the result; answers what the server needs to know first (2026-07-28, `input_required`).
    pub(in crate::client) async fn call(
        self: &Arc<Self>,
        method: &str,
        params: Value,
    ) -> Result<Value, ClientError> {
        const MOST_ROUNDS: usize = 10;
        let mut asked = params.clone();
        for _ in 0..MOST_ROUNDS {
            let result = result_of(method, self.exchange(self.numbered(method, asked), true).await?)?;
            if result["resultType"] != "input_required" {
                return Ok(result);
            }
            asked = params.clone();
            let mut answers = serde_json::Map::new();
            for (key, question) in result["inputRequests"].as_object().into_iter().flatten() {
                let handlers = lock(&self.handlers).clone();
                let method = question["method"].as_str().unwrap_or_default();
                let Ok(answer) = handlers.answer(method, question["params"].clone()).await else {
                    return Ok(result);
                };
                answers.insert(key.clone(), answer);
            }
            asked["inputResponses"] = Value::Object(answers);
            if let Some(state) = result.get("requestState") {
                asked["requestState"] = state.clone();
            }
        }
        Err(ClientError::Shape {
            method: method.to_owned(),
            problem: format!("the server asked for input more than {MOST_ROUNDS} times"),
            answer: String::new(),
        })
    }

    /// One request with everything that may happen to it, and one entry in the trace. `dressed`: with what the revision
    /// wants in `_meta` and headers.
    pub(in crate::client) async fn exchange(self: &Arc<Self>, request: RpcRequest, dressed: bool) -> Answer {
        let (started, timestamp) = (Instant::now(), SystemTime::now());
        let mut open = Open { core: self, request: Some(request.clone()), started, timestamp };
        let (mocked, answer) = self.answered(&request, dressed).await;
        let ms = || started.elapsed().as_secs_f64() * 1e3;
        let answer = answer.map(|response| self.interceptors.after(&request, response, ms()));
        open.request = None;
        self.trace.push(RequestTrace {
            method: request.method,
            params: request.params,
            response: answer.as_ref().ok().cloned(),
            failure: answer.as_ref().err().map(ToString::to_string),
            disconnected: matches!(answer, Err(ClientError::Closed(_))),
            mocked,
            duration_ms: ms(),
            timestamp,
        });
        answer
    }

    async fn answered(self: &Arc<Self>, request: &RpcRequest, dressed: bool) -> (bool, Answer) {
        let request = match self.interceptors.before(request.clone(), self.session_id()).await {
            Decided::Answer(response) => return (true, Ok(response)),
            Decided::Send(request) => request,
        };
        if let Some((response, delay)) = self.mocks.take(&request) {
            if !delay.is_zero() {
                tokio::time::sleep(delay).await;
            }
            return (true, Ok(response));
        }
        let answer = match self.link() {
            Ok(link) => self.over(&link, &request, dressed).await,
            Err(error) => Err(error),
        };
        match answer {
            // What a client must do when the server lost its session, say by a restart: begin a new one.
            Err(gone @ ClientError::SessionGone { .. }) if request.method != "initialize" => {
                self.logs.own(LogLevel::Info, "the session is gone; a new one is begun".into());
                let again = match self.connect().await {
                    Ok(()) => self.link(),
                    Err(ClientError::Closed(_)) => Err(gone),
                    Err(error) => Err(error),
                };
                match again {
                    Ok(link) => (false, self.over(&link, &request, dressed).await),
                    Err(error) => (false, Err(error)),
                }
            }
            answer => (false, answer),
        }
    }

    /// Sends a request and waits for its answer.
    pub(super) async fn over(&self, link: &Link, request: &RpcRequest, dressed: bool) -> Answer {
        let after = *lock(&self.timeout);
        self.over_within(link, request, dressed, after).await
    }

    pub(super) async fn over_within(
        &self,
        link: &Link,
        request: &RpcRequest,
        dressed: bool,
        after: Duration,
    ) -> Answer {
        let mut message = request.message();
        let mut headers = Vec::new();
        if self.stateless() && dressed {
            self.dress(&mut message);
            if link.wire.is_http() {
                headers = self.mirrored(link, request).await;
            }
        }
        let told = link.waiting.register(&request.id);
        let outgoing = Outgoing { headers, ..Outgoing::message(&message) };
        self.wait(link, &request.method, &request.id, outgoing, told, after).await
    }

    /// Sends a request whose answer may take for ever, past mocks and interceptors.
    pub(in crate::client) async fn begin(
        &self,
        request: &RpcRequest,
    ) -> Result<(Arc<Link>, Told), ClientError> {
        let (link, outgoing) = self.prepared(request).await?;
        let told = link.waiting.register(&request.id);
        link.wire.send(outgoing).await?;
        Ok((link, told))
    }

    /// The same in a task: over HTTP a message is sent when the answer begins, which it may never do.
    pub(in crate::client) async fn begin_apart(
        &self,
        request: &RpcRequest,
    ) -> Result<(Arc<Link>, Told, AbortHandle), ClientError> {
        let (link, outgoing) = self.prepared(request).await?;
        let told = link.waiting.register(&request.id);
        let (sender, id) = (link.clone(), request.id.clone());
        let sending = tokio::spawn(async move {
            if let Err(error) = sender.wire.send(outgoing).await {
                sender.waiting.settle(&id, Err(error));
            }
        });
        Ok((link, told, sending.abort_handle()))
    }

    async fn prepared(&self, request: &RpcRequest) -> Result<(Arc<Link>, Outgoing), ClientError> {
        let link = self.link()?;
        let mut message = request.message();
        let mut headers = Vec::new();
        if self.stateless() {
            self.dress(&mut message);
            if link.wire.is_http() {
                headers = self.mirrored(&link, request).await;
            }
        }
        let outgoing = Outgoing { headers, ..Outgoing::message(&message) };
        Ok((link, outgoing))
    }

    /// Sends text as it is. The answer is the one to the id in it, or the one without an id.
    pub(in crate::client) async fn send_raw(&self, text: &str) -> Answer {
        let link = self.link()?;
        let id = serde_json::from_str::<Value>(text).ok().and_then(|message| message.get("id").cloned());
        let id = id.unwrap_or(Value::Null);
        let mut told = link.waiting.register(&id);
        // A server that cannot read the id answers without one.
        let mut unread = (!id.is_null()).then(|| link.waiting.register(&Value::Null));
        let outgoing = Outgoing { text: text.to_owned(), ..Outgoing::default() };
        let answered = async move {
            let Some(unread) = &mut unread else { return told.await };
            let answer =
                tokio::select! { biased; answer = &mut told => answer, answer = &mut *unread => answer };
            // One answer is all there is to come: another, with the id or without, is one too many.
            told.withdraw();
            unread.withdraw();
            answer
        };
        let after = *lock(&self.timeout);
        self.wait(&link, "raw text", &id, outgoing, answered, after).await
    }

    async fn wait(
        &self,
        link: &Link,
        method: &str,
        id: &Value,
        outgoing: Outgoing,
        told: impl Future<Output = Answer>,
        after: Duration,
    ) -> Answer {
        let answer = async {
            link.wire.send(outgoing).await?;
            told.await
        };
        match tokio::time::timeout(after, answer).await {
            Ok(answer) => answer,
            Err(_) => {
                // "The `initialize` request MUST NOT be cancelled by clients" (2025-11-25, cancellation).
                if method != "initialize" {
                    link.cancel(id).await;
                }
                let hint = self.hint();
                Err(ClientError::TimedOut { method: method.to_owned(), after, hint })
            }
        }
    }

    fn hint(&self) -> String {
        match lock(&self.garbage).last() {
            Some(text) => format!(
                "; the server wrote text that is no JSON where only messages belong (log to standard error instead): {}",
                shorten(text, 200)
            ),
            None => match self.logs.search(UNCLAIMED).pop() {
                Some(entry) => format!("; the server sent {}", entry.message),
                None => String::new(),
            },
        }
    }
}

/// A request that waits for its answer. When the test gives it up, the trace says so.
struct Open<'a> {
    core: &'a Core,
    request: Option<RpcRequest>,
    started: Instant,
    timestamp: SystemTime,
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        let Some(request) = self.request.take() else { return };
        self.core.trace.push(RequestTrace {
            method: request.method,
            params: request.params,
            response: None,
            failure: Some(format!("the test waited no longer{}", self.core.hint())),
            disconnected: false,
            mocked: false,
            duration_ms: self.started.elapsed().as_secs_f64() * 1e3,
            timestamp: self.timestamp,
        });
    }
}

pub(in crate::client) fn result_of(method: &str, answer: RpcResponse) -> Result<Value, ClientError> {
    if let Some(problem) = answer.envelope_problem() {
        return Err(ClientError::Shape {
            method: method.to_owned(),
            problem: problem.to_owned(),
            answer: shorten(&answer.raw.to_string(), 300),
        });
    }
    if let Some(result) = answer.result() {
        return Ok(result.clone());
    }
    Err(match answer.error() {
        Some(error) => ClientError::Rpc { method: method.to_owned(), error },
        None => ClientError::Shape {
            method: method.to_owned(),
            problem: "it has neither `result` nor a whole `error`".into(),
            answer: answer.raw.to_string(),
        },
    })
}
