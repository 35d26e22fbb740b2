//! The script pad.

use http::StatusCode;

use crate::support::site;

#[tokio::test]
async fn a_script_runs_and_shows_result_logs_and_calls() {
    let site = site().await;
    let script = "console.log('hello');\r\nconst users = await callTool('crm:users_list', {limit: 1});\r\nreturn codecallContext.n + 1;";
    let page = site.post("/console/script", &[("script", script), ("context", "{\"n\": 41}")]).await;
    assert_eq!(page.status, StatusCode::OK);
    for expected in
        ["status ok\">ok", "<code>42</code>", "hello", "class=\"list waterfall\"", "crm:users_list"]
    {
        assert!(page.text.contains(expected), "{expected}: {}", page.text);
    }
}

#[tokio::test]
async fn an_error_names_line_and_column_of_what_was_typed() {
    let site = site().await;
    let script = "const a = 1;\r\nconst b = ;\r\nreturn a;";
    let page = site.post("/console/script", &[("script", script), ("context", "")]).await;
    assert!(
        page.text.contains("syntax_error") && page.text.contains("at line 2, column 11"),
        "{}",
        page.text
    );
    assert!(page.text.contains("<span class=\"line here\">"), "{}", page.text);
}

#[tokio::test]
async fn the_limits_of_a_run_are_shown() {
    let text = site().await.get("/console/script").await.text;
    for expected in ["3.50 s", "100,000", "32.0 MiB", "64.0 KiB"] {
        assert!(text.contains(expected), "{expected}");
    }
    assert!(text.contains("await callTool("), "an example to start from");
}

#[tokio::test]
async fn the_example_runs() {
    let site = site().await;
    let text = site.get("/console/script").await.text;
    let example =
        text.split("aria-describedby=\"keys\">\n").nth(1).unwrap().split("</textarea>").next().unwrap();
    let example = example.replace("&quot;", "\"");
    let page = site.post("/console/script", &[("script", &example), ("context", "")]).await;
    assert!(page.text.contains("status ok\">ok"), "{}", page.text);
}
