//! Endpoints as resources: each has tokens and metadata of its own (RFC 8707, RFC 9728).

use std::time::SystemTime;

use gatewright_auth::{NewApiKey, ResourceServer, SystemEntropy};
use gatewright_core::{AuthRefusal, Authenticator as _, EndpointName, Principal};
use http::{Request, request::Parts};
use secrecy::ExposeSecret as _;
use serde_json::{Value, json};

use crate::support::{
    idp::{AUDIENCE, Idp},
    site::{ISSUER, RESOURCE, SECRET, Site, ask, claims},
    web::Reply,
};

/// `own` has tokens of its own, `shared` takes those of the main endpoint, too.
fn endpoints() -> Value {
    json!({"own": {"apps": ["a"], "title": "Support desk"}, "other": {"apps": ["a"]},
        "shared": {"apps": ["a"], "audience": "shared"}})
}

fn parts(endpoint: Option<&str>, token: Option<&str>) -> Parts {
    let mut request = Request::post("/mcp");
    if let Some(token) = token {
        request = request.header("authorization", format!("Bearer {token}"));
    }
    let mut parts = request.body(()).unwrap().into_parts().0;
    if let Some(endpoint) = endpoint {
        parts.extensions.insert(EndpointName(endpoint.into()));
    }
    parts
}

/// Endpoints that a token opens, `-` for the main one. Asked twice: the second answer may come from the cache.
async fn opened(guard: &ResourceServer, token: &str) -> Vec<&'static str> {
    let mut opened = Vec::new();
    for name in ["-", "own", "other", "shared", "removed"] {
        let endpoint = (name != "-").then_some(name);
        let ask = async || guard.authenticate(&parts(endpoint, Some(token))).await;
        let (first, second): (Result<Principal, AuthRefusal>, _) = (ask().await, ask().await);
        assert_eq!(first.is_ok(), second.is_ok(), "{name}");
        match first {
            Ok(caller) => {
                let caller = caller.at(endpoint.map(Into::into));
                let now = guard.principal_now(&caller, SystemTime::now(), None).await;
                assert_eq!(now, Ok(Some(caller)), "{name}: it has what it had while nothing changes");
                opened.push(name);
            }
            Err(refused) => assert_eq!(refused.status(), 401, "{name}"),
        }
    }
    opened
}

async fn site() -> Site {
    Site::with_endpoints(json!({}), endpoints()).await
}

fn resource(endpoint: &str) -> String {
    format!("{RESOURCE}/{endpoint}")
}

#[tokio::test]
async fn a_token_opens_the_endpoint_that_it_was_issued_for_and_a_main_one_those_that_share() {
    let site = site().await;
    let guard = site.resource_server();
    let main = site.tokens().await;
    let token = main["access_token"].as_str().unwrap();
    assert_eq!(claims(token)["aud"], RESOURCE);
    assert_eq!(opened(&guard, token).await, ["-", "shared"]);
    for name in ["own", "shared"] {
        let resource = resource(name);
        let code = site.code(&[("resource", &resource)]).await;
        // A client need not name it again.
        let granted = site.redeem(&code).await.json();
        let token = granted["access_token"].as_str().unwrap();
        assert_eq!(claims(token)["aud"], *resource);
        assert_eq!(opened(&guard, token).await, [name]);
        let refreshed = site.refresh(granted["refresh_token"].as_str().unwrap(), &[]).await.json();
        let token = refreshed["access_token"].as_str().unwrap();
        assert_eq!(claims(token)["aud"], *resource, "the resource of the grant stays");
        assert_eq!(opened(&guard, token).await, [name]);
    }
}

