//! Requests that this instance makes itself of the one that holds a call: they carry answers to the questions of a plan.

use std::sync::{Arc, Weak};

use axum::body::Body;
use bytes::Bytes;
use futures::TryStreamExt as _;
use gatewright_core::{AppFuture, Caller, CallerAddress, PassedOn, StateHome, read_json};
use http::{HeaderValue, Request, Response, header, request::Parts};
use rmcp::{
    ErrorData,
    model::{Implementation, ProtocolVersion, RequestMetaObject},
};
use serde::Deserialize;
use serde_json::{Value, json};
use sse_stream::SseStream;

use crate::{
    cluster::Cluster,
    mcp::{BOTH_KINDS, VERSION_HEADER, is_json},
    relay::Relay,
};

/// The other instances, as far as they hold calls.
pub(crate) struct Homes {
    cluster: Arc<Cluster>,
    relay: Weak<Relay>,
}

impl Homes {
    pub(crate) fn new(cluster: Arc<Cluster>, relay: &Arc<Relay>) -> Self {
        Self { cluster, relay: Arc::downgrade(relay) }
    }
}

impl StateHome for Homes {
    fn mark(&self, state: &str) -> String {
        self.cluster.seal(state)
    }

    fn mark_as(&self, from: &str, to: &str) -> Option<String> {
        self.cluster.seal_as(from, to)
    }

    fn pass_on<'a>(
        &'a self,
        state: &'a str,
        caller: &'a Caller,
        request: PassedOn,
    ) -> AppFuture<'a, Option<Result<Value, ErrorData>>> {
        Box::pin(async move {
            let (home, relay) = (self.cluster.home_of(state)?, self.relay.upgrade()?);
            let (parts, message) = match message(caller, request) {
                Ok(message) => message,
                Err(error) => return Some(Err(ErrorData::internal_error(error.to_string(), None))),
            };
            let response = relay.pass_on(home, &parts, message).await.ok()?;
            Some(answer(response).await)
        })
    }
}

/// The request as a client of the era without sessions sends it.
fn message(caller: &Caller, request: PassedOn) -> Result<(Parts, Bytes), http::Error> {
    let PassedOn { method, name, mut params, capabilities, address } = request;
    let (version, us) = (ProtocolVersion::V_2026_07_28, Implementation::from_build_env());
    let meta = RequestMetaObject::with_client_context(version.clone(), us, capabilities);
    params.insert("_meta".to_owned(), json!(meta));
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
    // Nobody checks the host of a request that another instance admitted, but there must be one.
    let http = Request::post("/mcp")
        .header(header::HOST, "localhost")
        .header(header::CONTENT_TYPE, "application/json")
        .header(header::ACCEPT, BOTH_KINDS)
        .header(VERSION_HEADER, version.as_str())
        .header("mcp-method", method)
        .header("mcp-name", HeaderValue::try_from(name)?)
        .body(())?;
    let mut parts = http.into_parts().0;
    parts.extensions.insert((**caller.principal()).clone());
    if let Some(address) = address {
        parts.extensions.insert(CallerAddress(address));
    }
    if let Some(mode) = caller.mode() {
        parts.extensions.insert(mode);
    }
    Ok((parts, message.to_string().into()))
}

/// A message of the other instance: the answer, or one that comes before it.
#[derive(Deserialize)]
struct Message {
    result: Option<Value>,
    error: Option<ErrorData>,
}

impl Message {
    fn answer(text: &[u8]) -> Option<Result<Value, ErrorData>> {
        let message: Self = read_json(text).ok()?;
        message.error.map(Err).or(message.result.map(Ok))
    }
}

/// The answer to the request; progress and log messages before it are left out.
async fn answer(response: Response<Body>) -> Result<Value, ErrorData> {
    let (parts, body) = response.into_parts();
    let found = if is_json(&parts.headers) {
        let body = axum::body::to_bytes(body, usize::MAX).await.ok();
        body.and_then(|body| Message::answer(&body))
    } else {
        let events = SseStream::new(body);
        let answers = events.try_filter_map(|event| {
            let answer = event.data.and_then(|data| Message::answer(data.as_bytes()));
            std::future::ready(Ok(answer))
        });
        std::pin::pin!(answers).try_next().await.ok().flatten()
    };
    found.unwrap_or_else(|| {
        let text = "the instance that holds the call broke off: the answer may have reached it";
        Err(ErrorData::internal_error(text, None))
    })
}
