//! The list of calls, one call, and the journal of a script.

use std::time::{Duration, SystemTime};

use gatewright_console::ConsoleOptions;
use gatewright_core::{CallRecord, Ending, Execution, Principal, TraceContext};
use http::StatusCode;

use crate::support::{execution, site, site_with};

fn call(tool: &str, code: &'static str) -> CallRecord {
    CallRecord {
        tool: tool.into(),
        app: tool.split(':').next().unwrap().into(),
        start: Duration::ZERO,
        duration: Duration::from_millis(2),
        ending: Ending::new(code),
        bytes: None,
        span_id: None,
        transport: None,
    }
}

#[tokio::test]
async fn calls_are_chosen_by_app_tool_caller_status_and_time() {
    let site = site().await;
    let bob = Principal { subject: "bob".into(), client_id: Some("desk".into()), ..Principal::local() };
    site.history.record(&Execution { calls: vec![call("crm:users_list", "ok")], ..execution("one:a") });
    site.history.record(&Execution {
        principal: bob,
        ending: Ending::new("RATE_LIMIT"),
        ..execution("two:b")
    });
    site.history
        .record(&Execution { calls: vec![call("crm:drop", "ACCESS_DENIED")], ..execution("three:c") });
    site.history.record(&Execution {
        started: SystemTime::now() - Duration::from_secs(7_200),
        ..execution("four:d")
    });
    let names = ["one:a", "two:b", "three:c", "four:d"];
    for (query, expected) in [
        ("", &names[..]),
        ("app=crm", &["one:a", "three:c"]),
        ("app=two", &["two:b"]),
        ("tool=USERS_", &["one:a"]),
        ("caller=bo", &["two:b"]),
        ("caller=DESK", &["two:b"]),
        ("status=failed", &["two:b"]),
        ("status=refused", &["two:b", "three:c"]),
        ("status=ACCESS_DENIED", &["three:c"]),
        ("within=1h", &["one:a", "two:b", "three:c"]),
        ("within=1h&app=crm&status=ok", &["one:a", "three:c"]),
        ("tool=nothing", &[]),
    ] {
        let text = site.get(&format!("/console/calls?{query}")).await.text;
        let found: Vec<&str> =
            names.into_iter().filter(|name| text.contains(&format!(">{name}</a>"))).collect();
        assert_eq!(found, expected, "{query}");
    }
    let text = site.get("/console/calls?tool=nothing").await.text;
    assert!(text.contains("None of those that are kept fits."), "{text}");
    assert_eq!(site.get("/console/executions").await.status, StatusCode::PERMANENT_REDIRECT);
}

#[tokio::test]
async fn a_row_of_invoke_is_named_after_the_tool_that_it_called() {
    let site = site().await;
    let invoke = |calls| Execution { is_meta: true, calls, ..execution("codecall:invoke") };
    site.history.record(&invoke(vec![call("crm:users_list", "ok")]));
    let text = site.get("/console/calls").await.text;
    assert!(text.contains(">crm:users_list</a>") && text.contains(">codecall:invoke</span>"), "{text}");
    site.history.record(&Execution {
        ending: Ending::new("error"),
        ..invoke(vec![call("crm:drop", "APPROVAL_REQUIRED")])
    });
    let text = site.get("/console/calls").await.text;
    assert!(text.contains(">needs approval</span>") && !text.contains(">error</span>"), "{text}");
    site.history.record(&invoke(vec![]));
    let text = site.get("/console/calls").await.text;
    assert!(text.contains(">codecall:invoke</a>"), "{text}");
}

#[tokio::test]
async fn all_rows_are_drawn_on_one_scale() {
    let site = site().await;
    for ms in [10, 40] {
        let duration = Duration::from_millis(ms);
        site.history.record(&Execution { duration, ..execution("crm:a") });
    }
    let text = site.get("/console/calls").await.text;
    assert_eq!(text.matches("viewBox=\"0 0 40000 10\"").count(), 2, "{text}");
    assert!(text.contains("data-total=\"10000\"") && text.contains("<span>40 ms</span>"), "{text}");
}

#[tokio::test]
async fn a_call_shows_its_trace_its_arguments_and_what_to_do() {
    let site = site().await;
    let arguments = serde_json::json!({"limit": 2}).as_object().cloned();
    let trace = TraceContext::below(None);
    let id = site.history.record(&Execution {
        arguments,
        trace: Some(trace.clone()),
        ending: Ending::new("RATE_LIMIT"),
        ..execution("crm:users_list")
    });
    let text = site.get(&format!("/console/calls/{id}")).await.text;
    for expected in [
        trace.trace_id().as_str(),
        "&quot;limit&quot;: 2",
        "What to do</h2>",
        "rateLimits",
        "Call the tool again",
    ] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
    let again = site.get(&format!("/console/tool?name=crm:users_list&call={id}")).await.text;
    assert!(again.contains("&quot;limit&quot;: 2"), "its arguments are filled in: {again}");
}

