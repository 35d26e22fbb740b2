//! HTTPS: the listener's own, and what is refused over plain HTTP.

use std::{path::Path, sync::Arc, time::Duration};

use gatewright_server::axum::{Router, routing::post};
use rustls::{
    ClientConfig, RootCertStore,
    pki_types::{CertificateDer, ServerName, pem::PemObject as _},
};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time::timeout,
};
use tokio_rustls::{TlsConnector, client::TlsStream};

use crate::support::{Believing, PATIENCE, Rig, start, start_with};

/// Writes a new certificate for 127.0.0.1 and its key; the `tls` section that names them.
fn write_pair(folder: &Path) -> Value {
    let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    let (cert, key) = (folder.join("cert.pem"), folder.join("key.pem"));
    std::fs::write(&cert, made.cert.pem()).unwrap();
    std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    json!({"cert": cert, "key": key})
}

fn address(rig: &Rig) -> &str {
    rig.base.strip_prefix("http://").unwrap()
}

/// A connection that trusts the certificate in `folder` alone.
async fn connect(rig: &Rig, folder: &Path) -> std::io::Result<TlsStream<TcpStream>> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(folder.join("cert.pem")).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let mut config = config.with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let socket = TcpStream::connect(address(rig)).await?;
    TlsConnector::from(Arc::new(config)).connect(ServerName::try_from("127.0.0.1").unwrap(), socket).await
}

async fn is_alive<S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin>(stream: &mut S) -> bool {
    let request = b"GET /healthz HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n";
    if stream.write_all(request).await.is_err() {
        return false;
    }
    let mut answer = Vec::new();
    while !answer.ends_with(b"}") {
        if timeout(PATIENCE, stream.read_buf(&mut answer)).await.unwrap().unwrap_or(0) == 0 {
            return false;
        }
    }
    answer.starts_with(b"HTTP/1.1 200")
}

#[tokio::test]
async fn the_listener_speaks_tls_and_offers_http_1_1() {
    let folder = tempfile::tempdir().unwrap();
    let rig = start(json!({"tls": write_pair(folder.path())})).await;
    let mut stream = connect(&rig, folder.path()).await.unwrap();
    assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"http/1.1"[..]));
    assert!(is_alive(&mut stream).await);
    let mut plain = TcpStream::connect(address(&rig)).await.unwrap();
    assert!(!is_alive(&mut plain).await, "plain HTTP is not answered");
}

#[tokio::test]
async fn browsers_are_told_to_stay_with_https_by_the_tls_listener_alone() {
    let folder = tempfile::tempdir().unwrap();
    let rig = start(json!({"tls": write_pair(folder.path())})).await;
    let mut stream = connect(&rig, folder.path()).await.unwrap();
    stream.write_all(b"GET /healthz HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n").await.unwrap();
    let mut answer = String::new();
    timeout(PATIENCE, stream.read_to_string(&mut answer)).await.unwrap().unwrap();
    assert!(
        answer.to_lowercase().contains("\r\nstrict-transport-security: max-age=31536000\r\n"),
        "{answer}"
    );
    let plain = start(json!({})).await;
    let answer = plain.http.get(format!("{}/healthz", plain.base)).send().await.unwrap();
    assert!(!answer.headers().contains_key("strict-transport-security"));
}

#[tokio::test]
async fn a_handshake_that_does_not_come_ends_in_time_and_takes_a_place_until_then() {
    let folder = tempfile::tempdir().unwrap();
    let tls = write_pair(folder.path());
    let rig = start(json!({"tls": tls, "headerReadTimeout": "1s", "maxConnections": 1})).await;
    let mut silent = TcpStream::connect(address(&rig)).await.unwrap();
    assert!(connect(&rig, folder.path()).await.is_err(), "there is one place, and a handshake has it");
    let ended = timeout(PATIENCE, silent.read_to_end(&mut Vec::new())).await;
    assert!(ended.is_ok(), "a handshake that was never begun is waited for");
    let mut stream = loop {
        if let Ok(stream) = connect(&rig, folder.path()).await {
            break stream;
        }
    };
    assert!(is_alive(&mut stream).await);
}

#[tokio::test]
async fn a_server_ends_in_time_while_a_handshake_is_under_way() {
    let folder = tempfile::tempdir().unwrap();
    let mut rig = start(json!({"tls": write_pair(folder.path()), "drainTimeout": "10m"})).await;
    let _silent = TcpStream::connect(address(&rig)).await.unwrap();
    let mut stream = connect(&rig, folder.path()).await.unwrap();
    assert!(is_alive(&mut stream).await);
    rig.end().await;
}

