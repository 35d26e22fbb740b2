//! Items of apps made safe for clients, of which some lose a whole list over one item that is not as MCP says.
//!
//! What is not as it should be is mended where that changes nothing, and left out with a [`CatalogFinding`] where not. Lists are read by
//! `catalog`; tools pass here on their way into the registry.

use std::{collections::HashSet, sync::Arc};

use rmcp::model::{Annotations, JsonObject, Tool};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

use crate::{
    JsonBudget,
    hidden_text::{hidden_in_name, show_hidden},
    names::{LONGEST_NAME, LONGEST_URI, clipped},
};

/// Findings that are kept of one app.
pub(crate) const MOST_FINDINGS: usize = 100;

/// Longest problem of an item, in bytes.
const LONGEST_PROBLEM: usize = 300;

/// An item of an app that clients are not shown as the app offers it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CatalogFinding {
    /// The app's own name or URI of the item, or its number in the list if it has none.
    pub item: String,
    /// What is wrong with it.
    pub problem: String,
    /// The item is not offered; otherwise it is, without the part that is wrong.
    pub is_left_out: bool,
}

impl CatalogFinding {
    /// An item that is not offered.
    pub(crate) fn left_out(item: &str, problem: impl Into<String>) -> Self {
        Self::new(item, problem.into(), true)
    }

    /// An item that is offered without a part of it.
    pub(crate) fn mended(item: &str, problem: impl Into<String>) -> Self {
        Self::new(item, problem.into(), false)
    }

    fn new(item: &str, mut problem: String, is_left_out: bool) -> Self {
        problem.truncate(problem.floor_char_boundary(LONGEST_PROBLEM));
        Self { item: show_hidden(clipped(item)), problem: show_hidden(&problem), is_left_out }
    }
}

/// Adds a finding, up to [`MOST_FINDINGS`].
pub(crate) fn note(found: &mut Vec<CatalogFinding>, finding: CatalogFinding) {
    if found.len() < MOST_FINDINGS {
        found.push(finding);
    }
}

/// Size of the largest schema of a tool. What is done with a schema may take time and memory in proportion to it, for each call of each caller.
///
/// The largest schemas of well-known servers have 50 KB and 2,000 values, and those made of OpenAPI documents at most 64 KB.
const LARGEST_SCHEMA: JsonBudget = JsonBudget { values: 50_000, bytes: 1024 * 1024 };

/// Longest name of a resource or template, in bytes. Unlike that of a tool, it is only shown.
const LONGEST_LABEL: usize = 1024;

/// Checks the name by which callers use a tool or prompt.
///
/// # Errors
/// It hides something, or is too long: the problem.
pub(crate) fn check_name(name: &str) -> Result<(), String> {
    check_words("name", name, LONGEST_NAME)
}

/// Checks the URI or URI template of a resource, and the name that is shown of it.
///
/// # Errors
/// One of them hides something, or is too long: the problem.
pub(crate) fn check_uri(uri: &str, name: &str) -> Result<(), String> {
    check_words("URI", uri, LONGEST_URI)?;
    check_words("name", name, LONGEST_LABEL)
}

/// Checks the names of a prompt's arguments.
///
/// # Errors
/// One of them hides something, or is too long: the problem.
pub(crate) fn check_argument(name: &str) -> Result<(), String> {
    check_words("name of an argument", name, LONGEST_NAME)
}

fn check_words(what: &str, words: &str, longest: usize) -> Result<(), String> {
    if words.len() > longest {
        return Err(format!("its {what} has {} bytes; {longest} is the limit", words.len()));
    }
    match hidden_in_name(words) {
        Some(hidden) => Err(format!("its {what} has {}", hidden.name())),
        None => Ok(()),
    }
}

/// Parses the items of a list one by one, as far as they can be. `list` is the member of the result that has them, and `key` the member by
/// which items are known. An optional member that does not parse is taken out of its item; an item that does not parse without those is left
/// out, and so is a tool whose `_meta` does not parse: its scopes are there.
pub(crate) fn parse_each<T: DeserializeOwned>(
    (list, key): (&str, &str),
    items: Vec<Value>,
    found: &mut Vec<CatalogFinding>,
) -> Vec<T> {
    let mut parsed = Vec::with_capacity(items.len());
    for (at, item) in items.into_iter().enumerate() {
        let name = item.get(key).and_then(Value::as_str).map_or_else(|| format!("#{at}"), str::to_owned);
        match parse::<T>(item) {
            Ok((_, taken_out)) if list == "tools" && taken_out.contains(&"_meta") => {
                let problem = "its `_meta` is no object, so that the scopes it needs are not known";
                note(found, CatalogFinding::left_out(&name, problem));
            }
            Ok((item, taken_out)) => {
                for part in taken_out {
                    note(found, CatalogFinding::mended(&name, format!("its `{part}` is not as MCP says")));
                }
                parsed.push(item);
            }
            Err(problem) => note(found, CatalogFinding::left_out(&name, problem)),
        }
    }
    parsed
}

