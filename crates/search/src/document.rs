//! Documents of the index, and the changes that keep it current.

use serde::{Deserialize, Serialize};
use serde_json::Value;

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
    /// JSON Schema of the arguments. Parameter names, descriptions and enum values are searched; `null` is fine.
    #[serde(default)]
    pub input_schema: Value,
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
