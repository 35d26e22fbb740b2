//! Successful responses of an operation, and the output schema that they make.

use std::sync::Arc;

use serde_json::Value;

use super::{
    bounded::{Schemas, Written},
    context::{Context, Version},
    json::object,
    kinds::is_nullable,
    media,
    schema::{Direction, Pass},
    sources::{Identity, Node, NodeSet},
};
use crate::{Media, ResponseShape, StatusCodes, Success};

/// Parts of an `allOf`, one within another, that are looked through.
const DEEPEST: usize = 8;
/// Most schemas that are alternatives of one output.
const MOST_ALTERNATIVES: usize = 8;
/// Most responses and media types that are read.
const MOST: usize = 50;
/// Work of reading a response or a media type; see [`Context::spend`].
const MEDIA_WORK: usize = 40;

/// Responses of an operation.
pub(super) struct Responses<'d> {
    pub(super) success: Vec<Success>,
    pub(super) output: Option<Output<'d>>,
    /// One has the header `Link`.
    pub(super) links: bool,
}

/// Form of a result.
pub(super) struct Output<'d> {
    pub(super) shape: ResponseShape,
    /// Schemas of which one fits, without references at their root.
    schemas: Vec<Node<'d>>,
}

/// Reads the responses of an operation.
pub(super) fn read<'d>(
    context: &Context<'d>,
    root: Node<'d>,
    operation: Node<'d>,
    is_head: bool,
) -> Responses<'d> {
    let (mut success, mut links) = (Vec::new(), false);
    let mut found: Vec<(StatusCodes, Content<'d>)> = Vec::new();
    for (code, response) in operation.get("responses").into_iter().flat_map(Node::members) {
        let Some(status) = status(code) else { continue };
        if found.len() == MOST {
            break;
        }
        let Some(response) = context.resolved(response) else { continue };
        context.spend(MEDIA_WORK);
        let content = match context.version {
            Version::Swagger => swagger_content(context, root, operation, response),
            Version::V30 | Version::V31 => content(context, response),
        };
        links |= response
            .get("headers")
            .is_some_and(|headers| headers.members().any(|(name, _)| name.eq_ignore_ascii_case("link")));
        success.push(Success { status, media: content.media.clone().into() });
        found.push((status, content));
    }
    // Most documents describe errors in the default response, but some nothing but successes.
    if found.iter().any(|(status, _)| *status != StatusCodes::Default) {
        found.retain(|(status, _)| *status != StatusCodes::Default);
    }
    let output = match is_head || found.is_empty() {
        true => None,
        false => output(context, &found),
    };
    Responses { success, output, links }
}

fn status(code: &str) -> Option<StatusCodes> {
    match code {
        "default" => Some(StatusCodes::Default),
        "2XX" | "2xx" => Some(StatusCodes::Range),
        code => code.parse().ok().filter(|code| (200..300).contains(code)).map(StatusCodes::One),
    }
}

#[derive(Clone)]
struct Content<'d> {
    media: Vec<Media>,
    /// The schema of its JSON, if it has JSON, and that a schema.
    json: Option<Node<'d>>,
}

fn content<'d>(context: &Context<'d>, response: Node<'d>) -> Content<'d> {
    let (mut media, mut json) = (Vec::new(), None);
    for (media_type, given) in response.get("content").into_iter().flat_map(Node::members).take(MOST) {
        let Some(given) = context.resolved(given) else { continue };
        let Some(owned) = context.own(given, media_type) else { continue };
        context.spend(MEDIA_WORK);
        let essence = media::essence(media_type);
        let stream = media::is_stream(&essence, Some(given));
        media.push(Media { media_type: owned, stream });
        if media::is_json(&essence) && !stream {
            json = json.or_else(|| given.get("schema"));
        }
    }
    Content { media, json }
}

