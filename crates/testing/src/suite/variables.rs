//! `${name}` in texts.

use serde_json::{Map, Value};

/// The same value with its variables filled in. A text that is one variable and nothing else becomes the variable's value,
/// whatever its type; within a longer text it becomes text.
pub(super) fn filled(value: &Value, variables: &Map<String, Value>) -> Result<Value, String> {
    match value {
        Value::String(text) => filled_text(text, variables),
        Value::Array(items) => items.iter().map(|item| filled(item, variables)).collect(),
        Value::Object(fields) => {
            let filled = fields.iter().map(|(key, value)| Ok((key.clone(), filled(value, variables)?)));
            Ok(Value::Object(filled.collect::<Result<_, String>>()?))
        }
        plain => Ok(plain.clone()),
    }
}

fn filled_text(text: &str, variables: &Map<String, Value>) -> Result<Value, String> {
    let find = |name: &str| {
        variables.get(name).ok_or_else(|| {
            let names: Vec<&str> = variables.keys().map(String::as_str).collect();
            format!("there is no variable `{name}`; there are {names:?}")
        })
    };
    if let Some(name) = text.strip_prefix("${").and_then(|rest| rest.strip_suffix('}'))
        && !name.contains('}')
    {
        return find(name).cloned();
    }
    let (mut filled, mut rest) = (String::new(), text);
    while let Some((before, after)) = rest.split_once("${") {
        let (name, after) = after.split_once('}').ok_or_else(|| format!("`${{` without `}}` in {text:?}"))?;
        filled.push_str(before);
        match find(name)? {
            Value::String(text) => filled.push_str(text),
            other => filled.push_str(&other.to_string()),
        }
        rest = after;
    }
    filled.push_str(rest);
    Ok(filled.into())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_whole_text_keeps_the_type_and_a_part_becomes_text() {
        let Value::Object(variables) = json!({"id": 7, "who": "Ada"}) else { unreachable!() };
        let value = json!({"a": "${id}", "b": ["${who} is ${id}"], "c": "$id"});
        assert_eq!(filled(&value, &variables).unwrap(), json!({"a": 7, "b": ["Ada is 7"], "c": "$id"}));
        assert!(filled(&json!("${nobody}"), &variables).unwrap_err().contains("no variable `nobody`"));
    }
}
