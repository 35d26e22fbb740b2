//! Documents of Swagger 2.0.

use gatewright_openapi::{BodyArguments, BodyKind, Oauth2FlowKind, ResponseShape, SecurityScheme, Style};
use serde_json::json;

use crate::documents::{document, input, output};

#[test]
fn swagger_is_read_like_openapi() {
    let document = document(
        "
swagger: '2.0'
info: {title: Pets, version: '1'}
host: pets.example
basePath: /v2/
schemes: [http, https, wss]
consumes: [application/xml, application/json]
produces: [application/json]
securityDefinitions:
  key: {type: apiKey, in: header, name: X-Key}
  basic: {type: basic}
  oauth: {type: oauth2, flow: accessCode, authorizationUrl: https://a.example/a, tokenUrl: https://a.example/t, scopes: {read: Read}}
security: [{key: []}]
parameters:
  limit: {name: limit, in: query, type: integer, maximum: 100, exclusiveMaximum: true, default: 10}
paths:
  /pets:
    get:
      operationId: list
      parameters:
        - {$ref: '#/parameters/limit'}
        - {name: a, in: query, type: array, items: {type: string}}
        - {name: b, in: query, type: array, items: {type: string}, collectionFormat: multi}
        - {name: c, in: query, type: array, items: {type: string}, collectionFormat: pipes}
        - {name: d, in: header, type: array, items: {type: string}, collectionFormat: tsv}
        - {name: X-Key, in: header, type: string}
      responses: {200: {description: ok, schema: {type: array, items: {$ref: '#/definitions/Pet'}}}}
    post:
      operationId: create
      parameters: [{name: pet, in: body, required: true, schema: {$ref: '#/definitions/Pet'}}]
      responses: {201: {schema: {$ref: '#/definitions/Pet'}}, default: {schema: {type: string}}}
  /pets/{id}/image:
    post:
      operationId: upload
      schemes: [https]
      consumes: [multipart/form-data]
      parameters:
        - {name: id, in: path, type: string, required: true}
        - {name: file, in: formData, type: file, required: true, description: The picture.}
        - {name: tags, in: formData, type: array, items: {type: string}, collectionFormat: ssv}
      responses: {200: {schema: {type: file}}}
    put:
      operationId: form
      parameters: [{name: id, in: path, type: string, required: true}, {name: name, in: formData, type: string}]
      responses: {204: {description: none}}
definitions:
  Pet:
    type: object
    required: [name, id]
    properties:
      id: {type: integer, format: int64, readOnly: true}
      name: {type: string}
      nick: {type: string, x-nullable: true}
",
    );
    assert_eq!(document.findings, []);
    let urls: Vec<_> = document.servers.iter().map(|server| &*server.url).collect();
    assert_eq!(urls, ["https://pets.example/v2", "http://pets.example/v2"]);
    let [list, create, upload, form] = document.operations.as_slice() else { panic!("{document:?}") };
    let styles: Vec<_> = list.parameters.iter().map(|one| (&*one.name, one.style, one.explode)).collect();
    assert_eq!(
        styles,
        [
            ("limit", Style::Form, false),
            ("a", Style::Form, false),
            ("b", Style::Form, true),
            ("c", Style::PipeDelimited, false),
            ("d", Style::TabDelimited, false),
        ]
    );
    assert_eq!(
        input(&document, "list")["properties"]["limit"],
        json!({"type": "integer", "exclusiveMaximum": 100, "default": 10})
    );
    assert_eq!(list.shape, ResponseShape::Wrapped);
    let BodyArguments::Fields { fields, .. } = &create.body.as_ref().unwrap().arguments else { panic!() };
    assert_eq!(fields.iter().map(|field| &*field.name).collect::<Vec<_>>(), ["name", "nick"]);
    assert_eq!(&*create.body.as_ref().unwrap().media_type, "application/json");
    assert_eq!(input(&document, "create")["required"], json!(["name"]));
    assert_eq!(input(&document, "create")["properties"]["nick"], json!({"type": ["string", "null"]}));
    assert_eq!(create.shape, ResponseShape::Object);
    assert_eq!(output(&document, "create").unwrap()["required"], json!(["name", "id"]));
    assert_eq!(upload.servers.len(), 1);
    assert!(upload.own_servers);
    let body = upload.body.as_ref().unwrap();
    assert_eq!(body.kind, BodyKind::Multipart);
    let BodyArguments::Fields { fields, .. } = &body.arguments else { panic!() };
    assert!(fields[0].encoding.file && fields[0].encoding.style.is_none());
    assert_eq!(fields[1].encoding.style, Some(Style::SpaceDelimited));
    assert_eq!(
        input(&document, "upload")["properties"]["file"]["description"],
        "The picture. A file: base64, or a data: URI"
    );
    assert_eq!((upload.shape, output(&document, "upload")), (ResponseShape::Unknown, None));
    let body = form.body.as_ref().unwrap();
    assert_eq!((&*body.media_type, body.required), ("application/x-www-form-urlencoded", false));
    let SecurityScheme::Oauth2 { flows, .. } = &document.schemes["oauth"] else { panic!() };
    assert_eq!(flows[0].kind, Oauth2FlowKind::AuthorizationCode);
    assert_eq!(document.schemes["basic"], SecurityScheme::Basic);
}
