//! Items of `tools/list`, `resources/list`, `resources/templates/list` and `prompts/list`.

use serde_json::{Value, json};

use super::record::serialize_as_raw;

macro_rules! definition {
    ($(#[$doc:meta])* $record:ident { $($(#[$field_doc:meta])* $field:ident: $kind:ty = $read:expr),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq)]
        pub struct $record {
            $($(#[$field_doc])* pub $field: $kind,)+
            /// The wire form.
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

fn required_text(raw: &Value, key: &str) -> Result<String, String> {
    raw[key].as_str().map(str::to_owned).ok_or_else(|| format!("an item has no text `{key}`: {raw}"))
}

fn optional_text(raw: &Value, key: &str) -> Option<String> {
    raw[key].as_str().map(str::to_owned)
}

definition! {
    /// A tool from `tools/list`.
    Tool {
        /// The name.
        name: String = |raw| required_text(raw, "name"),
        /// The description.
        description: Option<String> = |raw| Ok(optional_text(raw, "description")),
        /// JSON Schema of the arguments.
        input_schema: Value = |raw| Ok(raw.get("inputSchema").cloned().unwrap_or_else(|| json!({}))),
        /// JSON Schema of the structured result.
        output_schema: Option<Value> = |raw| Ok(raw.get("outputSchema").cloned()),
    }
}

definition! {
    /// A resource from `resources/list`.
    Resource {
        /// The URI.
        uri: String = |raw| required_text(raw, "uri"),
        /// The name.
        name: String = |raw| Ok(optional_text(raw, "name").unwrap_or_default()),
        /// The description.
        description: Option<String> = |raw| Ok(optional_text(raw, "description")),
        /// The media type.
        mime_type: Option<String> = |raw| Ok(optional_text(raw, "mimeType")),
    }
}

definition! {
    /// A resource template from `resources/templates/list`.
    ResourceTemplate {
        /// The URI template (RFC 6570).
        uri_template: String = |raw| required_text(raw, "uriTemplate"),
        /// The name.
        name: String = |raw| Ok(optional_text(raw, "name").unwrap_or_default()),
        /// The description.
        description: Option<String> = |raw| Ok(optional_text(raw, "description")),
    }
}

definition! {
    /// A prompt from `prompts/list`.
    Prompt {
        /// The name.
        name: String = |raw| required_text(raw, "name"),
        /// The description.
        description: Option<String> = |raw| Ok(optional_text(raw, "description")),
        /// The arguments it accepts.
        arguments: Vec<PromptArgument> = |raw| {
            raw["arguments"].as_array().into_iter().flatten().cloned().map(PromptArgument::read).collect()
        },
    }
}

definition! {
    /// One argument of a prompt.
    PromptArgument {
        /// The name.
        name: String = |raw| required_text(raw, "name"),
        /// The description.
        description: Option<String> = |raw| Ok(optional_text(raw, "description")),
        /// True if the argument is required.
        required: bool = |raw| Ok(raw["required"].as_bool().unwrap_or(false)),
    }
}
