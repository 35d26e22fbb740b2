//! Violations of a JSON Schema as findings.

use jsonschema::{
    Validator,
    error::{ValidationError, ValidationErrorKind},
};
use serde_json::Value;

use crate::{Finding, escape, unescape, unknown, wording::wrong_type};

/// Findings after which unknown keys are no longer compared with those that are known. No file has more listed.
const MOST_COMPARED: usize = 1_000;

/// A schema that does not compile.
#[derive(Debug)]
pub struct SchemaError(String);

impl std::fmt::Display for SchemaError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "the schema does not compile: {}", self.0)
    }
}

impl std::error::Error for SchemaError {}

/// A compiled schema.
#[derive(Debug)]
pub struct Schema {
    source: Value,
    validator: Validator,
}

impl Schema {
    /// Compiles a JSON Schema (2020-12 unless `$schema` names another draft).
    ///
    /// # Errors
    /// The schema is invalid.
    pub fn new(source: Value) -> Result<Self, SchemaError> {
        let validator =
            jsonschema::options().build(&source).map_err(|error| SchemaError(error.to_string()))?;
        Ok(Self { source, validator })
    }

    /// Every violation in `value`. For alternatives, those of the alternative that comes nearest.
    pub fn findings(&self, value: &Value) -> Vec<Finding> {
        let mut findings = Vec::new();
        for error in self.validator.iter_errors(value) {
            self.collect(&error, &mut findings);
        }
        findings
    }

    fn collect(&self, error: &ValidationError<'_>, findings: &mut Vec<Finding>) {
        let place = error.instance_path().to_string();
        match error.kind() {
            ValidationErrorKind::AdditionalProperties { unexpected } => {
                let known = known_keys(self.schema_of(error, "/additionalProperties"));
                for key in unexpected {
                    let problem = match findings.len() < MOST_COMPARED {
                        true => unknown("key", key, known.iter().map(String::as_str)),
                        false => "unknown key".to_owned(),
                    };
                    findings.push(Finding::new(&format!("{place}/{}", escape(key)), problem));
                }
            }
            // The alternatives differ in `type`: report the violations of the one that was chosen.
            ValidationErrorKind::OneOfNotValid { context }
                if context.iter().any(|kind| of_type(kind, &place).is_some()) =>
            {
                match context.iter().find(|kind| of_type(kind, &place).is_none()) {
                    Some(meant) => meant.iter().for_each(|error| self.collect(error, findings)),
                    None => {
                        let known: Vec<String> =
                            context.iter().filter_map(|kind| of_type(kind, &place)).collect();
                        let problem = format!("must be one of {}", known.join(", "));
                        findings.push(Finding::new(&format!("{place}/type"), problem));
                    }
                }
            }
            ValidationErrorKind::AnyOf { context } | ValidationErrorKind::OneOfNotValid { context } => {
                // A branch of another type cannot be the one that was meant.
                let fits = |branch: &&Vec<ValidationError<'static>>| {
                    !branch.is_empty()
                        && branch.iter().all(|one| {
                            let here = one.instance_path().as_str() == place;
                            !(here
                                && matches!(
                                    one.kind(),
                                    ValidationErrorKind::Type { .. }
                                        | ValidationErrorKind::Enum { .. }
                                        | ValidationErrorKind::Constant { .. }
                                ))
                        })
                };
                match context.iter().filter(fits).min_by_key(|branch| branch.len()) {
                    Some(branch) => branch.iter().for_each(|one| self.collect(one, findings)),
                    None => {
                        let words = words(context);
                        let problem = match error.instance().as_str() {
                            Some(text) if !words.is_empty() => {
                                format!(
                                    "`{text}`: {}",
                                    unknown("value", text, words.iter().map(String::as_str))
                                )
                            }
                            _ => masked(error),
                        };
                        findings.push(Finding::new(&place, problem));
                    }
                }
            }
            ValidationErrorKind::Enum { options } if error.instance().is_string() => {
                let known = options.as_array().into_iter().flatten().filter_map(Value::as_str);
                let text = error.instance().as_str().unwrap_or_default();
                let problem = format!("`{text}`: {}", unknown("value", text, known));
                findings.push(Finding::new(&place, problem));
            }
            ValidationErrorKind::Type { kind } => {
                let schema = self.schema_of(error, "/type");
                let advice = wrong_type(kind, error.instance(), schema);
                findings.push(Finding::new(&place, advice.unwrap_or_else(|| masked(error))));
            }
            // The value may be a secret.
            ValidationErrorKind::MinLength { .. }
            | ValidationErrorKind::MaxLength { .. }
            | ValidationErrorKind::Pattern { .. } => findings.push(Finding::new(&place, masked(error))),
            _ => findings.push(Finding::new(&place, error.to_string())),
        }
    }

    /// The schema that the value of `error` violates with its `keyword`.
    fn schema_of(&self, error: &ValidationError<'_>, keyword: &str) -> &Value {
        let path = error.schema_path().as_str();
        let path = path.strip_suffix(keyword).unwrap_or(path);
        // Schema paths go through `$ref`: follow them part by part.
        let mut here = &self.source;
        for part in path.split('/').skip(1) {
            let part = unescape(part);
            if part == "$ref" {
                let target =
                    here.get("$ref").and_then(Value::as_str).and_then(|target| target.strip_prefix('#'));
                here = target.and_then(|target| self.source.pointer(target)).unwrap_or(&Value::Null);
                continue;
            }
            here = match here {
                Value::Array(items) => {
                    part.parse().ok().and_then(|index: usize| items.get(index)).unwrap_or(&Value::Null)
                }
                other => other.get(&part).unwrap_or(&Value::Null),
            };
        }
        here
    }
}

