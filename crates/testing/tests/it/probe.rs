//! Probes of servers that misbehave in ways of their own.

use std::time::{Duration, Instant};

use gatewright_findings::must_be_escaped;
use gatewright_testing::{
    fuzz::{self, Severity, Target},
    probe::{Area, Grade, ProbeOptions, ProbeReport, probe, readable},
};

use crate::support::script;

fn options() -> ProbeOptions {
    let mut options = ProbeOptions::default();
    options.fuzz.max_calls = Some(20);
    options.fuzz.call_timeout = Duration::from_secs(5);
    options
}

async fn of(server: &str, args: &[&str], options: &ProbeOptions) -> ProbeReport {
    let args: Vec<String> = args.iter().map(|arg| (*arg).to_owned()).collect();
    let target = Target::command(&script(server), &args, Duration::from_secs(30)).await.unwrap();
    probe(&target, options).await
}

fn grade(report: &ProbeReport, area: Area) -> Option<Grade> {
    report.areas.iter().find(|one| one.area == area).unwrap().grade
}

#[tokio::test]
async fn grades_every_area_and_shows_the_request_of_each_finding() {
    let report = of("fragile.mjs", &[], &options()).await;
    assert!(report.is_reached() && report.stopped.is_none(), "{:?}", report.stopped);
    assert_eq!(grade(&report, Area::Shapes), Some(Grade::A), "{:?}", report.findings);
    assert_eq!(grade(&report, Area::Tools), Some(Grade::F), "{:?}", report.findings);
    assert_eq!((grade(&report, Area::Auth), report.grade), (None, Some(Grade::F)));
    let crash = report
        .findings
        .iter()
        .find(|one| one.problem.contains("`get_crash`: the call ended the server"))
        .unwrap();
    assert_eq!(crash.request["params"]["name"], "get_crash");
    let text = readable(&report);
    for part in
        ["fragile 1, revision 2025-11-25", "tools      F", "auth       –", "request: {\"jsonrpc\":\"2.0\""]
    {
        assert!(text.contains(part), "{part}: {text}");
    }
    text_of_the_server_directs_no_terminal_and_fakes_no_line(report);
}

fn text_of_the_server_directs_no_terminal_and_fakes_no_line(mut report: ProbeReport) {
    let hostile = "x\u{1b}]0;pwn\u{7}\u{9b}31m\u{202e}\r\ngrade A (1 s)";
    report.server["info"]["name"] = hostile.into();
    report.server["revisions"] = serde_json::json!([hostile]);
    report.stopped = Some(hostile.to_owned());
    for finding in &mut report.findings {
        (finding.problem, finding.answer) = (hostile.to_owned(), hostile.to_owned());
    }
    let mut fuzzed = report.fuzz.clone().unwrap();
    for finding in &mut fuzzed.findings {
        (finding.tool, finding.problem) = (hostile.to_owned(), hostile.to_owned());
    }
    for text in [readable(&report), fuzz::readable(&fuzzed)] {
        let is_control = |c: char| c != '\n' && must_be_escaped(c);
        assert!(text.contains("pwn") && !text.contains(is_control), "{text:?}");
        assert!(!text.contains("\ngrade A"), "{text}");
    }
}

#[tokio::test]
async fn a_server_that_answers_nothing_is_reported_and_stopped() {
    let mut options = options();
    options.deadline = Some(Duration::from_secs(5));
    let started = Instant::now();
    let report = of("deaf.mjs", &[], &options).await;
    assert!(started.elapsed() < Duration::from_secs(60), "{:?}", started.elapsed());
    assert!(!report.is_reached() && report.stopped.is_some());
}

#[tokio::test]
async fn a_server_that_stops_reading_after_the_handshake_does_not_hang_the_probe() {
    let mut options = options();
    options.fuzz.call_timeout = Duration::from_millis(500);
    options.deadline = Some(Duration::from_secs(15));
    let started = Instant::now();
    let report = of("deaf.mjs", &["after-handshake"], &options).await;
    assert!(started.elapsed() < Duration::from_secs(60), "{:?}", started.elapsed());
    assert!(report.is_reached() && report.has(Severity::Error), "{:?}", report.findings);
}

