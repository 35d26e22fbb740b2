//! A demo tool: its description for clients, and the function behind it.
//!
//! Building schemas is in `schema`; checking arguments against them is in `check`.

use std::sync::Arc;

use rmcp::model::{JsonObject, MetaObject, Tool, ToolAnnotations};
use serde::Serialize;
use serde_json::{Value, json};

use crate::dataset::{State, Table};

/// A refusal of a tool, as the caller sees it.
#[derive(Debug)]
pub(crate) enum Failure {
    NotFound { kind: &'static str, id: String },
    Validation(String),
    RateLimit { seconds: u128 },
}

impl Failure {
    pub(crate) fn not_found(kind: &'static str, id: &str) -> Self {
        Self::NotFound { kind, id: id.to_owned() }
    }

    pub(crate) fn invalid<T>(message: impl Into<String>) -> Result<T, Self> {
        Err(Self::Validation(message.into()))
    }

    /// Returns the message alone.
    pub(crate) fn message(&self) -> String {
        self.to_value()["message"].as_str().unwrap_or_default().to_owned()
    }

    /// The `structuredContent` of the error result.
    pub(crate) fn to_value(&self) -> Value {
        match self {
            Self::NotFound { kind, id } => json!({
                "code": "NOT_FOUND",
                "message": format!("There is no {kind} with the id '{id}'. List or search the {kind}s to find its id."),
            }),
            Self::Validation(message) => json!({ "code": "VALIDATION_ERROR", "message": message }),
            Self::RateLimit { seconds } => json!({
                "code": "RATE_LIMIT",
                "message": format!("Three calls a minute are allowed. Try again in {seconds} seconds."),
                "retryAfterSeconds": *seconds as u64,
            }),
        }
    }
}

pub(crate) type Outcome = Result<Value, Failure>;

/// Effect of a call. The four hints and the scope follow from it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Effect {
    /// Looks only.
    Read,
    /// Adds something; a second call adds another.
    Create,
    /// Sets something that can be set back; a second call changes nothing more.
    Update,
    /// Ends something that cannot be brought back; a second call changes nothing more.
    Destroy,
    /// Sends something to people outside.
    Notify,
}

impl Effect {
    fn annotations(self, title: &str) -> ToolAnnotations {
        let (read_only, destructive, idempotent, open_world) = match self {
            Self::Read => (true, false, true, false),
            Self::Create => (false, false, false, false),
            Self::Update => (false, false, true, false),
            Self::Destroy => (false, true, true, false),
            Self::Notify => (false, false, false, true),
        };
        ToolAnnotations::with_title(title)
            .read_only(read_only)
            .destructive(destructive)
            .idempotent(idempotent)
            .open_world(open_world)
    }

    fn action(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Create | Self::Update | Self::Notify => "write",
            Self::Destroy => "delete",
        }
    }
}

/// One tool of the tables in `crm`, `billing` and `support`.
pub(crate) struct Spec {
    pub(crate) name: &'static str,
    pub(crate) title: &'static str,
    pub(crate) effect: Effect,
    pub(crate) description: &'static str,
    pub(crate) input: Value,
    pub(crate) output: Value,
    /// Description of each example, and its AgentScript.
    pub(crate) examples: &'static [(&'static str, &'static str)],
    pub(crate) run: fn(&mut State, &Args<'_>) -> Outcome,
}

impl Spec {
    /// The tool as listed by the app called `app`.
    pub(crate) fn tool(&self, app: &str) -> Tool {
        let examples: Vec<Value> = self
            .examples
            .iter()
            .map(|(description, code)| json!({ "description": description, "code": code }))
            .collect();
        let hints = json!({
            "examples": examples,
            "scopes": [format!("{app}:{}", self.effect.action())],
        });
        let mut meta = MetaObject::new();
        meta.insert("gatewright".into(), hints);
        Tool::new(self.name, self.description, Arc::new(object(&self.input)))
            .with_title(self.title)
            .with_raw_output_schema(Arc::new(object(&self.output)))
            .with_annotations(self.effect.annotations(self.title))
            .with_meta(meta)
    }
}

fn object(value: &Value) -> JsonObject {
    value.as_object().cloned().unwrap_or_default()
}

/// The arguments of one call, already checked against the input schema.
pub(crate) struct Args<'a>(pub(crate) &'a JsonObject);

impl Args<'_> {
    /// A required text; empty when the schema does not require it and it is absent.
    pub(crate) fn text(&self, name: &str) -> &str {
        self.optional(name).unwrap_or_default()
    }

    pub(crate) fn owned(&self, name: &str) -> String {
        self.text(name).trim().to_owned()
    }

    pub(crate) fn optional(&self, name: &str) -> Option<&str> {
        self.0.get(name).and_then(Value::as_str)
    }

    pub(crate) fn number(&self, name: &str) -> Option<u64> {
        self.0.get(name).and_then(Value::as_u64)
    }

    pub(crate) fn flag(&self, name: &str) -> Option<bool> {
        self.0.get(name).and_then(Value::as_bool)
    }

    /// Returns true if the argument is absent or equal to the row's value.
    pub(crate) fn matches(&self, name: &str, actual: &str) -> bool {
        self.optional(name).is_none_or(|wanted| wanted == actual)
    }

    /// Returns true if every word of the argument `query` occurs in one of the texts, in any case.
    pub(crate) fn finds(&self, texts: &[&str]) -> bool {
        let haystack = texts.join("\n").to_lowercase();
        let query = self.text("query").to_lowercase();
        query.split_whitespace().all(|word| haystack.contains(word))
    }

    /// Puts the argument, if given, in the place of `field`.
    pub(crate) fn set(&self, name: &str, field: &mut String) {
        if let Some(text) = self.optional(name) {
            *field = text.trim().to_owned();
        }
    }
}

/// A row as it appears in an answer.
pub(crate) fn row<T: Serialize>(row: &T) -> Value {
    serde_json::to_value(row).expect("rows are plain data, which always serialises")
}

/// One page of the rows that `keep` lets through, as asked for by `limit` and `cursor`.
pub(crate) fn page<T: Serialize>(table: &Table<T>, args: &Args<'_>, keep: impl Fn(&T) -> bool) -> Outcome {
    let limit = args.number("limit").unwrap_or(20) as usize;
    let after = args.optional("cursor");
    if let (Some(cursor), Some(first)) = (after, table.keys().next())
        && (cursor.len() < first.len() || cursor.get(..4) != first.get(..4))
    {
        return Failure::invalid(format!(
            "'{cursor}' is not a cursor of this list. Pass nextCursor of the page before, or leave cursor out."
        ));
    }
    let kept: Vec<(&String, &T)> = table.iter().filter(|(_, value)| keep(value)).collect();
    let rest: Vec<_> =
        kept.iter().filter(|(id, _)| after.is_none_or(|cursor| id.as_str() > cursor)).collect();
    let items: Vec<Value> = rest.iter().take(limit).map(|(_, value)| row(value)).collect();
    let mut answer = json!({ "items": items, "total": kept.len() });
    if rest.len() > limit && limit > 0 {
        answer["nextCursor"] = json!(rest[limit - 1].0);
    }
    Ok(answer)
}
