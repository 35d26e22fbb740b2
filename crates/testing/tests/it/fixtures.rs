//! The test attribute and its fixtures.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use gatewright_testing::{
    Auth, AuthOptions, BoxError, Fixture, HttpMock, Mcp, MockOAuthServer, Server, TestContext, TokenOptions,
    Transport, expect, test_use,
};
use serde_json::json;

use crate::support::{Everything, script};

test_use! {
    server: "everything_server",
    env: [("GREETING", "hi")],
}

#[gatewright_testing::test]
async fn a_client_comes_connected(mcp: Mcp) {
    expect(&mcp.tools().list().await.unwrap()).to_contain_tool("echo");
}

#[gatewright_testing::test]
async fn fixtures_come_in_any_order_and_share_one_server(
    auth: Auth,
    server: Server,
    mcp: Mcp,
) -> Result<(), BoxError> {
    assert!(server.info().port > 0);
    assert_eq!(
        server.create_client(Default::default()).await?.session_id().is_some(),
        mcp.session_id().is_some()
    );
    assert_eq!(auth.get_issuer(), "https://test-issuer.local");
    Ok(())
}

#[gatewright_testing::test(transport = Transport::Stdio, args = ["--stdio"])]
async fn the_attribute_adds_to_the_options_of_the_module(mcp: Mcp) {
    assert!(mcp.session_id().is_none());
    expect(&mcp.tools().list().await.unwrap()).to_contain_tool("echo");
}

#[gatewright_testing::test(app = || Everything)]
async fn an_app_in_this_process_needs_no_server(mcp: Mcp, server: Server) {
    assert_eq!(server.info().pid, 0);
    expect(&mcp.tools().call("echo", json!({"text": "a"})).await.unwrap()).to_be_successful();
}

#[gatewright_testing::test]
async fn nothing_is_built_that_is_not_asked_for() {}

#[gatewright_testing::test(server = script("tiny.mjs"), env = [("BREAK", "auth")])]
async fn a_client_that_is_refused_can_authenticate(mcp: Mcp) {
    assert!(!mcp.is_connected());
    mcp.authenticate("good").await.unwrap();
    assert!(mcp.is_connected());
}

#[gatewright_testing::test(server = script("tiny.mjs"), auth = AuthOptions { user: Some(TokenOptions::new("ada")), audience: Some("me".into()) })]
async fn auth_starts_an_issuer_the_server_can_find(mcp: Mcp, auth: Auth, oauth: Arc<MockOAuthServer>) {
    let read = async |name: &str| mcp.tools().call("env", json!({"name": name})).await.unwrap().text();
    assert_eq!(read("IDP_PROVIDER_URL").await, oauth.info().base_url);
    assert_eq!(read("IDP_EXPECTED_AUDIENCE").await, "me");
    assert_eq!(auth.get_issuer(), oauth.info().issuer);
}

#[gatewright_testing::test(server = script("tiny.mjs"))]
async fn a_server_beside_an_http_mock_finds_the_proxy(mcp: Mcp, http: HttpMock) {
    let proxy = mcp.tools().call("env", json!({"name": "HTTPS_PROXY"})).await.unwrap().text();
    assert_eq!(proxy, http.proxy_url());
}

struct Greeting(String);

impl Fixture for Greeting {
    async fn build(context: &Arc<TestContext>) -> Result<Self, BoxError> {
        let mcp = Mcp::build(context).await?;
        Ok(Self(
            mcp.prompts().get("greet", json!({"who": "you"})).await?.messages[0]
                .text()
                .unwrap_or_default()
                .into(),
        ))
    }
}

#[gatewright_testing::test]
async fn own_types_are_fixtures_too(greeting: Greeting) {
    assert_eq!(greeting.0, "Hello you");
}

mod inner {
    use super::*;

    #[gatewright_testing::test]
    async fn a_module_inside_has_the_options_of_the_one_around(mcp: Mcp) {
        assert_eq!(mcp.server_info().unwrap().name, "everything");
    }
}