fn swagger_content<'d>(
    context: &Context<'d>,
    root: Node<'d>,
    operation: Node<'d>,
    response: Node<'d>,
) -> Content<'d> {
    let Some(schema) = response.get("schema") else { return Content { media: Vec::new(), json: None } };
    let produces = operation.get("produces").or_else(|| root.get("produces"));
    let given = produces.into_iter().flat_map(Node::items).take(MOST);
    let given = given.filter_map(|one| context.own(one, one.value.as_str()?));
    let mut types: Vec<Arc<str>> = given.inspect(|_| context.spend(MEDIA_WORK)).collect();
    if types.is_empty() {
        types.extend(context.own(response, "application/json"));
    }
    let is_file = schema.text("type") == Some("file");
    let is_json = !is_file && types.iter().any(|media_type| media::is_json(&media::essence(media_type)));
    let media = |media_type: Arc<str>| {
        let stream = media::is_stream(&media::essence(&media_type), None);
        Media { media_type, stream }
    };
    Content { media: types.into_iter().map(media).collect(), json: is_json.then_some(schema) }
}

/// The output of the responses, if each has JSON with a schema: a result has to fit the output schema of its tool.
fn output<'d>(context: &Context<'d>, found: &[(StatusCodes, Content<'d>)]) -> Option<Output<'d>> {
    let mut schemas: Vec<Node<'d>> = Vec::new();
    for (_, content) in found {
        let schema = context.resolved(content.json?)?;
        // Anything fits an empty schema, which says nothing.
        if schema.value.as_object().is_none_or(|map| map.is_empty()) {
            return None;
        }
        if schemas.iter().all(|known| known.identity() != schema.identity()) {
            schemas.push(schema);
        }
    }
    if schemas.len() > MOST_ALTERNATIVES {
        return None;
    }
    let shape = match schemas.iter().all(|schema| is_object(context, *schema, 0, &mut NodeSet::default())) {
        true => ResponseShape::Object,
        false => ResponseShape::Wrapped,
    };
    Some(Output { shape, schemas })
}

/// Returns `true` if only objects fit the schema. Those that were `seen` are not looked through again.
fn is_object<'d>(context: &Context<'d>, schema: Node<'d>, depth: usize, seen: &mut NodeSet) -> bool {
    let Ok(schema) = context.sources.resolve(schema) else { return false };
    if is_nullable(schema) || depth > DEEPEST || !seen.insert(schema.identity()) {
        return false;
    }
    match schema.value.get("type") {
        Some(Value::String(kind)) => kind == "object",
        Some(Value::Array(kinds)) => kinds.len() == 1 && kinds[0] == "object",
        Some(_) => false,
        None => {
            let mut parts = schema.get("allOf").into_iter().flat_map(Node::items).take(20);
            schema.get("properties").is_some()
                && ["anyOf", "oneOf"].iter().all(|key| schema.get(key).is_none())
                || parts.any(|part| is_object(context, part, depth + 1, seen))
        }
    }
}

impl<'d> Output<'d> {
    /// Tells outputs apart.
    pub(super) fn identity(&self) -> (bool, Vec<Identity>) {
        (self.shape == ResponseShape::Object, self.schemas.iter().map(|schema| schema.identity()).collect())
    }

    /// The output schema; none where even its outline is longer than `limit`.
    pub(super) fn schema(&self, schemas: &Schemas<'_, 'd>, limit: usize) -> Option<Written> {
        schemas.write(Direction::Output, limit, &|pass| self.root(pass))
    }

    fn root(&self, pass: &mut Pass<'_, 'd>) -> Vec<(String, Value)> {
        pass.count(60);
        let kind = ("type".to_owned(), Value::from("object"));
        match (self.shape, self.schemas.as_slice()) {
            (ResponseShape::Object, [one]) => {
                let mut members = pass.members(*one, 0, "");
                members.retain(|(key, _)| key != "type");
                members.insert(0, kind);
                members
            }
            (ResponseShape::Object, several) => {
                vec![kind, ("anyOf".to_owned(), alternatives(pass, several, 0))]
            }
            (_, several) => {
                let result = match several {
                    [one] => pass.schema(*one, 1, "result"),
                    several => {
                        let either = ("anyOf".to_owned(), alternatives(pass, several, 1));
                        Value::Object(object(vec![either]))
                    }
                };
                let properties = object(vec![("result".to_owned(), result)]);
                vec![
                    kind,
                    ("properties".to_owned(), Value::Object(properties)),
                    ("required".to_owned(), Value::Array(vec!["result".into()])),
                ]
            }
        }
    }
}

fn alternatives<'d>(pass: &mut Pass<'_, 'd>, schemas: &[Node<'d>], depth: usize) -> Value {
    schemas.iter().map(|schema| pass.schema(*schema, depth, "")).collect()
}
