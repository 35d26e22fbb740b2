//! OpenAPI apps, served by the binary in front of an API on loopback.

mod health;
mod hostile;
mod options;

use std::{
    fs,
    path::Path,
    process::Command,
    sync::{Arc, Mutex},
};

use gatewright::rmcp::{
    ClientHandler, RoleClient, ServiceExt as _,
    model::{
        CallToolRequestParams, CallToolResult, ProgressNotificationParam, ProgressToken, RequestMetaObject,
    },
    service::{NotificationContext, RunningService},
    transport::StreamableHttpClientTransport,
};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
    sync::Notify,
};

use crate::{
    served::{LONG, Served},
    support::gatewright,
};

const KEY: &str = "key-of-the-shop-1234";

fn document(more: &str) -> String {
    format!(
        r#"
openapi: 3.1.0
info: {{ title: Shop, version: "1" }}
security: [{{ key: [] }}]
paths:
  /orders:
    get:
      operationId: listOrders
      summary: List the orders of a customer
      parameters: [{{ name: customer, in: query, schema: {{ type: string }} }}]
      responses: {{ "200": {{ description: ok, content: {{ application/json: {{ schema: {{ type: array, items: {{ type: object }} }} }} }} }} }}
    post:
      operationId: createOrder
      summary: Create an order
      requestBody:
        required: true
        content:
          application/json:
            schema: {{ type: object, required: [product], properties: {{ product: {{ type: string }}, count: {{ type: integer }} }} }}
      responses: {{ "201": {{ description: ok, content: {{ application/json: {{ schema: {{ type: object }} }} }} }} }}
  /orders/{{id}}:
    parameters: [{{ name: id, in: path, required: true, schema: {{ type: string }} }}]
    get:
      operationId: getOrder
      summary: Get one order
      responses: {{ "200": {{ description: ok, content: {{ application/json: {{ schema: {{ type: object }} }} }} }} }}
    delete:
      operationId: deleteOrder
      tags: [admin]
      summary: Delete an order
      responses: {{ "204": {{ description: gone }} }}
  /feed:
    get:
      operationId: watchOrders
      summary: Watch orders as they change
      responses: {{ "200": {{ description: ok, content: {{ text/event-stream: {{ schema: {{ type: string }} }} }} }} }}
{more}
components:
  securitySchemes:
    key: {{ type: apiKey, in: header, name: X-Key }}
"#
    )
}

const MORE: &str = "  /refunds:\n    post: { operationId: refund, summary: Refund an order, responses: { '204': { description: done } } }\n";

/// The API: `(method and target, X-Key, body)` of each request, and the document at `/openapi.yaml`.
struct Shop {
    url: String,
    requests: Arc<Mutex<Vec<(String, String, String)>>>,
    document: Arc<Mutex<String>>,
}

impl Shop {
    async fn open() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (requests, document) =
            (Arc::new(Mutex::new(Vec::new())), Arc::new(Mutex::new(self::document(""))));
        let shop = Self { url, requests: requests.clone(), document: document.clone() };
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let (requests, document) = (requests.clone(), document.clone());
                tokio::spawn(async move {
                    let (mut bytes, mut part) = (Vec::new(), [0; 4096]);
                    loop {
                        let count = stream.read(&mut part).await.unwrap_or(0);
                        bytes.extend_from_slice(&part[..count]);
                        let text = String::from_utf8_lossy(&bytes).into_owned();
                        if count == 0 {
                            return;
                        }
                        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
                        let header = |name: &str| {
                            let mut lines = head.lines().filter_map(|line| line.split_once(": "));
                            lines
                                .find(|(own, _)| own.eq_ignore_ascii_case(name))
                                .map(|(_, value)| value.to_owned())
                                .unwrap_or_default()
                        };
                        if body.len() < header("content-length").parse().unwrap_or(0) {
                            continue;
                        }
                        let target = head.split(" HTTP/").next().unwrap().to_owned();
                        let current = document.lock().unwrap().clone();
                        let tag = format!("\"{}\"", current.len());
                        let (status, kind, answer) = match &*target {
                            "GET /openapi.yaml" if header("if-none-match") == tag => {
                                ("304 Not Modified", "text/yaml", String::new())
                            }
                            "GET /openapi.yaml" => ("200 OK", "text/yaml", current),
                            "GET /v1/feed" => (
                                "200 OK",
                                "text/event-stream",
                                "data: {\"order\": 1}\n\ndata: {\"order\": 2}\n\n".to_owned(),
                            ),
                            "GET /v1/orders/404" => (
                                "404 Not Found",
                                "application/problem+json",
                                json!({"title": "No such order", "detail": format!("asked with {KEY}")})
                                    .to_string(),
                            ),
                            target if target.starts_with("GET /v1/orders/") => {
                                ("200 OK", "application/json", json!({"id": &target[15..]}).to_string())
                            }
                            target if target.starts_with("GET /v1/orders") => {
                                ("200 OK", "application/json", json!([{"id": "1"}, {"id": "2"}]).to_string())
                            }
                            _ => (
                                "201 Created",
                                "application/json",
                                json!({"created": serde_json::from_str::<Value>(body).unwrap_or_default()})
                                    .to_string(),
                            ),
                        };
                        requests.lock().unwrap().push((target, header("x-key"), body.to_owned()));
                        let answer = format!(
                            "HTTP/1.1 {status}\r\ncontent-type: {kind}\r\netag: {tag}\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{answer}",
                            answer.len()
                        );
                        let _ = stream.write_all(answer.as_bytes()).await;
                        return;
                    }
                });
            }
        });
        shop
    }

    fn app(&self, openapi: &str) -> Value {
        json!({
            "openapi": openapi, "baseUrl": format!("{}/v1", self.url), "allowPrivate": true, "exclude": ["tag:admin"],
            "auth": {"type": "apiKey", "value": KEY}, "refresh": "1s",
            "tools": {"createOrder": {"as": "place_order"}},
        })
    }

    fn seen(&self) -> Vec<(String, String, String)> {
        self.requests
            .lock()
            .unwrap()
            .iter()
            .filter(|(target, ..)| target != "GET /openapi.yaml")
            .cloned()
            .collect()
    }
}

