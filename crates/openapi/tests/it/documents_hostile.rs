//! Documents that mean harm, or describe what cannot be sent.

use std::sync::Arc;

use gatewright_openapi::{Document, DocumentOptions, Location, read};
use serde_json::{Map, Value, json};

use crate::documents::input;

fn document(value: &Value, sent: &[(Location, &str)]) -> Document {
    let sent = sent.iter().map(|(location, name)| (*location, (*name).to_owned())).collect();
    let options = DocumentOptions { sent, ..DocumentOptions::default() };
    read(&value.to_string(), &options, &mut |_| Err("not here".into())).unwrap()
}

fn has_finding(document: &Document, text: &str) -> bool {
    document.findings.iter().any(|finding| finding.problem.contains(text))
}

fn with_parameters(parameters: &Value) -> Value {
    json!({
        "openapi": "3.1.0",
        "paths": {"/a": {"get": {"operationId": "a", "parameters": parameters}}}
    })
}

#[test]
fn parameters_that_the_gateway_sets_are_no_arguments() {
    let header =
        |name: &str| json!({"name": name, "in": "header", "required": true, "schema": {"type": "string"}});
    let names = [
        "Host",
        "content-length",
        "Transfer-Encoding",
        "Accept-Encoding",
        "Cookie",
        "Connection",
        "X-Own",
        "X-Free",
    ];
    let mut parameters: Vec<Value> = names.into_iter().map(header).collect();
    parameters.push(json!({"name": "key", "in": "query", "schema": {"type": "string"}}));
    let document = document(
        &with_parameters(&json!(parameters)),
        &[(Location::Header, "x-own"), (Location::Query, "key")],
    );
    let input = input(&document, "a");
    assert_eq!(input["properties"].as_object().unwrap().keys().collect::<Vec<_>>(), ["X-Free"]);
    assert_eq!(input["required"], json!(["X-Free"]));
    assert_eq!(document.operations[0].parameters.len(), 1);
    assert!(has_finding(&document, "the gateway sets the header `Host` itself"));
}

#[test]
fn servers_with_long_urls_and_values_are_left_out() {
    let long = "x".repeat(10_000);
    let document = document(
        &json!({
            "openapi": "3.1.0",
            "servers": [
                {"url": format!("https://a.example/{}", "{a}".repeat(10_000))},
                {"url": "https://b.example/{v}", "variables": {"v": {"default": long, "enum": ["w", long]}}},
            ],
            "paths": {"/a": {"get": {}}}
        }),
        &[],
    );
    assert_eq!(document.servers.len(), 1);
    let variable = &document.servers[0].variables[0];
    assert_eq!((&*variable.default, variable.allowed.len()), ("w", 1));
    assert!(
        has_finding(&document, "URL of a server is longer") && has_finding(&document, "value of a variable")
    );
}

#[test]
fn operations_that_share_more_than_the_document_has_are_left_out_from_some_on() {
    let paths: Map<String, Value> =
        (0..1_000).map(|at| (format!("/{at}"), json!({"$ref": "#/components/pathItems/Shared"}))).collect();
    let shared = json!({"description": "x".repeat(1_000_000), "get": {"summary": "Get it"}});
    let document = document(
        &json!({"openapi": "3.1.0", "paths": paths, "components": {"pathItems": {"Shared": shared}}}),
        &[],
    );
    assert!((10..30).contains(&document.tools.len()), "{}", document.tools.len());
    assert!(has_finding(&document, "take too long to read"));
}

/// A document whose `count` paths share one path item.
fn shared(count: usize, item: &Value, more: &Value) -> Value {
    let paths: Map<String, Value> =
        (0..count).map(|at| (format!("/{at}"), json!({"$ref": "#/components/pathItems/Shared"}))).collect();
    let mut components = json!({"pathItems": {"Shared": item}});
    components.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    json!({"openapi": "3.1.0", "servers": [{"url": "https://a.example"}], "paths": paths, "components": components})
}

/// About the bytes of the texts of all operations and tools, and of the findings.
fn written(document: &Document) -> usize {
    let operations = format!("{:?}{:?}", document.operations, document.tools).len();
    operations + format!("{:?}{:?}{:?}", document.findings, document.schemes, document.servers).len()
}

#[test]
fn long_texts_of_parts_that_are_shared_are_not_copied() {
    let long = "n".repeat(100_000);
    let json_of = |schema: Value| json!({"content": {"application/json": {"schema": schema}}});
    let none = json!({});
    for (name, item, more) in [
        ("operationId", json!({"get": {"operationId": long}}), &none),
        ("method", json!({"additionalOperations": {long.clone(): {}}}), &none),
        ("parameter", json!({"get": {"parameters": [{"name": long, "in": "query"}]}}), &none),
        (
            "media type of a parameter",
            json!({"get": {"parameters": [{"name": "a", "in": "query", "content": {long.clone(): {}}}]}}),
            &none,
        ),
        (
            "media type of a response",
            json!({"get": {"responses": {"200": {"content": {long.clone(): {}}}}}}),
            &none,
        ),
        ("media type of a body", json!({"post": {"requestBody": {"content": {long.clone(): {}}}}}), &none),
        (
            "field of a body",
            json!({"post": {"requestBody": json_of(json!({"type": "object", "properties": {long.clone(): {}}}))}}),
            &none,
        ),
        ("scope", json!({"get": {"security": [{"a": [long]}]}}), &none),
        ("name of a scheme", json!({"get": {"security": [{long.clone(): []}]}}), &none),
        (
            "variable of a server",
            json!({"get": {"servers": [{"url": "https://a.example", "variables": {long.clone(): {"default": "x"}}}]}}),
            &none,
        ),
        (
            "type",
            json!({"get": {"parameters": [{"name": "a", "in": "query", "schema": {"type": long}}]}}),
            &none,
        ),
        (
            "key of a scheme",
            json!({"get": {}}),
            &json!({
                "x": {"type": "apiKey", "in": "header", "name": long},
                "securitySchemes": (0..100).map(|at| (format!("s{at}"), json!({"$ref": "#/components/x"}))).collect::<Map<_, _>>(),
            }),
        ),
    ] {
        let document = document(&shared(100, &item, more), &[]);
        let size = written(&document);
        assert!(size < 500_000, "{name}: {size} bytes");
        assert!(!document.findings.is_empty(), "{name}");
    }
}

