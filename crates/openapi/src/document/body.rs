//! The request body of an operation: the media type that is used, and its fields as arguments.

use std::{collections::HashSet, sync::Arc};

use serde_json::{Map, Value};

use super::{
    context::{Context, Version},
    fields::{Fields, fields},
    input::{ArgumentSchema, Open},
    json::is_shorter,
    media,
    parameters::{Parameters, collection_format, encoding_style, example, members},
    sources::Node,
    words::{plain, sentences},
};
use crate::{BodyKind, FieldEncoding, Location, Style};

/// Longest example of a body, in bytes of JSON.
const LONGEST_EXAMPLE: usize = 1_000;
/// Most media types that are read.
const MOST_MEDIA: usize = 50;
/// Longest description of a whole body, in characters.
const DESCRIPTION: usize = 300;

/// A request body, whose arguments have no names yet.
pub(super) struct ReadBody<'d> {
    pub(super) media_type: Arc<str>,
    pub(super) kind: BodyKind,
    pub(super) required: bool,
    pub(super) parts: Parts<'d>,
    pub(super) description: String,
    pub(super) example: Option<&'d Value>,
}

/// Parts of a body.
pub(super) enum Parts<'d> {
    Whole(ArgumentSchema<'d>),
    Fields { fields: Vec<ReadField<'d>>, open: Open<'d>, choices: Vec<(&'static str, Node<'d>)> },
}

/// A field of a body.
pub(super) struct ReadField<'d> {
    pub(super) name: Arc<str>,
    pub(super) schema: ArgumentSchema<'d>,
    pub(super) description: Option<String>,
    pub(super) required: bool,
    pub(super) encoding: FieldEncoding,
}

/// Reads the body of an operation; none where it takes none.
pub(super) fn read<'d>(
    context: &Context<'d>,
    root: Node<'d>,
    operation: Node<'d>,
    parameters: &Parameters<'d>,
) -> Option<ReadBody<'d>> {
    if context.version == Version::Swagger {
        return swagger(context, root, operation, parameters);
    }
    let body = context.resolved(operation.get("requestBody")?)?;
    let content = body
        .get("content")
        .map(|content| {
            let short = content.members().filter(|(media_type, media)| context.is_short(*media, media_type));
            short.take(MOST_MEDIA).collect::<Vec<_>>()
        })
        .unwrap_or_default();
    let Some((media_type, media)) = choose(context, &content) else {
        context.find(body, "a request body needs `content` with a media type");
        return None;
    };
    let media = context.resolved(media)?;
    let essence = media::essence(media_type);
    let schema = media.get("schema");
    if schema.is_some_and(|schema| is_empty(context, schema)) {
        return None;
    }
    let is_object = || schema.is_some_and(|schema| fields(context, schema).is_some());
    let (kind, sent) = match essence.as_str() {
        "*/*" | "application/*" if schema.is_none() || is_object() => (BodyKind::Json, "application/json"),
        range if range.contains('*') => (BodyKind::Binary, "application/octet-stream"),
        other => (media::kind(other), media_type),
    };
    let parts = parts(context, kind, media, schema);
    let required = body.value.get("required").and_then(Value::as_bool);
    Some(ReadBody {
        media_type: context.own(body, sent)?,
        kind,
        required: required.unwrap_or_else(|| parts.has_required()),
        parts: if required == Some(false) { parts.optional() } else { parts },
        description: description(context, body),
        example: example(context, media).filter(|example| is_shorter(example, LONGEST_EXAMPLE)),
    })
}

/// Returns `true` for an object that has no fields and may have none.
fn is_empty<'d>(context: &Context<'d>, schema: Node<'d>) -> bool {
    context.sources.resolve(schema).is_ok_and(|schema| {
        let is_bare =
            ["allOf", "anyOf", "oneOf", "patternProperties"].iter().all(|key| schema.get(key).is_none());
        let fields = schema
            .get("properties")
            .and_then(|fields| fields.value.as_object())
            .is_none_or(|all| all.is_empty());
        is_bare && fields && schema.value.get("additionalProperties") == Some(&Value::Bool(false))
    })
}

