//! A tool's input schema, compiled once and used for every call.

mod cost;

use std::sync::{Arc, OnceLock};

use jsonschema::{ValidationError, Validator, error::ValidationErrorKind};
use rmcp::model::JsonObject;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::defaults::Defaults;

/// Validation of arguments before a call leaves the gateway.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SchemaMode {
    /// Arguments must fit the input schema; a tool whose schema is invalid cannot be called.
    #[default]
    Strict,
    /// Nothing is checked here: the server behind the tool judges.
    Off,
}

/// An input schema, compiled at its first use. References to other documents are never fetched.
#[derive(Debug)]
pub struct InputSchema {
    source: Arc<JsonObject>,
    compiled: OnceLock<Result<Compiled, String>>,
    defaults: OnceLock<Defaults>,
}

#[derive(Debug)]
struct Compiled {
    validator: Validator,
    schema: Value,
    /// Times that parts of the schema are applied to a value whose arrays and objects have one element each.
    unrolled: u64,
    /// It has `anyOf` or `oneOf`, whose problem is the list of the problems of each.
    has_choice: bool,
}

/// Times that parts of a schema are applied to a value of which every problem is found. Each may take kilobytes while it is written down.
const EVERY_PROBLEM: u64 = 10_000;

/// Most problems reported of one bad input: enough to mend it, short enough to read.
const SHOWN: usize = 5;

impl InputSchema {
    /// Keeps `source` for later.
    pub fn new(source: Arc<JsonObject>) -> Self {
        Self { source, compiled: OnceLock::new(), defaults: OnceLock::new() }
    }

    /// Fills in properties that are required, missing and have a default, in `arguments` and in the objects within.
    pub fn fill_defaults(&self, arguments: &mut JsonObject) {
        self.defaults.get_or_init(|| Defaults::of(&self.source)).fill(arguments);
    }

    /// Checks `arguments`.
    ///
    /// # Errors
    /// One sentence per problem with its JSON pointer, or why the schema itself cannot be used.
    pub fn check(&self, arguments: &Value) -> Result<(), String> {
        let compiled = self.compiled().as_ref().map_err(|why| {
            format!(
                "the tool's own input schema is invalid: {why}. The server that offers the tool has to mend it, \
                 or set `schemaValidation: off` for its app"
            )
        })?;
        let finds_all = compiled.finds_all(arguments).ok_or_else(|| {
            format!(
                "input: to check it, parts of the tool's input schema have to be applied more than {} times, because its references \
                 multiply. Send less, or have the server that offers the tool simplify the schema, or set `schemaValidation: off` for its app",
                cost::most(arguments)
            )
        })?;
        if compiled.is_valid(arguments, finds_all) {
            return Ok(());
        }
        let mut problems: Vec<String> = Vec::new();
        for error in compiled.errors(arguments, finds_all) {
            if problems.len() == SHOWN {
                problems.push("…".to_owned());
                break;
            }
            let place = error.instance_path().to_string();
            let place = if place.is_empty() { "input".to_owned() } else { shorten(&place) };
            problems.push(format!("{place}: {}", sentence(&error)));
        }
        if problems.is_empty() {
            problems.push(
                "input: does not fit the tool's input schema; it is too long or too nested to say where"
                    .to_owned(),
            );
        }
        Err(problems.join("; "))
    }

    /// At most `most` problems of `arguments`, one by one; none where the schema itself cannot be used.
    pub fn problems(&self, arguments: &Value, most: usize) -> Vec<InputProblem> {
        let Ok(compiled) = self.compiled() else { return Vec::new() };
        let Some(finds_all) = compiled.finds_all(arguments) else { return Vec::new() };
        if compiled.is_valid(arguments, finds_all) {
            return Vec::new();
        }
        compiled.errors(arguments, finds_all).take(most).map(|error| self.problem(&error)).collect()
    }

