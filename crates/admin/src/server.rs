//! The listener and its routes.

use std::{net::SocketAddr, sync::Arc};

use axum::{
    Json, Router,
    extract::State,
    middleware::from_fn_with_state,
    response::{IntoResponse, Redirect, Response},
    routing::get,
};
use gatewright_core::{AppHealth, Registry};
use http::{StatusCode, header};
use serde_json::json;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::{AdminConfig, guard};

/// Why there is no listener.
#[derive(Debug, thiserror::Error)]
#[error(
    "the admin listener cannot listen on {address}: {source}; choose another `admin.port` or `admin.host`"
)]
pub struct AdminError {
    address: SocketAddr,
    source: std::io::Error,
}

type Render = Arc<dyn Fn() -> String + Send + Sync>;

/// The admin listener of one gateway.
pub struct Admin {
    config: AdminConfig,
    registry: Arc<Registry>,
    metrics: Vec<Render>,
    extra: Router,
    home: Option<&'static str>,
}

impl std::fmt::Debug for Admin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Admin").field("config", &self.config).finish_non_exhaustive()
    }
}

impl Admin {
    /// A listener over what `registry` holds.
    pub fn new(config: AdminConfig, registry: Arc<Registry>) -> Self {
        Self { config, registry, metrics: Vec::new(), extra: Router::new(), home: None }
    }

    /// Adds what `render` gives (Prometheus' text format) to `/metrics`.
    #[must_use]
    pub fn metrics(mut self, render: impl Fn() -> String + Send + Sync + 'static) -> Self {
        self.metrics.push(Arc::new(render));
        self
    }

    /// Serves more routes, guarded like its own.
    #[must_use]
    pub fn merge(mut self, routes: Router) -> Self {
        self.extra = self.extra.merge(routes);
        self
    }

    /// Where `/` leads.
    #[must_use]
    pub fn home(mut self, path: &'static str) -> Self {
        self.home = Some(path);
        self
    }

    /// The routes, behind the guard.
    pub fn router(&self) -> Router {
        let metrics: Arc<[Render]> = self.metrics.clone().into();
        let mut routes = self
            .extra
            .clone()
            .route("/metrics", get(scrape).with_state(metrics))
            .route("/healthz", get(async || Json(json!({"status": "ok"}))))
            .route("/readyz", get(ready).with_state(self.registry.clone()));
        if let Some(home) = self.home {
            routes = routes.route("/", get(async move || Redirect::temporary(home)));
        }
        let guard = guard::Guard {
            token: self.config.token.clone(),
            allowed_hosts: self.config.allowed_hosts.clone(),
        };
        routes.layer(from_fn_with_state(guard, guard::watch))
    }

    /// Listens, and serves in the background until `stop`. Gives the address, with the port that was chosen.
    ///
    /// # Errors
    /// The address cannot be had.
    pub async fn start(self, stop: CancellationToken) -> Result<SocketAddr, AdminError> {
        let address = SocketAddr::new(self.config.host, self.config.port);
        let told = |source| AdminError { address, source };
        let listener = TcpListener::bind(address).await.map_err(told)?;
        let bound = listener.local_addr().map_err(told)?;
        let routes = self.router();
        tokio::spawn(async move {
            // Streams that follow live never end by themselves: whoever watches is cut off.
            let serve = axum::serve(listener, routes);
            tokio::select! {
                Err(error) = serve.into_future() => tracing::error!(%error, "the admin listener ended"),
                () = stop.cancelled() => {}
            }
        });
        Ok(bound)
    }
}

async fn scrape(State(metrics): State<Arc<[Render]>>) -> Response {
    let text: String = metrics.iter().map(|render| render()).collect();
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text).into_response()
}

async fn ready(State(registry): State<Arc<Registry>>) -> Response {
    let starting = registry.snapshot().apps.iter().any(|app| matches!(app.app.health(), AppHealth::Starting));
    match starting {
        true => (StatusCode::SERVICE_UNAVAILABLE, Json(json!({"status": "starting"}))).into_response(),
        false => Json(json!({"status": "ready"})).into_response(),
    }
}

#[cfg(test)]
mod tests {
    use axum::body::{Body, to_bytes};
    use gatewright_core::ToolNames;
    use http::Request;
    use tower::ServiceExt as _;

    use super::*;

    fn admin(token: Option<&str>) -> Router {
        let config = AdminConfig {
            token: token.map(Into::into),
            allowed_hosts: vec!["ops.example".into()],
            ..AdminConfig::default()
        };
        Admin::new(config, Registry::new(ToolNames::default())).metrics(|| "answer 42\n".into()).router()
    }

    async fn get(router: &Router, path: &str, headers: &[(&str, &str)]) -> (u16, String) {
        let mut request = Request::get(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let answer = router.clone().oneshot(request.body(Body::empty()).unwrap()).await.unwrap();
        let status = answer.status().as_u16();
        (status, String::from_utf8(to_bytes(answer.into_body(), 4096).await.unwrap().to_vec()).unwrap())
    }

    #[tokio::test]
    async fn metrics_are_served_to_whoever_names_the_right_host() {
        let router = admin(None);
        for host in ["127.0.0.1:9464", "[::1]:9464", "localhost", "OPS.example:80"] {
            assert_eq!(
                get(&router, "/metrics", &[("host", host)]).await,
                (200, "answer 42\n".into()),
                "{host}"
            );
        }
        for host in ["evil.example", "127.0.0.1.evil.example", ""] {
            assert_eq!(get(&router, "/metrics", &[("host", host)]).await.0, 421, "{host}");
        }
        assert_eq!(get(&router, "/metrics", &[]).await.0, 421);
    }

    #[tokio::test]
    async fn with_a_token_only_health_is_open() {
        let router = admin(Some("a-long-enough-secret"));
        let host = ("host", "localhost");
        assert_eq!(get(&router, "/healthz", &[host]).await.0, 200);
        let basic = format!("Basic {}", {
            use base64::{Engine as _, engine::general_purpose::STANDARD};
            STANDARD.encode("ops:a-long-enough-secret")
        });
        for (shown, status) in [
            ("Bearer a-long-enough-secret", 200),
            (&basic, 200),
            ("Bearer wrong", 401),
            ("Basic !!", 401),
            ("x", 401),
        ] {
            assert_eq!(
                get(&router, "/metrics", &[host, ("authorization", shown)]).await.0,
                status,
                "{shown}"
            );
        }
        assert_eq!(get(&router, "/readyz", &[host]).await.0, 401);
    }

    #[test]
    fn beyond_loopback_a_token_is_needed() {
        let mut config = AdminConfig { host: [0, 0, 0, 0].into(), ..AdminConfig::default() };
        assert_eq!(config.problems().len(), 1);
        config.token = Some("short".into());
        assert_eq!(config.problems().len(), 1);
        config.token = Some("a-long-enough-secret".into());
        assert!(config.problems().is_empty());
    }
}
