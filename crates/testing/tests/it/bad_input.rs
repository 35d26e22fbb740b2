//! Misbehaving servers: the error names the command, the exit status, the output and advice, and afterwards no process is left and
//! the port is free.

use std::time::Duration;

use gatewright_testing::{
    ClientOptions, Server, ServerBuilder, Transport,
    suite::{RunOptions, Suite, TestOutcome},
};

use crate::support::script;

/// A server with its own port, whose processes carry a mark in their environment.
struct Marked {
    mark: String,
    port: u16,
}

impl Marked {
    fn new() -> Self {
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        Self { mark: format!("mark-{}-{port}", std::process::id()), port }
    }

    fn server(&self, broken: &str) -> ServerBuilder {
        let server = Server::builder(script("tiny.mjs")).env("BREAK", broken).env("MARK", &self.mark);
        server.stop_timeout(Duration::from_millis(200))
    }

    /// The server as a section of a suite.
    fn section(&self, broken: &str) -> String {
        // Only a server that never listens reaches the timeout.
        let patience = if broken == "silent" { 1500 } else { 60_000 };
        format!(
            "server: {{ command: {}, port: {}, startupTimeoutMs: {patience}, env: {{ MARK: {}, BREAK: \"{broken}\" }} }}",
            script("tiny.mjs"),
            self.port,
            self.mark
        )
    }

    fn stdio(&self, broken: &str) -> ServerBuilder {
        self.server(broken).arg("--stdio").transport(Transport::Stdio)
    }

    /// Processes with the mark.
    fn alive(&self) -> Vec<String> {
        let wanted = format!("MARK={}", self.mark);
        let carries = |entry: &std::fs::DirEntry| {
            std::fs::read(entry.path().join("environ"))
                .is_ok_and(|all| all.split(|byte| *byte == 0).any(|one| one == wanted.as_bytes()))
        };
        let all = std::fs::read_dir("/proc").unwrap().filter_map(Result::ok).filter(carries);
        all.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
    }

    async fn leaves_nothing(&self) {
        let gone = async {
            while !self.alive().is_empty() || std::net::TcpListener::bind(("127.0.0.1", self.port)).is_err() {
                tokio::task::yield_now().await;
            }
        };
        let in_time = tokio::time::timeout(Duration::from_secs(10), gone).await;
        assert!(in_time.is_ok(), "port {}, processes {:?}", self.port, self.alive());
    }
}

fn says(error: impl std::fmt::Display, parts: &[&str]) {
    let text = error.to_string();
    for part in parts {
        assert!(text.contains(part), "{part:?} is not in\n{text}");
    }
}

#[tokio::test]
async fn a_server_that_exits_at_once() {
    let row = Marked::new();
    let error = row.server("exit").port(row.port).start().await.unwrap_err();
    says(
        error,
        &[
            "command: node ",
            "tiny.mjs",
            "ended: exit status: 3",
            "| no database: giving up",
            "try: run the command by hand",
        ],
    );
    row.leaves_nothing().await;
}

#[tokio::test]
async fn a_stdio_server_started_as_an_http_server() {
    let row = Marked::new();
    let error = row.server("").arg("--stdio").port(row.port).start().await.unwrap_err();
    says(error, &["ended before it answered", "ended: exit status: 0", "set `transport` to stdio"]);
    row.leaves_nothing().await;
}

#[tokio::test]
async fn a_suite_with_invalid_cassettes() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("bad.json"), "{oops").unwrap();
    for (suite, test) in [("recordHttp: bad.json", ""), ("serial: true", ", record: bad.json")] {
        let row = Marked::new();
        let text = format!(
            "{}\n{suite}\ntests: [{{ name: t, steps: [{{ list: tools }}]{test} }}]\n",
            row.section("")
        );
        std::fs::write(dir.path().join("suite.yaml"), text).unwrap();
        let suite = Suite::from_file(dir.path().join("suite.yaml")).unwrap();
        let report = suite.run(&RunOptions::default()).await;
        let TestOutcome::Failed(why) = &report.tests[0].outcome else { panic!("{report:?}") };
        says(why, &["bad.json cannot be used", "delete it to record a new one"]);
        row.leaves_nothing().await;
    }
}

