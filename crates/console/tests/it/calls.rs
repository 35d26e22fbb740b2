//! Calling tools from their forms.

use gatewright_console::OPERATOR;
use gatewright_core::Execution;
use http::StatusCode;

use crate::support::site;

#[tokio::test]
async fn a_form_calls_the_tool_as_the_operator() {
    let site = site().await;
    let page = site.post("/console/tool?name=crm:users_list", &[("f.limit", "2")]).await;
    assert_eq!(page.status, StatusCode::OK, "{}", page.text);
    assert!(page.text.contains("<h2 id=\"result-title\">Result</h2>"));
    assert!(page.text.contains("status ok"), "{}", page.text);

    site.post("/console/tool?name=evil:fail", &[("f.n", "3")]).await;
    let callers = site.hostile.callers.lock().unwrap();
    assert_eq!(callers.len(), 1);
    assert_eq!(
        (&*callers[0].subject, callers[0].client_id.as_deref()),
        (OPERATOR, Some("gatewright-console"))
    );
}

#[tokio::test]
async fn calls_by_the_operator_are_in_the_history_under_their_name() {
    let site = site().await;
    site.post("/console/tool?name=evil:fail", &[]).await;
    site.post("/console/tool?name=evil:fail", &[("f.n", "6")]).await;
    site.post("/console/script", &[("script", "return await callTool('crm:users_list', {});")]).await;
    let kept = site.history.latest(None, 10);
    let executions: Vec<&Execution> = kept.iter().map(|one| &one.execution).collect();
    let found: Vec<(&str, &str, usize)> =
        executions.iter().map(|one| (&*one.tool, one.ending.status(), one.calls.len())).collect();
    let expected = [
        ("codecall:execute", "ok", 1),
        ("evil:fail", "VALIDATION_ERROR", 1),
        ("evil:fail", "TOOL_EXECUTION_ERROR", 1),
    ];
    assert_eq!(found, expected);
    assert!(
        executions
            .iter()
            .all(|one| &*one.principal.subject == OPERATOR && !one.started.elapsed().unwrap().is_zero())
    );
}

#[tokio::test]
async fn a_tool_that_failed_is_shown_as_failed() {
    let site = site().await;
    let page = site.post("/console/tool?name=evil:fail", &[]).await;
    assert!(page.text.contains("status bad\">error"), "{}", page.text);
}

#[tokio::test]
async fn bad_input_is_refused_where_it_was_typed_and_kept() {
    let site = site().await;
    let page = site.post("/console/tool?name=evil:fail", &[("f.n", "1.5")]).await;
    assert_eq!(page.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(page.text.contains("Type a whole number.") && page.text.contains("value=\"1.5\""));
    assert!(page.text.contains("aria-invalid=\"true\"") && page.text.contains("f0-error"));

    // What the fields cannot judge, the schema does.
    let page = site.post("/console/tool?name=evil:fail", &[("f.n", "6")]).await;
    assert_eq!(page.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(page.text.contains("VALIDATION_ERROR") && page.text.contains("/n"), "{}", page.text);

    let page = site.post("/console/tool?name=evil:fail", &[("json", "[1]")]).await;
    assert_eq!(page.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(page.text.contains("must be a JSON object"));
    assert!(site.hostile.callers.lock().unwrap().is_empty());

    let page = site.post("/console/tool?name=evil:fail", &[("json", "{\"n\": 5}")]).await;
    assert_eq!(page.status, StatusCode::OK);
    assert_eq!(site.hostile.callers.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn a_destructive_tool_is_called_only_when_it_is_meant() {
    let site = site().await;
    let page = site.post("/console/tool?name=evil:drop", &[]).await;
    assert_eq!(page.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(site.hostile.callers.lock().unwrap().is_empty());
    let page = site.post("/console/tool?name=evil:drop", &[("sure", "yes")]).await;
    assert_eq!(page.status, StatusCode::OK);
    assert_eq!(site.hostile.callers.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn tools_are_filtered_and_found() {
    let site = site().await;
    let all = site.get("/console/tools").await.text;
    assert!(all.contains("crm:users_list") && all.contains("evil:fail"));
    let some = site.get("/console/tools?app=evil&q=FAIL").await.text;
    assert!(some.contains("evil:fail") && !some.contains("crm:users_list") && some.contains("1 tool"));

    let hits = site.get("/console/search?q=list+users").await.text;
    assert!(hits.contains("crm:users_list") && hits.contains("<th scope=\"col\">Share</th>"), "{hits}");
}