/// Members without which an item is the same to callers.
const OPTIONAL: [&str; 8] =
    ["title", "description", "annotations", "icons", "_meta", "outputSchema", "mimeType", "size"];

fn parse<T: DeserializeOwned>(item: Value) -> Result<(T, Vec<&'static str>), String> {
    let problem = match T::deserialize(&item) {
        Ok(whole) => return Ok((whole, Vec::new())),
        Err(problem) => problem.to_string(),
    };
    let Value::Object(mut members) = item else { return Err("it is no object".to_owned()) };
    let mut bare = members.clone();
    bare.retain(|member, _| !OPTIONAL.contains(&member.as_str()));
    if T::deserialize(Value::Object(bare.clone())).is_err() {
        return Err(problem);
    }
    let is_bad = |part: &&str| {
        let Some(value) = members.get(*part) else { return false };
        let mut with = bare.clone();
        with.insert((*part).to_owned(), value.clone());
        T::deserialize(Value::Object(with)).is_err()
    };
    let bad: Vec<&str> = OPTIONAL.into_iter().filter(is_bad).collect();
    members.retain(|member, _| !bad.contains(&member.as_str()));
    T::deserialize(Value::Object(members)).map(|item| (item, bad)).map_err(|problem| problem.to_string())
}

/// Mends `tool` so that every client can read it.
///
/// # Errors
/// Its name or its input schema cannot be mended, or one of its schemas is too large: the reason.
pub(crate) fn mend(tool: &mut Tool) -> Result<(), String> {
    if tool.name.trim().is_empty() {
        return Err("it has no name".to_owned());
    }
    check_name(&tool.name)?;
    check_size("inputSchema", &tool.input_schema)?;
    tool.output_schema.as_ref().map_or(Ok(()), |schema| check_size("outputSchema", schema))?;
    object_schema(&mut tool.input_schema).map_err(|why| format!("its `inputSchema` {why}"))
}

/// Checks the size of a schema, the `member` of a tool.
///
/// # Errors
/// It is too large: the problem.
pub(crate) fn check_size(member: &str, schema: &JsonObject) -> Result<(), String> {
    let JsonBudget { values, bytes } = LARGEST_SCHEMA;
    match LARGEST_SCHEMA.has_room_for_object(schema) {
        true => Ok(()),
        false => Err(format!("its `{member}` is larger than {} KiB or {values} values", bytes / 1024)),
    }
}

/// Returns the reason why clients of the era with sessions are not shown the output schema of `tool`, if so.
pub(crate) fn output_problem(tool: &Tool) -> Option<String> {
    let mut schema = tool.output_schema.clone()?;
    object_schema(&mut schema).err().map(|why| {
        format!("its `outputSchema` {why}; clients of revisions before 2026-07-28 get the tool without it")
    })
}

/// Mends the output schema for clients of the era with sessions, which take one of objects only, or takes it out.
pub(crate) fn for_sessions(tool: &mut Tool) {
    tool.output_schema = tool.output_schema.take().and_then(|mut schema| {
        object_schema(&mut schema).ok()?;
        Some(schema)
    });
}

/// Takes out a priority that is not from 0 to 1, over which clients lose a whole list.
pub(crate) fn mend_annotations(annotations: &mut Option<Annotations>) {
    if let Some(annotations) = annotations {
        annotations.priority = annotations.priority.filter(|priority| (0.0..=1.0).contains(priority));
    }
}

