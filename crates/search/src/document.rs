//! Documents of the index, and the changes that keep it current.

use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

/// One tool as the index sees it. Unknown fields are ignored when read from JSON.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Document {
    /// Public name, usually `app:tool`. Unique in an index: a later document of the same name replaces an earlier one.
    pub name: String,
    /// The app the tool belongs to; what [`Query::app_ids`](crate::Query::app_ids) filters on.
    #[serde(default)]
    pub app_id: String,
    /// Free text for people and models. May be empty.
    #[serde(default)]
    pub description: String,
    /// JSON Schema of the arguments. Parameter names, descriptions and enum values are searched. What is no object is read as an empty one.
    #[serde(default, serialize_with = "write_schema", deserialize_with = "read_schema")]
    pub input_schema: Arc<Map<String, Value>>,
}

fn write_schema<S: Serializer>(schema: &Arc<Map<String, Value>>, serializer: S) -> Result<S::Ok, S::Error> {
    schema.as_ref().serialize(serializer)
}

fn read_schema<'d, D: Deserializer<'d>>(deserializer: D) -> Result<Arc<Map<String, Value>>, D::Error> {
    Ok(match Value::deserialize(deserializer)? {
        Value::Object(schema) => Arc::new(schema),
        _ => Arc::default(),
    })
}

/// One step from an index to the next, for [`Index::updated`](crate::Index::updated).
#[derive(Debug, Clone)]
pub enum Change {
    /// Add a document, or replace the one of the same name.
    Upsert(Document),
    /// Remove the document of this exact name. Nothing happens if there is none.
    Remove(String),
    /// Make these the only documents of the app. An empty list removes the app.
    ReplaceApp {
        /// The app whose documents are replaced.
        app_id: String,
        /// The app's new documents; each is filed under `app_id` whatever it says itself.
        documents: Vec<Document>,
    },
}
