//! Results of tools and scripts.

use gatewright_core::{
    read_json,
    rmcp::model::{CallToolResult, ContentBlock},
};
use maud::{Markup, html};
use serde_json::Value;

use super::status;
use crate::{operator::CallAnswer, text};

/// The answer of a tool.
pub(crate) fn answer(answer: &CallAnswer) -> Markup {
    let ok = matches!(&answer.outcome, Ok(result) if result.is_error != Some(true));
    html! {
        section.result.failed[!ok] #result aria-labelledby="result-title" tabindex="-1" {
            div.row {
                h2 #result-title { "Result" }
                span.facts {
                    (status(ok, if ok { "ok" } else { "error" }))
                    span { (text::duration(answer.duration)) }
                    @if let Ok(result) = &answer.outcome {
                        span.soft { (text::size(serde_json::to_vec(result).map_or(0, |json| json.len() as u64))) }
                    }
                }
            }
            @match &answer.outcome {
                Ok(result) => (content(result)),
                Err(refused) => div.alert { strong { (text::line(&refused.code, 60)) } " " (text::message(&refused.message)) },
            }
        }
    }
}

fn content(result: &CallToolResult) -> Markup {
    if let Some(value) = &result.structured_content {
        return json(value);
    }
    html! {
        @if result.content.is_empty() { p.soft { "It returned nothing." } }
        @for item in &result.content {
            @match item {
                ContentBlock::Text(item) => {
                    @match read_json::<Value>(&item.text) {
                        Ok(value) if value.is_object() || value.is_array() => (json(&value)),
                        _ => (block(&item.text)),
                    }
                }
                ContentBlock::Image(image) => p.soft { "An image, " (text::line(&image.mime_type, 60)) ", " (text::size(image.data.len() as u64 * 3 / 4)) "." },
                ContentBlock::Audio(audio) => p.soft { "Sound, " (text::line(&audio.mime_type, 60)) ", " (text::size(audio.data.len() as u64 * 3 / 4)) "." },
                other => (json(&serde_json::to_value(other).unwrap_or_default())),
            }
        }
    }
}

/// Indented JSON.
pub(crate) fn json(value: &Value) -> Markup {
    block(&serde_json::to_string_pretty(value).unwrap_or_default())
}

/// Preformatted text, cut if it is very long.
pub(crate) fn block(text: &str) -> Markup {
    let (shown, more) = text::cut(text);
    html! {
        pre tabindex="0" { code { (text::plain(shown)) } }
        @if more > 0 { p.soft { (text::size(more as u64)) " more are not shown." } }
    }
}
