//! The overview: what needs attention, and the last hour.

use std::{sync::Arc, time::Duration};

use gatewright_core::{AppOptions, CallRecord, Ending, Execution, LocalApp};
use gatewright_demo::{App as DemoApp, Dataset};

use crate::support::{execution, site};

fn slow(tool: &str, ending: &Ending) -> Execution {
    let duration = Duration::from_secs(3);
    let call = CallRecord {
        tool: tool.into(),
        app: "crm".into(),
        start: Duration::ZERO,
        duration,
        ending: ending.clone(),
        bytes: None,
        span_id: None,
        transport: None,
    };
    Execution { duration, ending: ending.clone(), calls: vec![call], ..execution(tool) }
}

#[tokio::test]
async fn without_trouble_nothing_needs_attention() {
    let text = site().await.get("/console").await.text;
    assert!(text.contains("Nothing does.") && text.contains("0 calls in the last hour"), "{text}");
}

#[tokio::test]
async fn refused_calls_failing_and_slow_tools_need_attention_and_are_drawn() {
    let site = site().await;
    for _ in 0..10 {
        site.history.record(&slow("crm:slow_one", &Ending::OK));
        site.history.record(&slow("crm:broken_one", &Ending::new("TOOL_EXECUTION_ERROR")));
    }
    site.history.record(&slow("crm:refused_one", &Ending::new("ACCESS_DENIED")));
    let text = site.get("/console").await.text;
    for expected in [
        "1 call with <code>ACCESS_DENIED</code></a>",
        "<code>crm:broken_one</code></a> failed in 10 of 10 calls.",
        "<code>crm:slow_one</code></a> takes up to",
        "21 calls in the last hour",
        "<path class=\"bar bad\"",
        "<path class=\"p95\" d=\"M",
        "Slowest tools",
    ] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
    let tool = site.get("/console/tool?name=crm:users_list").await.text;
    assert!(!tool.contains("Calls in the last hour"), "it was not called");
}

#[tokio::test]
async fn few_apps_have_a_card_each_and_many_a_line() {
    let site = site().await;
    let text = site.get("/console").await.text;
    assert!(text.matches("<li class=\"card").count() == 2 && !text.contains("list apps"), "{text}");
    let registry = site.running.gateway().registry();
    let app = Arc::new(LocalApp::start(DemoApp::crm(Dataset::seeded())).await.unwrap());
    for n in 0..20 {
        registry.add(&format!("copy_{n}"), app.clone(), AppOptions::default());
    }
    let text = site.get("/console").await.text;
    let (before, lines) = text.split_once("<ul class=\"list apps\">").expect("there is a list");
    assert_eq!(lines.matches("<li class=\"row\">").count(), 22, "{lines}");
    assert!(lines.contains("copy_<wbr>19") && lines.contains("13 tools"), "{lines}");
    assert!(!before.contains("<li class=\"card"), "{before}");
}