    fn problem(&self, error: &ValidationError<'_>) -> InputProblem {
        let rule = match error.kind() {
            ValidationErrorKind::Required { property } => {
                let name = property.as_str().unwrap_or_default().to_owned();
                BrokenRule::Missing { has_default: self.has_default(error, &name), name }
            }
            ValidationErrorKind::AdditionalProperties { unexpected } => {
                BrokenRule::Unexpected { names: unexpected.clone() }
            }
            ValidationErrorKind::Type { .. } => BrokenRule::Type,
            _ => BrokenRule::Other,
        };
        let is_choice = |part: &str| CHOICES.contains(&part);
        InputProblem {
            path: error.instance_path().to_string(),
            rule,
            by_choice: error.evaluation_path().to_string().split('/').any(is_choice),
            message: sentence(error),
        }
    }

    /// Returns `true` if the object that lacks `name` has a default for it.
    fn has_default(&self, error: &ValidationError<'_>, name: &str) -> bool {
        let rule = error.schema_path().to_string();
        let mut object = Some(&*self.source);
        for part in rule.split('/').skip(1).take_while(|part| *part != "required") {
            let part = part.replace("~1", "/").replace("~0", "~");
            object = object.and_then(|object| object.get(&part)).and_then(Value::as_object);
        }
        let properties = object.and_then(|object| object.get("properties"));
        properties.and_then(|properties| properties.get(name)?.get("default")).is_some()
    }

    /// The schema itself.
    pub fn source(&self) -> &Arc<JsonObject> {
        &self.source
    }

    /// Why the schema cannot be used, if so.
    pub fn defect(&self) -> Option<&str> {
        self.compiled().as_ref().err().map(String::as_str)
    }

    fn compiled(&self) -> &Result<Compiled, String> {
        self.compiled.get_or_init(|| {
            let mut schema = Value::Object((*self.source).clone());
            cost::put_first_what_rules_out(&mut schema);
            let unrolled = cost::unrolled(&schema).ok_or("its references are nested too deep")?;
            let has_choice = has_choice(&schema);
            let validator = jsonschema::options()
                .build(&schema)
                .map_err(|error| shorten(&format!("{}: {error}", error.instance_path())))?;
            Ok(Compiled { validator, schema, unrolled, has_choice })
        })
    }
}

impl Compiled {
    /// Tests whether every problem of `value` can be found; `None` if it takes too long to find out that there is one.
    fn finds_all(&self, value: &Value) -> Option<bool> {
        let most = self.unrolled.saturating_mul(cost::values(value));
        if most <= EVERY_PROBLEM {
            return Some(true);
        }
        cost::applications(&self.schema, value, false)?;
        let all = cost::applications(&self.schema, value, true);
        Some(all.is_some_and(|times| times <= EVERY_PROBLEM))
    }

    /// Checks a value in the order that the count of its work expects.
    fn is_valid(&self, value: &Value, finds_all: bool) -> bool {
        if finds_all {
            self.validator.is_valid(value)
        } else {
            self.validator.is_valid(&cost::with_plain_members_first(value))
        }
    }

    /// The problems of a value that is not valid: all, or the first one, or none where a choice has too many of them.
    fn errors<'v>(
        &'v self,
        value: &'v Value,
        all: bool,
    ) -> Box<dyn Iterator<Item = ValidationError<'v>> + 'v> {
        if all {
            Box::new(self.validator.iter_errors(value))
        } else if self.has_choice {
            Box::new(std::iter::empty())
        } else {
            Box::new(self.validator.validate(value).err().into_iter())
        }
    }
}

fn has_choice(schema: &Value) -> bool {
    match schema {
        Value::Array(items) => items.iter().any(has_choice),
        Value::Object(object) => {
            object.contains_key("anyOf") || object.contains_key("oneOf") || object.values().any(has_choice)
        }
        _ => false,
    }
}