#[tokio::test]
async fn a_token_that_is_not_good_has_to_be_refused() {
    // `tiny.mjs` asks for a token without telling where to get one.
    let server =
        gatewright_testing::Server::builder(script("tiny.mjs")).env("BREAK", "auth").start().await.unwrap();
    let url = format!("{}/mcp", server.info().base_url);
    let report = probe(&Target::url(&url).token(Some("good".into())), &options()).await;
    let auth: Vec<&str> =
        report.findings.iter().filter(|one| one.area == Area::Auth).map(|one| one.problem.as_str()).collect();
    assert_eq!(auth, ["there is no protected resource metadata (RFC 9728)"]);
    assert!(
        report.findings.iter().all(|one| !one.request.to_string().contains("good")),
        "no token in a report"
    );
    assert!(grade(&report, Area::Http).is_some() && report.is_reached());
    let report = probe(&Target::url(&url), &options()).await;
    assert!(report.stopped.unwrap().contains("--token"));
}

#[tokio::test]
async fn ways_around_the_token_and_broken_tokens_that_are_accepted_are_found() {
    use gatewright_testing::{MockOAuthServer, MockOAuthServerOptions, TokenFactory, TokenFactoryOptions};

    let factory =
        TokenFactory::new(TokenFactoryOptions { audience: "notes".into(), ..TokenFactoryOptions::default() });
    let mut issuer = MockOAuthServer::new(factory, MockOAuthServerOptions::default());
    issuer.start().await.unwrap();
    for (bug, expected) in [
        ("", ""),
        ("call-without-auth", "`tools/call` without a token is served"),
        ("path-without-auth", "a client without a token at this path is served"),
        ("header-of-proxy", "a client without a token that sends `x-forwarded-for: 127.0.0.1` is served"),
        ("session-instead-of-token", "a session without its token is served"),
        ("session-of-others", "a session with the token of another user is served"),
        ("no-expiry", "a token of the issuer with the defect `no-expiry` is accepted"),
        ("embedded-key", "a token of the issuer with the defect `embedded-key` is accepted"),
    ] {
        let server = gatewright_testing::Server::builder(script("defects-http.mjs"))
            .env("BUG", bug)
            .env("IDP_PROVIDER_URL", &issuer.info().base_url)
            .env("IDP_EXPECTED_AUDIENCE", "notes")
            .start()
            .await
            .unwrap();
        let url = format!("{}/mcp", server.info().base_url);
        let mut options = options();
        options.issuer = Some(issuer.get_token_factory());
        // Without a token for the client the probe ends after this area.
        let report = probe(&Target::url(&url), &options).await;
        let wrong =
            report.findings.iter().filter(|one| one.area == Area::Auth && one.severity > Severity::Note);
        let wrong: Vec<&str> = wrong.map(|one| one.problem.as_str()).collect();
        assert!(
            if bug.is_empty() { wrong.is_empty() } else { wrong.contains(&expected) },
            "{bug}: {wrong:?}"
        );
    }
}

#[tokio::test]
async fn a_server_that_ignores_headers_that_contradict_the_body_is_found() {
    for (program, how, found) in
        [(script("tiny.mjs"), "stateless", true), ("everything_server".to_owned(), "", false)]
    {
        let server = gatewright_testing::Server::builder(program).env("BREAK", how).start().await.unwrap();
        let url = format!("{}/mcp", server.info().base_url);
        let report = probe(&Target::url(&url), &options()).await;
        let told = report.findings.iter().filter(|one| one.problem.contains("contradicts its body"));
        let told: Vec<&str> = told.map(|one| one.problem.as_str()).collect();
        assert_eq!(told.iter().any(|one| one.contains("`Mcp-Method`")), found, "{told:?}");
        assert!(found || told.is_empty(), "{told:?}");
    }
}
