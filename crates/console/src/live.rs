//! Live updates: server-sent events (WHATWG HTML §9.2) with fragments of the pages.
//!
//! The event `run` carries a new row of the calls that fit the page's filter, `apps` the apps of the overview. A browser that reconnects
//! gets the rows that it missed.

use std::{
    convert::Infallible,
    future::ready,
    sync::Arc,
    time::{Duration, SystemTime},
};

use axum::{
    extract::{Query, State},
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
    ConsoleState, Entry,
    filter::Filter,
    pages::{calls, overview},
};

/// Most rows sent after a reconnect.
const MOST_MISSED: usize = 50;

/// `GET /console/live`.
pub(crate) async fn follow(
    State(state): State<Arc<ConsoleState>>,
    Query(filter): Query<Filter>,
    headers: HeaderMap,
) -> Response {
    let Ok(permit) = state.live.clone().try_acquire_owned() else {
        return (
            StatusCode::SERVICE_UNAVAILABLE,
            "Too many pages receive live updates; reload to see new calls.",
        )
            .into_response();
    };
    let last = headers.get("last-event-id").and_then(|id| id.to_str().ok()).and_then(|id| id.parse().ok());
    let (mut missed, added) = state.history.subscribe(last);
    missed.drain(..missed.len().saturating_sub(MOST_MISSED));
    let entries = stream::iter(missed).map(Ok).chain(BroadcastStream::new(added));
    let runs = entries.filter_map(move |entry| {
        let event = match entry {
            Ok(entry) => filter.fits(&entry.execution, SystemTime::now()).then(|| row(&entry)),
            // The browser is too slow and missed rows: it reloads the page.
            Err(_) => Some(Event::default().event("reload").data("-")),
        };
        ready(event)
    });
    let apps = {
        let state = state.clone();
        let changes = WatchStream::from_changes(state.health.changes());
        changes.map(move |_| fragment("apps", &overview::apps(&state)))
    };
    let events =
        stream::select(runs, apps).map(Ok::<_, Infallible>).take_until(state.stop.clone().cancelled_owned());
    let events = with_permit(events, permit);
    Sse::new(events).keep_alive(KeepAlive::new().interval(Duration::from_secs(15))).into_response()
}

fn row(entry: &Entry) -> Event {
    fragment("run", &calls::row(entry, entry.execution.duration)).id(entry.id.to_string())
}

fn fragment(name: &str, markup: &Markup) -> Event {
    // An event's data must not contain a bare carriage return: `axum` panics on it.
    Event::default().event(name).data(markup.0.replace('\r', ""))
}

/// Keeps `permit`, one of [`MAX_LIVE`](crate::MAX_LIVE), until the stream ends.
fn with_permit<S: futures::Stream>(
    stream: S,
    permit: OwnedSemaphorePermit,
) -> impl futures::Stream<Item = S::Item> {
    stream.map(move |item| {
        let _ = &permit;
        item
    })
}