/// Makes `schema` one of objects in the words that all clients know. Values that fit it stay the same, of those that are objects.
pub(crate) fn object_schema(schema: &mut Arc<JsonObject>) -> Result<(), String> {
    let is_object = |kind: &Value| kind == "object";
    match schema.get("type") {
        Some(kind) if is_object(kind) => {}
        Some(Value::Array(kinds)) if !kinds.iter().any(is_object) => {
            return Err("does not allow an object".to_owned());
        }
        None | Some(Value::Null | Value::Array(_)) => {
            Arc::make_mut(schema).insert("type".to_owned(), json!("object"));
        }
        Some(kind) => {
            let kind = kind.to_string();
            return Err(format!("has the type {}, and not \"object\"", clipped(&kind)));
        }
    }
    for member in ["properties", "required"] {
        if schema.get(member).is_some_and(Value::is_null) {
            Arc::make_mut(schema).shift_remove(member);
        }
    }
    match schema.get("required") {
        None => {}
        Some(Value::Array(names)) if names.iter().all(Value::is_string) => {}
        Some(_) => return Err("has a `required` that is no list of names".to_owned()),
    }
    let mut has_flags = false;
    match schema.get("properties") {
        None => {}
        Some(Value::Object(properties)) => {
            for (name, property) in properties {
                match property {
                    Value::Object(_) => {}
                    Value::Bool(_) => has_flags = true,
                    _ => return Err(format!("has a property `{}` that is no schema", clipped(name))),
                }
            }
        }
        Some(_) => return Err("has `properties` that are no object".to_owned()),
    }
    if has_flags && let Some(Value::Object(properties)) = Arc::make_mut(schema).get_mut("properties") {
        for property in properties.values_mut() {
            match property {
                Value::Bool(true) => *property = json!({}),
                Value::Bool(false) => *property = json!({"not": {}}),
                _ => {}
            }
        }
    }
    Ok(())
}

/// The names that an app offered before in the same list.
#[derive(Debug, Default)]
pub(crate) struct Names(HashSet<String>);

