//! The text of `/metrics` after some requests.

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use gatewright_core::{
    Arrival, CallRecord, Ending, Execution, Observer as _, Operation, Principal, Registry, Subject, ToolNames,
};
use gatewright_operator::telemetry::{MOST_PROMPTS, Metrics};

fn operation(method: &'static str, subject: Option<Subject>, ending: Ending) -> Operation {
    Operation {
        method,
        subject,
        principal: Principal::local(),
        address: None,
        started: SystemTime::now(),
        duration: Duration::from_millis(2),
        ending,
        trace: None,
        arrival: Arrival::default(),
    }
}

fn execution(tool: &str, ending: Ending) -> Execution {
    let tool: Arc<str> = tool.into();
    let call = CallRecord {
        tool: tool.clone(),
        app: "crm".into(),
        start: Duration::ZERO,
        duration: Duration::from_millis(1),
        ending: ending.clone(),
        bytes: Some(7),
        span_id: None,
        transport: None,
    };
    Execution {
        id: 1,
        tool,
        is_meta: false,
        is_known: true,
        principal: Principal::local(),
        plan: None,
        address: None,
        started: SystemTime::now(),
        duration: Duration::from_millis(2),
        ending,
        bytes: Some(7),
        script: None,
        arguments: None,
        calls: vec![call],
        more_calls: 0,
        exchanges: Vec::new(),
        trace: None,
        arrival: Arrival::default(),
    }
}

fn lines(metrics: &Metrics) -> Vec<String> {
    let text = metrics.render(&Registry::new(ToolNames::default()), None);
    text.lines()
        .filter(|line| line.contains("_count{") || line.contains("_total{"))
        .map(str::to_owned)
        .collect()
}

#[test]
fn every_method_is_counted_with_labels_from_bounded_sets() {
    let metrics = Metrics::new().unwrap();
    metrics.operated(&operation("tools/list", None, Ending::OK));
    metrics.operated(&operation("tools/list", None, Ending::OK));
    let uri = Subject::Resource("crm://users/1".into());
    metrics.operated(&operation("resources/read", Some(uri), Ending::new("PROTOCOL_ERROR")));
    for n in 0..2 * MOST_PROMPTS {
        let prompt = Subject::Prompt(format!("crm:prompt{n}").into());
        metrics.operated(&operation("prompts/get", Some(prompt), Ending::OK));
    }
    let all = lines(&metrics);
    let series = |method: &str| {
        let label = format!("mcp_method_name=\"{method}\"");
        all.iter().filter(|line| line.contains(&label)).collect::<Vec<_>>()
    };
    let [list] = series("tools/list")[..] else { panic!("{all:?}") };
    assert!(list.contains("error_type=\"\"") && list.ends_with(" 2"), "{list}");
    let [read] = series("resources/read")[..] else { panic!("{all:?}") };
    assert!(read.contains("error_type=\"PROTOCOL_ERROR\"") && !read.contains("crm://"), "{read}");
    let prompts = series("prompts/get");
    assert_eq!(prompts.len(), MOST_PROMPTS + 1);
    assert!(prompts.iter().any(|line| line.contains("gen_ai_prompt_name=\"_OTHER\"")));
}

#[test]
fn what_went_well_and_what_did_not_are_series_of_the_same_tool() {
    let metrics = Metrics::new().unwrap();
    for _ in 0..3 {
        metrics.finished(&execution("crm:users_list", Ending::OK));
    }
    metrics.finished(&execution("crm:users_list", Ending::new("RATE_LIMIT")));
    let all = lines(&metrics);
    let counts = |name: &str, error: &str| {
        let label = format!("error_type=\"{error}\"");
        let mut found = all.iter().filter(|line| line.starts_with(name) && line.contains(&label));
        let line = found.next().unwrap_or_else(|| panic!("{name} {error}: {all:?}"));
        assert!(line.contains("gen_ai_tool_name=\"crm:users_list\"") && found.next().is_none(), "{line}");
        line.rsplit(' ').next().unwrap().to_owned()
    };
    for name in ["mcp_server_operation_duration_seconds", "gatewright_tool_call_duration_seconds"] {
        assert_eq!((counts(name, "").as_str(), counts(name, "RATE_LIMIT").as_str()), ("3", "1"));
    }
    // A direct call is refused once, though it is a request and a call.
    assert!(all.contains(&"gatewright_rate_limited_total{gen_ai_tool_name=\"crm:users_list\"} 1".to_owned()));
}