#[tokio::test]
async fn a_grant_is_for_one_resource_that_is_served_and_no_token_request_changes_it() {
    let site = site().await;
    let machines = json!({"clients": [{"clientId": "service", "clientSecret": SECRET,
        "tokenEndpointAuthMethod": "client_secret_post", "grantTypes": ["client_credentials"]}]});
    let machines = Site::with_endpoints(machines, endpoints()).await;
    let service = async |pairs: &[(&str, &str)]| {
        let all = [
            &[("grant_type", "client_credentials"), ("client_id", "service"), ("client_secret", SECRET)],
            pairs,
        ]
        .concat();
        machines.token(&all).await
    };
    let (own, other) = (resource("own"), resource("other"));
    assert_eq!(
        claims(service(&[("resource", &own)]).await.json()["access_token"].as_str().unwrap())["aud"],
        *own
    );
    let (removed, below) = (resource("removed"), format!("{own}/x"));
    let refused: [&[(&str, &str)]; 4] = [
        &[("resource", &removed)],
        &[("resource", &below)],
        &[("resource", &own), ("resource", &other)],
        &[("resource", RESOURCE), ("resource", &own)],
    ];
    for pairs in refused {
        assert_eq!(service(pairs).await.error(), "invalid_target", "{pairs:?}");
    }
    let code = site.code(&[("resource", &own)]).await;
    let changed = site.redeem_with(&code, &[("resource", &other)]).await;
    assert_eq!(changed.error(), "invalid_target");
    let granted = site.redeem(&site.code(&[("resource", &own)]).await).await.json();
    let refresh = granted["refresh_token"].as_str().unwrap();
    for resource in [RESOURCE, &other] {
        assert_eq!(site.refresh(refresh, &[("resource", resource)]).await.error(), "invalid_target");
    }
}

#[tokio::test]
async fn a_consent_for_one_endpoint_is_none_for_another() {
    let site = site().await;
    let browser = site.browser();
    let (own, other) = (resource("own"), resource("other"));
    browser.code(&[("resource", &own)]).await;
    let again = browser.to_consent(&[("resource", &own)]).await;
    assert!(again.location().contains_key("code"), "it is remembered: {}", again.text);
    for resource in [RESOURCE, &other] {
        let asked = browser.to_consent(&[("resource", resource)]).await;
        assert!(asked.text.contains("name=\"decision\"") && asked.text.contains(resource), "{}", asked.text);
    }
}

#[tokio::test]
async fn each_endpoint_has_metadata_and_its_challenges_name_them() {
    let site = site().await;
    let guard = site.resource_server();
    for (endpoint, path, name) in [
        (None, "/mcp", "Notes"),
        (Some("own"), "/mcp/own", "Support desk"),
        (Some("other"), "/mcp/other", "Notes"),
    ] {
        let well_known = format!("/.well-known/oauth-protected-resource{path}");
        let metadata = site.get(&well_known).await.json();
        assert_eq!(metadata["resource"], format!("{ISSUER}{path}"));
        assert_eq!(metadata["authorization_servers"], json!([ISSUER]));
        assert_eq!(metadata["resource_name"], name);
        let server = site.get(&format!("/.well-known/oauth-authorization-server{path}")).await;
        assert_eq!(server.json()["issuer"], ISSUER);

        let named = format!("resource_metadata=\"{ISSUER}{well_known}\"");
        let none = guard.authenticate(&parts(endpoint, None)).await.unwrap_err();
        let bad = guard.authenticate(&parts(endpoint, Some("x.y.z"))).await.unwrap_err();
        let who = Principal::local().at(endpoint.map(Into::into));
        let lacking = guard.insufficient_scope(&who, &["read".into()]);
        for (refused, status) in [(none, 401), (bad, 401), (lacking, 403)] {
            let challenge = refused.headers()["www-authenticate"].to_str().unwrap();
            assert_eq!(refused.status(), status);
            assert!(challenge.contains(&named), "{challenge}");
        }
    }
    for path in ["oauth-protected-resource/mcp/removed", "oauth-authorization-server/mcp/removed"] {
        assert_eq!(site.get(&format!("/.well-known/{path}")).await.status, 404, "{path}");
    }
}

#[tokio::test]
async fn a_token_of_an_endpoint_is_revoked_like_any_other() {
    let site = site().await;
    let guard = site.resource_server();
    let granted = site.redeem(&site.code(&[("resource", &resource("own"))]).await).await.json();
    let token = granted["access_token"].as_str().unwrap();
    let answer = site.post("/oauth/revoke", &[("token", token), ("client_id", "app")]).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    assert_eq!(opened(&guard, token).await, [""; 0]);
}