/// Runs a test in another process, and returns its output and exit status.
pub(crate) async fn outcome_of(test: &str) -> (bool, String) {
    let this = std::env::current_exe().unwrap();
    let args = ["--ignored", "--exact", test, "--nocapture", "--test-threads", "1"];
    let output = tokio::process::Command::new(this).args(args).output().await.unwrap();
    let said =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    (output.status.success(), said)
}

mod failing {
    use super::*;

    static HOOKS: AtomicUsize = AtomicUsize::new(0);

    #[gatewright_testing::test(
        server = script("tiny.mjs"),
        skip = "run by `a_failure_shows_the_log_and_the_trace`",
        after_each = || async { eprintln!("hook {}", HOOKS.fetch_add(1, Ordering::Relaxed)); Ok(()) },
    )]
    async fn panics(mcp: Mcp) {
        mcp.tools().call("env", json!({"name": "X"})).await.unwrap();
        expect(&mcp.tools().list().await.unwrap()).to_contain_tool("envy");
    }

    #[gatewright_testing::test(server = script("tiny.mjs"), skip = "run by `an_error_is_a_failure`")]
    async fn errs(mcp: Mcp) -> Result<(), BoxError> {
        mcp.prompts().list().await?;
        Ok(())
    }

    #[gatewright_testing::test(server = script("tiny.mjs"), skip = "run by `an_unexpected_http_call_is_a_failure`")]
    async fn calls(_server: Server, http: HttpMock) {
        http.client().unwrap().get("https://forgotten.example/").send().await.unwrap();
    }

    #[gatewright_testing::test(server = script("tiny.mjs"), skip = "run by `a_killed_test_leaves_no_server`")]
    async fn dies(server: Server) {
        eprintln!("server {}", server.info().pid);
        std::future::pending::<()>().await;
    }
}

#[tokio::test]
async fn a_failure_shows_the_log_and_the_trace() {
    let (passed, said) = outcome_of("fixtures::failing::panics").await;
    assert!(!passed);
    for part in [
        "fixtures::failing::panics failed",
        "  | up as ",
        "requests of client 1:\n  tools/call {\"name\":\"env\",\"arguments\":{\"name\":\"X\"}}",
        "did you mean `env`?",
        "hook 0",
    ] {
        assert!(said.contains(part), "{part:?} is not in\n{said}");
    }
}

#[tokio::test]
async fn an_error_is_a_failure() {
    let (passed, said) = outcome_of("fixtures::failing::errs").await;
    assert!(!passed && said.contains("`prompts/list` failed with -32601: Method not found"), "{said}");
}

#[tokio::test]
async fn an_unexpected_http_call_is_a_failure() {
    let (passed, said) = outcome_of("fixtures::failing::calls").await;
    assert!(!passed && said.contains("no mock wants: GET https://forgotten.example/"), "{said}");
}

#[tokio::test]
async fn a_killed_test_leaves_no_server() {
    use tokio::io::{AsyncBufReadExt, BufReader};
    let this = std::env::current_exe().unwrap();
    let mut test = tokio::process::Command::new(this)
        .args(["--ignored", "--exact", "fixtures::failing::dies", "--nocapture"])
        .stderr(std::process::Stdio::piped())
        .stdout(std::process::Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(test.stderr.take().unwrap()).lines();
    let line = loop {
        let line = lines.next_line().await.unwrap().unwrap();
        if line.starts_with("server ") {
            break line;
        }
    };
    test.kill().await.unwrap();
    crate::servers::gone(line["server ".len()..].parse().unwrap()).await;
}

mod hooks {
    use gatewright_testing::Auth;

    gatewright_testing::test_use! {
        before_all: || async { eprintln!("hook: before all"); Ok(()) },
        before_each: || async { eprintln!("hook: before each"); Ok(()) },
        after_each: || async { eprintln!("hook: after each"); Ok(()) },
        after_all: || async { eprintln!("hook: after all"); Ok(()) },
    }

    #[gatewright_testing::test(
        skip = "run by `before_all_and_after_all_run_once_per_process_and_other_hooks_around_each_test`"
    )]
    async fn one(_auth: Auth) {}

    #[gatewright_testing::test(
        skip = "run by `before_all_and_after_all_run_once_per_process_and_other_hooks_around_each_test`"
    )]
    async fn two(_auth: Auth) {}
}

