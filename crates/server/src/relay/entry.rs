//! The instance that a client reached: sends the request on, and passes the answer back.

use std::{sync::Arc, time::Duration};

use axum::body::Body;
use bytes::Bytes;
use gatewright_core::{AccessMode, CallerAddress, HOP_BY_HOP, Principal, WorkTerms};
use http::{HeaderName, Response, StatusCode, request::Parts};

use super::{
    Relay,
    channel::{Delivery, NotDelivered},
    exchange::Exchange,
    message::{ExchangeId, Part, Reason, RequestMeta, ResponseMeta, headers, meta_json, pairs, read_meta},
};
use crate::{cluster::BootId, refusal};

/// The other instance is gone, and did nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Gone;

/// Longest wait for the first sign of an instance that was sent a request; it gives one after a second.
const FIRST_SIGN: Duration = Duration::from_secs(5);

/// Returns `true` for headers of a request that are sent on: those that MCP and its traces need. Never `Authorization`, `Cookie` or `DPoP`.
pub(crate) fn is_sent_on(name: &HeaderName) -> bool {
    const SENT_ON: [&str; 8] = [
        "accept",
        "baggage",
        "content-type",
        "host",
        "last-event-id",
        "traceparent",
        "tracestate",
        "user-agent",
    ];
    SENT_ON.contains(&name.as_str()) || name.as_str().starts_with("mcp-")
}

impl Relay {
    /// Sends a request to the instance `to`, once, and gives its answer. One that breaks off may have done what it was asked.
    ///
    /// # Errors
    /// The instance is gone, with its sessions and calls; it did nothing.
    pub(crate) async fn pass_on(
        self: &Arc<Self>,
        to: BootId,
        parts: &Parts,
        body: Bytes,
    ) -> Result<Response<Body>, Gone> {
        if !self.is_listening.load(std::sync::atomic::Ordering::Acquire) {
            return Ok(refusal::no_channel());
        }
        let mut id = ExchangeId([0; 16]);
        if getrandom::fill(&mut id.0).is_err() {
            return Ok(refusal::no_channel());
        }
        let (mut exchange, entry) = Exchange::new(self.clone(), id, to);
        self.table().open(id, entry, None);
        let meta = RequestMeta {
            method: parts.method.to_string(),
            headers: pairs(&parts.headers, is_sent_on),
            caller: parts.extensions.get::<CallerAddress>().map(|caller| caller.0),
            principal: parts.extensions.get::<Principal>().map(Into::into),
            mode: parts.extensions.get::<AccessMode>().copied(),
            terms: parts.extensions.get::<WorkTerms>().cloned().unwrap_or_default(),
        };
        match exchange.send_all(Some(meta_json(&meta)), body.clone(), true).await {
            Ok(Delivery::Sent) => {}
            Ok(Delivery::Nobody) => {
                tracing::warn!(instance = %to, "the instance that held a session or a call is gone: it is lost");
                exchange.over();
                return Err(Gone);
            }
            Err(NotDelivered::Certainly(error)) => {
                tracing::warn!(instance = %to, %error, "a request could not be passed on");
                exchange.over();
                return Ok(refusal::no_channel());
            }
            Err(NotDelivered::Perhaps(error)) => {
                tracing::warn!(instance = %to, %error, "a request may not have been passed on");
                // The other side may have said why it wants no more.
                return match exchange.ended.reason() {
                    Some(Reason::Gone) => Err(Gone),
                    _ => Ok(refusal::broke_off(&body)),
                };
            }
        }
        match first_part(&mut exchange).await {
            Ok(part) => Ok(answer(exchange, part).unwrap_or_else(|| refusal::broke_off(&body))),
            Err(Reason::Gone) => {
                exchange.over();
                Err(Gone)
            }
            Err(Reason::Left | Reason::Broken) => {
                tracing::warn!(instance = %to, "the instance that held a session or a call broke off");
                Ok(refusal::broke_off(&body))
            }
        }
    }
}

/// The part with which the answer begins.
async fn first_part(exchange: &mut Exchange) -> Result<Part, Reason> {
    let sign = tokio::time::timeout(FIRST_SIGN, exchange.receive()).await;
    let mut part = sign.unwrap_or(Err(Reason::Broken))?;
    while part.meta.is_none() {
        part = exchange.receive().await?;
    }
    Ok(part)
}

/// The answer that begins with `part`; its body is read as the client takes it.
fn answer(mut exchange: Exchange, part: Part) -> Option<Response<Body>> {
    let meta: ResponseMeta = read_meta(&part)?;
    let status = StatusCode::from_u16(meta.status).ok()?;
    let mut received = headers(meta.headers);
    let names: Vec<HeaderName> =
        received.keys().filter(|name| HOP_BY_HOP.contains(&name.as_str())).cloned().collect();
    for name in names {
        received.remove(name);
    }
    let body = if part.end {
        exchange.over();
        Body::from(part.data)
    } else {
        Body::from_stream(rest(exchange, part.data))
    };
    let mut response = Response::new(body);
    *response.status_mut() = status;
    *response.headers_mut() = received;
    Some(response)
}

/// The body as a stream. When it breaks off the client sees that too.
fn rest(exchange: Exchange, first: Bytes) -> impl futures::Stream<Item = std::io::Result<Bytes>> {
    let begin = (Some(exchange), first);
    futures::stream::unfold(begin, |(mut exchange, first)| async move {
        if !first.is_empty() {
            return Some((Ok(first), (exchange, Bytes::new())));
        }
        loop {
            let open = exchange.as_mut()?;
            match open.receive().await {
                Ok(part) => {
                    if part.end {
                        open.over();
                        exchange = None;
                    }
                    if !part.data.is_empty() {
                        return Some((Ok(part.data), (exchange, Bytes::new())));
                    }
                }
                Err(_) => {
                    let broken = std::io::Error::from(std::io::ErrorKind::ConnectionReset);
                    return Some((Err(broken), (None, Bytes::new())));
                }
            }
        }
    })
}