#[derive(Clone, Default)]
struct Ears {
    listed: Arc<Notify>,
    progress: Arc<Mutex<Vec<String>>>,
}

impl ClientHandler for Ears {
    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.listed.notify_one();
    }

    async fn on_progress(&self, progress: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        self.progress.lock().unwrap().push(progress.message.unwrap_or_default());
    }
}

struct Client {
    running: RunningService<RoleClient, Ears>,
    ears: Ears,
}

impl Client {
    async fn of(served: &Served) -> Self {
        let transport = StreamableHttpClientTransport::from_uri(format!("http://{}/mcp", served.address));
        let ears = Ears::default();
        Self { running: ears.clone().serve(transport).await.unwrap(), ears }
    }

    async fn call(&self, name: &str, input: Value) -> CallToolResult {
        let params =
            CallToolRequestParams::new(name.to_owned()).with_arguments(input.as_object().unwrap().clone());
        self.running.peer().call_tool(params).await.unwrap()
    }

    async fn body(&self, name: &str, input: Value) -> Value {
        self.call(name, input).await.structured_content.unwrap()
    }

    async fn tools(&self) -> Vec<String> {
        let tools = self.running.peer().list_all_tools().await.unwrap();
        let mut names: Vec<String> = tools.into_iter().map(|tool| tool.name.into_owned()).collect();
        names.sort();
        names
    }
}

fn config(app: &Value, more: &str) -> String {
    format!("{more}apps: {}\n", json!({"shop": app}))
}

