//! The one answer to a batch: the answers to its messages come on one stream, in the order in which they are ready.

use std::sync::Arc;

use axum::body::Body;
use bytes::Bytes;
use futures::{StreamExt, stream};
use gatewright_core::{AnswerRoom, Claimant};
use http::{HeaderValue, Response, StatusCode, header};
use http_body_util::BodyExt as _;
use tokio::{
    sync::mpsc::{self, UnboundedReceiver, UnboundedSender},
    task::JoinSet,
};

use crate::unsent::{UnsentBudget, for_caller};

/// The answers to the messages of a batch. Each is taken as soon as it is there, and what its client has not read yet counts for its caller.
pub(crate) struct BatchAnswers {
    budget: Arc<UnsentBudget>,
    caller: Arc<Claimant>,
    sender: UnboundedSender<Event>,
    receiver: UnboundedReceiver<Event>,
    /// Those that are read. They end with this.
    read: JoinSet<()>,
}

type Event = Result<Bytes, axum::Error>;

impl BatchAnswers {
    /// None yet, of a batch of `caller`.
    pub(crate) fn new(budget: Arc<UnsentBudget>, caller: Arc<Claimant>) -> Self {
        let (sender, receiver) = mpsc::unbounded_channel();
        Self { budget, caller, sender, receiver, read: JoinSet::new() }
    }

    /// Adds the answer to a message, which needs `room` until it is taken. Notifications have none.
    pub(crate) fn add(&mut self, answer: Response<Body>, room: AnswerRoom) {
        if answer.status() == StatusCode::ACCEPTED {
            return;
        }
        let mut answer = event_stream(Body::from_stream(events(answer)));
        for_caller(&mut answer, self.caller.clone());
        let mut events = self.budget.count(answer, Claimant::default).into_body().into_data_stream();
        let sender = self.sender.clone();
        self.read.spawn(async move {
            let _room = room;
            while let Some(event) = events.next().await {
                if sender.send(event).is_err() {
                    break;
                }
            }
        });
    }

    /// One answer out of all.
    pub(crate) fn into_response(self) -> Response<Body> {
        let Self { mut receiver, read, sender, .. } = self;
        if read.is_empty() {
            let mut accepted = Response::new(Body::empty());
            *accepted.status_mut() = StatusCode::ACCEPTED;
            return accepted;
        }
        // Those that are read have theirs.
        drop(sender);
        let events = stream::poll_fn(move |cx| {
            let _read = &read;
            receiver.poll_recv(cx)
        });
        event_stream(Body::from_stream(events))
    }
}

/// An event stream.
fn event_stream(body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    for (name, value) in [
        (header::CONTENT_TYPE, "text/event-stream"),
        (header::CACHE_CONTROL, "no-cache"),
        (header::HeaderName::from_static("x-accel-buffering"), "no"),
    ] {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}

type Events = stream::BoxStream<'static, Result<Bytes, axum::Error>>;

/// The events of an answer; JSON becomes one event. Each piece of a stream that `rmcp` sends is a whole event.
fn events(answer: Response<Body>) -> Events {
    let is_stream =
        answer.headers().get(header::CONTENT_TYPE).is_some_and(|kind| kind == "text/event-stream");
    let body = answer.into_body();
    if is_stream {
        return StreamExt::boxed(body.into_data_stream());
    }
    let event = async move {
        let json = axum::body::to_bytes(body, usize::MAX).await?;
        Ok(Bytes::from([b"data: ", &*json, b"\n\n"].concat()))
    };
    StreamExt::boxed(stream::once(event))
}
