//! Requests that the console refuses, and the limits of its pages.

use axum::body::Body;
use http::{Method, Request, StatusCode, header};

use crate::support::{form, site};

const TOOL: &str = "/console/tool?name=evil:fail";

#[tokio::test]
async fn another_host_gets_nothing_not_even_a_style_sheet() {
    let site = site().await;
    for path in ["/console", "/console/live", "/console/style.css", "/console/script", "/console/nothing"] {
        for host in ["evil.example", "localhost.evil.example:9464"] {
            let request = Request::get(path).header(header::HOST, host).body(Body::empty()).unwrap();
            let page = site.send(request).await;
            assert_eq!(page.status, StatusCode::MISDIRECTED_REQUEST, "{host} {path}");
            assert!(!page.text.contains("csrf") && !page.text.contains("href=\"/"), "{}", page.text);
            assert!(page.text.starts_with("<!DOCTYPE html>") && page.text.contains("admin.allowedHosts"));
            let policy = page.headers["content-security-policy"].to_str().unwrap();
            assert!(
                policy.contains("style-src 'sha256-") && policy.contains("form-action 'none'"),
                "{policy}"
            );
        }
    }
    let two = Request::get("/console").header(header::HOST, "localhost").header(header::HOST, "evil.example");
    assert_eq!(site.send(two.body(Body::empty()).unwrap()).await.status, StatusCode::MISDIRECTED_REQUEST);
}

#[tokio::test]
async fn a_form_without_the_token_or_from_elsewhere_calls_nothing() {
    let site = site().await;
    let stolen = site.get(TOOL).await.text;
    let token = stolen.split("name=\"csrf\" value=\"").nth(1).unwrap().split('"').next().unwrap().to_owned();
    let almost = format!("{}0", &token[..token.len() - 1]);
    let other = if almost == token { format!("{}1", &token[..token.len() - 1]) } else { almost };

    for wrong in [&[][..], &[("csrf", "")], &[("csrf", other.as_str())]] {
        let page = site.post_bare(TOOL, wrong).await;
        assert_eq!(page.status, StatusCode::FORBIDDEN);
        assert!(page.text.contains("Nothing was run."));
        let script = [wrong, &[("script", "return await callTool('evil:fail', {});")]].concat();
        let page = site.post_bare("/console/script", &script).await;
        assert_eq!(page.status, StatusCode::FORBIDDEN);
        assert!(page.text.contains("evil:fail"), "what was typed is kept");
    }
    // The right token from another origin.
    for (site_says, origin) in [
        (Some("cross-site"), Some("http://evil.example")),
        (Some("same-site"), Some("http://localhost:3000")),
        (None, Some("null")),
        (None, None),
    ] {
        for path in [TOOL, "/console/script"] {
            let mut request = Request::post(path).header(header::HOST, "localhost:9464");
            if let Some(site_says) = site_says {
                request = request.header("sec-fetch-site", site_says);
            }
            if let Some(origin) = origin {
                request = request.header(header::ORIGIN, origin);
            }
            let page = site.send(form(request, &[("csrf", &token), ("script", "return 1;")])).await;
            assert_eq!(page.status, StatusCode::FORBIDDEN, "{origin:?}");
            assert!(page.text.contains("<h1>Not from here</h1>"), "{}", page.text);
        }
    }
    assert!(site.hostile.callers.lock().unwrap().is_empty());
}

#[tokio::test]
async fn the_token_is_of_use_only_where_it_belongs() {
    let site = site().await;
    let page = site.post(TOOL, &[]).await;
    assert_eq!(page.status, StatusCode::OK);
    assert_eq!(site.hostile.callers.lock().unwrap().len(), 1);
    for method in [Method::PUT, Method::DELETE] {
        let request = Request::builder()
            .method(method)
            .uri(TOOL)
            .header(header::HOST, "localhost")
            .header(header::ORIGIN, "http://localhost");
        let page = site.send(request.body(Body::empty()).unwrap()).await;
        assert_eq!(page.status, StatusCode::METHOD_NOT_ALLOWED);
    }
    assert_eq!(site.hostile.callers.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn every_answer_forbids_what_the_console_does_not_need() {
    let site = site().await;
    for path in ["/console", TOOL, "/console/style.css", "/console/script.js", "/console/none"] {
        let page = site.get(path).await;
        let policy = page.headers["content-security-policy"].to_str().unwrap();
        assert!(
            policy.starts_with("default-src 'none'") && policy.contains("frame-ancestors 'none'"),
            "{path}"
        );
        assert!(!policy.contains("unsafe") && !policy.contains('*'), "{policy}");
        assert_eq!(page.headers["x-content-type-options"], "nosniff");
        assert_eq!(page.headers["cross-origin-resource-policy"], "same-origin");
        assert!(!page.text.contains("style=\"") && !page.text.contains(" onclick"), "{path}");
        assert!(!page.text.contains("//cdn") && !page.text.contains("src=\"http"), "{path}");
    }
}

#[tokio::test]
async fn a_form_larger_than_allowed_is_refused() {
    let site = site().await;
    let page = site.post("/console/script", &[("script", &"x".repeat(1 << 20))]).await;
    assert_eq!(page.status, StatusCode::PAYLOAD_TOO_LARGE);
}
