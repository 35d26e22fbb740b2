//! `/healthz` and `/readyz`.
//!
//! `/healthz` is 200 as long as the process answers. `/readyz` is 503 while apps make their first connection and while the
//! server shuts down; an app that is down leaves it 200 with `"status": "degraded"`, for the other apps are served. Probes may name any
//! Host; apps and details are for requests that name an allowed one.

use std::sync::Arc;

use axum::{body::Body, extract::State};
use gatewright_core::AppHealth;
use http::{HeaderMap, Response, StatusCode, Uri};
use serde_json::{Value, json};

use crate::{gate::RequestGate, refusal};

/// More that `/readyz` tells, under a key of its own, to everybody who names an allowed Host.
pub(crate) type Detail = (&'static str, Arc<dyn Fn() -> Value + Send + Sync>);

/// State of `/readyz`.
#[derive(Clone)]
pub(crate) struct Ready {
    pub(crate) gate: Arc<RequestGate>,
    pub(crate) details: Arc<[Detail]>,
}

pub(crate) async fn alive() -> Response<Body> {
    refusal::json(StatusCode::OK, &json!({"status": "ok"}))
}

pub(crate) async fn ready(
    State(Ready { gate, details }): State<Ready>,
    uri: Uri,
    headers: HeaderMap,
) -> Response<Body> {
    let (status, mut body) = report(&gate, gate.is_open_to_all());
    // A page on the web can name a host of its own, and read what is told to it (DNS rebinding).
    if gate.allows_host(&uri, &headers) {
        for (key, value) in details.iter() {
            body[*key] = value();
        }
    } else {
        body = json!({"status": body["status"]});
    }
    refusal::json(status, &body)
}

/// The state of the server; `reasons` says whether to tell why an app is down.
fn report(gate: &RequestGate, reasons: bool) -> (StatusCode, Value) {
    let snapshot = gate.gateway.registry().operator_snapshot();
    let mut apps = serde_json::Map::new();
    let (mut starting, mut down) = (false, Vec::new());
    for entry in &snapshot.apps {
        let state = match entry.app.health() {
            AppHealth::Starting => {
                starting = true;
                json!({"status": "starting"})
            }
            AppHealth::Up => {
                let mut up = json!({"status": "up", "tools": entry.app.catalog().tools.len()});
                let found = snapshot.findings(&entry.id);
                if !found.is_empty() {
                    up["findings"] = if reasons { json!(found) } else { json!(found.len()) };
                }
                up
            }
            AppHealth::Down(why) => {
                down.push(entry.id.to_string());
                if reasons {
                    json!({"status": "down", "reason": why.to_string()})
                } else {
                    json!({"status": "down"})
                }
            }
        };
        apps.insert(entry.id.to_string(), state);
    }
    let (status, word) = match () {
        () if gate.stopping.is_cancelled() => (StatusCode::SERVICE_UNAVAILABLE, "stopping"),
        () if starting => (StatusCode::SERVICE_UNAVAILABLE, "starting"),
        () if !down.is_empty() => (StatusCode::OK, "degraded"),
        () => (StatusCode::OK, "ready"),
    };
    (status, json!({"status": word, "down": down, "apps": apps}))
}
