//! Arguments that mean harm: text that multiplies, and names of other parameters.

use std::{sync::Arc, time::Instant};

use gatewright_openapi::{
    ApiKeyLocation, Body, BodyArguments, BodyField, BodyKind, FieldEncoding, Location, Operation, Parameter,
    Requirement, SecurityScheme, Style, Surroundings,
};
use http::Method;
use serde_json::{Map, Value, json};

use crate::mock::{auth, call, call_in, code, fine, operation, parameter, text};

/// Names of one object below a name of 1 MB.
fn tall() -> Value {
    let leaves: Map<String, Value> = (0..20_000).map(|at| (format!("a{at}"), json!(1))).collect();
    json!({ "K".repeat(1_000_000): leaves })
}

/// An array below a name of 1 MB.
fn wide() -> Value {
    json!({ "K".repeat(1_000_000): vec!["x"; 9_000] })
}

fn with_parameter(parameter: Parameter) -> Operation {
    Operation { parameters: [parameter].into(), ..operation(Method::GET, "/x") }
}

fn styled(location: Location, style: Style, explode: bool) -> Operation {
    with_parameter(Parameter { style, explode, ..parameter("d", location) })
}

fn with_body(kind: BodyKind, style: Style, open: bool) -> Operation {
    let media_type =
        if kind == BodyKind::Form { "application/x-www-form-urlencoded" } else { "multipart/form-data" };
    let encoding = FieldEncoding {
        content_type: None,
        style: Some(style),
        explode: true,
        allow_reserved: false,
        file: false,
        members: Box::default(),
    };
    let field = BodyField { argument: "d".into(), name: "d".into(), encoding };
    let arguments = BodyArguments::Fields { fields: [field].into(), open };
    let body = Body { media_type: media_type.into(), kind, arguments, required: true };
    Operation { body: Some(body), ..operation(Method::POST, "/x") }
}

#[tokio::test]
async fn text_that_a_caller_multiplies_is_refused_before_it_is_written() {
    let mock = fine().await;
    let api = mock.api(|_| {});
    let many = json!(vec![1; 200_000]);
    let long = "K".repeat(100_000);
    let start = Instant::now();
    for (operation, arguments, part) in [
        (styled(Location::Query, Style::DeepObject, true), json!({"d": tall()}), "the URL"),
        (styled(Location::Query, Style::Form, true), json!({"d": many}), "the URL"),
        (styled(Location::Query, Style::PipeDelimited, false), json!({"d": [&long]}), "the URL"),
        (styled(Location::Header, Style::Simple, true), json!({"d": many}), "a header"),
        (styled(Location::Cookie, Style::Form, true), json!({"d": many}), "a header"),
        (styled(Location::Cookie, Style::Form, true), json!({"d": {&long: 1}}), "a header"),
        (with_body(BodyKind::Form, Style::DeepObject, false), json!({"d": tall()}), "the body"),
        (with_body(BodyKind::Form, Style::Form, true), wide(), "the body"),
        (with_body(BodyKind::Multipart, Style::DeepObject, false), json!({"d": tall()}), "the body"),
        (with_body(BodyKind::Multipart, Style::Form, true), wide(), "the body"),
    ] {
        let result = call(&api, &operation, arguments).await;
        assert_eq!(code(&result), "VALIDATION_ERROR");
        let text = text(&result);
        let expected = format!("makes {part} of the request longer than ");
        assert!(text.contains(&expected) && text.ends_with("pass fewer or shorter values"), "{text}");
        assert!(text.len() < 300, "the name of an argument is clipped");
    }
    let path = Operation {
        path: [gatewright_openapi::PathPart::Literal("/".into()), gatewright_openapi::PathPart::Parameter(0)]
            .into(),
        ..styled(Location::Path, Style::Matrix, true)
    };
    let result = call(&api, &path, json!({"d": many})).await;
    assert!(text(&result).contains("makes the URL of the request longer than 61440 bytes"));
    assert!(start.elapsed().as_secs() < 20, "{:?}", start.elapsed());
    assert!(mock.requests().is_empty());
}

#[tokio::test]
async fn headers_have_a_limit_together() {
    let mock = fine().await;
    let api = mock.api(|_| {});
    let parameters = (0..5).map(|at| parameter(&format!("X-{at}"), Location::Header)).collect();
    let operation = Operation { parameters, ..operation(Method::GET, "/x") };
    let with = |length: usize| -> Value {
        (0..5).map(|at| (format!("X-{at}"), json!("x".repeat(length)))).collect()
    };
    let result = call(&api, &operation, with(16_000)).await;
    assert!(text(&result).contains("all headers together of the request longer than 65536 bytes"));
    let result = call(&api, &operation, with(12_000)).await;
    assert_eq!(result.is_error, Some(false), "{}", text(&result));
}

