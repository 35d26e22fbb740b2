//! Live updates: server-sent events (WHATWG HTML §9.2) with fragments of the pages.
//!
//! `run` carries one more row of the executions, `apps` the apps of the overview. Whoever reconnects gets what was missed.

use std::{convert::Infallible, sync::Arc, time::Duration};

use axum::{
    extract::State,
    response::{
        IntoResponse, Response,
        sse::{Event, KeepAlive, Sse},
    },
};
use futures::{StreamExt, stream};
use http::{HeaderMap, StatusCode};
use maud::Markup;
use tokio::sync::OwnedSemaphorePermit;
use tokio_stream::wrappers::{BroadcastStream, WatchStream};

use crate::{
    Execution, Shared,
    pages::{executions, overview},
};

/// Missed rows sent at a reconnect; more than this and the page is better loaded anew.
const MOST_MISSED: usize = 50;

/// `GET /console/live`.
pub(crate) async fn follow(State(shared): State<Arc<Shared>>, headers: HeaderMap) -> Response {
    let Ok(permit) = shared.live.clone().try_acquire_owned() else {
        return (StatusCode::SERVICE_UNAVAILABLE, "Too many pages follow live; reload to see what is new.")
            .into_response();
    };
    let last = headers.get("last-event-id").and_then(|id| id.to_str().ok()).and_then(|id| id.parse().ok());
    let (mut missed, news) = shared.journal.follow(last);
    missed.drain(..missed.len().saturating_sub(MOST_MISSED));
    let missed = stream::iter(missed).map(|execution| row(&execution));
    let runs = missed.chain(BroadcastStream::new(news).map(|news| match news {
        Ok(execution) => row(&execution),
        // Too slow for what happened: the page is loaded anew.
        Err(_) => Event::default().event("reload").data("-"),
    }));
    let apps = {
        let shared = shared.clone();
        let changes = WatchStream::from_changes(shared.health.changes());
        changes.map(move |_| fragment("apps", &overview::apps(&shared)))
    };
    let events =
        stream::select(runs, apps).map(Ok::<_, Infallible>).take_until(shared.stop.clone().cancelled_owned());
    let events = held(events, permit);
    Sse::new(events).keep_alive(KeepAlive::new().interval(Duration::from_secs(15))).into_response()
}

fn row(execution: &Execution) -> Event {
    fragment("run", &executions::row(execution)).id(execution.id.to_string())
}

fn fragment(name: &str, markup: &Markup) -> Event {
    // An event's data must not contain a bare carriage return: `axum` panics on it.
    Event::default().event(name).data(markup.0.replace('\r', ""))
}

/// The stream, with its place among the [`MAX_LIVE`](crate::MAX_LIVE) kept until it ends.
fn held<S: futures::Stream>(stream: S, permit: OwnedSemaphorePermit) -> impl futures::Stream<Item = S::Item> {
    stream.map(move |item| {
        let _ = &permit;
        item
    })
}
