//! The listener and its routes.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use axum::{
    Json, Router,
    body::Body,
    extract::State,
    middleware::from_fn_with_state,
    response::{IntoResponse, Redirect, Response},
    routing::get,
};
use gatewright_core::{AppHealth, Registry};
use http::{Request, StatusCode, header};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use serde_json::json;
use tokio::{
    net::TcpListener,
    sync::Mutex,
    task::{JoinSet, spawn_blocking},
};
use tokio_io_timeout::TimeoutStream;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt as _;

use super::{
    config::AdminConfig,
    connections::{Connections, MOST_CONNECTIONS, Trusted},
    guard,
};

/// The listener could not be opened.
#[derive(Debug, thiserror::Error)]
#[error(
    "the admin listener cannot listen on {address}: {source}; choose another `admin.port` or `admin.host`"
)]
pub struct AdminError {
    address: SocketAddr,
    source: std::io::Error,
}

type Render = Arc<dyn Fn() -> String + Send + Sync>;

#[derive(Clone)]
struct Metrics {
    all: Arc<[Render]>,
    /// Held by the scrape under way.
    turn: Arc<Mutex<()>>,
}

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

    /// Redirects `/` to this path.
    #[must_use]
    pub fn home(mut self, path: &'static str) -> Self {
        self.home = Some(path);
        self
    }

    /// The routes, behind the guard.
    pub fn router(&self) -> Router {
        let metrics = Metrics { all: self.metrics.clone().into(), turn: Arc::default() };
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
        routes.layer(from_fn_with_state(guard, guard::check))
    }

    /// Listens, and serves in the background until `stop`. Gives the address, with the port that was chosen.
    ///
    /// # Errors
    /// The address cannot be had.
    pub async fn start(self, stop: CancellationToken) -> Result<SocketAddr, AdminError> {
        let address = SocketAddr::new(self.config.host, self.config.port);
        let failed = |source| AdminError { address, source };
        let listener = TcpListener::bind(address).await.map_err(failed)?;
        let bound = listener.local_addr().map_err(failed)?;
        tokio::spawn(serve(listener, self.router(), stop));
        Ok(bound)
    }
}

/// Longest time that a connection may be idle, take to send the headers of a request, or take nothing of an answer.
const WAIT: Duration = Duration::from_secs(75);
/// Bytes that a connection may have read of a head before it reads on: a head has less than twice as many.
const MOST_BUFFERED: usize = 64 * 1024;

async fn serve(listener: TcpListener, routes: Router, stop: CancellationToken) {
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(WAIT).max_buf_size(MOST_BUFFERED);
    let (mut tasks, mut connections) = (JoinSet::new(), Connections::default());
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            Some(_) = tasks.join_next() => continue,
            // Streams that follow live never end by themselves: whoever watches is cut off.
            () = stop.cancelled() => return,
        };
        match accepted {
            Ok(_) if !connections.make_room() => {
                tracing::warn!(
                    most = MOST_CONNECTIONS,
                    "the admin listener has too many connections; one was closed"
                );
            }
            Ok((socket, _)) => {
                let (routes, trusted) = (routes.clone(), Trusted::default());
                let mark = trusted.clone();
                let service = service_fn(move |request: Request<Incoming>| {
                    let mut request = request.map(Body::new);
                    request.extensions_mut().insert(mark.clone());
                    routes.clone().oneshot(request)
                });
                let mut socket = TimeoutStream::new(socket);
                socket.set_write_timeout(Some(WAIT));
                let task = tasks.spawn(http.serve_connection(TokioIo::new(Box::pin(socket)), service));
                connections.add(task, trusted);
            }
            Err(error) => {
                // Out of file descriptors, most likely: let connections end before the next try.
                tracing::error!(%error, "a connection cannot be accepted by the admin listener");
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
    }
}

