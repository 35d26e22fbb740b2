//! A server over Streamable HTTP that closes connections without a word.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering::SeqCst},
};

use gatewright_core::{App as _, AppHealth};
use gatewright_upstream::UpstreamConfig;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    net::{TcpListener, TcpStream},
    sync::Notify,
};

use crate::support::{Bench, error, eventually, quick};

#[derive(Default)]
struct Server {
    /// The call of `slow` may be answered.
    release: Notify,
    pings: AtomicUsize,
}

impl Server {
    /// Serves one connection. The first two pings end it, and the third is refused.
    async fn serve(&self, socket: TcpStream) -> Option<()> {
        let mut socket = BufReader::new(socket);
        loop {
            let (mut line, mut length) = (String::new(), 0);
            socket.read_line(&mut line).await.ok().filter(|read| *read > 0)?;
            let is_message = line.starts_with("POST");
            while line.trim() != "" {
                if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
                    length = value.trim().parse().ok()?;
                }
                line.clear();
                socket.read_line(&mut line).await.ok()?;
            }
            let mut body = vec![0; length];
            socket.read_exact(&mut body).await.ok()?;
            let message: Value = serde_json::from_slice(&body).unwrap_or_default();
            let tool = message["params"]["name"].as_str();
            let result = match message["method"].as_str() {
                Some("initialize") => json!({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
                    "serverInfo": {"name": "c", "version": "1"}}),
                Some("tools/list") => {
                    let tools =
                        ["slow", "bad"].map(|name| json!({"name": name, "inputSchema": {"type": "object"}}));
                    json!({ "tools": tools })
                }
                Some("ping") if self.pings.fetch_add(1, SeqCst) < 2 => return None,
                Some("tools/call") if tool == Some("slow") => {
                    self.release.notified().await;
                    json!({"content": [{"type": "text", "text": "slow"}]})
                }
                _ => json!({}),
            };
            let status = match message.get("id") {
                _ if !is_message => "405 Method Not Allowed",
                None => "202 Accepted",
                _ if tool == Some("bad") => "500 Internal Server Error",
                _ if message["method"] == "ping" => "429 Too Many Requests",
                _ => "200 OK",
            };
            let answer = match status {
                "200 OK" => json!({"jsonrpc": "2.0", "id": message["id"], "result": result}).to_string(),
                _ => String::new(),
            };
            let head = format!(
                "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
                answer.len()
            );
            socket.write_all((head + &answer).as_bytes()).await.ok()?;
        }
    }
}

#[tokio::test]
async fn pings_that_meet_closed_connections_and_a_limit_end_no_call_of_others() {
    let server = Arc::new(Server::default());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let serving = server.clone();
    tokio::spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            let server = serving.clone();
            tokio::spawn(async move { server.serve(socket).await });
        }
    });
    let bench = Bench::new();
    let app = bench.add("a", quick(UpstreamConfig::url(url))).await;
    let (ada, bob) = (bench.client().await, bench.client().await);
    let open = ada.tools().call("a:slow", json!({})).begin().await.unwrap();
    error(&bob, "a:bad", json!({})).await;
    eventually("the server is asked again", || server.pings.load(SeqCst) > 2).await;
    server.release.notify_one();
    assert_eq!(open.result().await.unwrap().text(), "slow");
    assert_eq!(app.health(), AppHealth::Up);
    bench.registry.shutdown().await;
}
