//! `${name}` in texts.

use serde_json::{Map, Value};

/// The variables of one test, and the environment as `${env.NAME}`.
#[derive(Debug, Clone, Default)]
pub(super) struct Variables(pub(super) Map<String, Value>);

impl Variables {
    /// The same value with its variables filled in. A text that is one variable and nothing else becomes the variable's
    /// value, whatever its type; within a longer text it becomes text. `$${` writes a literal `${`.
    pub(super) fn fill(&self, value: &Value) -> Result<Value, String> {
        match value {
            Value::String(text) => self.fill_text(text),
            Value::Array(items) => items.iter().map(|item| self.fill(item)).collect(),
            Value::Object(fields) => {
                let filled = fields.iter().map(|(key, value)| Ok((key.clone(), self.fill(value)?)));
                Ok(Value::Object(filled.collect::<Result<_, String>>()?))
            }
            plain => Ok(plain.clone()),
        }
    }

    /// A text with its variables filled in, as text.
    pub(super) fn text(&self, text: &str) -> Result<String, String> {
        self.fill_text(text).map(|value| super::expectations::text(&value))
    }

    fn find(&self, name: &str) -> Result<Value, String> {
        let mut here: Option<&Value> = None;
        for part in name.split('.') {
            here = match here {
                None => self.0.get(part),
                Some(Value::Array(items)) => part.parse().ok().and_then(|index: usize| items.get(index)),
                Some(Value::Object(fields)) => fields.get(part),
                Some(_) => None,
            };
            if here.is_none() {
                break;
            }
        }
        here.cloned().ok_or_else(|| {
            if let Some(name) = name.strip_prefix("env.") {
                return format!("the environment variable `{name}` is not set");
            }
            let names: Vec<&str> = self.0.keys().map(String::as_str).collect();
            format!("there is no variable `{name}`; there are {names:?}")
        })
    }

    fn fill_text(&self, text: &str) -> Result<Value, String> {
        if let Some(name) = text.strip_prefix("${").and_then(|rest| rest.strip_suffix('}'))
            && !name.contains('}')
        {
            return self.find(name);
        }
        let (mut filled, mut rest) = (String::new(), text);
        while let Some((before, after)) = rest.split_once("${") {
            if let Some(before) = before.strip_suffix('$') {
                filled.push_str(before);
                filled.push_str("${");
                rest = after;
                continue;
            }
            let (name, after) =
                after.split_once('}').ok_or_else(|| format!("`${{` without `}}` in {text:?}"))?;
            filled.push_str(before);
            match self.find(name)? {
                Value::String(text) => filled.push_str(&text),
                other => filled.push_str(&other.to_string()),
            }
            rest = after;
        }
        filled.push_str(rest);
        Ok(filled.into())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn variables(value: Value) -> Variables {
        let Value::Object(all) = value else { unreachable!() };
        Variables(all)
    }

    #[test]
    fn a_whole_text_keeps_the_type_and_a_part_becomes_text() {
        let all = variables(json!({"id": 7, "who": "Ada"}));
        let value = json!({"a": "${id}", "b": ["${who} is ${id}"], "c": "$id", "d": "$${id} is ${id}"});
        assert_eq!(
            all.fill(&value).unwrap(),
            json!({"a": 7, "b": ["Ada is 7"], "c": "$id", "d": "${id} is 7"})
        );
        assert!(all.fill(&json!("${nobody}")).unwrap_err().contains("no variable `nobody`"));
        assert!(all.fill(&json!("a ${id")).unwrap_err().contains("without `}`"));
    }

    #[test]
    fn dots_go_into_objects_and_arrays() {
        let all = variables(json!({"user": {"tags": ["x", "y"]}, "env": {"HOME": "/root"}}));
        assert_eq!(all.fill(&json!("${user.tags.1} ${env.HOME}")).unwrap(), json!("y /root"));
        assert_eq!(all.fill(&json!("${user.tags}")).unwrap(), json!(["x", "y"]));
        assert!(all.fill(&json!("${env.NO}")).unwrap_err().contains("environment variable `NO` is not set"));
    }
}
