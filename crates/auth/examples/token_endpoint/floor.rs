//! The least an exchange can be: a form read, one round trip to Redis, one signature, an answer.

use std::{collections::HashMap, sync::Arc};

use axum::{Form, Json, Router, extract::State, http::StatusCode, routing::post};
use gatewright_auth::keys::{Algorithm, Claims, SigningKey, sign};
use redis::aio::ConnectionManager;
use serde_json::{Value, json};

use crate::{CODES, Outcome, signing_key};

struct Floor {
    key: Arc<SigningKey>,
    redis: ConnectionManager,
}

pub(crate) async fn serve(algorithm: &str, redis: u16) -> Outcome<()> {
    let client = redis::Client::open(format!("redis://127.0.0.1:{redis}/"))?;
    let redis = ConnectionManager::new(client).await?;
    let mut writer = redis.clone();
    let codes: Vec<String> = (0..CODES).map(|n| format!("floor-{algorithm}-{n:060}")).collect();
    for part in codes.chunks(1000) {
        let mut pipe = redis::pipe();
        for code in part {
            pipe.cmd("SET").arg(format!("floor:code:{code}")).arg("user:ann").arg("PX").arg(600_000).ignore();
        }
        pipe.query_async::<()>(&mut writer).await?;
    }
    let floor = Arc::new(Floor { key: Arc::new(SigningKey::from_jwk(&signing_key(algorithm)?)?), redis });
    let router = Router::new().route("/oauth/token", post(exchange)).with_state(floor);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    println!("{}", listener.local_addr()?.port());
    codes.iter().for_each(|code| println!("{code}"));
    Ok(axum::serve(listener, router).await?)
}

async fn exchange(
    State(floor): State<Arc<Floor>>,
    Form(form): Form<HashMap<String, String>>,
) -> Result<Json<Value>, StatusCode> {
    let code = form.get("code").ok_or(StatusCode::BAD_REQUEST)?;
    let refresh = format!("refresh-of-{code}");
    let mut redis = floor.redis.clone();
    let mut pipe = redis::pipe();
    pipe.cmd("GETDEL").arg(format!("floor:code:{code}"));
    pipe.cmd("SET").arg(format!("floor:refresh:{refresh}")).arg("user:ann").arg("PX").arg(600_000).ignore();
    let (subject,): (Option<String>,) =
        pipe.query_async(&mut redis).await.map_err(|_| StatusCode::SERVICE_UNAVAILABLE)?;
    let subject = subject.ok_or(StatusCode::BAD_REQUEST)?;
    let mut claims = Claims::new();
    for (name, value) in [
        ("iss", json!("http://127.0.0.1:3000")),
        ("sub", json!(subject)),
        ("aud", json!("http://127.0.0.1:3000/mcp")),
        ("exp", json!(1_900_000_000)),
        ("iat", json!(1_800_000_000)),
        ("jti", json!(refresh[..22])),
        ("client_id", json!("app")),
        ("scope", json!("read")),
    ] {
        claims.insert(name.to_owned(), value);
    }
    let (key, slow) = (floor.key.clone(), floor.key.algorithm() == Algorithm::RS256);
    let token = if slow {
        let signed = tokio::task::spawn_blocking(move || sign(&key, "at+jwt", &claims)).await;
        signed.map_err(|_| StatusCode::INTERNAL_SERVER_ERROR)?
    } else {
        sign(&key, "at+jwt", &claims)
    };
    Ok(Json(json!({
        "access_token": token, "token_type": "Bearer", "expires_in": 900, "scope": "read", "refresh_token": refresh,
    })))
}
