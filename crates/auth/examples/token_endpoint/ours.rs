//! The authorization server, with codes minted through its own login.

use gatewright_core::Authenticator as _;
use std::{net::SocketAddr, sync::Arc, time::Instant};

use axum::{Router, body::Body};
use gatewright_auth::{
    AuthConfig, AuthorizationServer, Deployment, LogAudit, ServerParts, SystemClock, SystemEntropy,
    store::{RedisEndpoint, RedisStore},
};
use http::{Request, Response, header};
use tower::ServiceExt as _;

use crate::{CODES, Outcome, VERIFIER, signing_key};

const ISSUER: &str = "http://127.0.0.1:3000";
const CHALLENGE: &str = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";

async fn open(algorithm: &str, redis: u16) -> Outcome<(AuthorizationServer, Vec<String>)> {
    let endpoint =
        RedisEndpoint { key_prefix: format!("{algorithm}:"), ..RedisEndpoint::new("127.0.0.1", redis) };
    let store = Arc::new(RedisStore::connect(&endpoint).await?);
    let config: AuthConfig = serde_json::from_value(serde_json::json!({
        "mode": "orchestrated", "consent": {"enabled": false}, "scopes": {"read": "Read"},
        "local": {"login": "demo", "signKey": signing_key(algorithm)?},
        "clients": [{"clientId": "app", "redirectUris": ["https://c.example/cb"]}],
        "limits": {"token": 1_000_000_000, "authorize": 1_000_000_000},
    }))?;
    let (clock, entropy) = (Arc::new(SystemClock), Arc::new(SystemEntropy));
    let parts = ServerParts { store, clock, entropy, audit: Arc::new(LogAudit) };
    let server =
        AuthorizationServer::with_parts(config, Deployment::new(ISSUER, "/mcp", "bench"), parts).await?;
    let codes = mint_codes(&server.router()).await?;
    Ok((server, codes))
}

pub(crate) async fn serve(algorithm: &str, redis: u16) -> Outcome<()> {
    let (server, codes) = open(algorithm, redis).await?;
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    println!("{}", listener.local_addr()?.port());
    codes.iter().for_each(|code| println!("{code}"));
    let service = server.router().into_make_service_with_connect_info::<SocketAddr>();
    Ok(axum::serve(listener, service).await?)
}

/// Measures the cost of the check of a caller's token for a tool call.
pub(crate) async fn check(algorithm: &str, redis: u16) -> Outcome<()> {
    let (server, codes) = open(algorithm, redis).await?;
    let code = codes.first().ok_or("no code")?;
    let body = format!("grant_type=authorization_code&client_id=app&code_verifier={VERIFIER}&code={code}");
    let response = send(&server.router(), form("/oauth/token", body)?).await?;
    let body = axum::body::to_bytes(response.into_body(), 1 << 20).await?;
    let body: serde_json::Value = serde_json::from_slice(&body)?;
    let bearer = format!("Bearer {}", body["access_token"].as_str().ok_or("no token")?);
    let call = Request::post("/mcp").header("authorization", bearer).body(())?.into_parts().0;
    let guard = server.resource_server();
    let began = Instant::now();
    for _ in 0..100_000 {
        guard.authenticate(&call).await.map_err(|refused| refused.status().to_string())?;
    }
    println!("a call's check takes {:.2} us", began.elapsed().as_secs_f64() * 1e6 / 100_000.0);
    Ok(())
}

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

async fn mint_codes(router: &Router) -> Outcome<Vec<String>> {
    let ask = format!(
        "/oauth/authorize?response_type=code&client_id=app&state=s&code_challenge={CHALLENGE}&code_challenge_method=S256&scope=read"
    );
    let cookie = log_in(router, &ask).await?;
    let mut codes = Vec::with_capacity(CODES);
    while codes.len() < CODES {
        let batch = (0..32).map(|_| async {
            let request = Request::get(&ask).header("cookie", &cookie).body(Body::empty())?;
            let response = send(router, request).await?;
            let target = response.headers().get("location").ok_or("no redirect")?.to_str()?;
            let url = url::Url::parse(target)?;
            let code = url.query_pairs().find(|(name, _)| name == "code").ok_or("no code")?.1.into_owned();
            Outcome::Ok(code)
        });
        for code in futures::future::join_all(batch).await {
            codes.push(code?);
        }
    }
    codes.truncate(CODES);
    Ok(codes)
}
