//! Starting and stopping servers in any language.

use std::{collections::HashSet, time::Duration};

use gatewright_testing::{ClientOptions, RpcRequest, Server, Transport, expect};
use serde_json::json;

use crate::support::{everything, script};

fn alive(pid: u32) -> bool {
    // A process that ended but was not waited for is a zombie, which holds no resources.
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with('Z'))
}

pub(crate) async fn gone(pid: u32) {
    tokio::time::timeout(Duration::from_secs(10), async {
        while alive(pid) {
            tokio::task::yield_now().await;
        }
    })
    .await
    .unwrap_or_else(|_| panic!("process {pid} is still there"));
}

#[tokio::test]
async fn runs_a_script_by_its_extension() {
    for (file, name) in [("tiny.mjs", "tiny"), ("tiny.py", "tiny-py")] {
        let server = Server::builder(script(file)).start().await.unwrap();
        let mcp = server.client().connect().await.unwrap();
        assert_eq!(mcp.server_info().unwrap().name, name);
        expect(&mcp.tools().list().await.unwrap()).to_contain_tool("env");
    }
}

#[tokio::test]
async fn the_environment_and_the_log_level_reach_the_server() {
    let server = Server::builder(script("tiny.mjs"))
        .env("GREETING", "hello")
        .log_level("debug")
        .start()
        .await
        .unwrap();
    let mcp = server.client().connect().await.unwrap();
    let read = |name: &'static str| {
        let mcp = mcp.clone();
        async move { mcp.tools().call("env", json!({"name": name})).await.unwrap().text() }
    };
    assert_eq!(read("GREETING").await, "hello");
    assert_eq!(read("LOG_LEVEL").await, "debug");
    assert_eq!(read("PORT").await, server.info().port.to_string());
}

#[tokio::test]
async fn logs_are_kept_and_cleared() {
    let server = Server::builder(script("tiny.mjs")).start().await.unwrap();
    let line = server.wait_for_log("up as", Duration::from_secs(10)).await.unwrap();
    assert_eq!(line, format!("up as {}", server.info().pid));
    assert!(server.get_logs().contains(&line));
    server.clear_logs();
    assert!(server.get_logs().is_empty());
}

#[tokio::test]
async fn many_servers_start_at_once_on_different_ports() {
    let starting = (0..20).map(|_| everything().start());
    let servers = futures::future::try_join_all(starting).await.unwrap();
    let ports: HashSet<u16> = servers.iter().map(|server| server.info().port).collect();
    assert_eq!(ports.len(), 20);
    for server in &servers {
        server.client().connect().await.unwrap();
    }
}

#[tokio::test]
async fn a_server_that_chooses_its_own_port_is_found() {
    let server = Server::builder(script("tiny.mjs")).env("BREAK", "port").start().await.unwrap();
    let mcp = server.client().connect().await.unwrap();
    assert_ne!(
        mcp.tools().call("env", json!({"name": "PORT"})).await.unwrap().text(),
        server.info().port.to_string()
    );
}

#[tokio::test]
async fn uses_a_server_that_is_already_running() {
    let first = everything().start().await.unwrap();
    let second = Server::builder("").base_url(first.info().base_url).start().await.unwrap();
    assert_eq!((second.info().port, second.info().pid), (first.info().port, 0));
    second.create_client(ClientOptions::default()).await.unwrap();
}

#[tokio::test]
async fn the_whole_process_group_ends_with_the_server() {
    let server = Server::builder(script("tiny.mjs")).env("BREAK", "children").start().await.unwrap();
    let line = server.wait_for_log("child", Duration::from_secs(10)).await.unwrap();
    let (child, pid) = (line["child ".len()..].parse().unwrap(), server.info().pid);
    assert!(alive(child));
    drop(server);
    gone(pid).await;
    gone(child).await;
}

#[tokio::test]
async fn stops_a_server_that_ignores_sigterm() {
    let server = Server::builder(script("tiny.mjs"))
        .env("BREAK", "sigterm")
        .stop_timeout(Duration::from_millis(100))
        .start()
        .await
        .unwrap();
    let pid = server.info().pid;
    server.stop().await;
    assert!(!alive(pid));
    assert!(server.get_logs().contains(&"not going".to_owned()));
}

#[tokio::test]
async fn a_json_rpc_error_in_http_401_or_403_is_returned() {
    let server = Server::builder(script("tiny.mjs")).env("BREAK", "refuse").start().await.unwrap();
    let mcp = server.client().connect().await.unwrap();
    for method in ["tools/list", "ping"] {
        let answer = mcp.raw().request(RpcRequest::new(method, json!({})).id(5)).await.unwrap();
        assert_eq!(answer.id(), 5, "{method}");
        expect(&answer).to_have_error_code(-32001);
        expect(&answer).to_be_valid_json_rpc();
        assert_eq!(answer.error().unwrap().data, Some(json!({"error": "invalid_token"})));
    }
    let raw = mcp.raw().send_raw(r#"{"jsonrpc":"2.0","id":9,"method":"tools/list"}"#).await.unwrap();
    expect(&raw).to_have_error_code(-32001);
    // Other calls fail with the rejection, and have the error as well.
    let refused = mcp.tools().list().await.unwrap_err();
    assert_eq!((refused.status(), refused.code()), (Some(401), Some(-32001)));
    expect(&refused).to_have_error_code(-32001);
    expect(&refused).to_be_error_code(-32001);
}

#[tokio::test]
async fn authenticate_fails_when_the_server_rejects_the_token() {
    let server = Server::builder(script("tiny.mjs")).env("BREAK", "auth").start().await.unwrap();
    let refused = server.client().connect().await.unwrap_err();
    assert_eq!(refused.status(), Some(401));
    let mcp = server.client().connect_or_refused().await.unwrap();
    assert!(!mcp.is_connected());
    assert!(mcp.tools().list().await.unwrap_err().is_refused());
    assert!(mcp.authenticate("bad").await.unwrap_err().to_string().contains("invalid_token"));
    mcp.authenticate("good").await.unwrap();
    expect(&mcp.tools().list().await.unwrap()).to_contain_tool("env");
    let refused = mcp.authenticate("bad").await.unwrap_err();
    assert!(refused.is_refused());
    assert!(mcp.tools().list().await.is_err());
    mcp.authenticate("better").await.unwrap();
    assert!(mcp.tools().list().await.is_ok());
    let with_token = ClientOptions { token: Some("good".into()), ..ClientOptions::default() };
    server.create_client(with_token).await.unwrap();
}

#[tokio::test]
async fn raw_text_that_is_not_json_gets_the_response_of_the_server() {
    let server = Server::builder(script("tiny.mjs")).start().await.unwrap();
    let mcp = server.client().connect().await.unwrap();
    expect(&mcp.raw().send_raw("{oops").await.unwrap()).to_have_error_code(-32700);
}

#[tokio::test]
async fn a_stdio_server_in_javascript() {
    let server =
        Server::builder(script("tiny.mjs")).arg("--stdio").transport(Transport::Stdio).start().await.unwrap();
    let mcp = server.create_client(ClientOptions::default()).await.unwrap();
    expect(&mcp.tools().list().await.unwrap()).to_contain_tool("env");
}