fn description(context: &Context<'_>, node: Node<'_>) -> String {
    let text = node.text("description").unwrap_or_default();
    context.spend(text.len());
    sentences(&plain(text), DESCRIPTION).to_owned()
}

/// The media type that says most: JSON, else a form, multipart where there are files, lines of JSON, text, bytes.
fn choose<'d>(context: &Context<'d>, content: &[(&'d str, Node<'d>)]) -> Option<(&'d str, Node<'d>)> {
    let has_files = |media: Node<'d>| {
        let schema = media.get("schema").and_then(|schema| fields(context, schema));
        schema
            .is_some_and(|fields| fields.properties.iter().any(|(_, field)| file(context, *field).is_some()))
    };
    let rank = |(media_type, media): &(&'d str, Node<'d>)| {
        let essence = media::essence(media_type);
        match media::kind(&essence) {
            _ if essence == "application/json" => 0,
            BodyKind::Json => 1,
            BodyKind::Multipart if has_files(*media) => 2,
            BodyKind::Form => 3,
            BodyKind::Multipart => 4,
            _ if media::is_json(&essence) => 5,
            BodyKind::JsonLines => 6,
            BodyKind::Text => 7,
            BodyKind::Binary => 8,
        }
    };
    content.iter().min_by_key(|one| rank(one)).copied()
}

fn parts<'d>(context: &Context<'d>, kind: BodyKind, media: Node<'d>, schema: Option<Node<'d>>) -> Parts<'d> {
    match kind {
        BodyKind::JsonLines => Parts::Whole(match (media.get("itemSchema"), schema) {
            (Some(item), _) => ArgumentSchema::ListOf(item),
            (None, Some(schema)) => ArgumentSchema::Of(schema),
            (None, None) => ArgumentSchema::Any,
        }),
        BodyKind::Text => Parts::Whole(ArgumentSchema::Text),
        BodyKind::Binary => Parts::Whole(ArgumentSchema::File),
        BodyKind::Json | BodyKind::Form | BodyKind::Multipart => {
            let Some(schema) = schema else { return Parts::Whole(ArgumentSchema::Any) };
            let Some(Fields { properties, required, open, choices }) = fields(context, schema) else {
                return Parts::Whole(ArgumentSchema::Of(schema));
            };
            let encodings = media.get("encoding");
            let read = |(name, schema): (&'d str, Node<'d>)| {
                let encoding = encodings.and_then(|all| all.get(name));
                Some(ReadField {
                    name: context.own(schema, name)?,
                    schema: field_schema(context, kind, schema, encoding),
                    description: None,
                    required: required.contains(name),
                    encoding: field_encoding(context, kind, schema, encoding),
                })
            };
            let fields: Vec<_> = properties.into_iter().filter_map(read).collect();
            Parts::Fields { fields, open, choices }
        }
    }
}

/// Longest list of media types of a field, in bytes. A longer one is ignored.
const LONGEST_TYPES: usize = 1_000;

/// Files in a field.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Files {
    One,
    Many,
}

/// Returns the files of a field of a multipart body: a text of bytes, or an array of them.
fn file<'d>(context: &Context<'d>, schema: Node<'d>) -> Option<Files> {
    let schema = context.sources.resolve(schema).ok()?;
    let is_file = |schema: Node<'_>| {
        let text = |key: &str| schema.text(key);
        matches!(text("format"), Some("binary" | "byte")) && text("type") != Some("array")
            || text("type") == Some("file")
            || text("contentMediaType").is_some_and(|media_type| {
                text("contentEncoding").is_none()
                    && media::kind(&media::essence(media_type)) == BodyKind::Binary
            })
    };
    if is_file(schema) {
        return Some(Files::One);
    }
    let items = schema.get("items").and_then(|items| context.sources.resolve(items).ok());
    items.is_some_and(is_file).then_some(Files::Many)
}

