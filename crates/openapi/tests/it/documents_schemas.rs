//! Schemas of documents become JSON Schema 2020-12: inputs and outputs of tools, with what they refer to.

use std::{collections::HashMap, sync::Arc};

use gatewright_core::InputSchema;
use gatewright_openapi::{BodyArguments, BodyKind, Document, DocumentOptions, ResponseShape, Style, read};
use serde_json::{Value, json};

use crate::documents::{document, input, output};

/// A document whose operation `op` has `schema` as its body, and as its response `200`.
fn of_schema(version: &str, schema: &Value, schemas: &Value) -> Document {
    let content = json!({"application/json": {"schema": schema}});
    let text = json!({
        "openapi": version,
        "paths": {"/x": {"post": {
            "operationId": "op",
            "requestBody": {"content": content},
            "responses": {"200": {"content": content}},
        }}},
        "components": {"schemas": schemas},
    });
    document(&text.to_string())
}

fn body(document: &Document) -> Value {
    input(document, "op")["properties"]["body"].clone()
}

fn result(document: &Document) -> Value {
    output(document, "op").unwrap()["properties"]["result"].clone()
}

/// Returns `true` if the gateway accepts `arguments`.
fn accepts(document: &Document, arguments: &Value) -> bool {
    let schema = document.tools[0].input_schema.clone();
    match InputSchema::new(schema).check(arguments) {
        Ok(()) => true,
        Err(problem) if problem.contains("invalid:") => panic!("{problem}"),
        Err(_) => false,
    }
}

#[test]
fn keywords_of_openapi_3_0_become_those_of_json_schema() {
    let given = json!({"type": "array", "items": {
        "type": "object",
        "properties": {
            "a": {"type": "string", "nullable": true, "enum": ["x", "y", "x"]},
            "b": {"type": "integer", "minimum": 0, "exclusiveMinimum": true, "maximum": 9, "exclusiveMaximum": false},
            "c": {"allOf": [{"$ref": "#/components/schemas/C"}], "nullable": true, "description": "Of `C`."},
            "d": {"$ref": "#/components/schemas/C", "description": "ignored by the specification, but helpful"},
            "e": {"type": "string", "readOnly": true},
            "f": {"type": "string", "writeOnly": true, "example": "secret"},
            "g": {"type": "string", "deprecated": true, "xml": {"name": "g"}, "x-internal": 1, "externalDocs": {}},
            "h": {"oneOf": [{"type": "string"}, {"type": "integer"}], "nullable": true},
            "i": {"title": "I", "type": "object", "additionalProperties": {"type": "number"}},
            "j": {"$ref": "#/components/schemas/Small"},
        },
        "required": ["a", "e", "f"],
        "additionalProperties": false,
    }});
    let schemas = json!({
        "C": {"type": "object", "properties": {"n": {"type": "string"}}, "required": true},
        "Small": {"type": "string", "enum": ["on", "off"], "description": "A switch."},
    });
    let document = of_schema("3.0.3", &given, &schemas);
    assert_eq!(document.findings, []);
    let c = json!({"$ref": "#/$defs/C"});
    assert_eq!(
        body(&document),
        json!({"type": "array", "items": {
            "type": "object",
            "properties": {
                "a": {"type": ["string", "null"], "enum": ["x", "y", null]},
                "b": {"type": "integer", "exclusiveMinimum": 0, "maximum": 9},
                "c": {"anyOf": [c, {"type": "null"}], "description": "Of C."},
                "d": {"$ref": "#/$defs/C", "description": "ignored by the specification, but helpful"},
                "f": {"type": "string", "examples": ["secret"]},
                "g": {"type": "string", "deprecated": true},
                "h": {"anyOf": [{"oneOf": [{"type": "string"}, {"type": "integer"}]}, {"type": "null"}]},
                "i": {"type": "object", "additionalProperties": {"type": "number"}},
                "j": {"type": "string", "enum": ["on", "off"], "description": "A switch."},
            },
            "required": ["a", "f"],
            "additionalProperties": false,
        }})
    );
    assert_eq!(
        input(&document, "op")["$defs"],
        json!({"C": {"type": "object", "properties": {"n": {"type": "string"}}}})
    );
    let items = result(&document)["items"].clone();
    assert_eq!(items["required"], json!(["a", "e"]));
    assert_eq!(items["properties"]["e"], json!({"type": "string"}));
    assert_eq!(items["properties"].get("f"), None);
    assert_eq!(items.get("additionalProperties"), None);
    assert!(accepts(
        &document,
        &json!({"body": [{"a": null, "f": "x", "b": 1, "c": null, "h": 1, "j": "on"}]})
    ));
    assert!(!accepts(&document, &json!({"body": [{"a": "z", "f": "x"}]})));
    assert!(!accepts(&document, &json!({"body": [{"a": "x", "f": "x", "b": 0}]})));
}