#[tokio::test]
async fn an_api_key_opens_the_endpoints_that_it_names_and_the_main_one_by_default() {
    let key = |name: &str| NewApiKey::generate(name, None, &SystemEntropy).unwrap();
    let (plain, limited) = (key("plain"), key("limited"));
    let keys = json!({"apiKeys": [
        {"name": "plain", "hash": plain.hash.to_string(), "scopes": ["read"]},
        {"name": "limited", "hash": limited.hash.to_string(), "scopes": ["read"], "endpoints": ["own", "other"]},
    ]});
    let site = Site::with_endpoints(keys, endpoints()).await;
    let guard = site.resource_server();
    let stored = async |name: &str, endpoints: &[&str]| {
        let endpoints: Vec<String> = endpoints.iter().map(|one| (*one).to_owned()).collect();
        site.server.create_api_key(name, &["read".to_owned()], &endpoints, None).await.unwrap()
    };
    let stored_plain = stored("stored-plain", &[]).await;
    let stored_both = stored("stored-both", &["own", "main"]).await;
    for (key, expected) in [
        (&plain, &["-", "shared"] as &[&str]),
        (&limited, &["own", "other"]),
        (&stored_plain, &["-", "shared"]),
        (&stored_both, &["-", "own", "shared"]),
    ] {
        assert_eq!(opened(&guard, key.key.expose_secret()).await, expected);
    }
}

#[tokio::test]
async fn tokens_of_an_external_provider_need_the_audience_of_the_endpoint() {
    let idp = Idp::start().await;
    let named = json!({"own": {"apps": ["a"]}, "other": {"apps": ["a"], "expectedAudience": "api://other"},
        "shared": {"apps": ["a"], "audience": "shared"}});
    let guard = idp.guard_with(json!({}), named.clone());
    let cases = [
        (json!(AUDIENCE), &["-", "shared"] as &[&str]),
        (json!(resource("own")), &["own"]),
        (json!("api://other"), &["other"]),
        (json!(resource("other")), &[]),
        (json!([AUDIENCE, "api://other"]), &["-", "other", "shared"]),
    ];
    for (audience, expected) in &cases {
        let token = idp.token(&idp.key, json!({"aud": audience}));
        assert_eq!(opened(&guard, &token).await, *expected, "{audience}");
    }
    let none = guard.authenticate(&parts(Some("own"), None)).await.unwrap_err();
    let challenge = none.headers()["www-authenticate"].to_str().unwrap();
    assert!(challenge.contains("/.well-known/oauth-protected-resource/mcp/own"), "{challenge}");
}

#[tokio::test]
async fn an_opaque_token_opens_no_other_endpoint_because_it_was_introspected_once() {
    let idp = Idp::start().await;
    let over = json!({"provider": {"introspectionUri": idp.web.url("/introspect"), "clientId": "rs", "clientSecret": "s"}});
    let guard = idp.guard_with(over, endpoints());
    for (audience, expected) in
        [(AUDIENCE.to_owned(), &["-", "shared"] as &[&str]), (resource("own"), &["own"])]
    {
        let answer = json!({"active": true, "sub": "u1", "client_id": "c", "scope": "read", "aud": audience});
        idp.web.on("/introspect", Reply::json(answer));
        assert_eq!(opened(&guard, &format!("opaque-{}", audience.len())).await, expected);
    }
}

#[tokio::test]
async fn a_resource_is_found_by_its_address_alone() {
    let endpoints = json!({"invoices": {"apps": ["a"]}, "mcp": {"apps": ["a"]}});
    let site = Site::with_endpoints(json!({}), endpoints).await;
    let status = async |resource: &str| {
        let answer = site.get(&ask(&[("resource", resource)])).await;
        (answer.status != 200).then(|| answer.location()["error"].clone())
    };
    for good in [
        "https://mcp.example/mcp",
        "https://MCP.example:443/mcp",
        "https://mcp.example/mcp/invoices",
        "https://mcp.example/mcp/mcp",
    ] {
        assert_eq!(status(good).await, None, "{good}");
    }
    for bad in [
        "https://mcp.example",
        "https://mcp.example/mcp/",
        "https://mcp.example/mcp/other",
        "https://mcp.example/mcp/invoices/",
        "https://mcp.example/mcp/invoices?x",
        "https://mcp.example/mcp/x/invoices",
        "https://mcp.example/invoices",
        "https://evil.example/mcp/invoices",
        "invoices",
        "data:invoices",
    ] {
        assert_eq!(status(bad).await.as_deref(), Some("invalid_target"), "{bad}");
    }
}
