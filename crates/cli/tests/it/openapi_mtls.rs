//! Client certificates of OpenAPI apps, with the real binary in front of an API over TLS.

use std::{process::Command, sync::Arc};

use gatewright::rmcp::{
    ServiceExt as _, model::CallToolRequestParams, transport::StreamableHttpClientTransport,
};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
};
use tokio_rustls::{
    TlsAcceptor,
    rustls::{
        RootCertStore, ServerConfig,
        pki_types::{CertificateDer, PrivateKeyDer},
        server::WebPkiClientVerifier,
    },
};

use crate::{served::Served, support::gatewright};

type Pair = rcgen::CertifiedKey<rcgen::KeyPair>;

fn pair(name: &str) -> Pair {
    rcgen::generate_simple_self_signed([name.to_owned()]).unwrap()
}

/// An API that takes the certificate of `client` and no other, and says whether it was shown, and the key.
async fn api(own: &Pair, client: &Pair) -> String {
    let mut roots = RootCertStore::empty();
    roots.add(client.cert.der().clone()).unwrap();
    let verifier = WebPkiClientVerifier::builder(Arc::new(roots)).allow_unauthenticated().build().unwrap();
    let key = PrivateKeyDer::try_from(own.signing_key.serialize_der()).unwrap();
    let certificates: Vec<CertificateDer<'static>> = vec![own.cert.der().clone()];
    let config = ServerConfig::builder()
        .with_client_cert_verifier(verifier)
        .with_single_cert(certificates, key)
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://localhost:{}", listener.local_addr().unwrap().port());
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                let Ok(mut stream) = acceptor.accept(stream).await else { return };
                let is_shown = stream.get_ref().1.peer_certificates().is_some();
                let (mut bytes, mut part) = (Vec::new(), [0; 4096]);
                while !bytes.windows(4).any(|four| four == b"\r\n\r\n") {
                    match stream.read(&mut part).await {
                        Ok(count) if count > 0 => bytes.extend_from_slice(&part[..count]),
                        _ => return,
                    }
                }
                let has_key = String::from_utf8_lossy(&bytes).contains("x-key: key-of-the-test");
                let body = json!({"certificate": is_shown, "key": has_key}).to_string();
                let head = format!(
                    "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
                    body.len()
                );
                let _ = stream.write_all(format!("{head}{body}").as_bytes()).await;
                let _ = stream.shutdown().await;
            });
        }
    });
    url
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_certificate_is_shown_to_operations_that_need_it_beside_other_credentials() {
    let (server, client) = (pair("localhost"), pair("the-gateway"));
    let url = api(&server, &client).await;
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    std::fs::write(path("ca.pem"), server.cert.pem()).unwrap();
    std::fs::write(path("client.pem"), client.cert.pem()).unwrap();
    std::fs::write(path("client.key"), client.signing_key.serialize_pem()).unwrap();
    let operation = |id: &str, security: Value| json!({"get": {"operationId": id, "security": security, "responses": {"200": {"description": "ok"}}}});
    let document = json!({
        "openapi": "3.1.0", "info": {"title": "Vault", "version": "1"},
        "paths": {
            "/both": operation("both", json!([{"mutual": [], "key": []}])),
            "/mutual": operation("mutual", json!([{"mutual": []}])),
            "/open": operation("open", json!([])),
        },
        "components": {"securitySchemes": {
            "mutual": {"type": "mutualTLS"}, "key": {"type": "apiKey", "in": "header", "name": "X-Key"},
        }},
    });
    std::fs::write(path("api.json"), document.to_string()).unwrap();
    let certificate = json!({
        "type": "mtls", "cert": format!("${{file:{}}}", path("client.pem").display()),
        "key": format!("${{file:{}}}", path("client.key").display()),
    });
    let app = |auth: Value| json!({"openapi": path("api.json"), "baseUrl": url, "allowPrivate": true, "auth": auth});
    let config = json!({
        "apps": {
            "schemes": app(json!({"mutual": certificate, "key": {"type": "apiKey", "value": "key-of-the-test"}})),
            "one": app(certificate.clone()),
        },
        "codecall": {"enabled": false},
    });
    let mut command = Command::new(gatewright());
    command.env("SSL_CERT_FILE", path("ca.pem")).env_remove("SSL_CERT_DIR");
    let served = Served::by(command, &config.to_string(), &["--no-watch"]);
    let transport = StreamableHttpClientTransport::from_uri(format!("http://{}/mcp", served.address));
    let session = ().serve(transport).await.unwrap();
    for (tool, certificate, key) in [
        ("schemes:both", true, true),
        ("schemes:mutual", true, false),
        ("schemes:open", false, false),
        ("one:mutual", true, false),
        ("one:open", false, false),
    ] {
        let result = session.peer().call_tool(CallToolRequestParams::new(tool)).await.unwrap();
        let expected = json!({"certificate": certificate, "key": key});
        assert_eq!(result.structured_content, Some(expected), "{tool}: {result:?}");
    }
}

#[test]
fn a_certificate_that_is_none_or_has_another_key_is_found() {
    let (one, other) = (pair("one"), pair("other"));
    for (cert, key) in [
        ("no certificate".to_owned(), one.signing_key.serialize_pem()),
        (one.cert.pem(), "no key".to_owned()),
        (one.cert.pem(), other.signing_key.serialize_pem()),
    ] {
        let config: gatewright::OpenapiConfig = serde_json::from_value(json!({
            "openapi": "a.yaml", "auth": {"type": "mtls", "cert": cert, "key": key},
        }))
        .unwrap();
        let problems = config.problems();
        let told = problems.first().map(ToString::to_string);
        assert!(told.is_some_and(|told| told.contains("auth.cert")), "{cert}");
    }
}
