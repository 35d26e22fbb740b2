//! The gateway's credentials: where they go, and where they do not.

use std::sync::Arc;

use gatewright_openapi::{
    ApiKeyLocation, Oauth2Flow, Oauth2FlowKind, Operation, Requirement, SecurityScheme, Server, Surroundings,
};
use http::Method;
use serde_json::{Value, json};

use crate::mock::{Mock, Request, auth, call_in, code, fine, json_reply, operation, reply, text};

fn surroundings() -> Surroundings {
    let flow = Oauth2Flow {
        kind: Oauth2FlowKind::ClientCredentials,
        authorization_url: None,
        token_url: Some("/token".into()),
        refresh_url: None,
        scopes: Box::default(),
    };
    let key = |name: &str, location| SecurityScheme::ApiKey { name: name.into(), location };
    let schemes = [
        ("header", key("X-Key", ApiKeyLocation::Header)),
        ("query", key("api key", ApiKeyLocation::Query)),
        ("cookie", key("sid", ApiKeyLocation::Cookie)),
        ("basic", SecurityScheme::Basic),
        ("bearer", SecurityScheme::Bearer),
        ("oauth", SecurityScheme::Oauth2 { flows: [flow].into(), metadata_url: None }),
    ];
    Surroundings {
        schemes: schemes.into_iter().map(|(name, scheme)| (Arc::from(name), scheme)).collect(),
        document: None,
        is_secured: true,
    }
}

/// An operation whose alternatives name these schemes.
fn secured(alternatives: &[&[&str]]) -> Operation {
    let requirement = |name: &&str| Requirement { scheme: (*name).into(), scopes: ["read".into()].into() };
    let security = alternatives.iter().map(|names| names.iter().map(requirement).collect()).collect();
    Operation { security, ..operation(Method::GET, "/x") }
}

async fn seen(config: Value, operation: &Operation) -> Request {
    let mock = fine().await;
    let api = mock.api(|own| own.auth = auth(config));
    let result = call_in(&api, operation, &surroundings(), json!({})).await;
    assert_eq!(result.is_error, Some(false), "{}", text(&result));
    mock.last()
}

#[tokio::test]
async fn one_credential_goes_where_the_scheme_of_its_kind_says() {
    let key = json!({"type": "apiKey", "value": "k/1"});
    assert_eq!(seen(key.clone(), &secured(&[&["header"]])).await.header("x-key"), Some("k/1"));
    assert_eq!(seen(key.clone(), &secured(&[&["bearer"], &["query"]])).await.target, "/v1/x?api%20key=k%2F1");
    assert_eq!(seen(key.clone(), &secured(&[&["cookie"]])).await.header("cookie"), Some("sid=k/1"));
    let basic = json!({"type": "basic", "username": "a", "password": "b"});
    assert_eq!(seen(basic, &secured(&[&["basic"]])).await.header("authorization"), Some("Basic YTpi"));
    let bearer = json!({"type": "bearer", "token": "t"});
    assert_eq!(seen(bearer.clone(), &secured(&[&["oauth"]])).await.header("authorization"), Some("Bearer t"));
    assert_eq!(
        seen(bearer.clone(), &secured(&[])).await.header("authorization"),
        None,
        "no credentials are needed"
    );
    assert_eq!(seen(bearer, &secured(&[&[]])).await.header("authorization"), None);
    let own = json!({"type": "apiKey", "value": "k", "name": "X-Other", "in": "header"});
    assert_eq!(seen(own, &secured(&[&["bearer"]])).await.header("x-other"), Some("k"));
}

#[tokio::test]
async fn a_document_without_security_leaves_it_to_the_operator() {
    let mock = fine().await;
    let api = mock.api(|own| own.auth = auth(json!({"type": "bearer", "token": "t"})));
    call_in(&api, &operation(Method::GET, "/x"), &Surroundings::default(), json!({})).await;
    assert_eq!(mock.last().header("authorization"), Some("Bearer t"));
}

#[tokio::test]
async fn credentials_by_scheme_satisfy_a_whole_alternative() {
    let both = json!({
        "header": {"type": "apiKey", "value": "k"},
        "basic": {"type": "basic", "username": "a", "password": "b"},
    });
    let request = seen(both.clone(), &secured(&[&["bearer"], &["header", "basic"]])).await;
    assert_eq!((request.header("x-key"), request.header("authorization")), (Some("k"), Some("Basic YTpi")));
    let request = seen(both.clone(), &secured(&[&[], &["header"]])).await;
    assert_eq!((request.header("x-key"), request.header("authorization")), (Some("k"), None));
    let request = seen(both.clone(), &secured(&[&["bearer"], &[]])).await;
    assert_eq!(request.header("authorization"), None);
    let mock = fine().await;
    let api = mock.api(|own| own.auth = auth(both));
    let result =
        call_in(&api, &secured(&[&["bearer", "header"], &["oauth"]]), &surroundings(), json!({})).await;
    assert_eq!((code(&result), mock.requests().len()), ("CREDENTIALS_MISSING".into(), 0));
    assert!(text(&result).contains("`bearer` and `header`, or `oauth`"));
}

