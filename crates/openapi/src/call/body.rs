//! Request bodies.

use std::collections::HashSet;

use gatewright_core::rmcp::model::JsonObject;
use serde_json::{Map, Value};

use super::{
    bounded::{BoundedText, Limit},
    bytes, encode,
    failure::CallError,
    fields::{EncodedBody, Fields},
    form::{self, Spelling},
    media::is_json,
    multipart,
    names::{FieldWriter, NameOf, TakenNames},
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
    let out = BoundedText::new(Limit::body(arguments));
    match &body.arguments {
        BodyArguments::Whole(argument) => match arguments.get(&**argument) {
            Some(value) => whole(body, argument, value, out).map(Some),
            None if body.required => Err(CallError::argument(argument, "is required")),
            None => Ok(None),
        },
        BodyArguments::Fields { fields, open } => {
            let objects = fields.iter().map(|field| (&field.name, &*field.encoding.members));
            let taken = TakenNames::new(fields.iter().map(|field| &*field.name)).with_members(objects);
            let found = present(operation, fields, *open, arguments, &taken)?;
            if found.is_empty() && !body.required {
                return Ok(None);
            }
            of_fields(body, found, &taken, out).map(Some)
        }
    }
}

/// The fields that have an argument, in the order of the document; others in the order of the call.
///
/// # Errors
/// One that the document does not have has the name of one that it has, which may be hidden.
fn present<'a>(
    operation: &'a Operation,
    fields: &'a [BodyField],
    open: bool,
    arguments: &'a JsonObject,
    taken: &TakenNames,
) -> Result<Fields<'a>, CallError> {
    let named = fields.iter().filter_map(|field| {
        let value = arguments.get(&*field.argument)?;
        Some((&*field.argument, &*field.name, field.encoding.clone(), value))
    });
    let mut found: Fields<'a> = named.collect();
    if open {
        let own = fields.iter().map(|field| &*field.argument);
        let own: HashSet<&str> =
            own.chain(operation.parameters.iter().map(|parameter| &*parameter.argument)).collect();
        for (name, value) in arguments.iter().filter(|(name, _)| !own.contains(name.as_str())) {
            taken
                .check_member(name.as_bytes(), name)
                .map_err(|problem| CallError::argument(name, problem))?;
            found.push((name, name, usual_encoding(), value));
        }
    }
    Ok(found)
}

/// The encoding of fields of which the document says nothing.
fn usual_encoding() -> FieldEncoding {
    FieldEncoding {
        content_type: None,
        style: Some(Style::Form),
        explode: true,
        allow_reserved: false,
        file: false,
        members: Box::default(),
    }
}

fn of_fields(
    body: &Body,
    fields: Fields<'_>,
    taken: &TakenNames,
    mut out: BoundedText,
) -> Result<EncodedBody, CallError> {
    match body.kind {
        BodyKind::Form => write_form(&fields, &mut FieldWriter::new(&mut out, "&", taken))?,
        BodyKind::Multipart => return multipart::encode(&body.media_type, fields, taken, out),
        // The other kinds have one value; an object of fields is JSON.
        BodyKind::Json | BodyKind::JsonLines | BodyKind::Text | BodyKind::Binary => {
            let object: Map<String, Value> =
                fields.into_iter().map(|(_, name, _, value)| (name.to_owned(), value.clone())).collect();
            out.push_json(&object)?;
        }
    }
    Ok(EncodedBody { content_type: body.media_type.to_string(), bytes: out.into_bytes() })
}

fn whole(body: &Body, argument: &str, value: &Value, mut out: BoundedText) -> Result<EncodedBody, CallError> {
    let mut content_type = body.media_type.to_string();
    match (body.kind, value) {
        (BodyKind::Json, value) => out.push_json(value)?,
        (BodyKind::JsonLines, value) => {
            let items = value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice);
            for item in items {
                out.push_json(item)?;
                out.push("\n")?;
            }
        }
        (BodyKind::Form | BodyKind::Multipart, Value::Object(fields)) => {
            let fields = fields.iter().map(|(name, value)| (argument, &**name, usual_encoding(), value));
            return of_fields(body, fields.collect(), &TakenNames::default(), out);
        }
        (BodyKind::Form, Value::String(text)) => out.push(text)?,
        (BodyKind::Form | BodyKind::Multipart, _) => {
            return Err(CallError::argument(argument, "must be an object"));
        }
        (BodyKind::Text, value) => out.push(&encode::text(value))?,
        (BodyKind::Binary, value) => {
            let file = bytes::file(value).map_err(|problem| CallError::argument(argument, problem))?;
            // A type that the document leaves open is that of the file.
            let is_open = &*body.media_type == "application/octet-stream";
            content_type = file.media_type.filter(|_| is_open).unwrap_or(content_type);
            out.push_bytes(&file.bytes)?;
        }
    }
    Ok(EncodedBody { content_type, bytes: out.into_bytes() })
}

/// Writes `application/x-www-form-urlencoded`.
fn write_form(fields: &Fields<'_>, out: &mut FieldWriter<'_>) -> Result<(), CallError> {
    for (argument, name, encoding, value) in fields {
        let written = match (&encoding.content_type, encoding.style) {
            (Some(media_type), None) if !value.is_null() => {
                let text = if is_json(media_type) { value.to_string().into() } else { encode::text(value) };
                form::plain(name, &text, out)
            }
            (_, style) => {
                let spelling = Spelling {
                    style: style.unwrap_or(Style::Form),
                    explode: encoding.explode,
                    allow_reserved: encoding.allow_reserved,
                };
                form::fields(NameOf::Document, name, value, spelling, out)
            }
        };
        written.map_err(|problem| CallError::argument(argument, problem))?;
    }
    Ok(())
}
