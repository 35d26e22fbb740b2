//! Documents become operations and tools: names, arguments, descriptions, effects, servers and security.

use gatewright_openapi::{
    BodyArguments, BodyKind, Document, DocumentError, DocumentOptions, Location, Oauth2FlowKind,
    ResponseShape, SecurityScheme, Style, read,
};
use rmcp::model::Tool;
use serde_json::{Value, json};

pub(crate) fn document(text: &str) -> Document {
    chosen(text, &[], &[])
}

fn chosen(text: &str, include: &[&str], exclude: &[&str]) -> Document {
    let parsed = |all: &[&str]| all.iter().map(|one| one.parse().unwrap()).collect();
    let options = DocumentOptions { include: parsed(include), exclude: parsed(exclude), sent: Vec::new() };
    read(text, &options, &mut |url| Err(format!("{url} may not be read"))).unwrap()
}

pub(crate) fn tool<'d>(document: &'d Document, name: &str) -> &'d Tool {
    document
        .tools
        .iter()
        .find(|tool| tool.name == name)
        .unwrap_or_else(|| panic!("{name} in {:?}", names(document)))
}

pub(crate) fn input(document: &Document, name: &str) -> Value {
    Value::Object((*tool(document, name).input_schema).clone())
}

pub(crate) fn output(document: &Document, name: &str) -> Option<Value> {
    tool(document, name).output_schema.as_deref().cloned().map(Value::Object)
}

fn names(document: &Document) -> Vec<&str> {
    document.tools.iter().map(|tool| &*tool.name).collect()
}

fn findings(document: &Document) -> Vec<String> {
    document.findings.iter().map(ToString::to_string).collect()
}

