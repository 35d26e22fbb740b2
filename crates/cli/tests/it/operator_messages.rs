//! Messages for the person who runs the program: what happened, and what to do.

use std::{
    io::Write as _,
    net::TcpListener,
    process::{Command, Stdio},
    sync::mpsc,
};

use gatewright::{Builder, CodeCallConfig, HttpConfig, LocalApp, WorkerCommand};
use rmcp::{ServerHandler, tool, tool_handler, tool_router};
use serde_json::json;

use crate::{
    gate::{self, Person, Site},
    served::{LONG, Served},
    support::gatewright,
};

/// Reconnects all the time.
const EAGER: &str = "restart: { initial: 1ms, max: 1ms }";

#[tokio::test]
async fn a_missing_command_and_a_dead_server_are_logged_once_with_their_cause_and_without_noise() {
    let held = tokio::net::TcpSocket::new_v4().unwrap();
    held.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let url = format!("http://{}/mcp", held.local_addr().unwrap());
    let config = format!(
        "apps:\n  gone: {{ command: does-not-exist-anywhere, {EAGER} }}\n  dead: {{ url: '{url}', {EAGER} }}\n\
         codecall: {{ worker: {{ workers: 1 }} }}\n"
    );
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("gatewright.yaml"), config).unwrap();
    let mut child = Command::new(gatewright())
        .args(["serve", "--port", "0", "--config"])
        .arg(folder.path().join("gatewright.yaml"))
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut log = Vec::new();
    let (mut down, mut address) = (0, None);
    let lines = std::io::BufRead::lines(std::io::BufReader::new(child.stderr.take().unwrap()));
    for line in lines.map_while(Result::ok) {
        down += usize::from(line.contains("app is down"));
        address = address.or(line
            .split("serving MCP on ")
            .nth(1)
            .and_then(|rest| Some(rest.split("/mcp").next()?.to_owned())));
        log.push(line);
        if down == 2
            && let Some(address) = address.take()
        {
            // Both were tried many times by then.
            for _ in 0..20 {
                reqwest::get(format!("{address}/readyz")).await.unwrap();
            }
            Command::new("kill").arg(child.id().to_string()).status().unwrap();
        }
    }
    child.wait().unwrap();
    let of = |app: &str| {
        log.iter().filter(|line| line.contains("app is down") && line.contains(app)).collect::<Vec<_>>()
    };
    let (gone, dead) = (of("app.id=gone"), of("app.id=dead"));
    assert_eq!((gone.len(), dead.len()), (1, 1), "{log:#?}");
    assert!(gone[0].contains("does-not-exist-anywhere"), "{gone:?}");
    assert!(dead[0].contains("Connection refused") && dead[0].contains("is it running"), "{dead:?}");
    for noise in ["worker quit", "Client error", "reqwest"] {
        assert!(!log.iter().any(|line| line.contains(noise)), "{noise}: {log:#?}");
    }
}

#[tokio::test]
async fn the_first_ctrl_c_tells_what_is_waited_for_and_the_second_one_ends_at_once() {
    let config = "http: { drainTimeout: 10m }\nadmin: { port: 0 }\napps: { ev: { builtin: everything } }\ncodecall: { enabled: false }\n";
    let mut served = Served::start(config, &[]);
    let line = served.says("for operators on http://");
    let admin = line.split("operators on ").nth(1).unwrap().split(' ').next().unwrap();
    let metrics = format!("{admin}/metrics");
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
        "name": "ev:slow_compute", "arguments": {"seconds": 120},
        "_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}}});
    let request = reqwest::Client::new()
        .post(format!("http://{}/mcp", served.address))
        .header("accept", "application/json, text/event-stream")
        .header("mcp-protocol-version", "2026-07-28")
        .header("mcp-method", "tools/call")
        .header("mcp-name", "ev:slow_compute")
        .json(&call);
    tokio::spawn(request.send());
    let open = async || reqwest::get(&metrics).await.unwrap().text().await.unwrap();
    let under_way = async { while !open().await.contains("gatewright_http_requests_open 1\n") {} };
    tokio::time::timeout(LONG, under_way).await.unwrap();
    served.signal("-INT");
    served.says("press Ctrl-C again to end at once");
    served.says("waiting for 1 open requests");
    served.signal("-INT");
    assert_eq!(served.child.wait().unwrap().code(), Some(130));
}

/// Tells that its tool was called, and never answers.
#[derive(Clone)]
struct Silent(mpsc::Sender<()>);