/// Keywords that choose among schemas by the values they see.
const CHOICES: [&str; 11] = [
    "if",
    "then",
    "else",
    "anyOf",
    "oneOf",
    "not",
    "contains",
    "dependentSchemas",
    "dependentRequired",
    "dependencies",
    "unevaluatedProperties",
];

/// A place where an input does not fit its schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InputProblem {
    /// JSON pointer of the place.
    pub path: String,
    /// The rule that is broken there.
    pub rule: BrokenRule,
    /// The rule may hold only because of other values of the input.
    pub by_choice: bool,
    /// A sentence about it.
    pub message: String,
}

/// A rule of a schema that an input breaks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BrokenRule {
    /// A required property is not there.
    Missing {
        /// Its name.
        name: String,
        /// The schema has a default for it.
        has_default: bool,
    },
    /// There are properties that the schema does not allow.
    Unexpected {
        /// Their names.
        names: Vec<String>,
    },
    /// The value is of another type.
    Type,
    /// Any other rule, about the value itself.
    Other,
}

fn sentence(error: &ValidationError<'_>) -> String {
    let mut problem = error.to_string();
    if problem.len() > LONGEST {
        // The value comes first in the sentence and would crowd out what is wrong with it.
        problem = error.masked().to_string();
    }
    shorten(&problem)
}

/// Longest place and longest problem in a message, in characters.
const LONGEST: usize = 300;

