//! A web server of a test on a loopback port: what identity providers and client documents are played with.

use std::{
    collections::HashMap,
    net::SocketAddr,
    sync::{Arc, Mutex},
};

use axum::{Router, body::Body, extract::State, response::Response};
use http::{Request, StatusCode};
use tokio::sync::Semaphore;

/// A canned response.
#[derive(Clone)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: String,
}

impl Reply {
    pub(crate) fn json(value: impl ToString) -> Self {
        Self {
            status: 200,
            headers: vec![("content-type", "application/json".into())],
            body: value.to_string(),
        }
    }
}

#[derive(Default)]
struct Shared {
    gates: HashMap<String, Arc<Semaphore>>,
    replies: HashMap<String, Reply>,
    seen: Vec<(String, String)>,
}

#[derive(Clone)]
pub(crate) struct Web {
    shared: Arc<Mutex<Shared>>,
    pub(crate) addr: SocketAddr,
}

async fn answer(State(shared): State<Arc<Mutex<Shared>>>, request: Request<Body>) -> Response {
    let path = request.uri().path().to_owned();
    let body = axum::body::to_bytes(request.into_body(), 1 << 20).await.unwrap();
    let gate = {
        let mut shared = shared.lock().unwrap();
        shared.seen.push((path.clone(), String::from_utf8_lossy(&body).into_owned()));
        shared.gates.get(&path).cloned()
    };
    if let Some(gate) = gate {
        gate.acquire().await.unwrap().forget();
    }
    let shared = shared.lock().unwrap();
    let reply = shared.replies.get(&path).cloned();
    let reply = reply.unwrap_or(Reply { status: 404, headers: Vec::new(), body: String::new() });
    let mut response = Response::new(Body::from(reply.body));
    *response.status_mut() = StatusCode::from_u16(reply.status).unwrap();
    for (name, value) in reply.headers {
        response.headers_mut().insert(name, value.parse().unwrap());
    }
    response
}

impl Web {
    pub(crate) async fn start() -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let addr = listener.local_addr().unwrap();
        let shared = Arc::new(Mutex::new(Shared::default()));
        let router = Router::new().fallback(answer).with_state(shared.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { shared, addr }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.addr)
    }

    pub(crate) fn on(&self, path: &str, reply: Reply) {
        self.shared.lock().unwrap().replies.insert(path.to_owned(), reply);
    }

    /// Lets no answer of a path out but those that permits are added for.
    pub(crate) fn hold(&self, path: &str) -> Arc<Semaphore> {
        let gate = Arc::new(Semaphore::new(0));
        self.shared.lock().unwrap().gates.insert(path.to_owned(), gate.clone());
        gate
    }

    pub(crate) fn off(&self, path: &str) {
        self.shared.lock().unwrap().replies.remove(path);
    }

    /// The body a path is answered with.
    pub(crate) fn held(&self, path: &str) -> String {
        self.shared.lock().unwrap().replies[path].body.clone()
    }

    /// Path and body of every request.
    pub(crate) fn seen(&self) -> Vec<(String, String)> {
        self.shared.lock().unwrap().seen.clone()
    }

    pub(crate) fn count(&self, path: &str) -> usize {
        self.shared.lock().unwrap().seen.iter().filter(|(held, _)| held == path).count()
    }

    pub(crate) fn last_body(&self, path: &str) -> String {
        self.shared.lock().unwrap().seen.iter().rev().find(|(held, _)| held == path).unwrap().1.clone()
    }
}