#[tool_router]
impl Silent {
    #[tool(description = "Never answers")]
    async fn wait(&self) -> String {
        self.0.send(()).unwrap();
        std::future::pending().await
    }
}

#[tool_handler]
impl ServerHandler for Silent {}

#[test]
fn a_command_whose_server_stops_during_its_call_ends_with_an_error() {
    let (called, calls) = mpsc::channel();
    let server = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let url = server.block_on(async {
        let app = LocalApp::start(Silent(called)).await.unwrap();
        let worker = WorkerCommand { program: gatewright(), args: vec!["worker".into()] };
        let builder = Builder::new("t", "1").app("silent", std::sync::Arc::new(app));
        let running = builder.code_mode(CodeCallConfig::default()).worker(worker).build().unwrap();
        let bound = running.http(HttpConfig { port: 0, ..Default::default() }).bind().await.unwrap();
        let url = format!("http://{}/mcp", bound.local_addr());
        tokio::spawn(async move {
            bound.serve(Default::default()).await;
            running.stop().await;
        });
        url
    });
    let child = Command::new(gatewright())
        .args(["tools", "call", "--url", &url, "silent:wait"])
        .env_remove("GATEWRIGHT_TOKEN")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    calls.recv_timeout(LONG).unwrap();
    server.shutdown_background();
    let (done, ended) = mpsc::channel();
    std::thread::spawn(move || done.send(child.wait_with_output().unwrap()));
    let output = ended.recv_timeout(LONG).expect("the command ends");
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), text.lines().count()), (Some(1), 1), "{text}");
    assert!(text.starts_with("error: ") && text.contains("connection"), "{text}");
}

#[test]
fn a_port_in_use_is_told_with_the_option_that_takes_another() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let output = Command::new(gatewright()).args(["demo", "--port", &port]).output().unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains(&port) && text.contains("`--port`"), "{text}");
}

#[test]
fn serve_starts_no_app_when_its_port_is_in_use() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let folder = tempfile::tempdir().unwrap();
    let (config, mark) = (folder.path().join("gatewright.yaml"), folder.path().join("started"));
    let text =
        format!("http: {{ port: {port} }}\napps:\n  x: {{ command: touch, args: ['{}'] }}\n", mark.display());
    std::fs::write(&config, text).unwrap();
    let output = Command::new(gatewright()).args(["serve", "--config"]).arg(&config).output().unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains(&port.to_string()) && text.contains("`--port`") && !mark.exists(), "{text}");
}

#[test]
fn a_file_that_does_not_parse_is_named_without_the_parser_s_own_words() {
    let mut file = tempfile::Builder::new().suffix(".yaml").tempfile().unwrap();
    file.write_all(b"# mine\ntasks: *nowhere\n").unwrap();
    let path = file.path().display().to_string();
    for arguments in [["eval", "context", "--tasks"].as_slice(), &["check"], &["test"]] {
        let output = Command::new(gatewright()).args(arguments).arg(&path).output().unwrap();
        let text = [output.stdout, output.stderr].concat();
        let text = String::from_utf8(text).unwrap();
        assert!(
            text.contains(&format!("{path}:2: ")) && text.contains("unknown anchor"),
            "{arguments:?}: {text}"
        );
        for word in ["<input>", "Policy", "Options", "from_str"] {
            assert!(!text.contains(word), "{word}: {text}");
        }
    }
}

#[tokio::test]
async fn a_redirect_uri_that_is_not_registered_is_logged_beside_those_that_are_and_not_shown_on_the_page() {
    let site = Site::start(&gate::config(json!({})));
    let gate = site.gate();
    let other = "http://127.0.0.1/elsewhere";
    let page = Person::default().open(&gate, &gate.ask("app", other, "crm:read")).await;
    assert_eq!(page.status, 400, "{}", page.body);
    assert!(!page.body.contains("elsewhere") && !page.body.contains("/callback"), "{}", page.body);
    let line = site.log.wait_for("redirect_uri does not match").unwrap();
    assert!(
        line.contains(other) && line.contains("http://127.0.0.1/callback") && line.contains("client.id"),
        "{line}"
    );
}

#[test]
fn a_pipe_that_is_closed_early_ends_a_command_quietly() {
    for arguments in [
        ["tools", "list"].as_slice(),
        &["--help"],
        &["reference", "config"],
        &["man"],
        &["completions", "bash"],
    ] {
        let mut child = Command::new(gatewright())
            .args(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        let text = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.code() == Some(0) && !text.contains("panicked"), "{arguments:?}: {text}");
    }
}