#[tokio::test]
async fn before_all_and_after_all_run_once_per_process_and_other_hooks_around_each_test() {
    let hooks = async |tests: &str| {
        let mut run = tokio::process::Command::new(std::env::current_exe().unwrap());
        let output = run.args(["--ignored", tests, "--nocapture"]).output().await.unwrap();
        assert!(output.status.success(), "{output:?}");
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(said.trim_end().ends_with("hook: after all"), "{said}");
        ["before all", "before each", "after each", "after all"]
            .map(|hook| said.matches(&format!("hook: {hook}")).count())
    };
    // `cargo test`: one process for all tests.
    assert_eq!(hooks("fixtures::hooks::").await, [1, 2, 2, 1]);
    // `cargo nextest`: one process per test.
    assert_eq!(hooks("fixtures::hooks::one").await, [1, 1, 1, 1]);
    assert_eq!(hooks("fixtures::hooks::two").await, [1, 1, 1, 1]);
}

mod ending {
    use gatewright_testing::Auth;

    const RUN_BY: &str = "run by a test below";

    mod panics {
        use super::*;

        gatewright_testing::test_use! {
            after_all: || async {
                // A runtime like that of a test, with timers and sockets.
                tokio::time::timeout(std::time::Duration::from_secs(5), tokio::net::TcpListener::bind("127.0.0.1:0")).await??;
                println!("printed after all");
                Ok(())
            },
        }

        #[gatewright_testing::test(skip = "run by `after_all_runs_even_if_a_test_panics`")]
        async fn one(_auth: Auth) {
            panic!("{RUN_BY}");
        }

        #[gatewright_testing::test(skip = "run by `after_all_runs_even_if_a_test_panics`")]
        async fn two(_auth: Auth) {}
    }

    #[gatewright_testing::test(
        skip = "run by `a_failed_after_all_fails_the_run`",
        after_all = || async { Err("the database is still full".into()) }
    )]
    async fn errs() {}

    #[gatewright_testing::test(
        skip = "run by `a_failed_after_all_fails_the_run`",
        after_all = || async { panic!("on the way out") }
    )]
    async fn panics_late() {}
}

async fn run_ignored(tests: &str) -> (std::process::ExitStatus, String) {
    let mut run = tokio::process::Command::new(std::env::current_exe().unwrap());
    let output = run.args(["--ignored", tests]).output().await.unwrap();
    let said = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
    (output.status, said.concat())
}

#[tokio::test]
async fn after_all_runs_even_if_a_test_panics() {
    let (status, said) = run_ignored("fixtures::ending::panics::").await;
    assert_eq!(status.code(), Some(101), "{said}");
    // Its output is not captured, and follows the summary.
    let (summary, after) = said.split_once("test result: FAILED. 1 passed; 1 failed").expect(&said);
    assert!(after.contains("printed after all") && !summary.contains("printed after all"), "{said}");
}

#[tokio::test]
async fn a_failed_after_all_fails_the_run() {
    for (test, why) in [
        ("fixtures::ending::errs", "`after_all` failed: the database is still full"),
        ("fixtures::ending::panics_late", "`after_all` panicked"),
    ] {
        let (status, said) = run_ignored(test).await;
        assert!(!status.success() && said.contains("1 passed; 0 failed"), "{said}");
        assert!(said.contains(why), "{said}");
    }
}