#[tokio::test]
async fn more_connections_than_the_server_may_have_are_closed_and_places_come_back() {
    let rig = start(json!({"maxConnections": 2})).await;
    let connect = async || TcpStream::connect(address(&rig)).await.unwrap();
    let (mut one, mut two) = (connect().await, connect().await);
    assert!(is_alive(&mut one).await && is_alive(&mut two).await);
    assert!(!is_alive(&mut connect().await).await);
    drop(two);
    let again = async {
        while !is_alive(&mut connect().await).await {
            tokio::task::yield_now().await;
        }
    };
    timeout(PATIENCE, again).await.unwrap();
    assert!(is_alive(&mut one).await);
}

const HOST: (&str, &str) = ("host", "mcp.example");

/// The statuses of the endpoint, of a route beside it, and of a probe.
async fn statuses(rig: &Rig, headers: &[(&str, &str)]) -> [u16; 3] {
    let mut all = Vec::new();
    let requests = [
        rig.modern("tools/list", json!({})).bearer_auth("ada"),
        rig.http.post(format!("{}/oauth/token", rig.base)).timeout(PATIENCE),
        rig.http.get(format!("{}/healthz", rig.base)).timeout(PATIENCE),
    ];
    for mut request in requests {
        for (name, value) in headers.iter().chain([&HOST]) {
            request = request.header(*name, *value);
        }
        let response = request.send().await.unwrap();
        let status = response.status().as_u16();
        if status == 403 {
            let body: Value = response.json().await.unwrap();
            let message = body["error"]["message"].as_str().or(body["error_description"].as_str()).unwrap();
            assert!(message.contains("HTTPS only") && message.contains("trustedProxies"), "{message}");
        }
        all.push(status);
    }
    all.try_into().unwrap()
}

async fn guarded(config: Value) -> Rig {
    start_with(config, |server| {
        let routes = Router::new().route("/oauth/token", post(async || "a token"));
        server.authenticator(Arc::new(Believing)).merge(routes)
    })
    .await
}

#[tokio::test]
async fn with_an_https_address_nothing_but_probes_is_answered_over_plain_http() {
    let rig = guarded(json!({"publicUrl": "https://mcp.example"})).await;
    assert_eq!(statuses(&rig, &[]).await, [403, 403, 200]);
    let forged = [("x-forwarded-proto", "https"), ("forwarded", "proto=https")];
    assert_eq!(statuses(&rig, &forged).await, [403, 403, 200], "a stranger is not believed");
}

#[tokio::test]
async fn a_trusted_proxy_that_says_https_is_let_through() {
    let rig = guarded(json!({"publicUrl": "https://mcp.example", "trustedProxies": ["127.0.0.1"]})).await;
    assert_eq!(statuses(&rig, &[("x-forwarded-proto", "https")]).await, [200; 3]);
    assert_eq!(statuses(&rig, &[("forwarded", "for=192.0.2.1;proto=https")]).await, [200; 3]);
    assert_eq!(statuses(&rig, &[("x-forwarded-proto", "http")]).await, [403, 403, 200]);
    assert_eq!(statuses(&rig, &[]).await, [403, 403, 200], "a proxy that says nothing");
}

#[tokio::test]
async fn plain_http_is_answered_where_the_address_is_plain_or_nobody_logs_in() {
    assert_eq!(statuses(&guarded(json!({"publicUrl": "http://mcp.example"})).await, &[]).await, [200; 3]);
    let open = start(json!({"publicUrl": "https://mcp.example"})).await;
    assert_eq!(statuses(&open, &[]).await, [200, 404, 200]);
}

#[tokio::test]
async fn a_request_over_the_listeners_own_tls_is_let_through() {
    let folder = tempfile::tempdir().unwrap();
    let tls = write_pair(folder.path());
    let rig = guarded(json!({"publicUrl": "https://mcp.example", "tls": tls})).await;
    let mut stream = connect(&rig, folder.path()).await.unwrap();
    let request =
        b"POST /oauth/token HTTP/1.1\r\nhost: mcp.example\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";
    stream.write_all(request).await.unwrap();
    let mut answer = String::new();
    timeout(Duration::from_secs(20), stream.read_to_string(&mut answer)).await.unwrap().unwrap();
    assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("a token"), "{answer}");
}