fn field_files<'d>(
    context: &Context<'d>,
    kind: BodyKind,
    schema: Node<'d>,
    encoding: Option<Node<'d>>,
) -> Option<Files> {
    if kind != BodyKind::Multipart {
        return None;
    }
    let types = encoding.and_then(|encoding| encoding.text("contentType"));
    let declared = types.filter(|types| types.len() <= LONGEST_TYPES).is_some_and(|types| {
        let mut types = types.split(',').map(media::essence);
        types.any(|essence| media::kind(&essence) == BodyKind::Binary)
    });
    let is_text = || {
        let schema = context.sources.resolve(schema);
        schema.is_ok_and(|schema| {
            matches!(schema.text("type"), None | Some("string")) && schema.get("properties").is_none()
        })
    };
    file(context, schema).or_else(|| (declared && is_text()).then_some(Files::One))
}

fn field_schema<'d>(
    context: &Context<'d>,
    kind: BodyKind,
    schema: Node<'d>,
    encoding: Option<Node<'d>>,
) -> ArgumentSchema<'d> {
    match field_files(context, kind, schema, encoding) {
        Some(Files::One) => ArgumentSchema::File,
        Some(Files::Many) => ArgumentSchema::Files,
        None => ArgumentSchema::Of(schema),
    }
}

fn field_encoding<'d>(
    context: &Context<'d>,
    kind: BodyKind,
    schema: Node<'d>,
    encoding: Option<Node<'d>>,
) -> FieldEncoding {
    let mut out = FieldEncoding {
        content_type: None,
        style: None,
        explode: false,
        allow_reserved: false,
        file: false,
        members: Box::default(),
    };
    if !matches!(kind, BodyKind::Form | BodyKind::Multipart) {
        return out;
    }
    let style = encoding.and_then(|encoding| encoding_style(context, encoding));
    let content_type = encoding.and_then(|encoding| encoding.text("contentType")).or_else(|| {
        let schema = context.sources.resolve(schema).ok()?;
        schema.text("contentMediaType").filter(|_| kind == BodyKind::Multipart)
    });
    // Each part of a body is compared with it.
    let content_type = content_type.filter(|types| types.len() <= LONGEST_TYPES);
    out.file = field_files(context, kind, schema, encoding).is_some();
    out.allow_reserved = encoding.is_some_and(|encoding| encoding.is("allowReserved"));
    match (style, content_type) {
        // A style makes the content type meaningless (OpenAPI 3.1, Encoding Object).
        (Some((style, explode)), _) => (out.style, out.explode) = (Some(style), explode),
        (None, Some(content_type)) => out.content_type = context.own(schema, content_type),
        (None, None) if kind == BodyKind::Form => (out.style, out.explode) = (Some(Style::Form), true),
        (None, None) => {}
    }
    if out.explode && out.style == Some(Style::Form) {
        out.members = members(context, schema);
    }
    out
}

