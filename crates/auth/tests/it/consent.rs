//! What the consent page says of apps and tools.

use gatewright_auth::CoveredTool;

use crate::support::site::Site;

fn tool(app: &str, name: &str, scopes: &[&str]) -> CoveredTool {
    let scopes = scopes.iter().map(|scope| (*scope).to_owned()).collect();
    CoveredTool {
        app: app.into(),
        name: format!("{app}:{name}"),
        scopes,
        destructive: name.contains("delete"),
    }
}

#[tokio::test]
async fn the_consent_page_names_the_apps_and_tools_that_the_scopes_reach() {
    let site = Site::new().await;
    site.server.covers(|| {
        vec![
            tool("notes", "list", &["read"]),
            tool("notes", "delete", &["read", "write"]),
            tool("notes", "<b>ping", &[]),
            tool("secrets", "show", &["write"]),
        ]
    });
    let page = site.browser().to_consent(&[("scope", "read")]).await.text;
    assert!(page.contains("<summary><strong>notes</strong>: 2 of 3 tools</summary>"), "{page}");
    assert!(page.contains("<code>notes:list</code> needs: Read your notes"));
    assert!(page.contains("<code>notes:&lt;b&gt;ping</code>") && !page.contains("notes:delete"));
    assert!(!page.contains("secrets"), "an app without a tool in reach is not covered");
    let page = site.browser().to_consent(&[("scope", "read write")]).await.text;
    assert!(page.contains("notes</strong>: 3 of 3 tools") && page.contains("secrets</strong>: 1 of 1 tool<"));
    let deletes = page.split("<li>").find(|item| item.contains("notes:delete")).unwrap();
    assert!(deletes.contains("needs: Read your notes, Change your notes"), "{deletes}");
    assert!(deletes.contains("may delete or overwrite"), "{deletes}");
}

#[tokio::test]
async fn of_many_tools_and_apps_the_first_are_named_and_the_others_counted() {
    let site = Site::new().await;
    site.server.covers(|| {
        let many = (0..40).map(|n| tool("notes", &format!("t{n:02}"), &["read"]));
        let apps = (0..30).map(|n| tool(&format!("z{n:02}"), "t", &[]));
        many.chain(apps).collect()
    });
    let page = site.browser().to_consent(&[]).await.text;
    assert!(page.contains("40 of 40 tools") && page.contains("<li>and 15 more tools</li>"), "{page}");
    assert!(page.contains("notes:t24") && !page.contains("notes:t25"));
    assert!(page.contains("<li>and 11 more apps</li>") && page.contains("z18") && !page.contains("z19"));
}

#[tokio::test]
async fn nothing_in_reach_is_said_and_without_a_catalogue_nothing_is() {
    let site = Site::new().await;
    assert!(!site.browser().to_consent(&[]).await.text.contains("covered"));
    site.server.covers(|| vec![tool("notes", "delete", &["write"])]);
    let page = site.browser().to_consent(&[]).await.text;
    assert!(page.contains("No tool is within reach of this."));
}
