//! Responses to abandoned requests, from a server whose every line the test writes.

use std::time::Duration;

use gatewright_testing::{ClientError, LogLevel, Mcp, RpcRequest};
use serde_json::{Value, json};
use tokio::io::{
    AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf,
};

/// The server end of a connection.
struct Played {
    lines: Lines<BufReader<ReadHalf<DuplexStream>>>,
    writer: WriteHalf<DuplexStream>,
}

impl Played {
    /// Reads until a message of this method.
    async fn asked(&mut self, method: &str) -> Value {
        loop {
            let line = self.lines.next_line().await.unwrap().unwrap_or_else(|| panic!("no `{method}`"));
            let message: Value = serde_json::from_str(&line).unwrap();
            if message["method"] == method {
                return message;
            }
        }
    }

    async fn say(&mut self, message: &Value) {
        self.writer.write_all(format!("{message}\n").as_bytes()).await.unwrap();
    }

    async fn answer(&mut self, asked: &Value, result: Value) {
        self.say(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": result})).await;
    }

    /// Waits until the client has processed all earlier messages.
    async fn heard(&mut self, mcp: &Mcp) {
        let answer = async {
            let asked = self.asked("ping").await;
            self.answer(&asked, json!({})).await;
        };
        tokio::join!(answer, mcp.raw().request(RpcRequest::new("ping", Value::Null).id("heard"))).1.unwrap();
    }
}

async fn connected() -> (Mcp, Played) {
    let (ours, theirs) = tokio::io::duplex(1 << 16);
    let (reader, writer) = tokio::io::split(theirs);
    let mut server = Played { lines: BufReader::new(reader).lines(), writer };
    let greet = async {
        let asked = server.asked("initialize").await;
        let info = json!({"name": "played", "version": "1"});
        let result =
            json!({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": info});
        server.answer(&asked, result).await;
    };
    let (reader, writer) = tokio::io::split(ours);
    let (mcp, ()) = tokio::join!(Mcp::lines(reader, writer).connect(), greet);
    (mcp.unwrap(), server)
}

/// Protocol violations the client noticed.
fn complaints(mcp: &Mcp) -> Vec<String> {
    let all = mcp.logs().all().into_iter().filter(|entry| entry.level >= LogLevel::Warning);
    all.map(|entry| entry.message).collect()
}

#[tokio::test]
async fn late_responses_are_not_violations_and_second_responses_are() {
    let (mcp, mut server) = connected().await;
    let mut given_up = Vec::new();

    mcp.set_timeout(Duration::from_millis(10));
    let error = mcp.tools().call("slow", json!({})).await.unwrap_err();
    assert!(matches!(error, ClientError::TimedOut { .. }), "{error}");
    mcp.set_timeout(Duration::from_secs(60));
    given_up.push(server.asked("tools/call").await);
    let cancelled = server.asked("notifications/cancelled").await;
    assert_eq!(cancelled["params"]["requestId"], given_up[0]["id"]);

    tokio::select! {
        answer = async { mcp.tools().call("slow", json!({})).await } => panic!("{answer:?}"),
        asked = server.asked("tools/call") => given_up.push(asked),
    }

    let open = mcp.tools().call("slow", json!({})).begin().await.unwrap();
    given_up.push(server.asked("tools/call").await);
    open.cancel().await;

    let open = mcp.tools().call("slow", json!({})).begin().await.unwrap();
    given_up.push(server.asked("tools/call").await);
    drop(open);

    let listened = async {
        let asked = server.asked("subscriptions/listen").await;
        let method = "notifications/subscriptions/acknowledged";
        server.say(&json!({"jsonrpc": "2.0", "method": method, "params": {"notifications": {}}})).await;
        asked
    };
    let (subscription, asked) = tokio::join!(mcp.listen(json!({"toolsListChanged": true})), listened);
    drop(subscription.unwrap());
    given_up.push(asked);

    for asked in &given_up {
        server.answer(asked, json!({"content": []})).await;
    }
    server.heard(&mcp).await;
    assert_eq!(complaints(&mcp), [""; 0]);
    assert_eq!(mcp.logs().search("a late answer").len(), given_up.len());

    for asked in &given_up {
        server.answer(asked, json!({"content": []})).await;
    }
    server.answer(&json!({"id": "never asked"}), json!({})).await;
    server.heard(&mcp).await;
    assert_eq!(complaints(&mcp).len(), given_up.len() + 1, "{:?}", complaints(&mcp));
    assert!(complaints(&mcp).iter().all(|one| one.starts_with("an answer nobody waits for")));
}

#[tokio::test]
async fn an_abandoned_initialize_is_not_cancelled() {
    let (ours, theirs) = tokio::io::duplex(1 << 16);
    let (reader, writer) = tokio::io::split(ours);
    let error = Mcp::lines(reader, writer).timeout(Duration::from_millis(10)).connect().await.unwrap_err();
    assert!(error.to_string().starts_with("`initialize` was not answered within 10ms"), "{error}");
    let mut lines = BufReader::new(theirs).lines();
    assert!(lines.next_line().await.unwrap().unwrap().contains("initialize"));
    assert_eq!(lines.next_line().await.unwrap(), None, "a client may not cancel it");
}

#[tokio::test]
async fn a_second_response_to_raw_text_is_a_violation() {
    let (mcp, mut server) = connected().await;
    let answered = async {
        let asked = server.asked("odd").await;
        server.answer(&asked, json!({})).await;
    };
    let (answer, ()) = tokio::join!(mcp.raw().send_raw(r#"{"id": 7, "method": "odd"}"#), answered);
    assert_eq!(answer.unwrap().id(), 7);
    server.answer(&json!({}), json!({})).await;
    server.heard(&mcp).await;
    assert_eq!(complaints(&mcp).len(), 1, "{:?}", complaints(&mcp));
}
