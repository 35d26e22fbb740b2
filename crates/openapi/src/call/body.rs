//! Request bodies.

use gatewright_core::rmcp::model::JsonObject;
use serde_json::{Map, Value};

use super::{
    bytes,
    encode::{self, Spelling},
    failure::CallError,
    fields::{EncodedBody, Fields},
    media::is_json,
    multipart,
};
use crate::{Body, BodyArguments, BodyField, BodyKind, FieldEncoding, Operation, Style};

/// Writes the body of a request for `operation`. None where it takes none, and where it needs none and no argument is one.
///
/// # Errors
/// An argument is missing, or is not what the media type takes.
pub(crate) fn encode(
    operation: &Operation,
    arguments: &JsonObject,
) -> Result<Option<EncodedBody>, CallError> {
    let Some(body) = &operation.body else { return Ok(None) };
    match &body.arguments {
        BodyArguments::Whole(argument) => match arguments.get(&**argument) {
            Some(value) => whole(body, argument, value).map(Some),
            None if body.required => Err(CallError::argument(argument, "is required")),
            None => Ok(None),
        },
        BodyArguments::Fields { fields, open } => {
            let found = present(operation, fields, *open, arguments);
            if found.is_empty() && !body.required {
                return Ok(None);
            }
            of_fields(body, found).map(Some)
        }
    }
}

/// The fields that have an argument, in the order of the document; others in the order of the call.
fn present<'a>(
    operation: &'a Operation,
    fields: &'a [BodyField],
    open: bool,
    arguments: &'a JsonObject,
) -> Fields<'a> {
    let named = fields.iter().filter_map(|field| {
        let value = arguments.get(&*field.argument)?;
        Some((&*field.argument, &*field.name, field.encoding.clone(), value))
    });
    let is_other = |name: &str| {
        open && !fields.iter().any(|field| &*field.argument == name)
            && !operation.parameters.iter().any(|parameter| &*parameter.argument == name)
    };
    let others = arguments.iter().filter(|(name, _)| is_other(name));
    named.chain(others.map(|(name, value)| (&**name, &**name, usual_encoding(), value))).collect()
}

/// The encoding of fields of which the document says nothing.
fn usual_encoding() -> FieldEncoding {
    FieldEncoding {
        content_type: None,
        style: Some(Style::Form),
        explode: true,
        allow_reserved: false,
        file: false,
    }
}

fn of_fields(body: &Body, fields: Fields<'_>) -> Result<EncodedBody, CallError> {
    let plain = |bytes| EncodedBody { content_type: body.media_type.to_string(), bytes };
    match body.kind {
        BodyKind::Form => Ok(plain(form(&fields))),
        BodyKind::Multipart => multipart::encode(&body.media_type, fields),
        // The other kinds have one value; an object of fields is JSON.
        BodyKind::Json | BodyKind::JsonLines | BodyKind::Text | BodyKind::Binary => {
            let object: Map<String, Value> =
                fields.into_iter().map(|(_, name, _, value)| (name.to_owned(), value.clone())).collect();
            Ok(plain(Value::Object(object).to_string().into_bytes()))
        }
    }
}

fn whole(body: &Body, argument: &str, value: &Value) -> Result<EncodedBody, CallError> {
    let plain = |bytes| Ok(EncodedBody { content_type: body.media_type.to_string(), bytes });
    match (body.kind, value) {
        (BodyKind::Json, value) => plain(value.to_string().into_bytes()),
        (BodyKind::JsonLines, Value::Array(items)) => {
            plain(items.iter().map(|item| format!("{item}\n")).collect::<String>().into_bytes())
        }
        (BodyKind::JsonLines, value) => plain(format!("{value}\n").into_bytes()),
        (BodyKind::Form | BodyKind::Multipart, Value::Object(fields)) => {
            let fields = fields.iter().map(|(name, value)| (argument, &**name, usual_encoding(), value));
            of_fields(body, fields.collect())
        }
        (BodyKind::Form, Value::String(text)) => plain(text.clone().into_bytes()),
        (BodyKind::Form | BodyKind::Multipart, _) => Err(CallError::argument(argument, "must be an object")),
        (BodyKind::Text, value) => plain(encode::text(value).into_bytes()),
        (BodyKind::Binary, value) => {
            let file = bytes::file(value).map_err(|problem| CallError::argument(argument, problem))?;
            // A type that the document leaves open is that of the file.
            let is_open = &*body.media_type == "application/octet-stream";
            let own = file.media_type.filter(|_| is_open);
            Ok(EncodedBody {
                content_type: own.unwrap_or_else(|| body.media_type.to_string()),
                bytes: file.bytes,
            })
        }
    }
}

/// `application/x-www-form-urlencoded`.
fn form(fields: &Fields<'_>) -> Vec<u8> {
    let mut pairs = Vec::new();
    for (_, name, encoding, value) in fields {
        match (&encoding.content_type, encoding.style) {
            (Some(media_type), None) if !value.is_null() => {
                let text = if is_json(media_type) { value.to_string() } else { encode::text(value) };
                pairs.push((encode::escaped(name), encode::escaped(&text)));
            }
            (_, style) => {
                let spelling = Spelling {
                    style: style.unwrap_or(Style::Form),
                    explode: encoding.explode,
                    allow_reserved: encoding.allow_reserved,
                };
                pairs.extend(encode::fields(name, value, spelling));
            }
        }
    }
    let pairs = pairs.into_iter().map(|(name, value)| format!("{name}={value}"));
    pairs.collect::<Vec<_>>().join("&").into_bytes()
}
