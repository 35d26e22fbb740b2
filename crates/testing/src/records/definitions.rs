//! Items of the lists.

use serde_json::{Value, json};

use super::stable::serialize_as_raw;

macro_rules! definition {
    ($(#[$doc:meta])* $record:ident { $($(#[$field_doc:meta])* $field:ident: $kind:ty = $read:expr),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq)]
        pub struct $record {
            $($(#[$field_doc])* pub $field: $kind,)+
            /// The item as it came.
            pub raw: Value,
        }
        serialize_as_raw!($record);
        impl $record {
            pub(crate) fn read(raw: Value) -> Result<Self, String> {
                $(let $field = { let read: fn(&Value) -> Result<$kind, String> = $read; read(&raw)? };)+
                Ok(Self { $($field,)+ raw })
            }
        }
    };
}

fn needed(raw: &Value, key: &str) -> Result<String, String> {
    raw[key].as_str().map(str::to_owned).ok_or_else(|| format!("an item has no text `{key}`: {raw}"))
}

fn optional(raw: &Value, key: &str) -> Option<String> {
    raw[key].as_str().map(str::to_owned)
}

definition! {
    /// A tool, as `tools/list` shows it.
    Tool {
        /// Its name.
        name: String = |raw| needed(raw, "name"),
        /// What it is for.
        description: Option<String> = |raw| Ok(optional(raw, "description")),
        /// JSON Schema of its arguments.
        input_schema: Value = |raw| Ok(raw.get("inputSchema").cloned().unwrap_or_else(|| json!({}))),
        /// JSON Schema of its structured result.
        output_schema: Option<Value> = |raw| Ok(raw.get("outputSchema").cloned()),
    }
}

definition! {
    /// A resource, as `resources/list` shows it.
    Resource {
        /// Its address.
        uri: String = |raw| needed(raw, "uri"),
        /// Its name.
        name: String = |raw| Ok(optional(raw, "name").unwrap_or_default()),
        /// What it is.
        description: Option<String> = |raw| Ok(optional(raw, "description")),
        /// Its media type.
        mime_type: Option<String> = |raw| Ok(optional(raw, "mimeType")),
    }
}

definition! {
    /// A resource template, as `resources/templates/list` shows it.
    ResourceTemplate {
        /// RFC 6570 template.
        uri_template: String = |raw| needed(raw, "uriTemplate"),
        /// Its name.
        name: String = |raw| Ok(optional(raw, "name").unwrap_or_default()),
        /// What it is.
        description: Option<String> = |raw| Ok(optional(raw, "description")),
    }
}

definition! {
    /// A prompt, as `prompts/list` shows it.
    Prompt {
        /// Its name.
        name: String = |raw| needed(raw, "name"),
        /// What it is for.
        description: Option<String> = |raw| Ok(optional(raw, "description")),
        /// What it takes.
        arguments: Vec<PromptArgument> = |raw| {
            raw["arguments"].as_array().into_iter().flatten().cloned().map(PromptArgument::read).collect()
        },
    }
}

definition! {
    /// One argument of a prompt.
    PromptArgument {
        /// Its name.
        name: String = |raw| needed(raw, "name"),
        /// What it is for.
        description: Option<String> = |raw| Ok(optional(raw, "description")),
        /// Whether it must be given.
        required: bool = |raw| Ok(raw["required"].as_bool().unwrap_or(false)),
    }
}
