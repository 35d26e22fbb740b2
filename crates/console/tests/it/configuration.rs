//! The configuration in force.

use std::sync::Arc;

use gatewright_console::{ConfigurationView, ConsoleOptions};

use crate::support::{HOSTILE, assert_clean, site, site_with};

#[tokio::test]
async fn keys_and_what_waits_for_a_restart_are_shown() {
    let view = ConfigurationView {
        generation: 3,
        refused: true,
        unknown_names: 2,
        notes: vec![format!("apps.crm.tools.x: {HOSTILE}")],
        restart: vec!["http.port".to_owned()],
        values: [("apps.crm.url", HOSTILE), ("http.path", "/mcp"), ("http.port", "1")]
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .to_vec(),
    };
    let options =
        ConsoleOptions { configuration: Some(Arc::new(move || view.clone())), ..ConsoleOptions::default() };
    let site = site_with(options).await;
    let page = site.get("/console/configuration").await;
    assert_clean(&page);
    for expected in [
        "The file has errors.",
        "Waits for a restart</h2>",
        "<code>http.<wbr>port<wbr></code> <span class=\"tag warn\">restart",
        "/<wbr>mcp<wbr>",
        "Findings</h2>",
        "apps.crm.tools.x: ",
        "And 1 more in the log.",
    ] {
        assert!(page.text.contains(expected), "{expected}: {}", page.text);
    }
    let overview = site.get("/console").await.text;
    assert!(overview.contains("1 changed key") && overview.contains("2 findings"), "{overview}");
}

#[tokio::test]
async fn a_server_without_a_file_says_so() {
    let text = site().await.get("/console/configuration").await.text;
    assert!(text.contains("not started from a file"), "{text}");
}
