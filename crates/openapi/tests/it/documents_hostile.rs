//! Documents that mean harm, or describe what cannot be sent.

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
    assert!((80..150).contains(&document.tools.len()), "{}", document.tools.len());
    assert!(has_finding(&document, "take too long to read"));
}