/// Responds with all metrics. They are written on a thread for such work, one scrape after another: thousands of series take a while.
async fn scrape(State(Metrics { all, turn }): State<Metrics>) -> Response {
    let _turn = turn.lock().await;
    let written = spawn_blocking(move || all.iter().map(|render| render()).collect::<String>()).await;
    match written {
        Ok(text) => {
            ([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text).into_response()
        }
        Err(error) => {
            tracing::error!(%error, "the metrics cannot be written");
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    }
}

async fn ready(State(registry): State<Arc<Registry>>) -> Response {
    let starting =
        registry.operator_snapshot().apps.iter().any(|app| matches!(app.app.health(), AppHealth::Starting));
    match starting {
        true => (StatusCode::SERVICE_UNAVAILABLE, Json(json!({"status": "starting"}))).into_response(),
        false => Json(json!({"status": "ready"})).into_response(),
    }
}

#[cfg(test)]
mod tests {
    use axum::body::to_bytes;
    use gatewright_core::ToolNames;
    use tokio::{
        io::{AsyncReadExt as _, AsyncWriteExt as _},
        net::TcpStream,
    };

    use super::*;

    async fn started() -> (SocketAddr, CancellationToken) {
        let config = AdminConfig { port: 0, ..AdminConfig::default() };
        let stop = CancellationToken::new();
        let admin = Admin::new(config, Registry::new(ToolNames::default())).metrics(|| "answer 42\n".into());
        (admin.start(stop.clone()).await.unwrap(), stop)
    }

    async fn asked(stream: &mut TcpStream) -> String {
        stream
            .write_all(b"GET /metrics HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
            .await
            .unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).await.unwrap();
        text
    }

    #[tokio::test]
    async fn strangers_with_all_connections_keep_nobody_out_and_close_none_that_has_shown_the_token() {
        let config =
            AdminConfig { port: 0, token: Some("a-long-enough-secret".into()), ..AdminConfig::default() };
        let stop = CancellationToken::new();
        let admin = Admin::new(config, Registry::new(ToolNames::default())).metrics(|| "answer 42\n".into());
        let address = admin.start(stop.clone()).await.unwrap();
        async fn ask(stream: &mut TcpStream) -> String {
            let request = "GET /metrics HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer a-long-enough-secret\r\n\r\n";
            stream.write_all(request.as_bytes()).await.unwrap();
            let (mut text, mut buffer) = (String::new(), [0; 1024]);
            while !text.ends_with("answer 42\n") {
                let read = stream.read(&mut buffer).await.unwrap();
                assert!(read > 0, "{text}");
                text.push_str(std::str::from_utf8(&buffer[..read]).unwrap());
            }
            text
        }
        let mut operator = TcpStream::connect(address).await.unwrap();
        ask(&mut operator).await;
        let mut open = Vec::new();
        for _ in 0..2 * MOST_CONNECTIONS {
            open.push(TcpStream::connect(address).await.unwrap());
        }
        ask(&mut operator).await;
        ask(&mut TcpStream::connect(address).await.unwrap()).await;
        // The oldest of the others was closed.
        let closed = open[0].read(&mut [0; 1]).await;
        assert!(matches!(closed, Ok(0) | Err(_)), "{closed:?}");
    }

    #[tokio::test]
    async fn there_is_room_again_when_connections_end() {
        let (address, _stop) = started().await;
        let mut open = Vec::new();
        for _ in 0..MOST_CONNECTIONS {
            open.push(TcpStream::connect(address).await.unwrap());
        }
        assert!(asked(open.last_mut().unwrap()).await.contains("answer 42"));
        drop(open);
        let again = async {
            loop {
                let mut stream = TcpStream::connect(address).await.unwrap();
                let ask = stream
                    .write_all(b"GET /metrics HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
                    .await;
                let mut text = String::new();
                if ask.is_ok() && stream.read_to_string(&mut text).await.is_ok() && text.contains("answer 42")
                {
                    return;
                }
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(Duration::from_secs(60), again).await.expect("there is room again");
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_that_sends_no_request_or_half_of_one_is_closed_in_time() {
        let (address, _stop) = started().await;
        for sent in [&b""[..], b"GET /metrics HTTP/1.1\r\nhost: loc"] {
            let mut stream = TcpStream::connect(address).await.unwrap();
            stream.write_all(sent).await.unwrap();
            let mut rest = Vec::new();
            // The paused clock advances once every task waits.
            let closed = tokio::time::timeout(2 * WAIT, stream.read_to_end(&mut rest)).await;
            assert!(closed.is_ok(), "{sent:?} is held open");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_does_not_read_its_answer_is_cut_off_in_time() {
        const LONG: usize = 64 << 20;
        let config = AdminConfig { port: 0, ..AdminConfig::default() };
        let admin = Admin::new(config, Registry::new(ToolNames::default())).metrics(|| "x".repeat(LONG));
        let stop = CancellationToken::new();
        let mut stream = TcpStream::connect(admin.start(stop.clone()).await.unwrap()).await.unwrap();
        stream.write_all(b"GET /metrics HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
        let mut text = vec![0; 100];
        stream.read_exact(&mut text).await.unwrap();
        // The paused clock advances once every task waits.
        tokio::time::sleep(2 * WAIT).await;
        // Reset, or ended.
        let _ = stream.read_to_end(&mut text).await;
        assert!(text.len() < LONG, "all {} bytes were kept for it", text.len());
    }

    #[tokio::test]
    async fn a_head_of_two_hundred_kilobytes_is_refused() {
        let (address, _stop) = started().await;
        let mut stream = TcpStream::connect(address).await.unwrap();
        let head = format!(
            "GET /metrics HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\nx-filler: {}\r\n\r\n",
            "x".repeat(200_000)
        );
        let _ = stream.write_all(head.as_bytes()).await;
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer).await;
        assert!(!answer.starts_with(b"HTTP/1.1 200"));
    }

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
        for (token, status) in [
            ("Bearer a-long-enough-secret", 200),
            (&basic, 200),
            ("Bearer wrong", 401),
            ("Basic !!", 401),
            ("x", 401),
        ] {
            assert_eq!(
                get(&router, "/metrics", &[host, ("authorization", token)]).await.0,
                status,
                "{token}"
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