#[test]
fn parameters_and_fields_of_the_body_stand_side_by_side() {
    let document = document(
        "
openapi: 3.0.3
info: {title: '**Shop**', version: '1', description: Sells *things*.}
servers: [{url: https://shop.example/v1}]
paths:
  /orders/{id}:
    parameters:
      - {name: id, in: path, required: true, schema: {type: integer}, description: The order.}
      - {name: verbose, in: query, schema: {type: boolean}, description: Overridden}
    put:
      operationId: orders/update
      summary: Update an order.
      description: 'Changes **all** fields. See [the guide](https://x.example).'
      tags: [orders]
      parameters:
        - {name: verbose, in: query, schema: {type: string}}
        - {name: id, in: query, schema: {type: string}}
        - {name: Authorization, in: header, schema: {type: string}}
        - {name: content-type, in: header, schema: {type: string}}
        - {name: X-Trace, in: header, schema: {type: string}}
        - {name: 'filter[name]', in: query, style: deepObject, schema: {type: object}}
      requestBody:
        content:
          application/json:
            schema:
              type: object
              required: [id]
              properties:
                id: {type: string, example: o1}
                note: {type: string, nullable: true}
      responses:
        '200':
          content: {application/json: {schema: {type: object, properties: {id: {type: string}}}}}
",
    );
    assert_eq!(document.findings, []);
    assert_eq!((document.title.as_str(), document.about.as_deref()), ("Shop", Some("Sells things.")));
    assert_eq!(names(&document), ["orders_update"]);
    let update = tool(&document, "orders_update");
    assert_eq!(update.title.as_deref(), Some("Update an order"));
    assert_eq!(update.description.as_deref(), Some("Update an order. Changes all fields. See the guide."));
    assert_eq!(
        input(&document, "orders_update"),
        json!({
            "type": "object",
            "properties": {
                "id": {"type": "integer", "description": "The order."},
                "verbose": {"type": "string"},
                "query_id": {"type": "string"},
                "X-Trace": {"type": "string"},
                "filter_name": {"type": "object"},
                "body_id": {"type": "string", "examples": ["o1"]},
                "note": {"type": ["string", "null"]},
            },
            "required": ["id", "body_id"],
            "additionalProperties": false,
        })
    );
    let operation = &document.operations[0];
    assert_eq!(operation.path_template(), "/orders/{id}");
    assert_eq!((operation.id.as_deref(), operation.method.as_str()), (Some("orders/update"), "PUT"));
    let names: Vec<_> = operation.parameters.iter().map(|one| (&*one.argument, &*one.name)).collect();
    assert_eq!(
        names,
        [
            ("id", "id"),
            ("verbose", "verbose"),
            ("query_id", "id"),
            ("X-Trace", "X-Trace"),
            ("filter_name", "filter[name]"),
        ]
    );
    let body = operation.body.as_ref().unwrap();
    assert_eq!((&*body.media_type, body.kind, body.required), ("application/json", BodyKind::Json, true));
    let BodyArguments::Fields { fields, open } = &body.arguments else { panic!("{body:?}") };
    assert_eq!((&*fields[0].argument, &*fields[0].name, *open), ("body_id", "id", false));
    assert_eq!(operation.shape, ResponseShape::Object);
    assert!(operation.idempotent && !operation.own_servers);
    assert_eq!(&*operation.servers[0].url, "https://shop.example/v1");
}

#[test]
fn styles_have_the_defaults_of_their_places() {
    let document = document(
        "
openapi: 3.1.0
paths:
  /x/{a}/{b}:
    get:
      operationId: get
      parameters:
        - {name: a, in: path, required: true, schema: {type: array}}
        - {name: b, in: path, required: true, style: matrix, explode: true, schema: {}}
        - {name: c, in: query, schema: {type: array, items: {type: string}}}
        - {name: d, in: query, explode: false, schema: {type: array}}
        - {name: e, in: query, style: pipeDelimited, schema: {type: array}, allowReserved: true}
        - {name: f, in: header, schema: {type: array}}
        - {name: g, in: cookie, schema: {type: string}}
        - {name: h, in: query, style: matrix, schema: {type: string}}
        - {name: i, in: query, content: {application/json: {schema: {type: object}}}}
        - {name: j, in: query, style: deepObject, explode: true, schema: {type: object}}
",
    );
    let styles: Vec<_> =
        document.operations[0].parameters.iter().map(|one| (&*one.name, one.style, one.explode)).collect();
    assert_eq!(
        styles,
        [
            ("a", Style::Simple, false),
            ("b", Style::Matrix, true),
            ("c", Style::Form, true),
            ("d", Style::Form, false),
            ("e", Style::PipeDelimited, false),
            ("f", Style::Simple, false),
            ("g", Style::Form, true),
            ("h", Style::Form, true),
            ("i", Style::Form, true),
            ("j", Style::DeepObject, true),
        ]
    );
    let parameters = &document.operations[0].parameters;
    assert!(parameters[4].allow_reserved);
    assert_eq!(parameters[8].content.as_deref(), Some("application/json"));
    assert_eq!(
        findings(&document),
        [
            "/paths/~1x~1{a}~1{b}/get/parameters/7: there is no style `matrix` in this place; the default is used"
        ]
    );
}

#[test]
fn a_bad_operation_is_a_finding_and_the_others_are_used() {
    let document = document(
        "
openapi: 3.0.0
paths:
  /a: {get: {operationId: a, parameters: [{$ref: '#/components/parameters/none'}]}}
  /b: {get: 7, put: {operationId: b, responses: {200: {$ref: 'other.yaml#/x'}}}}
  /c/{id}/{id: {get: {operationId: c}}
  /d/{id}: {get: {operationId: d, parameters: [{name: other, in: path, required: true}, {name: x}, {name: y, in: space}]}}
  /e?x=1: {get: {operationId: e}}
  /f: {get: {operationId: f, requestBody: {content: {}}, parameters: [{name: q, in: query, schema: {type: strin}}]}}
  /g: 5
",
    );
    assert_eq!(names(&document), ["a", "b", "d", "f"]);
    assert_eq!(
        findings(&document),
        [
            "/paths/~1b/get: an operation is an object",
            "/paths/~1a/get/parameters/0: there is nothing at `#/components/parameters/none`",
            "/paths/~1b/put/responses/200: `other.yaml#/x` cannot be read: other.yaml may not be read",
            "/paths/~1c~1{id}~1{id/get: the path has a brace that is not closed",
            "/paths/~1d~1{id}/get/parameters/1: a parameter needs `name` and `in`",
            "/paths/~1d~1{id}/get/parameters/2: there is no place `space` for a parameter",
            "/paths/~1d~1{id}/get: the path has no parameter `other`",
            "/paths/~1d~1{id}/get: the parameter `id` of the path is not described",
            "/paths/~1e?x=1/get: the path has a query; describe its fields as parameters",
            "/paths/~1f/get/requestBody: a request body needs `content` with a media type",
            "/paths/~1f/get/parameters/0/schema/type: there is no type \"strin\", so any value is accepted",
        ]
    );
    assert_eq!(input(&document, "d")["properties"], json!({"id": {"type": "string"}}));
    assert_eq!(input(&document, "f")["properties"], json!({"q": {}}));
}

#[test]
fn effects_come_from_the_method_and_from_hints() {
    let document = document(
        "
openapi: 3.2.0
paths:
  /x:
    get: {operationId: get}
    head: {operationId: head}
    put: {operationId: put}
    post: {operationId: post}
    patch: {operationId: patch}
    delete: {operationId: delete}
    query: {operationId: query}
    additionalOperations: {COPY: {operationId: copy}}
  /y:
    post: {operationId: search, x-mcp-readonly: true}
    get: {operationId: reset, x-mcp-readonly: false, x-mcp-destructive: true}
    put: {operationId: hidden, x-mcp-enabled: false}
  /z/remove: {post: {operationId: z, x-mcp-idempotent: true}}
",
    );
    let effects: Vec<_> = document
        .tools
        .iter()
        .map(|tool| {
            let hints = tool.annotations.as_ref().unwrap();
            (&*tool.name, hints.read_only_hint, hints.destructive_hint, hints.idempotent_hint)
        })
        .collect();
    let (yes, no) = (Some(true), Some(false));
    assert_eq!(
        effects,
        [
            ("get", yes, None, None),
            ("head", yes, None, None),
            ("put", no, no, yes),
            ("post", no, no, no),
            ("patch", no, no, no),
            ("delete", no, yes, yes),
            ("query", yes, None, None),
            ("copy", no, no, no),
            ("search", yes, None, None),
            ("reset", no, yes, yes),
            ("z", no, yes, yes),
        ]
    );
    let idempotent: Vec<_> =
        document.operations.iter().filter(|one| !one.idempotent).map(|one| &*one.tool).collect();
    assert_eq!(idempotent, ["post", "patch", "copy", "search"]);
    assert_eq!(document.operations[7].method.as_str(), "COPY");
}

#[test]
fn operations_are_chosen_and_keep_their_names() {
    let text = "
openapi: 3.0.0
paths:
  /users: {get: {operationId: list, tags: [users]}, post: {operationId: create, tags: [users]}}
  /refunds: {get: {operationId: list, tags: [billing]}, post: {tags: [billing]}}
";
    let all = names(&document(text)).into_iter().map(str::to_owned).collect::<Vec<_>>();
    assert!(all[0].starts_with("list_") && all[2].starts_with("list_"), "{all:?}");
    assert_eq!([&*all[1], &*all[3]], ["create", "post_refunds"]);
    let choose = |include: &[&str], exclude: &[&str]| -> Vec<String> {
        names(&chosen(text, include, exclude)).into_iter().map(str::to_owned).collect()
    };
    assert_eq!(choose(&["GET *"], &[]), [all[0].clone(), all[2].clone()]);
    assert_eq!(choose(&["POST /refunds"], &[]), ["post_refunds"]);
    assert_eq!(choose(&["tag:users"], &["GET *"]), ["create"]);
    assert_eq!(choose(&[], &["list"]), ["create", "post_refunds"]);
    let document = chosen(text, &["create", "GET /user"], &["tag:none"]);
    assert_eq!(names(&document), ["create"]);
    assert_eq!(findings(&document), ["`GET /user` chooses no operation", "`tag:none` chooses no operation"]);
}

#[test]
fn tags_that_nothing_else_says_are_a_part_of_the_description() {
    let document = document(
        "
openapi: 3.0.0
paths:
  /users: {get: {operationId: listUsers, tags: [Users, Billing], summary: List users, deprecated: true}}
  /x: {get: {tags: [users]}}
",
    );
    let descriptions: Vec<_> = document.tools.iter().filter_map(|tool| tool.description.as_deref()).collect();
    assert_eq!(descriptions, ["Deprecated. List users. Tags: Billing.", "GET /x. Tags: users."]);
}

#[test]
fn servers_of_the_operation_come_before_those_of_the_path_and_the_document() {
    let document = document(
        "
openapi: 3.1.0
servers:
  - url: https://{region}.example.com/{base}
    variables:
      region: {default: eu, enum: [eu, us]}
      base: {default: 2}
paths:
  /a: {get: {operationId: a}}
  /b:
    servers: [{url: /path}]
    get: {operationId: b}
    put: {operationId: c, servers: [{url: https://own.example}, {description: none}]}
",
    );
    let servers: Vec<_> =
        document.operations.iter().map(|one| (&*one.servers[0].url, one.own_servers)).collect();
    assert_eq!(
        servers,
        [("https://{region}.example.com/{base}", false), ("/path", true), ("https://own.example", true)]
    );
    let variables = &document.servers[0].variables;
    assert_eq!((&*variables[0].default, variables[0].allowed.len()), ("eu", 2));
    assert_eq!(&*variables[1].default, "2");
    assert_eq!(findings(&document), ["/paths/~1b/put/servers/1: a server needs `url`"]);
}

#[test]
fn security_of_an_operation_replaces_that_of_the_document() {
    let document = document(
        "
openapi: 3.1.0
security: [{key: []}]
components:
  securitySchemes:
    key: {type: apiKey, in: query, name: api_key}
    token: {type: http, scheme: Bearer}
    basic: {type: http, scheme: basic}
    digest: {type: http, scheme: Digest}
    tls: {type: mutualTLS}
    oidc: {type: openIdConnect, openIdConnectUrl: https://id.example/.well-known/openid-configuration}
    oauth:
      type: oauth2
      flows:
        clientCredentials: {tokenUrl: https://id.example/token, scopes: {read: Read, write: Write}}
        authorizationCode: {tokenUrl: /token, authorizationUrl: /authorize, refreshUrl: /refresh, scopes: {}}
    odd: {type: smoke}
    bad: {type: apiKey}
paths:
  /a: {get: {operationId: a, parameters: [{name: api_key, in: query, schema: {type: string}}]}}
  /b: {get: {operationId: b, security: []}}
  /c: {get: {operationId: c, security: [{oauth: [read], token: []}, {}], parameters: [{name: api_key, in: query, schema: {type: string}}]}}
  /d: {get: {operationId: d, security: [{nobody: []}]}}
",
    );
    let schemes = &document.schemes;
    assert!(matches!(schemes["key"], SecurityScheme::ApiKey { .. }));
    assert_eq!(schemes["token"], SecurityScheme::Bearer);
    assert_eq!(schemes["basic"], SecurityScheme::Basic);
    assert_eq!(schemes["digest"], SecurityScheme::Http("digest".into()));
    assert_eq!(schemes["tls"], SecurityScheme::MutualTls);
    assert!(matches!(schemes["oidc"], SecurityScheme::OpenIdConnect { .. }));
    assert_eq!(schemes["odd"], SecurityScheme::Unknown("smoke".into()));
    let SecurityScheme::Oauth2 { flows, .. } = &schemes["oauth"] else { panic!("{schemes:?}") };
    assert_eq!(flows[0].kind, Oauth2FlowKind::ClientCredentials);
    assert_eq!(flows[0].scopes.len(), 2);
    assert_eq!(flows[1].refresh_url.as_deref(), Some("/refresh"));
    let security: Vec<Vec<Vec<&str>>> = document
        .operations
        .iter()
        .map(|one| one.security.iter().map(|all| all.iter().map(|one| &*one.scheme).collect()).collect())
        .collect();
    assert_eq!(
        security,
        [vec![vec!["key"]], vec![], vec![vec!["oauth", "token"], vec![]], vec![vec!["nobody"]]]
    );
    // The gateway adds the key.
    assert!(document.operations[0].parameters.is_empty());
    assert_eq!(document.operations[2].parameters.len(), 1);
    assert_eq!(
        findings(&document),
        [
            "/components/securitySchemes/odd: the type `smoke` of a security scheme is not known",
            "/components/securitySchemes/bad: the security scheme lacks a part that its type needs",
            "/paths/~1d/get/security: there is no security scheme `nobody`",
        ]
    );
}

#[test]
fn the_whole_query_and_paths_with_fragments_are_read() {
    let document = document(
        "
openapi: 3.2.0
paths:
  /search: {get: {operationId: search, parameters: [{name: q, in: querystring, content: {application/x-www-form-urlencoded: {schema: {type: object, properties: {a: {type: string}}}}}}]}}
  '/#Action=Run': {post: {operationId: run, callbacks: {done: {'{$request.body#/url}': {post: {operationId: no}}}}}}
webhooks: {event: {post: {operationId: never}}}
",
    );
    assert_eq!(names(&document), ["search", "run"]);
    assert_eq!(document.operations[0].parameters[0].location, Location::QueryString);
    assert_eq!(input(&document, "search")["properties"]["q"]["type"], "object");
    assert_eq!(document.operations[1].path_template(), "/");
}

#[test]
fn what_is_no_document_of_a_known_version_is_refused() {
    let code = |text: &str| {
        let error = read(text, &DocumentOptions::default(), &mut |_| Err(String::new())).unwrap_err();
        error.code()
    };
    assert_eq!(code("{}"), "openapi.not_openapi");
    assert_eq!(code("[1]"), "openapi.not_openapi");
    assert_eq!(code("openapi: 4.0.0"), "openapi.version");
    assert_eq!(code("swagger: '1.2'"), "openapi.version");
    assert_eq!(code("{"), "openapi.syntax");
    let empty = document("openapi: 3.1");
    assert_eq!(findings(&empty), ["the document has no operations"]);
    assert_eq!(DocumentError::NotOpenApi.code(), "openapi.not_openapi");
}

#[test]
fn names_are_different_and_fit_for_clients_in_a_large_document() {
    let mut paths = String::new();
    for at in 0..2_000 {
        paths.push_str(&format!(
            "  /a{at}/{{id}}:\n    get: {{operationId: 'same name {}'}}\n    post: {{}}\n",
            at % 7
        ));
    }
    let document = document(&format!("openapi: 3.0.0\npaths:\n{paths}"));
    let mut names = names(&document);
    assert_eq!(names.len(), 4_000);
    let fits = |name: &&str| {
        (1..=64).contains(&name.len())
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte))
    };
    assert!(names.iter().all(fits), "{names:?}");
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), 4_000);
}
