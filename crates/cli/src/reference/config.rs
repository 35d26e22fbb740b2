//! The JSON Schema of the configuration as tables, one per section.

use std::fmt::Write as _;

use serde_json::Value;

use super::{cell, head};

/// Every key of the configuration, with its type, default and meaning.
pub fn config(schema: &Value) -> String {
    let mut text = head("Configuration reference", "config");
    text.push_str(
        "\nOne file: YAML, JSON or TOML by its extension. Unknown keys are errors. Durations are strings such as `\"30s\"` or \
         `\"5m\"`. `${NAME}` in a string stands for an environment variable, `${NAME:-text}` gives a default, and `$${` is a literal \
         `${`. `${file:PATH}` is the content of a file beside the configuration (at most 64 KiB, without the line break at its end), and \
         `${command:LINE}` is what a command line prints: it runs in a shell as the gateway's user, in the folder of the configuration, for \
         10 s at most, also for `gatewright check`, so whoever may write the configuration may run commands. Both are read again on \
         each reload (SIGHUP). `gatewright check --config FILE` prints every problem with its line; `gatewright schema` prints the JSON Schema \
         for editors.\n",
    );
    let mut pages = vec![(String::new(), schema)];
    while !pages.is_empty() {
        let (path, object) = pages.remove(0);
        let below = section(&mut text, schema, &path, object);
        // Depth first: the sections of a section follow it.
        pages.splice(0..0, below);
    }
    text
}

/// Writes one section, and returns the sections below it.
fn section<'a>(
    text: &mut String,
    root: &'a Value,
    path: &str,
    object: &'a Value,
) -> Vec<(String, &'a Value)> {
    let title = if path.is_empty() { "Top level".to_owned() } else { format!("`{path}`") };
    let _ = write!(text, "\n## {title}\n\n");
    if let Some(about) = object["description"].as_str().filter(|_| !path.is_empty()) {
        let _ = write!(text, "{}\n\n", cell(about));
    }
    text.push_str("| key | type | default | meaning |\n|---|---|---|---|\n");
    let mut below = Vec::new();
    let required: Vec<&str> =
        object["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    for (key, property) in object["properties"].as_object().into_iter().flatten() {
        let inner = plain(root, property);
        let place = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
        below.extend(sections(root, &place, inner));
        let default = match &property["default"] {
            _ if required.contains(&key.as_str()) => "required".to_owned(),
            Value::Null => String::new(),
            Value::Object(_) => String::new(),
            Value::Array(items) if items.is_empty() => "`[]`".to_owned(),
            value => format!("`{value}`"),
        };
        let about = property["description"].as_str().or(inner["description"].as_str()).unwrap_or_default();
        let values = values(inner);
        let _ = writeln!(
            text,
            "| `{key}` | {} | {} | {}{values} |",
            cell(&kind(root, property)),
            cell(&default),
            cell(about)
        );
    }
    // Keys whose values depend on another key.
    for (branch, note) in [("else", ""), ("then", ", with ")] {
        let other =
            if note.is_empty() { "" } else { object["if"]["required"][0].as_str().unwrap_or_default() };
        for (key, property) in object[branch]["properties"].as_object().into_iter().flatten() {
            below.extend(sections(root, &format!("{path}.{key}{note}{other}"), plain(root, property)));
        }
    }
    below
}

/// The sections below a value at `place`.
fn sections<'a>(root: &'a Value, place: &str, value: &'a Value) -> Vec<(String, &'a Value)> {
    if value["properties"].is_object() {
        return vec![(place.to_owned(), value)];
    }
    if value["additionalProperties"].is_object() {
        let each = plain(root, &value["additionalProperties"]);
        return sections(root, &format!("{place}.<name>"), each);
    }
    if value["items"].is_object() {
        return sections(root, &format!("{place}[]"), plain(root, &value["items"]));
    }
    let variants = value["oneOf"].as_array().into_iter().flatten();
    let objects = variants.filter(|variant| variant["properties"].is_object());
    objects.map(|variant| (format!("{place} ({})", tag(variant)), variant)).collect()
}

/// The property that distinguishes a variant, such as `type: bearer`.
fn tag(variant: &Value) -> String {
    let properties = variant["properties"].as_object();
    let constant =
        properties.into_iter().flatten().find_map(|(key, value)| Some((key, value["const"].as_str()?)));
    match constant {
        Some((key, value)) => format!("{key}: {value}"),
        None => variant["required"][0].as_str().unwrap_or("other").to_owned(),
    }
}

/// The schema without references and without `null`.
fn plain<'a>(root: &'a Value, schema: &'a Value) -> &'a Value {
    if let Some(target) = schema["$ref"].as_str().and_then(|target| target.strip_prefix('#')) {
        return root.pointer(target).map_or(schema, |target| plain(root, target));
    }
    if schema["then"].is_object() && schema["properties"].is_null() {
        return plain(root, &schema["then"]);
    }
    let one = schema["anyOf"].as_array().and_then(|any| any.iter().find(|one| one["type"] != "null"));
    one.map_or(schema, |one| plain(root, one))
}

/// The name of a type.
fn kind(root: &Value, schema: &Value) -> String {
    let schema = plain(root, schema);
    if let Some(constant) = schema["const"].as_str() {
        return format!("`{constant}`");
    }
    if let Some(values) = schema["enum"].as_array() {
        let values: Vec<String> =
            values.iter().filter_map(Value::as_str).map(|value| format!("`{value}`")).collect();
        return values.join(", ");
    }
    if let Some(variants) = schema["oneOf"].as_array() {
        let values: Vec<String> = variants
            .iter()
            .map(|variant| match variant["const"].as_str() {
                Some(value) => format!("`{value}`"),
                None => format!("`{}`", tag(variant)),
            })
            .collect();
        return values.join(", ");
    }
    let name = match &schema["type"] {
        Value::String(name) => name.as_str(),
        Value::Array(names) => {
            names.iter().filter_map(Value::as_str).find(|name| *name != "null").unwrap_or("any")
        }
        _ => "any",
    };
    match name {
        "array" => format!("list of {}", kind(root, &schema["items"])),
        "object" if schema["additionalProperties"].is_object() => {
            format!("map of {}", kind(root, &schema["additionalProperties"]))
        }
        "object" => "section".to_owned(),
        other => other.to_owned(),
    }
}

/// Descriptions of the values of a choice.
fn values(schema: &Value) -> String {
    let variants = schema["oneOf"].as_array().into_iter().flatten();
    let said =
        variants.filter_map(|variant| Some((variant["const"].as_str()?, variant["description"].as_str()?)));
    said.map(|(value, about)| format!("<br>`{value}`: {}", cell(about))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_of_the_schema_has_a_row() {
        let schema = crate::config::schema::schema().unwrap();
        let text = config(&schema);
        fn keys(value: &Value, found: &mut Vec<String>) {
            match value {
                Value::Object(object) => {
                    for (key, inner) in object {
                        if key == "properties" {
                            found.extend(inner.as_object().unwrap().keys().cloned());
                        }
                        keys(inner, found);
                    }
                }
                Value::Array(items) => items.iter().for_each(|item| keys(item, found)),
                _ => {}
            }
        }
        let mut found = Vec::new();
        keys(&schema, &mut found);
        assert!(found.len() > 50);
        for key in found {
            assert!(text.contains(&format!("| `{key}` |")), "{key} is missing:\n{text}");
        }
    }
}
