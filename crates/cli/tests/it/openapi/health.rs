//! Health of the API of an OpenAPI app: the tools of one that does not answer are gone until it does.

use std::sync::atomic::{AtomicBool, Ordering};

use super::*;

/// An API that answers, or closes connections without an answer and says 503 at `/v1/up`.
struct Flaky {
    url: String,
    is_up: Arc<AtomicBool>,
}

impl Flaky {
    async fn open() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/v1", listener.local_addr().unwrap());
        let is_up = Arc::new(AtomicBool::new(true));
        let flaky = Self { url, is_up: is_up.clone() };
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let mut head = vec![0; 8192];
                let count = stream.read(&mut head).await.unwrap_or(0);
                let is_check = head[..count].starts_with(b"GET /v1/up ");
                let answer = match (is_up.load(Ordering::SeqCst), is_check) {
                    (true, _) => "HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n",
                    (false, true) => "HTTP/1.1 503 Broken\r\nconnection: close\r\ncontent-length: 0\r\n\r\n",
                    (false, false) => "",
                };
                let _ = stream.write_all(answer.as_bytes()).await;
            }
        });
        flaky
    }

    /// The gateway in front of it, with its one tool.
    async fn served(&self, health: Value, folder: &Path) -> (Served, Client) {
        let paths =
            json!({"/order": {"post": {"operationId": "order", "summary": "Order", "responses": {}}}});
        let document = json!({"openapi": "3.1.0", "info": {"title": "Shop", "version": "1"}, "paths": paths});
        let mut app = json!({
            "openapi": written(folder, &document.to_string()), "baseUrl": self.url, "allowPrivate": true, "maxRetries": 0,
        });
        if !health.is_null() {
            app["health"] = health;
        }
        let served = Served::start(&config(&app, "codecall: { enabled: false }\n"), &["--no-watch"]);
        let client = Client::of(&served).await;
        (served, client)
    }
}

/// Waits until the list has so many tools.
async fn has_tools(client: &Client, count: usize) {
    while client.tools().await.len() != count {
        tokio::time::timeout(LONG, client.ears.listed.notified()).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_api_whose_check_fails_is_down_until_it_succeeds() {
    let (flaky, folder) = (Flaky::open().await, tempfile::tempdir().unwrap());
    let (served, client) = flaky.served(json!({"path": "/up", "interval": "1s"}), folder.path()).await;
    has_tools(&client, 1).await;
    flaky.is_up.store(false, Ordering::SeqCst);
    has_tools(&client, 0).await;
    served.says("its health check answered with HTTP 503");
    let called = client.running.peer().call_tool(CallToolRequestParams::new("shop:order")).await;
    assert!(format!("{called:?}").contains("HTTP 503"), "callers hear of it: {called:?}");
    flaky.is_up.store(true, Ordering::SeqCst);
    has_tools(&client, 1).await;
    assert_eq!(client.call("shop:order", json!({})).await.is_error, Some(false));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_api_that_does_not_answer_calls_is_down_until_it_answers() {
    let (flaky, folder) = (Flaky::open().await, tempfile::tempdir().unwrap());
    let (served, client) = flaky.served(Value::Null, folder.path()).await;
    has_tools(&client, 1).await;
    flaky.is_up.store(false, Ordering::SeqCst);
    for _ in 0..3 {
        let failed = client.call("shop:order", json!({})).await;
        assert_eq!(failed.structured_content.unwrap()["code"], "UPSTREAM_UNREACHABLE");
    }
    has_tools(&client, 0).await;
    served.says("its API cannot be reached");
    flaky.is_up.store(true, Ordering::SeqCst);
    has_tools(&client, 1).await;
}
