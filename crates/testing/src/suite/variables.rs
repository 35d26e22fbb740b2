//! Variables in texts, as `${name}`.

use serde_json::{Map, Value};

use crate::matchers;

/// The variables of one test, and the environment as `${env.NAME}`.
#[derive(Debug, Clone, Default)]
pub(super) struct Variables {
    /// Literal values: `${` in a value that a step saved is not a variable.
    pub(super) known: Map<String, Value>,
    /// Values from a suite file, which may name other variables. `known` takes precedence.
    pub(super) written: Map<String, Value>,
    /// Values hidden by a test's own variables: the meaning of such a variable within its own value.
    hidden: Map<String, Value>,
}

impl Variables {
    /// Replaces the variables in a value. A text that consists of one variable becomes its value, of any type; within a longer
    /// text a variable becomes text. `$${` stands for a literal `${`.
    pub(super) fn fill(&self, value: &Value) -> Result<Value, String> {
        self.fill_within(value, &mut Vec::new())
    }

    /// Replaces the variables in a text; the result is a text.
    pub(super) fn text(&self, text: &str) -> Result<String, String> {
        self.fill_text(text, &mut Vec::new()).map(|value| matchers::text(&value))
    }

    /// The variables of a suite file.
    pub(super) fn of_file(written: Map<String, Value>) -> Self {
        Self { written, ..Self::default() }
    }

    /// Adds a test's own variables, which hide others of the same name. They may name each other in any order; one that names itself
    /// means the one it hides. Their values are fixed from here on.
    pub(super) fn add_own(&mut self, own: &Map<String, Value>) -> Result<(), String> {
        let scope = self.with_own(own);
        for name in own.keys() {
            let value = scope.find(name, &mut Vec::new())?;
            self.known.insert(name.clone(), value);
        }
        Ok(())
    }

    /// A copy with a test's own variables, not replaced yet.
    fn with_own(&self, own: &Map<String, Value>) -> Self {
        let mut scope = self.clone();
        for (name, value) in own {
            if let Ok(hidden) = self.find(name, &mut Vec::new()) {
                scope.hidden.insert(name.clone(), hidden);
            }
            scope.known.shift_remove(name);
            scope.written.insert(name.clone(), value.clone());
        }
        scope
    }

    /// A test's own variables that refer to themselves through others, with the problem. One that names itself may mean a value
    /// that a step saves later.
    pub(super) fn own_cycles(&self, own: &Map<String, Value>) -> Vec<(String, String)> {
        let mut scope = self.with_own(own);
        scope.hidden = own.keys().map(|name| (name.clone(), Value::Null)).collect();
        let all = scope.cycles().into_iter().filter(|(name, _)| own.contains_key(*name));
        all.map(|(name, problem)| (name.to_owned(), problem)).collect()
    }

    /// Variables of the file that refer to themselves, with the problem.
    pub(super) fn cycles(&self) -> Vec<(&str, String)> {
        let all = self.written.keys();
        all.filter_map(|name| {
            let problem = self.find(name, &mut Vec::new()).err()?;
            problem
                .starts_with(&format!("the variable `{name}` leads back"))
                .then_some((name.as_str(), problem))
        })
        .collect()
    }

    /// `within`: the variables whose values are being resolved.
    fn fill_within(&self, value: &Value, within: &mut Vec<String>) -> Result<Value, String> {
        match value {
            Value::String(text) => self.fill_text(text, within),
            Value::Array(items) => items.iter().map(|item| self.fill_within(item, within)).collect(),
            Value::Object(fields) => {
                let filled =
                    fields.iter().map(|(key, value)| Ok((key.clone(), self.fill_within(value, within)?)));
                Ok(Value::Object(filled.collect::<Result<_, String>>()?))
            }
            plain => Ok(plain.clone()),
        }
    }

    fn find(&self, name: &str, within: &mut Vec<String>) -> Result<Value, String> {
        let (first, rest) = name.split_once('.').map_or((name, None), |(first, rest)| (first, Some(rest)));
        let whole = match (self.known.get(first), self.written.get(first)) {
            (Some(known), _) => known.clone(),
            (None, Some(_))
                if within.last().is_some_and(|one| one == first) && self.hidden.contains_key(first) =>
            {
                self.hidden[first].clone()
            }
            (None, Some(_)) if within.iter().any(|one| one == first) => {
                let begin = within.iter().position(|one| one == first).unwrap_or_default();
                let path = within[begin..].join("` → `");
                return Err(format!("the variable `{first}` leads back to itself: `{path}` → `{first}`"));
            }
            (None, Some(written)) => {
                within.push(first.to_owned());
                let filled = self.fill_within(written, within)?;
                within.pop();
                filled
            }
            (None, None) => return Err(self.unknown(name)),
        };
        let mut here = Some(&whole);
        for part in rest.into_iter().flat_map(|rest| rest.split('.')) {
            here = match here {
                Some(Value::Array(items)) => part.parse().ok().and_then(|index: usize| items.get(index)),
                Some(Value::Object(fields)) => fields.get(part),
                _ => None,
            };
        }
        here.cloned().ok_or_else(|| self.unknown(name))
    }

    fn unknown(&self, name: &str) -> String {
        if let Some(name) = name.strip_prefix("env.") {
            return format!("the environment variable `{name}` is not set");
        }
        let names = || self.known.keys().chain(self.written.keys()).map(String::as_str);
        let first = name.split('.').next().unwrap_or(name);
        match names().find(|one| *one == first) {
            Some(first) => format!("there is no `{name}`: the variable `{first}` holds no such key"),
            None => format!("`${{{name}}}`: {}", gatewright_findings::unknown("variable", name, names())),
        }
    }