#[test]
fn keywords_of_openapi_3_1_stay() {
    let given = json!({
        "type": ["array", "null"],
        "prefixItems": [{"const": 1}, {"type": ["string", "null"], "examples": ["e", "f"]}],
        "items": false,
        "contains": {"type": "integer"},
        "minItems": 1,
        "$defs": {"local": {"type": "object", "properties": {"x": {"type": "null"}}}},
        "if": {"minItems": 2},
        "then": {"$ref": "#/components/schemas/Any/$defs/inner"},
    });
    let any = json!({"$id": "any", "$schema": "https://json-schema.org/draft/2020-12/schema", "$defs": {"inner": {
        "$anchor": "inner", "type": "array", "unevaluatedItems": true, "items": {"type": "object", "patternProperties": {"^x": {"type": "string"}}},
    }}});
    let document = of_schema("3.1.0", &given, &json!({"Any": any}));
    assert_eq!(document.findings, []);
    assert_eq!(
        body(&document),
        json!({
            "type": ["array", "null"],
            "prefixItems": [{"const": 1}, {"type": ["string", "null"], "examples": ["e"]}],
            "items": false,
            "contains": {"type": "integer"},
            "minItems": 1,
            "if": {"minItems": 2},
            "then": {"$ref": "#/$defs/inner"},
        })
    );
    assert_eq!(
        input(&document, "op")["$defs"],
        json!({"inner": {"type": "array", "items": {"type": "object", "patternProperties": {"^x": {"type": "string"}}}}})
    );
    assert!(accepts(&document, &json!({})));
}

#[test]
fn cycles_stay_references_and_only_what_is_reachable_comes_along() {
    let schemas = json!({
        "Tree": {"type": "object", "properties": {"children": {"type": "array", "items": {"$ref": "#/components/schemas/Tree"}}, "leaf": {"$ref": "#/components/schemas/Leaf"}}},
        "Leaf": {"type": "object", "properties": {"tree": {"$ref": "#/components/schemas/Tree"}}},
        "Other": {"type": "object", "properties": {"x": {"type": "string"}}},
        "Circle": {"$ref": "#/components/schemas/Circle"},
    });
    let document = of_schema("3.0.0", &json!({"$ref": "#/components/schemas/Tree"}), &schemas);
    let written = output(&document, "op").unwrap();
    assert_eq!(
        written["properties"]["children"],
        json!({"type": "array", "items": {"$ref": "#/$defs/Tree"}})
    );
    let definitions: Vec<_> = written["$defs"].as_object().unwrap().keys().collect();
    assert_eq!(definitions.len(), 2, "{definitions:?}");
    assert!(accepts(&document, &json!({"children": [{"leaf": {"tree": {"children": []}}}]})));
    assert!(!accepts(&document, &json!({"children": [{"leaf": {"tree": {"children": 7}}}]})));
    let document = of_schema(
        "3.0.0",
        &json!({"type": "array", "items": {"$ref": "#/components/schemas/Circle"}}),
        &schemas,
    );
    assert_eq!(body(&document), json!({"type": "array", "items": {}}));
    let problems: Vec<_> = document.findings.iter().map(|finding| &*finding.problem).collect();
    // In the body and in the response.
    assert_eq!(problems, ["its references go round in a circle"; 2]);
    assert_eq!(
        document.findings[0].place,
        "/paths/~1x/post/requestBody/content/application~1json/schema/items"
    );
}