#[tokio::test]
async fn the_journal_of_a_script_shows_the_failing_line_its_calls_and_a_way_to_repeat_it() {
    let site = site().await;
    let script = "const found = await callTool('crm:users_list', {limit: 1});\nawait callTool('evil:fail', {n: 3});\nreturn found;";
    site.post("/console/script", &[("script", script), ("context", "{\"n\": 41}")]).await;
    let call = site.get("/console/calls/1").await.text;
    let path = call.split("href=\"/console/runs/").nth(1).unwrap().split('"').next().unwrap();
    let run = site.get(&format!("/console/runs/{path}")).await.text;
    for expected in [
        "Error</h2>",
        "<span class=\"line here\">",
        "TOOL_EXECUTION_ERROR",
        "What to do</h2>",
        "&quot;limit&quot;: 1",
        "&quot;n&quot;: 41",
        "Calls over time</h2>",
        "Repeat in the pad",
        "href=\"/console/calls/1\"",
    ] {
        assert!(run.contains(expected), "{expected}: {run}");
    }
    let here = run.split("<span class=\"line here\">").nth(1).unwrap().split("</span>\n").next().unwrap();
    assert!(here.contains("evil:fail"), "{here}");
    let pad = site.get(&format!("/console/script?run={path}")).await.text;
    assert!(pad.contains("evil:fail") && pad.contains("&quot;n&quot;: 41"), "{pad}");
    let one = site.get(&format!("/console/runs/{path}?call=1")).await.text;
    assert!(one.contains("Input</h3>") && one.contains("Answer</h3>"), "{one}");
    assert_eq!(site.get(&format!("/console/runs/{path}?call=9")).await.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn a_call_links_to_its_own_journal_when_one_script_runs_again_and_again() {
    let site = site().await;
    for _ in 0..3 {
        site.post("/console/script", &[("script", "return 1;"), ("context", "")]).await;
    }
    let mut journals = Vec::new();
    for call in 1..=3 {
        let text = site.get(&format!("/console/calls/{call}")).await.text;
        let found: Vec<String> = text
            .split("href=\"/console/runs/")
            .skip(1)
            .map(|rest| rest.split('"').next().unwrap().to_owned())
            .collect();
        assert_eq!(found.len(), 1, "{text}");
        let run = site.get(&format!("/console/runs/{}", found[0])).await.text;
        assert!(run.contains(&format!("href=\"/console/calls/{call}\"")), "{run}");
        journals.extend(found);
    }
    journals.dedup();
    assert_eq!(journals.len(), 3);
}

#[tokio::test]
async fn a_client_that_is_its_own_user_is_named_once() {
    let site = site().await;
    let caller = |client: &str| Principal {
        subject: "robot".into(),
        client_id: Some(client.into()),
        ..Principal::local()
    };
    site.history.record(&Execution { principal: caller("robot"), ..execution("crm:users_list") });
    let text = site.get("/console/calls").await.text;
    assert!(text.contains("robot") && !text.contains(" via "), "{text}");
    site.history.record(&Execution { principal: caller("desk"), ..execution("crm:users_list") });
    assert!(site.get("/console/calls").await.text.contains("robot via desk"));
}

#[tokio::test]
async fn contents_of_journals_are_not_shown_where_that_is_off() {
    let site = site_with(ConsoleOptions { contents: false, ..ConsoleOptions::default() }).await;
    let script = "return await callTool('crm:users_list', {limit: 1}); // a secret";
    let id = site.post("/console/script", &[("script", script), ("context", "")]).await;
    assert_eq!(id.status, StatusCode::OK);
    let call = site.get("/console/calls/1").await.text;
    let path = call.split("href=\"/console/runs/").nth(1).unwrap().split('"').next().unwrap();
    for page in [format!("/console/runs/{path}?call=1"), format!("/console/script?run={path}")] {
        assert!(!site.get(&page).await.text.contains("a secret"), "{page}");
    }
    let run = site.get(&format!("/console/runs/{path}")).await.text;
    assert!(run.contains("admin.contents") && !run.contains("Inputs and answers"), "{run}");
}
