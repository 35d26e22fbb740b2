//! Paths into a value: `structuredContent.items.0.name`, or a JSON pointer.

use gatewright_findings::{nearest, unescape};
use serde_json::Value;

use crate::{base::text::shorten, matchers::mismatch::Mismatch};

/// A place in the wire form of a value: keys and indices with dots, `*` for every item of a list or object, or a JSON pointer
/// (`/structuredContent/a.b`), where no part is special. The empty path is the whole value.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Path {
    parts: Vec<Part>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Key(String),
    Every,
}

impl From<&str> for Path {
    fn from(written: &str) -> Self {
        let parts = match written.strip_prefix('/') {
            Some(pointer) => pointer.split('/').map(|part| Part::Key(unescape(part))).collect(),
            None if written.is_empty() => Vec::new(),
            None => written
                .split('.')
                .map(|part| if part == "*" { Part::Every } else { Part::Key(part.to_owned()) })
                .collect(),
        };
        Self { parts }
    }
}

impl From<String> for Path {
    fn from(written: String) -> Self {
        written.as_str().into()
    }
}

impl std::fmt::Display for Path {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let parts: Vec<&str> = self.parts.iter().map(Part::as_str).collect();
        f.write_str(&parts.join("."))
    }
}

impl Part {
    fn as_str(&self) -> &str {
        match self {
            Self::Key(key) => key,
            Self::Every => "*",
        }
    }
}

impl Path {
    /// This path, continued by another.
    pub(crate) fn join(&self, below: &Self) -> Self {
        Self { parts: self.parts.iter().chain(&below.parts).cloned().collect() }
    }

    /// The first part, unless it is `*`.
    #[cfg(feature = "suites")]
    pub(crate) fn first(&self) -> Option<&str> {
        match self.parts.first()? {
            Part::Key(key) => Some(key),
            Part::Every => None,
        }
    }

    /// The values at this path, at least one, each with its place.
    ///
    /// # Errors
    /// There is none. Such a mismatch stays a failure under `not`: a misspelt path must not pass.
    pub(crate) fn find<'v>(&self, root: &'v Value) -> Result<Vec<(String, &'v Value)>, Mismatch> {
        let mut found = vec![(String::new(), root)];
        for part in &self.parts {
            let mut below = Vec::new();
            for (place, value) in found {
                part.values(&place, value, &mut below).map_err(|hint| self.missing(&place, value, hint))?;
            }
            found = below;
        }
        match found.is_empty() {
            true => Err(self.missing("", root, None)),
            false => Ok(found),
        }
    }

    fn missing(&self, place: &str, value: &Value, near: Option<String>) -> Mismatch {
        let place = if place.is_empty() { "the value".to_owned() } else { format!("`{place}`") };
        let actual = format!("{place} is {}", shorten(&value.to_string(), 400));
        let mut mismatch = Mismatch::new(format!("something at `{self}`"), actual);
        mismatch.unsupported = true;
        let advice = "to expect that nothing is there, use `not` with `toHaveProperty`".to_owned();
        mismatch.hint(Some(near.unwrap_or(advice)))
    }

    /// Replaces the values at this path. Returns how many there were.
    pub(crate) fn replace(&self, root: &mut Value, with: &Value) -> usize {
        replace(&self.parts, root, with)
    }
}

impl Part {
    /// Adds the values below `value`; the error is a suggestion.
    fn values<'v>(
        &self,
        place: &str,
        value: &'v Value,
        found: &mut Vec<(String, &'v Value)>,
    ) -> Result<(), Option<String>> {
        let below = |key: &str| if place.is_empty() { key.to_owned() } else { format!("{place}.{key}") };
        match (self, value) {
            (Self::Every, Value::Array(items)) => {
                found.extend(items.iter().enumerate().map(|(at, item)| (below(&at.to_string()), item)));
                Ok(())
            }
            (Self::Every, Value::Object(fields)) => {
                found.extend(fields.iter().map(|(key, item)| (below(key), item)));
                Ok(())
            }
            (Self::Key(key), Value::Array(items)) => {
                let item = key.parse().ok().and_then(|at: usize| items.get(at));
                item.map(|item| found.push((below(key), item)))
                    .ok_or_else(|| Some(format!("this list has {} items, counted from 0", items.len())))
            }
            (Self::Key(key), Value::Object(fields)) => match fields.get(key) {
                Some(item) => {
                    found.push((below(key), item));
                    Ok(())
                }
                None => {
                    let near = nearest(key, fields.keys().map(String::as_str));
                    Err(near.map(|near| format!("did you mean `{}`?", below(near))))
                }
            },
            _ => Err(None),
        }
    }
}

fn replace(parts: &[Part], value: &mut Value, with: &Value) -> usize {
    let Some((first, rest)) = parts.split_first() else {
        *value = with.clone();
        return 1;
    };
    match (first, value) {
        (Part::Every, Value::Array(items)) => items.iter_mut().map(|item| replace(rest, item, with)).sum(),
        (Part::Every, Value::Object(fields)) => {
            fields.values_mut().map(|item| replace(rest, item, with)).sum()
        }
        (Part::Key(key), Value::Array(items)) => {
            let item = key.parse().ok().and_then(|at: usize| items.get_mut(at));
            item.map_or(0, |item| replace(rest, item, with))
        }
        (Part::Key(key), Value::Object(fields)) => {
            fields.get_mut(key).map_or(0, |item| replace(rest, item, with))
        }
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn places(path: &str, value: &Value) -> Vec<String> {
        Path::from(path).find(value).unwrap().into_iter().map(|(place, _)| place).collect()
    }

    #[test]
    fn dots_pointers_and_stars_name_places() {
        let value = json!({"content": [{"text": "a"}, {"text": "b"}], "a.b": {"x/y": 1}, "": 0});
        assert_eq!(places("content.1.text", &value), ["content.1.text"]);
        assert_eq!(places("content.*.text", &value), ["content.0.text", "content.1.text"]);
        assert_eq!(places("/a.b/x~1y", &value), ["a.b.x/y"]);
        assert_eq!(places("", &value), [""]);
        assert_eq!(Path::from("a.b").join(&"0".into()), "a.b.0".into());
    }

    #[test]
    fn a_missing_place_names_the_nearest_key_and_stays_a_failure_under_not() {
        let value = json!({"structuredContent": {"city": "Oslo", "all": [1]}, "none": []});
        for (path, hint) in [
            ("structuredContent.ctiy", "did you mean `structuredContent.city`?"),
            ("structuredContent.all.1", "this list has 1 items, counted from 0"),
            ("structuredContent.city.name", "use `not` with `toHaveProperty`"),
            ("none.*", "use `not` with `toHaveProperty`"),
        ] {
            let missing = Path::from(path).find(&value).unwrap_err();
            assert!(missing.unsupported && missing.hint.as_ref().unwrap().contains(hint), "{missing}");
        }
    }

    #[test]
    fn replaces_every_value_at_a_path() {
        let mut value = json!({"all": [{"id": 1, "n": 1}, {"id": 2}], "id": 3});
        assert_eq!(Path::from("all.*.id").replace(&mut value, &json!("x")), 2);
        assert_eq!(Path::from("all.*.nope").replace(&mut value, &json!("x")), 0);
        assert_eq!(value, json!({"all": [{"id": "x", "n": 1}, {"id": "x"}], "id": 3}));
    }
}
