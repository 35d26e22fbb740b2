//! Hostile names, descriptions, schemas and results stay text.

use std::time::Duration;

use gatewright_core::{CallRecord, Ending, Execution, Principal, ScriptFacts};
use http::StatusCode;

use crate::support::{HOSTILE, HOSTILE_NAME, assert_clean, encode, execution, site};

fn hostile_name() -> String {
    format!("/console/tool?name={}", encode(&format!("evil:{HOSTILE_NAME}")))
}

#[tokio::test]
async fn hostile_tools_stay_text_on_every_page() {
    let site = site().await;
    let query = encode(HOSTILE);
    for path in [
        "/console".to_owned(),
        "/console/tools".to_owned(),
        format!("/console/tools?q={query}&app={query}&page=18446744073709551615"),
        hostile_name(),
        format!("/console/tool?name={query}"),
        format!("/console/search?q={query}"),
        "/console/search?q=alert+script+img".to_owned(),
        "/console/script".to_owned(),
        format!(
            "/console/calls?before={query}&app={query}&tool={query}&caller={query}&status={query}&within={query}"
        ),
        format!("/console/calls/{query}"),
        format!("/console/runs?q={query}&caller={query}&status={query}"),
        format!("/console/script?run={query}"),
        format!("/console/script?tool={query}&example={query}"),
        format!("/console/script?plan={query}%3A{query}"),
        format!("{}&subject={query}&client={query}&scopes={query}", hostile_name()),
        "/console/pins".to_owned(),
        format!("/console/resources?q={query}&app={query}"),
        "/console/prompts".to_owned(),
        "/console/configuration".to_owned(),
        "/console/runs".to_owned(),
        format!("/console/runs/{query}"),
        format!("/console/{query}"),
    ] {
        let page = site.get(&path).await;
        assert!(
            page.status == StatusCode::OK || page.status == StatusCode::NOT_FOUND,
            "{path}: {}",
            page.status
        );
        assert_clean(&page);
    }
    assert!(site.get("/console/tools").await.text.contains("&lt;img src=x onerror=alert(1)&gt;"));
}

#[tokio::test]
async fn hostile_results_and_inputs_stay_text() {
    let site = site().await;
    let field = format!("f.{HOSTILE}");
    let page = site.post(&hostile_name(), &[(&field, HOSTILE)]).await;
    assert_eq!(page.status, StatusCode::OK, "{}", page.text);
    assert!(page.text.contains("&lt;script&gt;alert(2)"));
    assert_clean(&page);

    let page = site.post(&hostile_name(), &[("json", HOSTILE)]).await;
    assert_eq!(page.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert_clean(&page);

    let script = format!("/* {HOSTILE} */ throw new Error(`{HOSTILE}`);").replace('\u{202e}', "");
    let page = site.post("/console/script", &[("script", &script), ("context", "")]).await;
    assert!(page.text.contains("runtime_error"), "{}", page.text);
    assert_clean(&page);

    let page = site.post("/console/script", &[("script", "return 1;"), ("context", HOSTILE)]).await;
    assert_eq!(page.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert_clean(&page);
}

#[tokio::test]
async fn the_observed_shape_of_results_is_shown_without_hostile_names_and_values() {
    let site = site().await;
    let path = "/console/tool?name=evil:rows";
    assert!(!site.get(path).await.text.contains("observed in"));
    for heading in ["observed in 1 answer<", "observed in 2 answers<"] {
        assert_eq!(site.post(path, &[]).await.status, StatusCode::OK);
        let page = site.get(path).await;
        assert_clean(&page);
        let (_, shown) = page.text.split_once(heading).expect("the shape is shown");
        let (shape, _) = shown.split_once("</details>").unwrap();
        for name in ["rows", "counts", "first_field", "string", "integer"] {
            assert!(shape.contains(&format!("&quot;{name}&quot;")), "{name} in {shape}");
        }
        assert!(!shape.contains("alert") && !shape.contains("onerror"), "{shape}");
    }
}

#[tokio::test]
async fn hostile_names_in_executions_stay_text() {
    let site = site().await;
    let call = CallRecord {
        tool: HOSTILE.into(),
        app: HOSTILE.into(),
        start: Duration::from_secs(9),
        duration: Duration::MAX,
        ending: Ending::new(HOSTILE),
        bytes: Some(u64::MAX),
        span_id: None,
        transport: None,
    };
    let id = site.history.record(&Execution {
        principal: Principal { subject: HOSTILE.into(), ..Principal::local() },
        duration: Duration::ZERO,
        ending: Ending::new(HOSTILE),
        script: Some(ScriptFacts { sha256: [0; 32], bytes: 1 }),
        calls: vec![call],
        more_calls: 1,
        ..execution(HOSTILE)
    });
    for path in ["/console".to_owned(), "/console/calls".to_owned(), format!("/console/calls/{id}")] {
        let page = site.get(&path).await;
        assert_eq!(page.status, StatusCode::OK, "{path}");
        assert!(page.text.contains("&lt;img"), "{path}: {}", page.text);
        assert_clean(&page);
    }
}
