//! URIs of resources.

use serde_json::Value;

use super::{rule::Rule, violation::Violation};
use crate::base::text::shorten;

/// Checks the URIs of a list of resources, of contents, and of content blocks.
pub(super) fn check(method: &str, result: &Value, found: &mut Vec<Violation>) {
    let mut check = |place: String, holder: &Value| {
        if let Some(uri) = holder["uri"].as_str()
            && let Err(error) = url::Url::parse(uri)
        {
            let problem = format!("{:?} is no absolute URI (RFC 3986 §4.3): {error}", shorten(uri, 80));
            found.push(Violation::new(Rule::Uris, method, format!("{place}/uri"), problem));
        }
    };
    for key in ["resources", "contents", "content", "messages"] {
        for (at, item) in result.get(key).and_then(Value::as_array).into_iter().flatten().enumerate() {
            let (place, block) = match key {
                "messages" => (format!("/{key}/{at}/content"), &item["content"]),
                _ => (format!("/{key}/{at}"), item),
            };
            match (key, block["type"].as_str()) {
                ("resources" | "contents", _) | (_, Some("resource_link")) => check(place, block),
                (_, Some("resource")) => check(format!("{place}/resource"), &block["resource"]),
                _ => {}
            }
        }
    }
}