#[tokio::test]
async fn large_bodies_of_large_arguments_are_sent() {
    let mock = fine().await;
    let api = mock.api(|_| {});
    let operation = with_body(BodyKind::Multipart, Style::Form, true);
    let result = call(&api, &operation, json!({"d": "é".repeat(1_000_000), "ids": vec!["1"; 5_000]})).await;
    assert_eq!(result.is_error, Some(false), "{}", text(&result));
    assert!(mock.last().body.len() > 2_400_000);
}

/// An API whose key is in the query and in a cookie.
fn secured(operation: Operation, scheme: &str) -> (Operation, Surroundings) {
    let key = |name: &str, location| SecurityScheme::ApiKey { name: name.into(), location };
    let surroundings = Surroundings {
        schemes: [
            (Arc::from("query"), key("key", ApiKeyLocation::Query)),
            (Arc::from("cookie"), key("ck", ApiKeyLocation::Cookie)),
        ]
        .into_iter()
        .collect(),
        document: None,
        is_secured: true,
    };
    let requirement = Requirement { scheme: scheme.into(), scopes: Box::default() };
    (Operation { security: Arc::from([Box::from([requirement])]), ..operation }, surroundings)
}

#[tokio::test]
async fn keys_of_objects_are_no_names_of_other_parameters_or_credentials() {
    let mock = fine().await;
    let api = mock.api(|own| own.auth = auth(json!({"type": "apiKey", "value": "SECRET"})));
    let styled = |location, style| {
        let free = Parameter { style, explode: true, ..parameter("free", location) };
        Operation {
            parameters: [free, parameter("tenant", location), parameter("x[id]", location)].into(),
            ..operation(Method::GET, "/x")
        }
    };
    let query = || secured(styled(Location::Query, Style::Form), "query");
    for name in ["tenant", "key", "KEY", "ten%61nt", "tenant[]", "x[id]", " tenant"] {
        let (operation, surroundings) = query();
        let arguments = json!({"free": {name: "victim"}, "tenant": "acme"});
        let result = call_in(&api, &operation, &surroundings, arguments).await;
        assert_eq!(code(&result), "VALIDATION_ERROR", "{name}");
        assert!(text(&result).contains("`free` must not have the name"), "{}", text(&result));
    }
    for name in ["tenant", "ck", "CK", "c%6b"] {
        for style in [Style::Form, Style::Cookie] {
            let (operation, surroundings) = secured(styled(Location::Cookie, style), "cookie");
            let result = call_in(&api, &operation, &surroundings, json!({"free": {name: "mine"}})).await;
            assert_eq!(code(&result), "VALIDATION_ERROR", "{name}");
        }
    }
    let without_key = mock.api(|_| {});
    let deep = Parameter { style: Style::DeepObject, explode: true, ..parameter("x", Location::Query) };
    let deep = Operation {
        parameters: [deep, parameter("x[id]", Location::Query)].into(),
        ..operation(Method::GET, "/x")
    };
    assert_eq!(code(&call(&without_key, &deep, json!({"x": {"id": 1}})).await), "VALIDATION_ERROR");
    let mut form = with_body(BodyKind::Form, Style::Form, true);
    assert_eq!(code(&call(&without_key, &form, json!({"d": {"a": 1}, "D": 1})).await), "VALIDATION_ERROR");
    assert_eq!(code(&call(&without_key, &form, json!({"d": {"d": 1}})).await), "VALIDATION_ERROR");
    if let Some(Body { kind, media_type, arguments: BodyArguments::Fields { fields, .. }, .. }) =
        &mut form.body
    {
        (*kind, *media_type) = (BodyKind::Json, "application/json".into());
        fields[0].name = "the d".into();
    }
    let hidden = json!({"d": "acme", "the d": "victim"});
    assert_eq!(
        code(&call(&without_key, &form, hidden).await),
        "VALIDATION_ERROR",
        "a field called otherwise"
    );
    assert!(mock.requests().is_empty());

    let (operation, surroundings) = query();
    let fine = json!({"free": {"tenants": 1, "a": 2}, "tenant": "acme"});
    call_in(&api, &operation, &surroundings, fine).await;
    assert_eq!(mock.last().target, "/v1/x?tenants=1&a=2&tenant=acme&key=SECRET");
}