/// The body of an operation of Swagger 2.0: a parameter, or fields of a form.
fn swagger<'d>(
    context: &Context<'d>,
    root: Node<'d>,
    operation: Node<'d>,
    parameters: &Parameters<'d>,
) -> Option<ReadBody<'d>> {
    let consumes = operation.get("consumes").or_else(|| root.get("consumes"));
    let consumes: Vec<&str> = consumes
        .into_iter()
        .flat_map(Node::items)
        .take(MOST_MEDIA)
        .filter_map(|one| one.value.as_str().filter(|media_type| context.is_short(one, media_type)))
        .collect();
    let of_kind = |wanted: &dyn Fn(BodyKind) -> bool| {
        consumes.iter().copied().find(|media_type| wanted(media::kind(&media::essence(media_type))))
    };
    if let Some(node) = parameters.body {
        let json = consumes.iter().copied().find(|media_type| media::is_json(&media::essence(media_type)));
        let other = || of_kind(&|kind| !matches!(kind, BodyKind::Form | BodyKind::Multipart));
        let media_type = json.or_else(other).unwrap_or("application/json");
        let (kind, media_type) = match media::essence(media_type).contains('*') {
            true => (BodyKind::Json, "application/json"),
            false => (media::kind(&media::essence(media_type)), media_type),
        };
        let parts = parts(context, kind, node, node.get("schema"));
        let required = node.value.get("required").and_then(Value::as_bool);
        return Some(ReadBody {
            media_type: context.own(node, media_type)?,
            kind,
            required: required.unwrap_or_else(|| parts.has_required()),
            parts: if required == Some(false) { parts.optional() } else { parts },
            description: description(context, node),
            example: node.value.get("x-example").filter(|example| is_shorter(example, LONGEST_EXAMPLE)),
        });
    }
    if parameters.form.is_empty() {
        return None;
    }
    let has_files = parameters.form.iter().any(|field| field.text("type") == Some("file"));
    let multipart = of_kind(&|kind| kind == BodyKind::Multipart);
    let form = of_kind(&|kind| kind == BodyKind::Form);
    let (kind, media_type) = match (has_files, form, multipart) {
        (false, Some(form), _) => (BodyKind::Form, form),
        (_, _, Some(multipart)) => (BodyKind::Multipart, multipart),
        (true, _, None) => (BodyKind::Multipart, "multipart/form-data"),
        (false, None, None) => (BodyKind::Form, "application/x-www-form-urlencoded"),
    };
    let read = |node: &Node<'d>| {
        let is_file = node.text("type") == Some("file");
        let (style, explode) = collection_format(context, *node, Location::Query);
        let is_styled = kind == BodyKind::Form || node.get("collectionFormat").is_some();
        Some(ReadField {
            name: context.own(*node, node.text("name").unwrap_or_default())?,
            schema: if is_file { ArgumentSchema::File } else { ArgumentSchema::Of(*node) },
            description: Some(description(context, *node)),
            required: node.is("required"),
            encoding: FieldEncoding {
                content_type: None,
                style: (is_styled && !is_file).then_some(style),
                explode: is_styled && explode,
                allow_reserved: false,
                file: is_file,
                // They are no objects there.
                members: Box::default(),
            },
        })
    };
    let fields: Vec<_> = parameters.form.iter().filter_map(read).collect();
    Some(ReadBody {
        media_type: context.own(operation, media_type)?,
        kind,
        required: fields.iter().any(|field| field.required),
        parts: Parts::Fields { fields, open: Open::Closed, choices: Vec::new() },
        description: String::new(),
        example: None,
    })
}

impl Parts<'_> {
    fn has_required(&self) -> bool {
        match self {
            Self::Whole(_) => false,
            Self::Fields { fields, .. } => fields.iter().any(|field| field.required),
        }
    }

    /// No field is required: the whole body is not.
    fn optional(mut self) -> Self {
        if let Self::Fields { fields, choices, .. } = &mut self {
            fields.iter_mut().for_each(|field| field.required = false);
            choices.clear();
        }
        self
    }
}

/// The arguments of an example: values of fields by the names of their arguments.
pub(super) fn example_arguments(
    example: &Value,
    names: &[(&str, &str)],
    is_open: bool,
) -> Option<Map<String, Value>> {
    let mut known: HashSet<&str> = HashSet::new();
    let members = example.as_object()?;
    let mut arguments = Map::with_capacity(members.len());
    for (name, argument) in names {
        known.insert(name);
        if let Some(value) = members.get(*name) {
            arguments.insert((*argument).to_owned(), value.clone());
        }
    }
    if is_open {
        let others = members.iter().filter(|(name, _)| !known.contains(name.as_str()));
        arguments.extend(others.map(|(name, value)| (name.clone(), value.clone())));
    }
    Some(arguments)
}