#[test]
fn alternatives_with_a_discriminator_exclude_each_other() {
    let schemas = json!({
        "Pet": {"oneOf": [{"$ref": "#/components/schemas/Cat"}, {"$ref": "#/components/schemas/Dog"}, {"$ref": "#/components/schemas/Fish"}],
                "discriminator": {"propertyName": "kind", "mapping": {"dog": "#/components/schemas/Dog", "puppy": "Dog", "gone": "models/gone.yaml"}}},
        "Cat": {"type": "object", "properties": {"kind": {"type": "string"}}},
        "Dog": {"type": "object", "properties": {"kind": {"type": "string"}}},
        "Fish": {"type": "object", "properties": {"kind": {"type": "string", "enum": ["fish"]}}, "required": ["kind"]},
    });
    let document = of_schema("3.0.0", &json!({"$ref": "#/components/schemas/Pet"}), &schemas);
    assert_eq!(document.findings, []);
    let pinned = |name: &str, value: Value| json!({"$ref": format!("#/$defs/{name}"), "properties": {"kind": value}, "required": ["kind"]});
    let pet = &input(&document, "op")["$defs"]["Pet"];
    assert_eq!(
        pet["oneOf"],
        json!([pinned("Cat", json!({"const": "Cat"})), pinned("Dog", json!({"enum": ["dog", "puppy"]})), {"$ref": "#/$defs/Fish"}])
    );
    assert!(accepts(&document, &json!({"body": {"kind": "puppy"}})));
    assert!(!accepts(&document, &json!({"body": {"kind": "bird"}})));
}

#[test]
fn bodies_that_are_put_together_are_flat_and_others_are_whole() {
    let schemas = json!({
        "Base": {"type": "object", "required": ["id"], "properties": {"id": {"type": "string"}, "made": {"type": "string", "readOnly": true}}},
    });
    let base = json!({"$ref": "#/components/schemas/Base"});
    let arguments = |schema: Value| {
        let document = of_schema("3.0.0", &schema, &schemas);
        assert_eq!(document.findings, [], "{schema}");
        (input(&document, "op"), document.operations[0].body.as_ref().unwrap().arguments.clone())
    };
    let names = |schema: &Value| -> Vec<String> {
        schema["properties"].as_object().unwrap().keys().cloned().collect()
    };
    let (schema, _) = arguments(
        json!({"allOf": [base, {"type": "object", "required": ["made", "n"], "properties": {"n": {"type": "integer"}}}]}),
    );
    assert_eq!(names(&schema), ["id", "n"]);
    assert_eq!(schema["required"], json!(["id", "n"]));
    assert_eq!(schema["additionalProperties"], false);
    let (schema, body) = arguments(json!({"allOf": [base], "additionalProperties": {"type": "integer"}}));
    assert_eq!(schema["additionalProperties"], json!({"type": "integer"}));
    assert!(matches!(body, BodyArguments::Fields { open: true, .. }));
    let (schema, _) = arguments(
        json!({"type": "object", "properties": {"a": {}, "b": {}}, "anyOf": [{"required": ["a"]}, {"required": ["b"]}]}),
    );
    assert_eq!(schema["anyOf"], json!([{"required": ["a"]}, {"required": ["b"]}]));
    for whole in [
        json!({"oneOf": [base, {"type": "object", "properties": {"x": {}}}]}),
        json!({"type": "array", "items": base}),
        json!({"type": "object", "additionalProperties": {"type": "string"}}),
        json!({"type": "object"}),
        json!({"type": "string"}),
    ] {
        let (schema, body) = arguments(whole);
        assert_eq!(names(&schema), ["body"]);
        assert_eq!(body, BodyArguments::Whole("body".into()));
    }
}

#[test]
fn a_body_that_is_not_required_has_no_required_fields() {
    let text = |required: &str| {
        format!(
            "{{openapi: 3.0.0, paths: {{/x: {{post: {{operationId: op, requestBody: {{{required}content: {{application/json: \
             {{schema: {{type: object, required: [a], properties: {{a: {{type: string}}}}}}}}}}}}}}}}}}}}"
        )
    };
    let required = |text: &str| {
        let document = document(text);
        (
            input(&document, "op").get("required").cloned(),
            document.operations[0].body.as_ref().unwrap().required,
        )
    };
    assert_eq!(required(&text("")), (Some(json!(["a"])), true));
    assert_eq!(required(&text("required: true, ")), (Some(json!(["a"])), true));
    assert_eq!(required(&text("required: false, ")), (None, false));
}

