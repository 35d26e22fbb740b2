//! Media types of requests and responses.

use super::sources::Node;
use crate::BodyKind;

/// Bytes of a media type that are looked at.
const LOOKED_AT: usize = 1_000;

/// The type without its parameters, in lower case.
pub(super) fn essence(media_type: &str) -> String {
    let media_type = &media_type[..media_type.floor_char_boundary(LOOKED_AT)];
    media_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

/// Returns `true` for JSON, and for ranges that contain it.
pub(super) fn is_json(essence: &str) -> bool {
    matches!(essence, "application/json" | "text/json" | "*/*" | "application/*")
        || essence.ends_with("+json")
}

/// The kind of a media type.
pub(super) fn kind(essence: &str) -> BodyKind {
    match essence {
        "application/x-ndjson"
        | "application/ndjson"
        | "application/jsonl"
        | "application/json-lines"
        | "application/jsonlines"
        | "application/x-jsonlines" => BodyKind::JsonLines,
        "application/x-www-form-urlencoded" => BodyKind::Form,
        "application/json" | "text/json" => BodyKind::Json,
        "application/xml"
        | "application/yaml"
        | "application/x-yaml"
        | "application/graphql"
        | "application/javascript"
        | "application/sql" => BodyKind::Text,
        other if other.ends_with("+json") => BodyKind::Json,
        other if other.starts_with("multipart/") => BodyKind::Multipart,
        other if other.starts_with("text/") || other.ends_with("+xml") || other.ends_with("+yaml") => {
            BodyKind::Text
        }
        _ => BodyKind::Binary,
    }
}

/// Returns `true` for a sequence of items.
pub(super) fn is_stream(essence: &str, media: Option<Node<'_>>) -> bool {
    media.is_some_and(|media| media.get("itemSchema").is_some())
        || matches!(essence, "text/event-stream" | "application/json-seq" | "application/geo+json-seq")
        || kind(essence) == BodyKind::JsonLines
}
