//! What is wrong with a configuration: where, what, and what was probably meant.

use std::{fmt, sync::OnceLock};

use jsonschema::{ValidationError, Validator, error::ValidationErrorKind};
use serde::Serialize;
use serde_json::Value;

/// One bad field.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// JSON pointer of the field.
    #[serde(skip)]
    pub(super) pointer: String,
    /// The same as people write it: `apps.crm.url`.
    pub path: String,
    /// Line in the file, from 1.
    pub line: Option<usize>,
    /// What is wrong and what to do.
    pub problem: String,
}

impl Finding {
    pub(super) fn new(pointer: &str, problem: impl Into<String>) -> Self {
        let path: Vec<String> =
            pointer.split('/').skip(1).map(|part| part.replace("~1", "/").replace("~0", "~")).collect();
        Self { pointer: pointer.to_owned(), path: path.join("."), line: None, problem: problem.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(line) = self.line {
            write!(f, "line {line}: ")?;
        }
        if !self.path.is_empty() {
            write!(f, "{}: ", self.path)?;
        }
        f.write_str(&self.problem)
    }
}

/// A key as a part of a JSON pointer.
pub(super) fn escape(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

/// Everything in `value` that the schema refuses.
pub(super) fn by_schema(value: &Value) -> Vec<Finding> {
    static COMPILED: OnceLock<Option<(Value, Validator)>> = OnceLock::new();
    let compiled = COMPILED.get_or_init(|| {
        let schema = super::schema().ok()?;
        let validator = jsonschema::options().build(&schema).ok()?;
        Some((schema, validator))
    });
    let Some((schema, validator)) = compiled else {
        return vec![Finding::new("", "internal error: the configuration's schema does not compile")];
    };
    let mut findings = Vec::new();
    for error in validator.iter_errors(value) {
        collect(schema, &error, &mut findings);
    }
    findings
}

/// What one error of the validator says.
fn collect(schema: &Value, error: &ValidationError<'_>, findings: &mut Vec<Finding>) {
    let place = error.instance_path().to_string();
    match error.kind() {
        ValidationErrorKind::AdditionalProperties { unexpected } => {
            let known = known_keys(schema, error.schema_path().as_str());
            for key in unexpected {
                findings.push(Finding::new(&format!("{place}/{}", escape(key)), unknown_key(key, &known)));
            }
        }
        // Of the kinds told apart by `type`, the one that is meant says what is wrong.
        ValidationErrorKind::OneOfNotValid { context }
            if context.iter().any(|kind| of_type(kind).is_some()) =>
        {
            match context.iter().find(|kind| of_type(kind).is_none()) {
                Some(meant) => meant.iter().for_each(|error| collect(schema, error, findings)),
                None => {
                    let known: Vec<String> = context.iter().filter_map(|kind| of_type(kind)).collect();
                    let problem = format!("must be one of {}", known.join(", "));
                    findings.push(Finding::new(&format!("{place}/type"), problem));
                }
            }
        }
        _ => findings.push(Finding::new(&place, error.to_string())),
    }
}

/// The `type` that was expected, among the errors of a value that has another or none.
fn of_type(errors: &[ValidationError<'_>]) -> Option<String> {
    errors.iter().find_map(|error| match error.kind() {
        ValidationErrorKind::Constant { expected_value }
            if error.instance_path().as_str().ends_with("/type") =>
        {
            expected_value.as_str().map(str::to_owned)
        }
        ValidationErrorKind::Required { property } if property == "type" => Some("type".to_owned()),
        _ => None,
    })
}

fn unknown_key(key: &str, known: &[String]) -> String {
    const NEAR: f64 = 0.7;
    let near = |candidate: &String| strsim::jaro_winkler(&key.to_lowercase(), &candidate.to_lowercase());
    let best = known.iter().max_by(|a, b| near(a).total_cmp(&near(b)));
    match best.filter(|best| near(best) >= NEAR) {
        Some(best) => format!("unknown key; did you mean `{best}`?"),
        None => format!("unknown key; known here: {}", known.join(", ")),
    }
}

/// The keys that the object at a failing `additionalProperties` knows.
fn known_keys(schema: &Value, schema_path: &str) -> Vec<String> {
    let object = schema_path.strip_suffix("/additionalProperties").unwrap_or(schema_path);
    // Schema paths go through `$ref`: follow them part by part.
    let mut here = schema;
    for part in object.split('/').skip(1) {
        let part = part.replace("~1", "/").replace("~0", "~");
        if part == "$ref" {
            let target = here.get("$ref").and_then(Value::as_str).and_then(|target| target.strip_prefix('#'));
            here = target.and_then(|target| schema.pointer(target)).unwrap_or(&Value::Null);
            continue;
        }
        here = match here {
            Value::Array(items) => {
                part.parse().ok().and_then(|index: usize| items.get(index)).unwrap_or(&Value::Null)
            }
            other => other.get(&part).unwrap_or(&Value::Null),
        };
    }
    let properties = here.get("properties").and_then(Value::as_object);
    properties.map(|properties| properties.keys().cloned().collect()).unwrap_or_default()
}