#[test]
fn references_lead_to_other_documents_and_back() {
    let files = HashMap::from([
        (
            "schemas/tree.yaml",
            "type: object\nproperties: {next: {$ref: tree.yaml}, owner: {$ref: ../api.yaml#/components/schemas/Owner}}",
        ),
        (
            "api.yaml",
            "components: {schemas: {Owner: {type: object, properties: {name: {type: string}, trees: {type: array, items: {$ref: schemas/tree.yaml}}}}}}",
        ),
        (
            "paths.yaml",
            "get: {operationId: get, parameters: [{$ref: https://other.example/p.json#/limit}], responses: {200: {content: {application/json: {schema: {$ref: schemas/tree.yaml}}}}}}",
        ),
        (
            "https://other.example/p.json",
            r#"{"limit": {"name": "limit", "in": "query", "schema": {"$ref": "types.json#/count"}}}"#,
        ),
        ("https://other.example/types.json", r#"{"count": {"type": "integer"}}"#),
    ]);
    let mut asked = Vec::new();
    let mut fetch = |url: &str| {
        asked.push(url.to_owned());
        files.get(url).map(|text| (*text).to_owned()).ok_or_else(|| "there is no such file".to_owned())
    };
    let text = "openapi: 3.1.0\npaths: {/x: {$ref: paths.yaml}, /y: {$ref: missing.yaml}}";
    let document = read(text, &DocumentOptions::default(), &mut fetch).unwrap();
    asked.sort();
    let mut expected: Vec<_> =
        files.keys().map(|url| (*url).to_owned()).chain(["missing.yaml".to_owned()]).collect();
    expected.sort();
    assert_eq!(asked, expected);
    assert_eq!(input(&document, "get")["properties"]["limit"], json!({"type": "integer"}));
    let written = output(&document, "get").unwrap();
    assert_eq!(written["properties"]["next"], json!({"$ref": "#/$defs/tree.yaml"}));
    assert_eq!(
        written["$defs"]["Owner"]["properties"]["trees"]["items"],
        json!({"$ref": "#/$defs/tree.yaml"})
    );
    let findings: Vec<_> = document.findings.iter().map(ToString::to_string).collect();
    assert_eq!(findings, ["/paths/~1y: `missing.yaml` cannot be read: there is no such file"]);
}

#[test]
fn a_schema_that_is_too_large_is_cut_off_where_it_is_deep() {
    // Each level has ten fields of the next, all different.
    let mut schemas = serde_json::Map::new();
    for level in 0..5 {
        for at in 0..10_usize.pow(level) {
            let properties: serde_json::Map<_, _> = (0..10)
                .map(|next| {
                    let field = match level {
                        4 => json!({"type": "string", "description": "A leaf with a description that is not short."}),
                        _ => json!({"$ref": format!("#/components/schemas/L{}_{}", level + 1, at * 10 + next)}),
                    };
                    (format!("field{next}"), field)
                })
                .collect();
            schemas.insert(format!("L{level}_{at}"), json!({"type": "object", "properties": properties}));
        }
    }
    let document = of_schema("3.0.0", &json!({"$ref": "#/components/schemas/L0_0"}), &Value::Object(schemas));
    let length = |schema: &Value| schema.to_string().len();
    let (input, output) = (input(&document, "op"), output(&document, "op").unwrap());
    assert!((5_000..=70_000).contains(&length(&input)), "{}", length(&input));
    assert!((1_500..=18_000).contains(&length(&output)), "{}", length(&output));
    assert_eq!(input["properties"]["field9"]["$ref"], "#/$defs/L1_9");
    assert_eq!(input["$defs"]["L1_9"]["properties"]["field9"]["$ref"], "#/$defs/L2_99");
    let problems: Vec<_> = document.findings.iter().map(ToString::to_string).collect();
    assert_eq!(
        problems,
        [
            "/paths/~1x/post: the input schema is larger than 64 KiB, so its deeper parts are left out",
            "/paths/~1x/post: the output schema is larger than 16 KiB, so its deeper parts are left out",
        ]
    );
    assert!(accepts(&document, &json!({"field1": {"field2": {"field3": {"field4": {"field5": "x"}}}}})));
}

#[test]
fn outputs_have_the_shape_of_the_successful_responses() {
    let document = document(
        "
openapi: 3.1.0
paths:
  /a: {get: {operationId: object, responses: {200: {content: {application/json: {schema: {$ref: '#/components/schemas/O'}}, text/xml: {}}}, 404: {content: {application/json: {schema: {type: string}}}}, default: {content: {application/json: {schema: {type: string}}}}}}}
  /b: {get: {operationId: array, responses: {2XX: {content: {application/vnd.x+json; charset=utf-8: {schema: {type: array, items: {type: string}}}}}}}}
  /c: {get: {operationId: empty, responses: {200: {content: {application/json: {schema: {type: string}}}}, 204: {}}}}
  /d: {get: {operationId: either, responses: {200: {content: {application/json: {schema: {$ref: '#/components/schemas/O'}}}}, 201: {content: {application/json: {schema: {type: object, properties: {y: {type: string}}}}}}}}}
  /e: {get: {operationId: mixed, responses: {200: {content: {application/json: {schema: {$ref: '#/components/schemas/O'}}}}, 202: {content: {application/json: {schema: {type: string}}}}}}}
  /f: {get: {operationId: stream, responses: {200: {content: {application/jsonl: {itemSchema: {type: object}}}}}}}
  /g: {get: {operationId: default, responses: {default: {content: {application/json: {schema: {$ref: '#/components/schemas/O'}}}}}}}
  /h: {get: {operationId: nullable, responses: {200: {content: {application/json: {schema: {type: [object, 'null']}}}}}}}
  /i: {head: {operationId: head, responses: {200: {content: {application/json: {schema: {type: object}}}}}}}
components: {schemas: {O: {type: object, required: [x], properties: {x: {type: string, maxLength: 5, pattern: a, description: First. Second.}}}}}
",
    );
    assert_eq!(document.findings, []);
    let shapes: Vec<_> = document.operations.iter().map(|one| (&*one.tool, one.shape)).collect();
    assert_eq!(
        shapes,
        [
            ("object", ResponseShape::Object),
            ("array", ResponseShape::Wrapped),
            ("empty", ResponseShape::Unknown),
            ("either", ResponseShape::Object),
            ("mixed", ResponseShape::Wrapped),
            ("stream", ResponseShape::Unknown),
            ("default", ResponseShape::Object),
            ("nullable", ResponseShape::Wrapped),
            ("head", ResponseShape::Unknown),
        ]
    );
    let o = json!({"type": "object", "required": ["x"], "properties": {"x": {"type": "string", "description": "First."}}});
    assert_eq!(output(&document, "object"), Some(o.clone()));
    assert_eq!(output(&document, "default"), Some(o));
    // Operations of the same response share its schema.
    let schemas: Vec<_> = document.tools.iter().filter_map(|tool| tool.output_schema.as_ref()).collect();
    assert!(Arc::ptr_eq(schemas[0], schemas[4]));
    assert_eq!(
        output(&document, "array"),
        Some(json!({
            "type": "object",
            "properties": {"result": {"type": "array", "items": {"type": "string"}}},
            "required": ["result"],
        }))
    );
    assert_eq!(output(&document, "either").unwrap()["anyOf"].as_array().unwrap().len(), 2);
    assert_eq!(output(&document, "empty"), None);
    let stream = &document.operations[5].responses[0];
    assert!(stream.media[0].stream);
    assert_eq!(document.operations[0].responses.len(), 2);
}

#[test]
fn forms_and_multipart_bodies_have_encodings_and_files() {
    let document = document(
        "
openapi: 3.1.0
paths:
  /form: {post: {operationId: form, requestBody: {required: true, content: {text/plain: {}, application/x-www-form-urlencoded: {schema: {type: object, properties: {a: {type: array, items: {type: string}}, b: {type: object}, c: {type: object}}}, encoding: {b: {style: deepObject, explode: true}, c: {contentType: application/json}}}}}}}
  /multi: {post: {operationId: multi, requestBody: {content: {multipart/form-data: {schema: {type: object, required: [file], properties: {
    file: {type: string, format: binary, description: The file},
    more: {type: array, items: {type: string, contentMediaType: image/png}},
    logo: {}, meta: {type: object, properties: {x: {type: string}}}, list: {type: array, items: {type: string}}}},
    encoding: {logo: {contentType: 'image/png, image/jpeg'}, meta: {contentType: application/json}, list: {style: form, explode: false}}}}}}}
  /bytes: {put: {operationId: bytes, requestBody: {description: The **bytes**., required: true, content: {image/*: {}}}}}
  /text: {put: {operationId: text, requestBody: {content: {application/xml: {schema: {type: object}}}}}}
  /lines: {post: {operationId: lines, requestBody: {content: {application/x-ndjson: {itemSchema: {type: object}}}}}}
  /any: {post: {operationId: any, requestBody: {content: {'*/*': {schema: {type: object, properties: {a: {}}}}}}}}
",
    );
    assert_eq!(document.findings, []);
    let bodies: Vec<_> = document
        .operations
        .iter()
        .map(|one| one.body.as_ref().map(|body| (body.kind, &*body.media_type, body.required)).unwrap())
        .collect();
    assert_eq!(
        bodies,
        [
            (BodyKind::Form, "application/x-www-form-urlencoded", true),
            (BodyKind::Multipart, "multipart/form-data", true),
            (BodyKind::Binary, "application/octet-stream", true),
            (BodyKind::Text, "application/xml", false),
            (BodyKind::JsonLines, "application/x-ndjson", false),
            (BodyKind::Json, "application/json", false),
        ]
    );
    let encodings = |at: usize| match &document.operations[at].body.as_ref().unwrap().arguments {
        BodyArguments::Fields { fields, .. } => fields
            .iter()
            .map(|field| {
                let encoding = &field.encoding;
                (
                    &*field.name,
                    encoding.style,
                    encoding.explode,
                    encoding.content_type.as_deref(),
                    encoding.file,
                )
            })
            .collect::<Vec<_>>(),
        BodyArguments::Whole(_) => panic!("fields"),
    };
    assert_eq!(
        encodings(0),
        [
            ("a", Some(Style::Form), true, None, false),
            ("b", Some(Style::DeepObject), true, None, false),
            ("c", None, false, Some("application/json"), false),
        ]
    );
    assert_eq!(
        encodings(1),
        [
            ("file", None, false, None, true),
            ("more", None, false, None, true),
            ("logo", None, false, Some("image/png, image/jpeg"), true),
            ("meta", None, false, Some("application/json"), false),
            ("list", Some(Style::Form), false, None, false),
        ]
    );
    let multi = input(&document, "multi");
    assert_eq!(multi["properties"]["file"]["type"], "string");
    assert_eq!(multi["properties"]["more"]["items"]["type"], "string");
    assert_eq!(multi["properties"]["logo"]["type"], "string");
    assert_eq!(
        input(&document, "bytes")["properties"]["body"]["description"],
        "The bytes. A file: base64, or a data: URI"
    );
    assert_eq!(input(&document, "text")["properties"]["body"], json!({"type": "string"}));
    assert_eq!(
        input(&document, "lines")["properties"]["body"],
        json!({"type": "array", "items": {"type": "object"}})
    );
}

#[test]
fn an_example_of_the_body_is_one_of_all_arguments() {
    let document = document(
        "
openapi: 3.0.0
paths:
  /x/{id}:
    put:
      operationId: op
      parameters:
        - {name: id, in: path, required: true, schema: {type: string}, example: x1}
        - {name: q, in: query, schema: {type: string}, examples: {one: {value: a}}}
      requestBody:
        content:
          application/json:
            schema: {type: object, required: [id], properties: {id: {type: string}, n: {type: integer}}}
            examples: {first: {$ref: '#/components/examples/e'}}
components: {examples: {e: {value: {id: b1, n: 2, extra: 3}}}}
",
    );
    let schema = input(&document, "op");
    assert_eq!(schema["examples"], json!([{"id": "x1", "body_id": "b1", "n": 2}]));
    assert_eq!(schema["properties"]["q"]["examples"], json!(["a"]));
    assert!(accepts(&document, &schema["examples"][0]));
}