#[tokio::test]
async fn a_suite_whose_server_exits_never_listens_or_does_not_stop() {
    for (broken, part) in [
        ("exit", "no database: giving up"),
        ("silent", "did not answer on port"),
        ("sigterm", "expected: a tool `nope`"),
        ("children", "expected: a tool `nope`"),
    ] {
        let row = Marked::new();
        let text = format!(
            "{}\ntests: [{{ name: t, steps: [{{ list: tools, expect: [toContainTool: nope] }}] }}]\n",
            row.section(broken)
        );
        let report = Suite::parse("suite.yaml", &text).unwrap().run(&RunOptions::default()).await;
        let TestOutcome::Failed(why) = &report.tests[0].outcome else { panic!("{report:?}") };
        says(why, &[part]);
        row.leaves_nothing().await;
    }
}

#[tokio::test]
async fn a_server_that_never_starts_to_listen() {
    let row = Marked::new();
    let server = row.server("silent").port(row.port).startup_timeout(Duration::from_millis(500));
    let error = server.start().await.unwrap_err();
    says(error, &["command: node ", "did not answer on port", "within 500ms", "it printed nothing", "try: "]);
    row.leaves_nothing().await;
}

#[tokio::test]
async fn a_missing_program() {
    let error = Server::builder("no_such_server --port 1").start().await.unwrap_err();
    says(error, &["command: no_such_server --port 1", "cannot be run", "try: "]);
}

#[tokio::test]
async fn a_stdio_server_that_exits_at_once() {
    let row = Marked::new();
    let server = row.stdio("exit").start().await.unwrap();
    let error = server.create_client(ClientOptions::default()).await.unwrap_err();
    says(error, &["command: node ", "--stdio", "ended: exit status: 3", "| no database: giving up", "try: "]);
    row.leaves_nothing().await;
}

#[tokio::test]
async fn a_stdio_server_that_never_responds() {
    let row = Marked::new();
    let server = row.stdio("mute").start().await.unwrap();
    let error = server.client().timeout(Duration::from_millis(300)).connect().await.unwrap_err();
    says(error, &["`initialize` was not answered within 300ms"]);
    drop(server);
    row.leaves_nothing().await;
}

#[tokio::test]
async fn a_stdio_server_that_prints_to_its_standard_output() {
    let row = Marked::new();
    let server = row.stdio("stdout").start().await.unwrap();
    let mcp = server.create_client(ClientOptions::default()).await.unwrap();
    assert_eq!(mcp.logs().search("no JSON: Server starting").len(), 1);
    mcp.set_timeout(Duration::from_millis(200));
    drop((mcp, server));
    row.leaves_nothing().await;
}

#[tokio::test]
async fn a_server_that_binds_another_port() {
    let row = Marked::new();
    let server = row.server("port").port(row.port).start().await.unwrap();
    assert_ne!(server.info().port, row.port);
    let other = server.info().port;
    server.create_client(ClientOptions::default()).await.unwrap();
    drop(server);
    Marked { port: other, ..row }.leaves_nothing().await;
}

#[tokio::test]
async fn a_server_that_ignores_sigterm() {
    let row = Marked::new();
    let server = row.server("sigterm").port(row.port).start().await.unwrap();
    server.stop().await;
    let status = server.last_exit().unwrap();
    assert!(!status.success(), "it was killed: {status}");
    row.leaves_nothing().await;
}

#[tokio::test]
async fn a_server_that_leaves_children_behind() {
    let row = Marked::new();
    let server = row.server("children").port(row.port).start().await.unwrap();
    server.wait_for_log("child", Duration::from_secs(10)).await.unwrap();
    assert_eq!(row.alive().len(), 2);
    server.stop().await;
    row.leaves_nothing().await;
}