/// Keys that an object schema knows.
fn known_keys(schema: &Value) -> Vec<String> {
    let properties = schema.get("properties").and_then(Value::as_object);
    properties.map(|properties| properties.keys().cloned().collect()).unwrap_or_default()
}

/// The problem without the value.
fn masked(error: &ValidationError<'_>) -> String {
    error.masked_with("the value").to_string()
}

/// The allowed words, if the alternatives are words.
fn words(context: &[Vec<ValidationError<'_>>]) -> Vec<String> {
    let of = |error: &ValidationError<'_>| match error.kind() {
        ValidationErrorKind::Constant { expected_value } => vec![Value::clone(expected_value)],
        ValidationErrorKind::Enum { options } => options.as_array().cloned().unwrap_or_default(),
        _ => Vec::new(),
    };
    let all = context.iter().flatten().flat_map(of);
    all.filter_map(|value| value.as_str().map(str::to_owned)).collect()
}

/// The expected `type`, from the errors of a value at `place` that has another one or none.
fn of_type(errors: &[ValidationError<'_>], place: &str) -> Option<String> {
    errors.iter().find_map(|error| match error.kind() {
        ValidationErrorKind::Constant { expected_value }
            if error.instance_path().as_str().strip_prefix(place) == Some("/type") =>
        {
            expected_value.as_str().map(str::to_owned)
        }
        ValidationErrorKind::Required { property } if property == "type" => Some("type".to_owned()),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn findings(schema: Value, value: Value) -> Vec<String> {
        Schema::new(schema).unwrap().findings(&value).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn only_the_first_of_many_unknown_keys_are_compared_with_all_that_are_known() {
        let known: Value =
            (0..40).map(|n| (format!("key_{n}"), json!({}))).collect::<serde_json::Map<_, _>>().into();
        let keys: Value =
            (0..200_000).map(|n| (format!("kye_{n}"), json!(1))).collect::<serde_json::Map<_, _>>().into();
        let found = findings(json!({"properties": known, "additionalProperties": false}), keys);
        let compared = found.iter().filter(|finding| finding.contains("did you mean")).count();
        assert_eq!((found.len(), compared), (200_000, MOST_COMPARED));
    }

    #[test]
    fn an_unknown_key_is_reported_with_a_suggestion() {
        let schema = json!({"$ref": "#/$defs/a", "$defs": {"a": {"type": "object", "properties": {"command": {}, "args": {}},
            "additionalProperties": false}}});
        assert_eq!(
            findings(schema.clone(), json!({"comand": 1})),
            ["comand: unknown key; did you mean `command`?"]
        );
        assert_eq!(findings(schema, json!({"zzz": 1})), ["zzz: unknown key; known here: command, args"]);
    }

    #[test]
    fn a_value_of_the_wrong_type_is_not_shown_because_it_may_be_a_secret() {
        let schema = json!({"properties": {"token": {"type": "string", "minLength": 9},
            "auth": {"anyOf": [{"type": "object"}, {"type": "null"}]}}});
        assert_eq!(
            findings(schema.clone(), json!({"token": 991_234_567})),
            ["token: must be text: put it in quotes"]
        );
        for bad in [json!({"token": "hush"}), json!({"auth": "hush"})] {
            let found = findings(schema.clone(), bad);
            assert!(found.len() == 1 && !found[0].contains("hush"), "{found:?}");
        }
    }

    #[test]
    fn a_value_of_the_wrong_type_is_told_with_what_to_write_instead() {
        let schema = json!({"properties": {
            "args": {"type": "array", "items": {"type": "string"}},
            "timeout": {"type": "string", "default": "1m"},
            "window": {"type": "string", "description": "Length of the window, such as `1s`."},
            "name": {"type": ["string", "null"]},
            "port": {"type": "integer"},
            "on": {"type": "boolean"},
            "env": {"type": "object"},
        }});
        for (value, told) in [
            (json!({"args": "-y"}), "args: must be a list, even of one value: write `[\"-y\"]`"),
            (
                json!({"args": "--token=hush"}),
                "args: must be a list, even of one value: write it in brackets",
            ),
            (json!({"args": [7]}), "args.0: must be text: put it in quotes"),
            (json!({"args": {}}), "args: must be a list, such as `[\"a\", \"b\"]`"),
            (json!({"timeout": 5}), "timeout: must be a duration with its unit, such as `5s`"),
            (json!({"window": 0.5}), "window: must be a duration with its unit, such as `0.5s`"),
            (json!({"timeout": true}), "timeout: must be text: put it in quotes"),
            (json!({"name": ["hush"]}), "name: must be text"),
            (json!({"port": "3000"}), "port: must be a whole number, without quotes"),
            (json!({"port": "hush"}), "port: must be a whole number"),
            (json!({"on": "yes"}), "on: must be `true` or `false`, without quotes"),
            (json!({"env": null}), "env: must be a section with keys of its own; it is empty"),
        ] {
            assert_eq!(findings(schema.clone(), value), [told]);
        }
    }

    #[test]
    fn violations_of_the_nearest_alternative_are_reported() {
        let schema = json!({"properties": {"auth": {"anyOf": [
            {"type": "boolean"},
            {"type": "object", "properties": {"audience": {"type": "string"}}, "additionalProperties": false},
            {"type": "null"},
        ]}}});
        assert_eq!(
            findings(schema.clone(), json!({"auth": {"audiense": "x"}})),
            ["auth.audiense: unknown key; did you mean `audience`?"]
        );
        assert!(
            findings(schema, json!({"auth": 7}))[0].starts_with("auth: the value is not valid"),
            "no branch was meant"
        );
    }

    #[test]
    fn violations_of_the_alternative_with_the_given_type_are_reported() {
        let kind = |name: &str, key: &str| {
            json!({"type": "object", "properties": {"type": {"const": name}, key: {"type": "string"}},
                "required": ["type"], "additionalProperties": false})
        };
        let schema = json!({"oneOf": [kind("file", "path"), kind("web", "url")]});
        assert_eq!(
            findings(schema.clone(), json!({"type": "web", "urll": "x"})),
            ["urll: unknown key; did you mean `url`?"]
        );
        assert_eq!(findings(schema, json!({"type": "fax"})), ["type: must be one of file, web"]);
    }

    #[test]
    fn the_nearest_word_is_suggested() {
        let schema = json!({"properties": {"transport": {"oneOf": [{"const": "sse"}, {"const": "stdio"}]}}});
        assert_eq!(
            findings(schema.clone(), json!({"transport": "stdo"})),
            ["transport: `stdo`: unknown value; did you mean `stdio`?"]
        );
        assert_eq!(
            findings(schema, json!({"transport": "http"})),
            ["transport: `http`: unknown value; known here: sse, stdio"]
        );
        let schema = json!({"properties": {"preset": {"enum": ["locked_down", "secure", "balanced", "experimental"]}}});
        assert_eq!(
            findings(schema.clone(), json!({"preset": "save"})),
            ["preset: `save`: unknown value; known here: locked_down, secure, balanced, experimental"]
        );
        let schema = json!({"properties": {"storage": {"properties": {"type": {"oneOf": [{"const": "redis"}, {"const": "memory"}]}}}}});
        assert_eq!(
            findings(schema, json!({"storage": {"type": "reddis"}})),
            ["storage.type: `reddis`: unknown value; did you mean `redis`?"]
        );
    }

    #[test]
    fn an_invalid_schema_is_rejected() {
        assert!(Schema::new(json!({"type": 7})).unwrap_err().to_string().contains("does not compile"));
    }
}