#[test]
fn texts_and_schemas_of_parts_that_are_shared_are_kept_once() {
    let item = json!({"get": {
        "operationId": "a b".repeat(1_000),
        "security": [{"key": ["scope"]}],
        "servers": [{"url": "https://b.example"}],
        "parameters": [{"name": "n", "in": "query", "schema": {"type": "string"}}],
    }});
    let document = document(&shared(2, &item, &json!({})), &[]);
    let [a, b] = document.operations.as_slice() else { panic!("{:?}", document.findings) };
    assert!(Arc::ptr_eq(a.id.as_ref().unwrap(), b.id.as_ref().unwrap()));
    assert!(Arc::ptr_eq(&a.security, &b.security));
    assert!(Arc::ptr_eq(&a.servers, &b.servers));
    assert!(Arc::ptr_eq(&a.parameters[0].name, &b.parameters[0].name));
    assert!(Arc::ptr_eq(&document.tools[0].input_schema, &document.tools[1].input_schema));
    assert_ne!(document.tools[0].name, document.tools[1].name);
}

#[test]
fn long_lists_of_parts_that_are_shared_are_work() {
    let item = json!({"get": {"parameters": vec![json!({"$ref": "#/components/q"}); 20_000]}});
    let value = shared(1_000, &item, &json!({"q": {"name": "n", "in": "query"}}));
    let document = document(&value, &[]);
    assert!((1..1_000).contains(&document.tools.len()), "{}", document.tools.len());
    assert!(has_finding(&document, "take too long to read"));
}

#[test]
fn schemas_that_are_parts_of_themselves_are_looked_through_once() {
    let itself = json!({"$ref": "#/components/schemas/A"});
    let answer = |schema: &Value| json!({"200": {"content": {"application/json": {"schema": schema}}}});
    let cat = json!({"oneOf": vec![itself.clone(); 20], "discriminator": {"propertyName": "kind"}});
    let item = json!({"get": {"responses": answer(&itself)}, "put": {"responses": answer(&cat)}});
    let more = json!({"schemas": {"A": {"allOf": vec![itself; 20]}}});
    assert_eq!(document(&shared(3, &item, &more), &[]).tools.len(), 6);
}

#[test]
fn references_that_pass_through_themselves_end() {
    let item = json!({"$ref": "#/components/pathItems/Shared/%70"});
    let document = document(&shared(10, &item, &json!({})), &[]);
    assert_eq!(document.tools.len(), 0);
    assert!(
        has_finding(&document, "references go round in a circle")
            || has_finding(&document, "there is nothing at")
    );
}

#[test]
fn places_of_findings_are_short() {
    let fields: Map<String, Value> = (0..100).map(|at| (format!("a{at}"), json!(5))).collect();
    let content =
        json!({format!("application/json;x={}", "y".repeat(3_000)): {"schema": {"properties": fields}}});
    let value = json!({"openapi": "3.1.0", "paths": {"/a": {"post": {"requestBody": {"content": content}}}}});
    let document = document(&value, &[]);
    assert!(document.findings.len() > 50, "{:?}", document.findings);
    assert!(
        document
            .findings
            .iter()
            .all(|finding| finding.place.len() < 310 && finding.place.starts_with("/paths/~1a/post"))
    );
}

#[test]
fn values_of_discriminators_count_before_they_are_written() {
    let parts = json!({"type": "object", "properties": {"a": {"type": "string"}, "b": {"description": "x".repeat(300)}}});
    let either = json!({"type": "array", "items": {
        "oneOf": vec![json!({"$ref": "#/components/schemas/X"}); 100],
        "discriminator": {"propertyName": "d".repeat(20_000)},
    }});
    let item = json!({"post": {"requestBody": {"content": {"application/json": {"schema": either}}}}});
    let document = document(&shared(1, &item, &json!({"schemas": {"X": parts}})), &[]);
    let size: usize = document.tools.iter().map(|tool| json!(tool.input_schema).to_string().len()).sum();
    assert!(size < 100_000, "{size}");
}

#[test]
fn hosts_and_base_paths_of_swagger_are_bounded() {
    let paths: Map<String, Value> =
        (0..100).map(|at| (format!("/{at}"), json!({"get": {"schemes": ["https"]}}))).collect();
    let value = |base: &str| json!({"swagger": "2.0", "host": "a.example", "basePath": base, "paths": paths});
    let long = document(&value(&"/b".repeat(50_000)), &[]);
    assert!(written(&long) < 500_000 && has_finding(&long, "`host` and `basePath` are longer"));
    let short = document(&value("/b"), &[]);
    assert_eq!(&*short.operations[0].servers[0].url, "https://a.example/b");
    assert!(Arc::ptr_eq(&short.operations[0].servers, &short.operations[99].servers));
}
