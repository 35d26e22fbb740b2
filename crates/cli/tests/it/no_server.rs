//! Errors of a command for an address without an MCP server.

use std::{
    io::{Read as _, Write as _},
    net::TcpListener,
};

use tokio::process::Command;

use crate::support::gatewright;

/// The error of `tools list`.
async fn complaint(url: &str) -> String {
    let output = Command::new(gatewright())
        .args(["tools", "list", "--url", url])
        .env_remove("GATEWRIGHT_TOKEN")
        .kill_on_drop(true)
        .output();
    let output = tokio::time::timeout(std::time::Duration::from_secs(60), output).await.unwrap().unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{text}");
    for word in ["rmcp", "reqwest", "Transport", "Client error", "initialize request"] {
        assert!(!text.contains(word), "a name of ours, not the user's: {word}: {text}");
    }
    text
}

#[tokio::test]
async fn a_port_where_nobody_listens_is_told_with_what_to_do() {
    // Taken and not listened on: nobody else gets it, and whoever calls is refused.
    let held = tokio::net::TcpSocket::new_v4().unwrap();
    held.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let url = format!("http://{}/mcp", held.local_addr().unwrap());
    let text = complaint(&url).await;
    let says = format!("error: no MCP server responds at {url}: Connection refused");
    assert!(text.starts_with(&says), "{text}");
    assert!(text.ends_with("; start it, or correct the host and port\n"), "{text}");
    assert_eq!(text.lines().count(), 1, "{text}");
}

#[tokio::test]
async fn a_server_of_something_else_is_told_with_what_it_said() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let _ = stream.read(&mut [0; 4096]);
            let head = "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: 7\r\nconnection: close\r\n\r\n";
            let _ = stream.write_all(format!("{head}<html/>").as_bytes());
        }
    });
    let text = complaint(&url).await;
    let says =
        format!("error: no MCP server responds at {url}: the response is text/html; is that the address of");
    assert!(text.starts_with(&says) && text.lines().count() == 1, "{text}");
}