fn shorten(text: &str) -> String {
    match text.char_indices().nth(LONGEST) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn schema(value: Value) -> InputSchema {
        let Value::Object(object) = value else { panic!("an object") };
        InputSchema::new(Arc::new(object))
    }

    #[test]
    fn names_each_bad_place() {
        let schema = schema(json!({"type": "object", "required": ["id"],
            "properties": {"id": {"type": "string"}, "limit": {"type": "integer", "maximum": 5}}}));
        assert!(schema.check(&json!({"id": "a", "limit": 2})).is_ok());
        let problems = schema.check(&json!({"limit": 9})).unwrap_err();
        assert!(problems.contains("/limit") && problems.contains("id"), "{problems}");
    }

    #[test]
    fn long_keys_and_values_are_cut_in_what_is_said_of_them() {
        let schema = schema(json!({"type": "object", "additionalProperties": {"type": "integer"}}));
        let many: serde_json::Map<_, _> =
            (0..9).map(|n| (format!("{n}{}", "k".repeat(100_000)), json!("v".repeat(100_000)))).collect();
        let problems = schema.check(&Value::Object(many)).unwrap_err();
        assert!(problems.len() < 8_000 && problems.ends_with('…'), "{} bytes", problems.len());
    }

    #[test]
    fn a_list_that_is_too_long_is_said_to_be_so_and_not_repeated() {
        let schema =
            schema(json!({"type": "object", "properties": {"a": {"type": "array", "maxItems": 100}}}));
        let problems = schema.check(&json!({"a": vec!["x"; 101]})).unwrap_err();
        assert!(
            problems.contains("/a") && problems.contains("100 items") && problems.len() < 100,
            "{problems}"
        );
    }

    #[test]
    fn problems_name_their_place_and_rule_and_say_what_depends_on_other_values() {
        let schema = schema(
            json!({"type": "object", "required": ["id", "page"], "additionalProperties": false,
            "properties": {"id": {"type": "string"}, "page": {"type": "integer", "default": 1}, "kind": {}, "list": {"$ref": "#/$defs/list"}},
            "$defs": {"list": {"type": "object", "required": ["a"], "properties": {"a": {"default": 0}}}},
            "if": {"properties": {"kind": {"const": "x"}}, "required": ["kind"]}, "then": {"required": ["extra"]}}),
        );
        let found = schema.problems(&json!({"idd": 1, "kind": "x", "list": {}}), 9);
        let missing = |name: &str, has_default| BrokenRule::Missing { name: name.to_owned(), has_default };
        let has = |path: &str, rule: &BrokenRule, by_choice| {
            found.iter().any(|it| it.path == path && it.rule == *rule && it.by_choice == by_choice)
        };
        assert!(has("", &missing("id", false), false), "{found:#?}");
        assert!(
            has("", &missing("page", true), false) && has("/list", &missing("a", true), false),
            "{found:#?}"
        );
        assert!(has("", &BrokenRule::Unexpected { names: vec!["idd".to_owned()] }, false), "{found:#?}");
        assert!(has("", &missing("extra", false), true), "{found:#?}");
        assert_eq!(schema.problems(&json!({"idd": 1}), 2).len(), 2);
        assert!(schema.problems(&json!({"id": "a", "page": 1}), 2).is_empty());
    }

    #[test]
    fn arguments_that_lack_only_required_properties_with_a_default_pass() {
        let schema = schema(json!({"type": "object", "required": ["page", "id"],
            "properties": {"page": {"type": "integer", "default": 1}, "id": {"type": "string"}}}));
        let mut arguments = serde_json::Map::from_iter([("id".to_owned(), json!("a"))]);
        schema.fill_defaults(&mut arguments);
        assert_eq!(schema.check(&Value::Object(arguments.clone())), Ok(()));
        assert_eq!(arguments["page"], 1);
        let mut arguments = serde_json::Map::new();
        schema.fill_defaults(&mut arguments);
        let problems = schema.check(&Value::Object(arguments)).unwrap_err();
        assert!(problems.contains("id") && !problems.contains("page"), "{problems}");
    }

    #[test]
    fn a_schema_whose_references_multiply_is_refused_and_not_followed() {
        let mut definitions = serde_json::Map::new();
        for n in 0..40 {
            let next = json!({"$ref": format!("#/$defs/d{}", n + 1)});
            definitions.insert(format!("d{n}"), json!({"allOf": [next, next]}));
        }
        definitions.insert("d40".to_owned(), json!({"type": "string"}));
        let schema = schema(json!({"properties": {"a": {"$ref": "#/$defs/d0"}}, "$defs": definitions}));
        assert_eq!(schema.check(&json!({})), Ok(()));
        for value in [json!(5), json!("valid")] {
            let problem = schema.check(&json!({"a": value})).unwrap_err();
            assert!(problem.contains("schemaValidation"), "{problem}");
            assert!(schema.problems(&json!({"a": value}), 5).is_empty());
        }
    }

    #[test]
    fn nested_choices_are_checked_in_time_that_grows_with_the_input() {
        let operator = |name: &str| {
            json!({"required": ["op", "args"], "additionalProperties": false,
            "properties": {"args": {"type": "array", "items": {"$ref": "#/$defs/f"}}, "op": {"const": name}}})
        };
        let leaf = json!({"required": ["field", "eq"], "properties": {"field": {"type": "string"}, "eq": {"type": "string"}}});
        let schema = schema(json!({"properties": {"filter": {"$ref": "#/$defs/f"}},
            "$defs": {"f": {"anyOf": [operator("and"), operator("or"), leaf]}}}));
        let nested = |depth: usize, eq: Value| {
            let leaf = json!({"field": "a", "eq": eq});
            (0..depth)
                .fold(leaf, |inner, n| json!({"args": [inner], "op": if n % 2 == 0 { "and" } else { "or" }}))
        };
        for depth in [3, 40] {
            assert_eq!(schema.check(&json!({"filter": nested(depth, json!("x"))})), Ok(()));
            let problem = schema.check(&json!({"filter": nested(depth, json!(5))})).unwrap_err();
            assert!(problem.contains(if depth == 3 { "/filter" } else { "too nested" }), "{problem}");
        }
    }

    #[test]
    fn alternatives_are_ruled_out_before_their_members_are_checked_however_they_are_written() {
        let args = json!({"type": "array", "items": {"$ref": "#/$defs/f"}});
        for more in [
            json!({}),
            json!({"required": ["op"]}),
            json!({"required": ["args"]}),
            json!({"required": ["a_op", "args", "op"]}),
            json!({"additionalProperties": false}),
            json!({"additionalProperties": false, "required": ["args"]}),
            json!({"additionalProperties": {"type": "string"}}),
            json!({"patternProperties": {"^x": {"type": "string"}}}),
            json!({"unevaluatedProperties": false}),
            json!({"minProperties": 1, "propertyNames": {"minLength": 1}}),
        ] {
            let operator = |name: &str| {
                let mut operator = more.clone();
                operator["properties"] = json!({"a_op": {}, "args": args, "op": {"const": name}});
                operator
            };
            for choice in ["anyOf", "oneOf"] {
                let schema = schema(json!({"properties": {"filter": {"$ref": "#/$defs/f"}},
                    "$defs": {"f": {(choice): [operator("and"), operator("or"), operator("not"), {"type": "string"}]}}}));
                let nested = |leaf: Value| {
                    (0..30).fold(
                        leaf,
                        |inner, n| json!({"args": [inner], "a_op": 1, "op": (["and", "or", "not"][n % 3])}),
                    )
                };
                // A text fits every alternative of `oneOf`; what is evaluated is not known before everything was.
                let fits = choice == "anyOf" && more.get("unevaluatedProperties").is_none();
                assert_eq!(
                    schema.check(&json!({"filter": nested(json!("x"))})).is_ok(),
                    fits,
                    "{more} {choice}"
                );
                let _ = schema.check(&json!({"filter": nested(json!(5))}));
            }
        }
    }

    #[test]
    fn required_members_do_not_multiply_the_check_of_alternatives() {
        let mut definitions = serde_json::Map::from_iter([("o8".to_owned(), json!({"type": "string"}))]);
        for level in 0..8 {
            let next = json!({"$ref": format!("#/$defs/o{}", level + 1)});
            let alternative = |n: u32| json!({"properties": {"child": next, format!("kind_{n}"): {"type": "string"}}, "required": ["child", format!("kind_{n}")]});
            definitions
                .insert(format!("o{level}"), json!({"anyOf": (0..20).map(alternative).collect::<Vec<_>>()}));
        }
        let schema = schema(json!({"properties": {"a": {"$ref": "#/$defs/o0"}}, "$defs": definitions}));
        let value = (0..8).fold(json!("x"), |child, _| json!({"child": child, "kind_19": "x"}));
        assert!(schema.check(&json!({"a": value})).unwrap_err().contains("schemaValidation"));
    }

    #[test]
    fn a_long_input_of_an_ordinary_schema_is_checked_and_its_first_problem_named() {
        let schema = schema(json!({"properties": {"rows": {"type": "array", "items": {"type": "object",
            "properties": {"id": {"type": "integer"}, "name": {"$ref": "#/$defs/name"}}}}}, "$defs": {"name": {"type": "string"}}}));
        let mut rows = vec![json!({"id": 1, "name": "a"}); 60_000];
        assert_eq!(schema.check(&json!({"rows": rows})), Ok(()));
        rows[59_999]["id"] = json!("x");
        let problem = schema.check(&json!({"rows": rows})).unwrap_err();
        assert!(problem.contains("/rows/59999/id"), "{problem}");
    }

    #[test]
    fn an_invalid_schema_is_said_to_be_the_servers_fault() {
        let schema = schema(json!({"type": "object", "properties": {"a": {"type": "any"}}}));
        assert!(schema.defect().is_some());
        assert!(schema.check(&json!({})).unwrap_err().contains("schemaValidation"));
    }

    #[test]
    fn a_reference_to_another_host_is_not_fetched() {
        let schema = schema(json!({"$ref": "http://127.0.0.1:9/schema.json"}));
        assert!(schema.defect().is_some());
    }
}