impl Names {
    /// Takes a name.
    ///
    /// # Errors
    /// It was taken before.
    pub(crate) fn take(&mut self, name: &str) -> Result<(), String> {
        match self.0.insert(name.to_owned()) {
            true => Ok(()),
            false => Err("the app offers another tool of this name before it".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(input: Value) -> Tool {
        serde_json::from_value(json!({"name": "t", "inputSchema": input})).unwrap()
    }

    #[test]
    fn schemas_without_the_word_object_get_it_and_other_types_are_refused() {
        for (given, mended) in [
            (json!({}), json!({"type": "object"})),
            (json!({"type": null}), json!({"type": "object"})),
            (json!({"type": ["object", "null"]}), json!({"type": "object"})),
            (
                json!({"anyOf": [{"required": ["a"]}]}),
                json!({"anyOf": [{"required": ["a"]}], "type": "object"}),
            ),
            (
                json!({"type": "object", "properties": {"a": true, "b": false}, "required": null}),
                json!({"type": "object", "properties": {"a": {}, "b": {"not": {}}}}),
            ),
        ] {
            let mut tool = tool(given);
            mend(&mut tool).unwrap();
            assert_eq!(Value::Object((*tool.input_schema).clone()), mended);
        }
        for bad in [
            json!({"type": "string"}),
            json!({"type": ["string", "null"]}),
            json!({"type": 7}),
            json!({"type": "object", "properties": []}),
            json!({"type": "object", "properties": {"a": "string"}}),
            json!({"type": "object", "required": true}),
        ] {
            let why = mend(&mut tool(bad.clone())).unwrap_err();
            assert!(why.starts_with("its `inputSchema` "), "{bad}: {why}");
        }
        let mut nameless = tool(json!({}));
        nameless.name = " ".into();
        assert_eq!(mend(&mut nameless).unwrap_err(), "it has no name");
    }

    #[test]
    fn an_output_schema_of_no_objects_is_taken_out_for_sessions() {
        let mut list = tool(json!({}));
        let schema = json!({"type": "array"});
        list.output_schema = schema.as_object().cloned().map(Arc::new);
        assert!(output_problem(&list).unwrap().contains("2026-07-28"));
        for_sessions(&mut list);
        assert_eq!(list.output_schema, None);
        list.output_schema = Some(Arc::default());
        assert_eq!(output_problem(&list), None);
        for_sessions(&mut list);
        assert_eq!(list.output_schema.unwrap()["type"], "object");
    }

    #[test]
    fn one_bad_item_costs_no_other_and_a_bad_part_not_the_item() {
        let mut found = Vec::new();
        let items = vec![
            json!({"name": "a", "inputSchema": true}),
            json!({"name": "b", "inputSchema": {}, "annotations": {"readOnlyHint": "yes"}}),
            json!({"inputSchema": {}}),
            json!(7),
            json!({"name": "c", "inputSchema": {}, "outputSchema": true}),
        ];
        let tools: Vec<Tool> = parse_each(("tools", "name"), items, &mut found);
        assert_eq!(tools.iter().map(|tool| &*tool.name).collect::<Vec<_>>(), ["b", "c"]);
        assert!(tools[0].annotations.is_none());
        let told: Vec<_> = found.iter().map(|one| (one.item.as_str(), one.is_left_out)).collect();
        assert_eq!(told, [("a", true), ("b", false), ("#2", true), ("#3", true), ("c", false)]);
    }

    #[test]
    fn a_tool_whose_metadata_cannot_be_read_is_left_out_and_a_prompt_is_not() {
        let mut found = Vec::new();
        let meta = "{\"gatewright\": {\"scopes\": [\"admin\"]}}";
        let bad = |name: &str| json!({"name": name, "inputSchema": {}, "_meta": meta});
        let items = vec![bad("a"), json!({"name": "b", "inputSchema": {}, "title": 7, "_meta": {"x": 1}})];
        let tools: Vec<Tool> = parse_each(("tools", "name"), items, &mut found);
        assert_eq!(tools.iter().map(|tool| &*tool.name).collect::<Vec<_>>(), ["b"]);
        assert!(tools[0].meta.as_ref().is_some_and(|meta| meta.0.contains_key("x")));
        let told: Vec<_> = found.iter().map(|one| (one.item.as_str(), one.is_left_out)).collect();
        assert_eq!(told, [("a", true), ("b", false)]);
        let prompts: Vec<rmcp::model::Prompt> =
            parse_each(("prompts", "name"), vec![bad("p")], &mut Vec::new());
        assert_eq!(prompts.len(), 1);
    }

    #[test]
    fn names_that_hide_text_or_are_too_long_are_refused() {
        assert_eq!(check_name("users.list/all é"), Ok(()));
        assert_eq!(check_name(&"n".repeat(256)), Ok(()));
        assert!(check_name(&"n".repeat(257)).unwrap_err().contains("256 is the limit"));
        assert!(check_name("a\u{E0041}").unwrap_err().contains("tag characters"));
        assert!(check_name("a\nb").unwrap_err().contains("control characters"));
        assert_eq!(check_uri("doc://caf\u{e9}", "A name\u{e9}"), Ok(()));
        assert!(check_uri("doc://\u{202E}1", "n").unwrap_err().starts_with("its URI "));
        assert!(check_uri("doc://1", "n\u{200B}").unwrap_err().starts_with("its name "));
        assert!(check_uri(&format!("doc://{}", "x".repeat(9_000)), "n").is_err());
        assert!(check_argument("q\u{200B}").is_err());
        let mut hiding = tool(json!({}));
        hiding.name = "a\u{202E}b".into();
        assert_eq!(mend(&mut hiding).unwrap_err(), "its name has characters that reorder text");
    }

    #[test]
    fn a_tool_whose_schemas_are_too_large_is_left_out_and_large_ones_of_real_servers_are_not() {
        let property = |about: &str| json!({"type": "string", "description": about});
        let schema = |properties: usize, about: &str| {
            let properties: JsonObject =
                (0..properties).map(|n| (format!("p{n}"), property(about))).collect();
            json!({"type": "object", "properties": properties})
        };
        mend(&mut tool(schema(5_000, &"x".repeat(100)))).unwrap();
        for large in [schema(1, &"x".repeat(1 << 20)), schema(20_000, "")] {
            let why = mend(&mut tool(large.clone())).unwrap_err();
            assert_eq!(why, "its `inputSchema` is larger than 1024 KiB or 50000 values");
            let mut tool = tool(json!({}));
            tool.output_schema = large.as_object().cloned().map(Arc::new);
            assert_eq!(mend(&mut tool).unwrap_err(), why.replace("input", "output"));
        }
    }

    #[test]
    fn a_priority_out_of_range_is_taken_out() {
        let mut annotations = Some(Annotations::default());
        for (given, left) in [(0.5, Some(0.5)), (5.0, None), (f32::NAN, None), (-1.0, None)] {
            annotations.as_mut().unwrap().priority = Some(given);
            mend_annotations(&mut annotations);
            assert_eq!(annotations.as_ref().unwrap().priority, left);
        }
    }
}
