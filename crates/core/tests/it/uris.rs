//! URIs of resources: their length, their number in a session, and their spelling.

use gatewright_core::{AppOptions, Caller, ScopeRule};
use serde_json::json;

use crate::access::{ask, client, gateway, granted};

#[tokio::test]
async fn a_session_follows_no_more_than_its_share_and_no_uri_is_longer_than_8_kib() {
    let gateway = gateway(AppOptions::default()).await;
    let mcp = client(&gateway, granted("ada", "*"), false).await;
    let long = json!({"uri": format!("vault://{}", "x".repeat(9_000))});
    for method in ["resources/read", "resources/subscribe", "resources/unsubscribe"] {
        let error = ask(&mcp, method, long.clone()).await.unwrap_err();
        assert_eq!(error.code.0, -32602, "{method}: {error}");
        assert!(
            error.message.contains("8192 is the limit") && error.message.len() < 200,
            "{method}: {error}"
        );
    }
    let reference =
        json!({"ref": {"type": "ref/resource", "uri": long["uri"]}, "argument": {"name": "a", "value": ""}});
    let error = ask(&mcp, "completion/complete", reference).await.unwrap_err();
    assert!(error.message.contains("8192 is the limit"), "{error}");

    for (length, room) in [(8, 1_000), (8_000, 32)] {
        let mcp = client(&gateway, granted("ada", "*"), false).await;
        let uri = |number: usize| json!({"uri": format!("vault://{number:0length$}")});
        for number in 0..room {
            ask(&mcp, "resources/subscribe", uri(number)).await.unwrap();
        }
        ask(&mcp, "resources/subscribe", uri(0)).await.expect("it is followed already");
        let error = ask(&mcp, "resources/subscribe", uri(room)).await.unwrap_err();
        assert!(error.code.0 == -32600 && error.message.contains("too many resources"), "{error}");
        ask(&mcp, "resources/unsubscribe", uri(0)).await.unwrap();
        ask(&mcp, "resources/subscribe", uri(room)).await.unwrap();
    }
    let modern = client(&gateway, granted("ada", "*"), true).await;
    let wanted: Vec<String> = (0..1_001).map(|number| format!("vault://{number}")).collect();
    let filter = json!({"notifications": {"resourceSubscriptions": wanted}});
    let error = ask(&modern, "subscriptions/listen", filter).await.unwrap_err();
    assert!(error.message.contains("too many resources"), "{error}");
}

#[tokio::test]
async fn a_request_for_too_many_resources_is_refused_before_one_of_them_is_looked_up() {
    let rule = ScopeRule { scopes: vec!["gold".to_owned()] };
    let options =
        AppOptions { resources: [("vault://gold".to_owned(), rule)].into(), ..AppOptions::default() };
    let gateway = gateway(options).await;
    let (first, again) = (json!("vault://gold"), json!(vec!["vault://gold"; 2_000]));
    let numbered = |length: usize, number: usize| {
        let uri = move |n: usize| json!(format!("vault://box/{n:0length$}"));
        json!(std::iter::once(first.clone()).chain((0..number).map(uri)).collect::<Vec<_>>())
    };
    // With the scopes that are missed there: none where nothing is looked up.
    for (wanted, missed) in [
        (numbered(1, 999), 1),
        (numbered(1, 1_000), 0),
        (numbered(8_000, 32), 1),
        (numbered(8_000, 33), 0),
        (again, 1),
    ] {
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen",
            "params": {"notifications": {"resourceSubscriptions": wanted}}});
        let caller = Caller::new(granted("ada", ""));
        assert_eq!(gateway.missing_scopes(caller, None, message.to_string()).await.len(), missed);
    }
}

#[tokio::test]
async fn a_uri_that_is_not_plain_needs_every_scope_unless_the_app_lists_it_so() {
    let rule = |scope: &str| ScopeRule { scopes: vec![scope.to_owned()] };
    let options =
        AppOptions { resources: [("vault://box/*".to_owned(), rule("r"))].into(), ..AppOptions::default() };
    let gateway = gateway(options).await;
    let (mcp, owner) = (client(&gateway, granted("ada", ""), false).await, granted("bob", "r"));
    let owner = client(&gateway, owner, false).await;
    for uri in ["vault://gold", "vault:vault://gold", "vault://other/7", "vault://odd/?q=caf\u{e9}"] {
        ask(&mcp, "resources/read", json!({"uri": uri})).await.unwrap();
        ask(&mcp, "resources/subscribe", json!({"uri": uri})).await.unwrap();
    }
    for uri in [
        "vault://b%6Fx/7",
        "vault://other/?/../../box/7",
        "vault://other/#/../../box/7",
        "vault:box/7",
        "vault://box:80/7",
    ] {
        for method in ["resources/read", "resources/subscribe"] {
            let refused = ask(&mcp, method, json!({"uri": uri})).await.unwrap_err();
            assert_eq!(refused.data.unwrap()["requiredScopes"], json!(["r"]), "{method} {uri}");
        }
        let reference =
            json!({"ref": {"type": "ref/resource", "uri": uri}, "argument": {"name": "a", "value": ""}});
        ask(&mcp, "completion/complete", reference.clone()).await.unwrap_err();
        ask(&owner, "resources/read", json!({"uri": uri})).await.unwrap();
        ask(&owner, "completion/complete", reference).await.unwrap();
    }
}

#[tokio::test]
async fn uris_of_the_gateways_own_scheme_are_not_listed_for_an_app_and_never_reach_one() {
    let gateway = gateway(AppOptions::default()).await;
    let mcp = client(&gateway, granted("ada", "*"), false).await;
    let resources = ask(&mcp, "resources/list", json!({})).await.unwrap().to_string();
    assert!(resources.contains("vault://gold") && !resources.contains("gatewright:"), "{resources}");
    let templates = ask(&mcp, "resources/templates/list", json!({})).await.unwrap().to_string();
    assert!(templates.contains("vault://box/") && !templates.contains("gatewright:"), "{templates}");
    for uri in ["gatewright://results/7", "gatewright://results/8", "GATEWRIGHT://results/7"] {
        for method in ["resources/read", "resources/subscribe"] {
            ask(&mcp, method, json!({"uri": uri})).await.expect_err(uri);
        }
        let template = json!({"ref": {"type": "ref/resource", "uri": "gatewright://results/{id}"},
            "argument": {"name": "id", "value": ""}});
        ask(&mcp, "completion/complete", template).await.unwrap_err();
    }
}

#[tokio::test]
async fn completions_of_a_template_leave_out_what_needs_scopes_that_the_caller_lacks() {
    let rule = ScopeRule { scopes: vec!["r".to_owned()] };
    let options =
        AppOptions { resources: [("vault://box/sec*".to_owned(), rule)].into(), ..AppOptions::default() };
    let gateway = gateway(options).await;
    let reference = json!({"ref": {"type": "ref/resource", "uri": "vault://box/{number}"},
        "argument": {"name": "number", "value": "s"}});
    for (scopes, expected) in [("", json!([])), ("r", json!(["secret"]))] {
        let mcp = client(&gateway, granted("ada", scopes), true).await;
        let answer = ask(&mcp, "completion/complete", reference.clone()).await.unwrap();
        assert_eq!(answer["completion"]["values"], expected, "with `{scopes}`");
    }
}
