//! Sends each request of a connection to the endpoint or to another route, through the checks at the edge.

use std::{convert::Infallible, net::SocketAddr, sync::Arc};

use axum::{Router, body::Body, extract::ConnectInfo};
use gatewright_core::{BodyTimeout, CallerAddress, Network, caller_address, proxied_over_https};
use http::{HeaderValue, Request, Response, header};
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

use crate::{
    body,
    edge::{self, Edge},
    http_metrics::{self, Answered, Route},
    idle::{self, Times},
    mcp::{self, Endpoint},
    paths,
    unsent::CountedBody,
};

/// Sends each request to the endpoint or to the other routes. The endpoint is not one of the router's routes: its way
/// costs several microseconds.
#[derive(Clone)]
pub(crate) struct Dispatcher {
    pub(crate) edge: Arc<Edge>,
    pub(crate) endpoint: Arc<Endpoint>,
    pub(crate) routes: Router,
    /// Proxies that are believed about where requests come from.
    pub(crate) proxies: Arc<[Network]>,
    pub(crate) keep_alive: KeepAlive,
    pub(crate) answered: Option<Answered>,
}

/// Timeouts of connections, and the end of all of them.
#[derive(Clone)]
pub(crate) struct KeepAlive {
    pub(crate) times: Times,
    pub(crate) stopping: CancellationToken,
}

impl Dispatcher {
    pub(crate) async fn answer(
        self,
        mut request: Request<Body>,
        peer: SocketAddr,
        encrypted: bool,
    ) -> Result<Response<CountedBody>, Infallible> {
        request.extensions_mut().insert(ConnectInfo(peer));
        let Self { edge, endpoint, routes, proxies, keep_alive, answered } = self;
        let method = http_metrics::method(request.method());
        let path = edge.paths.find(request.uri().path());
        paths::note(&mut request, path.as_ref());
        // A name of the configuration, so that labels are bounded.
        let endpoint_path = path.as_ref().filter(|path| path.is_streamable && answered.is_some());
        let endpoint_path = endpoint_path.map(|_| request.uri().path().to_owned());
        let is_endpoint = path.is_some_and(|path| path.is_streamable);
        let is_kept = idle::is_kept(request.version(), request.headers());
        let address = peer.ip().to_canonical();
        let caller = caller_address(address, request.headers(), &proxies);
        request.extensions_mut().insert(CallerAddress(caller));
        let over_https = encrypted || proxied_over_https(address, request.headers(), &proxies);
        let (mut request, unfinished) = body::watched(request);
        let mut response = if is_endpoint {
            edge::pass(&edge, request, over_https, |request| mcp::serve(&endpoint, request)).await
        } else {
            request.extensions_mut().insert(BodyTimeout(endpoint.gate().body_time));
            let other = async |request: Request<Body>| match endpoint.gate().room_beside(caller, &request) {
                Ok(_room) => routes.oneshot(request).await.unwrap_or_else(|never| match never {}),
                Err(refused) => refused,
            };
            edge::pass(&edge, request, over_https, other).await
        };
        if encrypted {
            edge::stay_with_https(&mut response);
        }
        if unfinished.is_left() {
            // The rest of the body would be read as the next request: hyper closes, and says so.
            response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        } else if is_kept && !keep_alive.stopping.is_cancelled() {
            keep_alive.times.say(response.headers_mut());
        }
        if let Some(answered) = answered {
            let route = endpoint_path.as_deref().unwrap_or_else(|| Route::of(response.extensions()));
            answered(method, route, response.status());
        }
        let gate = endpoint.gate();
        Ok(gate.unsent.count(response, || gate.claimant_at(caller)))
    }
}