    fn fill_text(&self, text: &str, within: &mut Vec<String>) -> Result<Value, String> {
        if let Some(name) = text.strip_prefix("${").and_then(|rest| rest.strip_suffix('}'))
            && !name.contains('}')
        {
            return self.find(name, within);
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
            match self.find(name, within)? {
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
        Variables { known: all, ..Variables::default() }
    }

    #[test]
    fn a_text_of_one_variable_keeps_its_type_and_a_part_becomes_text() {
        let all = variables(json!({"id": 7, "who": "Ada"}));
        let value = json!({"a": "${id}", "b": ["${who} is ${id}"], "c": "$id", "d": "$${id} is ${id}"});
        assert_eq!(
            all.fill(&value).unwrap(),
            json!({"a": 7, "b": ["Ada is 7"], "c": "$id", "d": "${id} is 7"})
        );
        assert!(all.fill(&json!("${nobody}")).unwrap_err().contains("unknown variable"));
        assert!(all.fill(&json!("a ${id")).unwrap_err().contains("without `}`"));
    }

    #[test]
    fn dots_go_into_objects_and_arrays() {
        let all = variables(json!({"user": {"tags": ["x", "y"]}, "env": {"HOME": "/root"}}));
        assert_eq!(all.fill(&json!("${user.tags.1} ${env.HOME}")).unwrap(), json!("y /root"));
        assert_eq!(all.fill(&json!("${user.tags}")).unwrap(), json!(["x", "y"]));
        assert!(all.fill(&json!("${env.NO}")).unwrap_err().contains("environment variable `NO` is not set"));
    }

    fn written(value: Value) -> Variables {
        Variables::of_file(variables(value).known)
    }

    #[test]
    fn variables_may_contain_variables() {
        let all = written(
            json!({"host": "a.example", "url": "https://${host}", "both": ["${url}/1", {"x": "${n}"}], "n": 7}),
        );
        assert_eq!(all.fill(&json!("${both}")).unwrap(), json!(["https://a.example/1", {"x": 7}]));
        assert_eq!(all.text("${both.1.x}${both.1.x}").unwrap(), "77");
        assert!(all.cycles().is_empty());
    }

    #[test]
    fn reports_a_cycle_of_variables() {
        let all = written(json!({"a": "${b}", "b": ["${c}"], "c": "x${a}", "d": "${a}"}));
        let error = all.fill(&json!("${a}")).unwrap_err();
        assert_eq!(error, "the variable `a` leads back to itself: `a` → `b` → `c` → `a`");
        assert_eq!(all.cycles().iter().map(|(name, _)| *name).collect::<Vec<_>>(), ["a", "b", "c"]);
    }

    fn own(value: Value) -> Map<String, Value> {
        variables(value).known
    }

    #[test]
    fn a_test_s_own_variables_may_name_each_other_in_any_order() {
        let mut all = written(json!({"host": "a.example", "id": "suite"}));
        all.known.insert("random".into(), "r1".into());
        all.add_own(&own(json!({"a": "${url}/${id}", "id": "id-${random}", "url": "https://${host}/${id}"})))
            .unwrap();
        assert_eq!(all.text("${a} ${id}").unwrap(), "https://a.example/id-r1/id-r1 id-r1");
        // Values are fixed, whatever a step saves later.
        all.known.insert("host".into(), "b.example".into());
        assert_eq!(all.text("${url}").unwrap(), "https://a.example/id-r1");
    }

    #[test]
    fn a_test_s_own_variable_that_names_itself_means_the_one_it_hides() {
        let mut all = written(json!({"who": "Ada"}));
        all.known.insert("saved".into(), "${said}".into());
        all.add_own(&own(json!({"who": "${who} ${who} ${b}", "b": "of ${saved}", "saved": "<${saved}>"})))
            .unwrap();
        assert_eq!(all.text("${who}, ${saved}").unwrap(), "Ada Ada of <${said}>, <${said}>");
        let error = all.add_own(&own(json!({"new": "${new}"}))).unwrap_err();
        assert_eq!(error, "the variable `new` leads back to itself: `new` → `new`");
        let circle = own(json!({"x": "${y}", "y": "${x}"}));
        assert_eq!(all.own_cycles(&circle).len(), 2);
        assert_eq!(all.own_cycles(&own(json!({"new": "${new}", "env": "${env.X}"}))), []);
        let error = all.add_own(&circle).unwrap_err();
        assert_eq!(error, "the variable `x` leads back to itself: `x` → `y` → `x`");
    }

    #[test]
    fn saved_values_are_not_templates() {
        let mut all = written(json!({"secret": "s"}));
        all.known.insert("said".into(), json!("${secret}"));
        assert_eq!(all.text("<${said}>").unwrap(), "<${secret}>");
    }

    #[test]
    fn suggests_a_name_for_a_misspelt_variable() {
        let error = written(json!({"city": "Oslo"})).text("${citty}").unwrap_err();
        assert_eq!(error, "`${citty}`: unknown variable; did you mean `city`?");
        let error = written(json!({"city": {"name": "Oslo"}})).text("${city.nam}").unwrap_err();
        assert_eq!(error, "there is no `city.nam`: the variable `city` holds no such key");
    }
}
