use std::sync::Arc;

use gatewright_search::{Document, Index, Query};
use serde_json::{Map, Value, json};

pub(crate) fn schema(value: Value) -> Arc<Map<String, Value>> {
    serde_json::from_value(value).map(Arc::new).unwrap()
}

pub(crate) fn document(name: &str, description: &str) -> Document {
    Document {
        name: name.to_owned(),
        app_id: name.split_once(':').map_or("", |(app, _)| app).to_owned(),
        description: description.to_owned(),
        input_schema: schema(json!({"type": "object", "properties": {}})),
    }
}

/// A small office.
pub(crate) fn office() -> Vec<Document> {
    [
        ("crm:create_ticket", "Open a support ticket for a customer"),
        ("crm:close_ticket", "Close a support ticket"),
        ("crm:notify_owner", "Notify the owner of an account"),
        ("crm:list_customers", "List customers, newest first"),
        ("mail:sendMessage", "Send an e-mail message to one or more people"),
        ("mail:search_messages", "Search the mailbox"),
        ("calendar:create_event", "Add an appointment to the calendar"),
        ("calendar:free_busy", "When is somebody free?"),
        ("files:read_file", "Read the contents of a file"),
        ("files:delete_file", "Delete a file for good"),
        ("weather:get_forecast", "Weather forecast for a city: temperature, rain, wind"),
        ("i18n:translate", "使用必应搜索指定的关键词，并返回搜索结果列表"),
        ("bistro:reserve", "Réserver une table à la crêperie"),
    ]
    .into_iter()
    .map(|(name, description)| document(name, description))
    .collect()
}

pub(crate) fn names(index: &Index, query: &Query<'_>) -> Vec<String> {
    index.search(query).hits.into_iter().map(|hit| hit.name).collect()
}

pub(crate) fn first(index: &Index, text: &str) -> Option<String> {
    names(index, &Query::new(text)).into_iter().next()
}
