//! Servers that do not start properly: the error gives advice.

use std::time::Duration;

use gatewright_testing::{ClientOptions, Server, Transport};

use crate::support::script;

#[tokio::test]
async fn a_server_that_exits_at_once_is_reported_with_its_last_lines() {
    let error = Server::builder(script("tiny.mjs")).env("BREAK", "exit").start().await.unwrap_err();
    assert_eq!(error.exit.as_deref(), Some("exit status: 3"));
    let text = error.to_string();
    assert!(text.contains("ended before it answered") && text.contains("| no database: giving up"), "{text}");
    assert!(text.contains("command: node ") && text.contains("try: "), "{text}");
}

#[tokio::test]
async fn a_server_that_never_listens_is_stopped_and_reported() {
    let error = Server::builder(script("tiny.mjs"))
        .env("BREAK", "silent")
        .startup_timeout(Duration::from_millis(600))
        .start()
        .await
        .unwrap_err();
    let text = error.to_string();
    assert!(text.contains("did not answer on port") && text.contains("within 600ms"), "{text}");
    assert!(text.contains("environment variable PORT"), "{text}");
}

#[tokio::test]
async fn a_program_that_does_not_exist_is_reported() {
    let error = Server::builder("no_such_server").start().await.unwrap_err();
    assert!(error.to_string().contains("cargo build --bins"), "{error}");
}

#[tokio::test]
async fn a_port_in_use_is_reported() {
    let holder = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = holder.local_addr().unwrap().port();
    let error = Server::builder(script("tiny.mjs")).port(port).start().await.unwrap_err();
    assert!(error.advice.contains(&format!("port {port} is taken")), "{error}");
}

#[tokio::test]
async fn text_on_standard_output_of_a_stdio_server_is_reported() {
    let stdio = Server::builder(script("tiny.mjs")).arg("--stdio").transport(Transport::Stdio);
    let server = stdio.clone().env("BREAK", "stdout").start().await.unwrap();
    let mcp = server.create_client(ClientOptions::default()).await.unwrap();
    assert_eq!(mcp.logs().search("Server starting").len(), 1);
    assert!(mcp.tools().list().await.is_ok());

    let mute = stdio.env("BREAK", "mute").start().await.unwrap();
    let error = mute.client().timeout(Duration::from_millis(300)).connect().await.unwrap_err();
    assert!(error.to_string().contains("`initialize` was not answered within 300ms"), "{error}");
}

#[tokio::test]
async fn a_stdio_server_that_exits_is_reported_with_its_last_lines() {
    let stdio = Server::builder(script("tiny.mjs")).arg("--stdio").transport(Transport::Stdio);
    let server = stdio.env("BREAK", "exit").start().await.unwrap();
    let error = server.create_client(ClientOptions::default()).await.unwrap_err();
    assert!(error.to_string().contains("no database: giving up"), "{error}");
}

#[tokio::test]
async fn a_server_that_is_not_mcp_is_reported_with_its_response() {
    let server = Server::builder(script("tiny.mjs")).path("/nowhere").start().await.unwrap();
    let error = server.client().connect().await.unwrap_err();
    assert_eq!(error.status(), Some(404));
}

#[tokio::test]
async fn a_stdio_server_may_take_longer_to_start_than_to_respond() {
    let stdio = Server::builder(script("tiny.mjs")).arg("--stdio").transport(Transport::Stdio);
    let server = stdio.startup_timeout(Duration::from_secs(60)).start().await.unwrap();
    // No server starts within a millisecond.
    let mcp = server.client().timeout(Duration::from_millis(1)).connect().await.unwrap();
    assert_eq!(mcp.server_info().unwrap().name, "tiny");
}