fn written(folder: &Path, text: &str) -> String {
    let path = folder.join("shop.yaml");
    fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn operations_are_found_described_called_in_plans_and_invoked() {
    let (shop, folder) = (Shop::open().await, tempfile::tempdir().unwrap());
    let app = shop.app(&written(folder.path(), &document("")));
    let served = Served::start(&config(&app, ""), &["--no-watch"]);
    let client = Client::of(&served).await;
    let found = client.body("codecall:search", json!({"query": "orders of a customer"})).await;
    let names: Vec<&str> =
        found["tools"].as_array().unwrap().iter().map(|hit| hit["name"].as_str().unwrap()).collect();
    assert!(names.contains(&"shop:listOrders") && !names.contains(&"shop:deleteOrder"), "{names:?}");
    let described = client.body("codecall:describe", json!({"toolNames": ["shop:place_order"]})).await;
    assert!(described.to_string().contains("product"), "{described:#}");

    let script = "const orders = await callTool('shop:listOrders', {customer: 'a&b'});\n\
                  const made = await callTool('shop:place_order', {product: 'tea', count: 2});\n\
                  const one = await callTool('shop:getOrder', {id: 'x/y'});\n\
                  return {orders, made, one};";
    let run = client.body("codecall:execute", json!({"script": script})).await;
    assert_eq!(run["status"], "ok", "{run:#}");
    assert_eq!(run["result"]["made"], json!({"created": {"product": "tea", "count": 2}}));
    assert_eq!(run["result"]["one"], json!({"id": "x%2Fy"}));
    let targets: Vec<_> = shop.seen();
    assert_eq!(targets[0], ("GET /v1/orders?customer=a%26b".into(), KEY.into(), String::new()));
    assert_eq!(targets[1].0, "POST /v1/orders");

    let missing =
        client.body("codecall:invoke", json!({"tool": "shop:getOrder", "input": {"id": "404"}})).await;
    let text = missing.to_string();
    assert!(
        text.contains("HTTP_404") && text.contains("No such order") && !text.contains(KEY),
        "{missing:#}"
    );
    let bad = client.body("codecall:invoke", json!({"tool": "shop:getOrder", "input": {"id": ".."}})).await;
    assert!(bad.to_string().contains("VALIDATION_ERROR"), "{bad:#}");
}

#[tokio::test(flavor = "multi_thread")]
async fn events_arrive_as_progress_and_an_array() {
    let (shop, folder) = (Shop::open().await, tempfile::tempdir().unwrap());
    let app = shop.app(&written(folder.path(), &document("")));
    let served = Served::start(&config(&app, "codecall: { enabled: false }\n"), &["--no-watch"]);
    let client = Client::of(&served).await;
    assert_eq!(
        client.tools().await,
        ["shop:getOrder", "shop:listOrders", "shop:place_order", "shop:watchOrders"]
    );
    let mut params = CallToolRequestParams::new("shop:watchOrders");
    let mut meta = RequestMetaObject::default();
    meta.set_progress_token(ProgressToken(gatewright::rmcp::model::NumberOrString::Number(7)));
    params.meta = Some(meta);
    let result = client.running.peer().call_tool(params).await.unwrap();
    assert_eq!(
        result.structured_content,
        Some(json!({"result": [{"data": {"order": 1}}, {"data": {"order": 2}}]}))
    );
    let heard = client.ears.progress.lock().unwrap().clone();
    assert!(heard.iter().any(|message| message.contains("\"order\":1")), "{heard:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_changed_file_changes_the_tools_and_a_broken_one_does_not() {
    let (shop, folder) = (Shop::open().await, tempfile::tempdir().unwrap());
    let app = shop.app(&written(folder.path(), &document("")));
    let served = Served::start(&config(&app, "codecall: { enabled: false }\n"), &[]);
    let client = Client::of(&served).await;
    assert_eq!(client.tools().await.len(), 4);
    written(folder.path(), "openapi: [");
    served.says("cannot be used as it is now, the last good one stays");
    assert_eq!(client.tools().await.len(), 4);
    written(folder.path(), &document(MORE));
    tokio::time::timeout(LONG, client.ears.listed.notified()).await.unwrap();
    assert!(client.tools().await.contains(&"shop:refund".to_owned()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_document_behind_a_url_is_looked_at_again_by_its_etag() {
    let shop = Shop::open().await;
    let app = shop.app(&format!("{}/openapi.yaml", shop.url));
    let served = Served::start(&config(&app, "codecall: { enabled: false }\n"), &["--no-watch"]);
    let client = Client::of(&served).await;
    assert_eq!(client.tools().await.len(), 4);
    *shop.document.lock().unwrap() = document(MORE);
    tokio::time::timeout(LONG, client.ears.listed.notified()).await.unwrap();
    assert!(client.tools().await.contains(&"shop:refund".to_owned()));
    let result = client.call("shop:refund", json!({})).await;
    assert_eq!(result.is_error, Some(false), "{result:?}");
}

fn check(app: &Value, arguments: &[&str]) -> (Option<i32>, Value) {
    let file = tempfile::Builder::new().suffix(".yaml").tempfile().unwrap();
    fs::write(file.path(), config(app, "")).unwrap();
    let output = Command::new(gatewright())
        .args(["check", "--json"])
        .args(arguments)
        .arg("--config")
        .arg(file.path())
        .output()
        .unwrap();
    (output.status.code(), serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}")))
}

#[tokio::test(flavor = "multi_thread")]
async fn check_finds_what_does_not_fit_the_document() {
    let (shop, folder) = (Shop::open().await, tempfile::tempdir().unwrap());
    let path = written(folder.path(), &document(""));
    let with = |key: &str, value: Value| {
        let mut app = shop.app(&path);
        match value {
            Value::Null => drop(app.as_object_mut().unwrap().shift_remove(key)),
            value => app[key] = value,
        }
        check(&app, &["--offline"])
    };
    assert_eq!(with("timeout", json!("5s")).0, Some(0));
    for (key, value, place, word) in [
        ("auth", json!({"kee": {"type": "apiKey", "value": KEY}}), "apps.shop.auth.kee", "it has key"),
        ("auth", json!({"type": "magic"}), "apps.shop.auth.type", "clientCredentials"),
        ("auth", json!({"key": {"type": "bearer", "tokn": KEY}}), "apps.shop.auth.key", "tok"),
        ("include", json!(["GET orders"]), "apps.shop.include.0", "is no path"),
        ("baseUrl", Value::Null, "apps.shop.baseUrl", "set `baseUrl`"),
        ("openapi", json!("missing.yaml"), "apps.shop.openapi", "cannot be read"),
        ("url", json!("https://a.example/mcp"), "apps.shop.url", "unknown field"),
    ] {
        let (code, report) = with(key, value);
        let findings = report["findings"].as_array().unwrap();
        assert_eq!(code, Some(2), "{report:#}");
        assert!(findings[0]["path"].as_str().unwrap().starts_with(place), "{report:#}");
        assert!(
            findings[0]["problem"].as_str().unwrap().contains(word) && !report.to_string().contains(KEY),
            "{report:#}"
        );
    }
    let (code, report) = check(&shop.app(&format!("{}/missing.yaml", shop.url)), &["--live"]);
    assert_eq!(code, Some(2), "{report:#}");
    let (code, report) = check(&shop.app(&format!("{}/openapi.yaml", shop.url)), &["--live"]);
    assert_eq!(code, Some(0), "{report:#}");
}