#[tokio::test]
async fn a_token_is_fetched_once_for_all_and_again_when_it_is_refused() {
    let mock = Mock::start(|request, before| match &*request.target {
        "/token" => json_reply(
            200,
            &json!({"access_token": format!("t{before}-secret"), "token_type": "Bearer", "expires_in": 3600}),
        ),
        _ if request.header("authorization") == Some("Bearer t0-secret") && before > 4 => {
            reply(401, "text/plain", "t0-secret is old")
        }
        _ => json_reply(200, &json!({"as": request.header("authorization")})),
    })
    .await;
    let api = mock.api(|own| {
        own.auth = auth(json!({"type": "clientCredentials", "clientId": "me", "clientSecret": "hush-hush"}));
    });
    let operation = secured(&[&["oauth"]]);
    let around = surroundings();
    let call = || call_in(&api, &operation, &around, json!({}));
    let (a, b, c, d) = tokio::join!(call(), call(), call(), call());
    for result in [a, b, c, d] {
        assert_eq!(result.structured_content, Some(json!({"as": "Bearer t0-secret"})));
    }
    let token = &mock.requests()[0];
    assert_eq!(
        (&*token.method, &*token.target, &*token.text()),
        ("POST", "/token", "grant_type=client_credentials&scope=read")
    );
    assert_eq!(token.header("authorization"), Some("Basic bWU6aHVzaC1odXNo"));
    assert_eq!(mock.requests().iter().filter(|request| request.target == "/token").count(), 1);
    let result = call().await;
    assert_eq!(result.structured_content, Some(json!({"as": "Bearer t6-secret"})));
    assert_eq!(mock.requests().iter().filter(|request| request.target == "/token").count(), 2);
}

#[tokio::test]
async fn a_token_endpoint_that_refuses_is_an_error_without_the_secret() {
    let mock = Mock::start(|_, _| {
        json_reply(401, &json!({"error": "invalid_client", "error_description": "hush-hush is wrong"}))
    })
    .await;
    let api = mock.api(|own| {
        own.auth = auth(json!({"type": "clientCredentials", "clientId": "me", "clientSecret": "hush-hush", "inBody": true}));
    });
    let result = call_in(&api, &secured(&[&["oauth"]]), &surroundings(), json!({})).await;
    assert_eq!(code(&result), "CREDENTIALS_REFUSED");
    assert!(
        text(&result).contains("HTTP 401 (invalid_client)") && !format!("{result:?}").contains("hush-hush")
    );
    assert!(mock.last().text().ends_with("client_id=me&client_secret=hush-hush"));
}

#[tokio::test]
async fn with_a_base_url_operations_with_servers_of_their_own_go_there_too() {
    let (mock, other) = (fine().await, fine().await);
    let api = mock.api(|own| own.auth = auth(json!({"type": "bearer", "token": "t"})));
    let mut operation = secured(&[&["bearer"]]);
    operation.own_servers = true;
    operation.servers = Arc::from([Server { url: other.url.clone().into(), variables: Box::default() }]);
    call_in(&api, &operation, &surroundings(), json!({})).await;
    assert_eq!((&*mock.last().target, mock.last().header("authorization")), ("/v1/x", Some("Bearer t")));
    assert!(other.requests().is_empty());
}

#[tokio::test]
async fn with_a_base_url_the_client_secret_goes_to_no_other_origin_of_the_document() {
    let (mock, other) = (fine().await, fine().await);
    let client = json!({"type": "clientCredentials", "clientId": "me", "clientSecret": "hush-hush"});
    let mut surroundings = surroundings();
    if let Some(SecurityScheme::Oauth2 { flows, .. }) = surroundings.schemes.get_mut("oauth") {
        Arc::get_mut(flows).unwrap()[0].token_url = Some(format!("{}/token", other.url).into());
    }
    let api = mock.api(|own| own.auth = auth(client.clone()));
    let result = call_in(&api, &secured(&[&["oauth"]]), &surroundings, json!({})).await;
    assert_eq!(code(&result), "CREDENTIALS_MISSING");
    assert!(
        text(&result).contains("not the origin of `baseUrl`") && text(&result).contains("`auth.tokenUrl`")
    );
    assert!(mock.requests().is_empty() && other.requests().is_empty());

    let mut named = client;
    named["tokenUrl"] = format!("{}/token", other.url).into();
    let api = mock.api(|own| own.auth = auth(named));
    call_in(&api, &secured(&[&["oauth"]]), &surroundings, json!({})).await;
    assert_eq!(other.requests().len(), 1, "the operator may name any");
}

#[tokio::test]
async fn redirects_stay_with_their_origin_and_keep_the_token_there() {
    let other = fine().await;
    let away = format!("location: {}/stolen", other.url);
    let mock = Mock::start(move |request, _| match request.target.rsplit('/').next().unwrap() {
        "x" => reply(302, "text/plain", "").header("location: /v2/y"),
        "away" => reply(302, "text/plain", "").header(&away),
        _ => json_reply(200, &json!({"as": request.header("authorization")})),
    })
    .await;
    let api = mock.api(|own| own.auth = auth(json!({"type": "bearer", "token": "t"})));
    let result = call_in(&api, &secured(&[&["bearer"]]), &surroundings(), json!({})).await;
    assert_eq!(result.structured_content, Some(json!({"as": "Bearer t"})));
    let away = Operation { security: secured(&[&["bearer"]]).security, ..operation(Method::GET, "/away") };
    let result = call_in(&api, &away, &surroundings(), json!({})).await;
    assert_eq!(code(&result), "ADDRESS_REFUSED");
    assert!(other.requests().is_empty(), "a redirect does not reach private addresses of others");
}
