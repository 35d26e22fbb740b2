//! How many codes the token endpoint exchanges in a second, against the floor of signing and one store step alone.
//!
//! `cargo run --release -p gatewright-auth --example token_endpoint [redis port] [rsa key file]`: with a port, the store is that Redis; with a
//! file, tokens are signed with the RSA key in it instead of ES256.

use std::{sync::Arc, time::Instant};

use axum::{Router, body::Body};
use gatewright_auth::{
    AuthConfig, AuthorizationServer, Deployment, LogAudit, ServerParts, SystemClock, SystemEntropy,
    store::{MemoryStore, RedisEndpoint, RedisStore, Store},
};
use http::{Request, Response, header};
use tower::ServiceExt as _;

const ISSUER: &str = "http://127.0.0.1:3000";
const VERIFIER: &str = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
const CHALLENGE: &str = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";
const ROUNDS: usize = 4000;
const AT_ONCE: usize = 16;

type Outcome<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

async fn send(router: &Router, request: Request<Body>) -> Outcome<Response<Body>> {
    Ok(router.clone().oneshot(request).await?)
}

fn form(path: &str, body: String) -> Outcome<Request<Body>> {
    Ok(Request::post(path)
        .header("content-type", "application/x-www-form-urlencoded")
        .body(Body::from(body))?)
}

fn field(page: &str, name: &str) -> Option<String> {
    Some(page.split_once(&format!("name=\"{name}\" value=\""))?.1.split('"').next()?.to_owned())
}

fn cookies(response: &Response<Body>) -> Vec<String> {
    let values =
        response.headers().get_all(header::SET_COOKIE).iter().filter_map(|value| value.to_str().ok());
    values.filter_map(|value| value.split(';').next()).map(str::to_owned).collect()
}

/// The cookies of a browser that is logged in.
async fn log_in(router: &Router, ask: &str) -> Outcome<String> {
    let response = send(router, Request::get(ask).body(Body::empty())?).await?;
    let mut held = cookies(&response);
    let page = axum::body::to_bytes(response.into_body(), 1 << 20).await?;
    let page = String::from_utf8(page.to_vec())?;
    let hidden = |name: &str| field(&page, name).ok_or("no login page");
    let body = format!("pending={}&csrf={}&username=ann", hidden("pending")?, hidden("csrf")?);
    let mut request = form("/oauth/login", body)?;
    request.headers_mut().insert(header::COOKIE, held.join("; ").parse()?);
    held.extend(cookies(&send(router, request).await?));
    Ok(held.join("; "))
}

#[tokio::main]
async fn main() -> Outcome<()> {
    let mut args = std::env::args().skip(1);
    let clock = Arc::new(SystemClock);
    let port = args.next().filter(|port| port != "-");
    let store: Arc<dyn Store> = match &port {
        Some(port) => Arc::new(RedisStore::connect(&RedisEndpoint::new("127.0.0.1", port.parse()?)).await?),
        None => Arc::new(MemoryStore::new(clock.clone())),
    };
    let mut value = serde_json::json!({
        "mode": "orchestrated", "local": {"login": "demo"}, "consent": {"enabled": false}, "scopes": {"read": "Read"},
        "clients": [{"clientId": "app", "redirectUris": ["https://c.example/cb"]}],
        "limits": {"token": 1_000_000_000, "authorize": 1_000_000_000},
    });
    if let Some(file) = args.next() {
        value["local"]["signKey"] = serde_json::from_str(&std::fs::read_to_string(file)?)?;
    }
    let config: AuthConfig = serde_json::from_value(value)?;
    let parts = ServerParts { store, clock, entropy: Arc::new(SystemEntropy), audit: Arc::new(LogAudit) };
    let server =
        AuthorizationServer::with_parts(config, Deployment::new(ISSUER, "/mcp", "bench"), parts).await?;
    let router = server.router();

    let ask = format!(
        "/oauth/authorize?response_type=code&client_id=app&state=s&code_challenge={CHALLENGE}&code_challenge_method=S256&scope=read"
    );
    let cookie = log_in(&router, &ask).await?;
    let mut codes = Vec::new();
    for _ in 0..ROUNDS {
        let request = Request::get(&ask).header("cookie", &cookie).body(Body::empty())?;
        let response = send(&router, request).await?;
        let target = response.headers().get("location").ok_or("no redirect")?.to_str()?;
        let code = url::Url::parse(target)?
            .query_pairs()
            .find(|(name, _)| name == "code")
            .ok_or("no code")?
            .1
            .into_owned();
        codes.push(code);
    }

    let key = server.keys().snapshot().await.signing().clone();
    let began = Instant::now();
    (0..500).for_each(|n: u32| drop(key.sign(&n.to_be_bytes().repeat(100))));
    let sign_us = began.elapsed().as_secs_f64() * 1e6 / 500.0;

    let began = Instant::now();
    let mut tasks = Vec::new();
    for part in codes.chunks(ROUNDS.div_ceil(AT_ONCE)) {
        let (router, part) = (router.clone(), part.to_vec());
        tasks.push(tokio::spawn(async move {
            let (mut times, mut last) = (Vec::new(), Default::default());
            for code in part {
                let body = format!(
                    "grant_type=authorization_code&client_id=app&code_verifier={VERIFIER}&code={code}"
                );
                let began = Instant::now();
                let response = send(&router, form("/oauth/token", body)?).await?;
                times.push(began.elapsed());
                if response.status() != 200 {
                    return Err(format!("status {}", response.status()).into());
                }
                last = axum::body::to_bytes(response.into_body(), 1 << 20).await?;
            }
            Outcome::Ok((times, last))
        }));
    }
    let (mut times, mut last) = (Vec::new(), Default::default());
    for task in tasks {
        let (part, body) = task.await??;
        times.extend(part);
        last = body;
    }
    let all = began.elapsed().as_secs_f64();
    times.sort();
    let body: serde_json::Value = serde_json::from_slice(&last)?;
    let bearer = format!("Bearer {}", body["access_token"].as_str().ok_or("no token")?);
    let call = Request::post("/mcp").header("authorization", bearer).body(())?.into_parts().0;
    let guard = server.resource_server();
    let began = Instant::now();
    for _ in 0..100_000 {
        guard.authenticate(&call).await.map_err(|refused| refused.status().to_string())?;
    }
    let check_us = began.elapsed().as_secs_f64() * 1e6 / 100_000.0;
    println!(
        "{:?}, {}: {:.0} exchanges/s ({AT_ONCE} at once), p50 {:?}, p99 {:?}; a signature alone takes {sign_us:.0} us, a call's check {check_us:.2} us",
        key.algorithm(),
        port.map_or("memory".to_owned(), |port| format!("redis on {port}")),
        ROUNDS as f64 / all,
        times[times.len() / 2],
        times[times.len() * 99 / 100],
    );
    Ok(())
}
