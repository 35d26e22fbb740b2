//! A tool's input schema, compiled once and used for every call.

mod copying;
mod cost;
mod guard;
mod kept;
mod located;
mod options;
mod order;
mod owned;
mod pattern;
mod validators;
mod walk;

use std::sync::{Arc, OnceLock};

use jsonschema::{ValidationError, Validator, error::ValidationErrorKind};
use rmcp::model::JsonObject;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use self::{
    pattern::{Checked, Limit},
    validators::Place,
    walk::for_schemas_of,
};
use crate::{bulk::bulk_of, defaults::Defaults, value_bytes};

pub use pattern::{LeftOut, instructions as pattern_instructions};

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

/// An input schema, compiled at its use, and again where that is long ago. References to other documents are never fetched.
#[derive(Debug)]
pub struct InputSchema {
    source: Arc<JsonObject>,
    /// Its size, as [`crate::bulk::off_thread`] wants it.
    bulk: usize,
    /// The tool that it belongs to, for the log.
    tool: Option<Arc<str>>,
    validator: Place,
    /// Expressions that are left out, or why the schema cannot be used.
    verdict: OnceLock<Result<Vec<LeftOut>, String>>,
    defaults: OnceLock<Defaults>,
}

#[derive(Debug)]
struct Compiled {
    validator: Validator,
    schema: Value,
    checked: Checked,
    /// Times that parts of the schema are applied to a value whose arrays and objects have one element each.
    unrolled: u64,
    /// Bytes of the schema that a problem may have a copy of.
    heaviest: u64,
    /// It has `anyOf` or `oneOf`, whose problem is the list of the problems of each.
    has_choice: bool,
    /// Its memory, as estimated, with that of `located`.
    bytes: usize,
    /// The same schema, whose first problem has one place; `None` where there is none.
    located: OnceLock<Option<Located>>,
}

#[derive(Debug)]
struct Located {
    validator: Validator,
    schema: Value,
}

/// Times that parts of a schema are applied to a value of which every problem is found. Each may take kilobytes while it is written down.
const EVERY_PROBLEM: u64 = 10_000;

/// Bytes that all problems have of their own: each has a copy of the names around it and of parts of the schema, and those of alternatives
/// one of the value. Callers and servers choose them.
const OWNED: u64 = 16 << 20;

/// Bytes of the longest place with which a choice is looked into: each of its alternatives may have problems, all with copies of it.
const LONGEST_PLACE: u64 = 16 << 10;

/// Bytes of a validator for each unit of the work to build it: one takes a third to all of what this makes of it.
const BYTES_FOR_WORK: u64 = 512;

/// Why a schema is not built whose validator would be far larger than it.
const MULTIPLIES: &str = "its references multiply, below `unevaluatedProperties`, `unevaluatedItems`, schemas with an `$id`, or in `anyOf` or `oneOf`";

/// The first check of a value compiles the regular expressions of its schema: each takes as long as a text of so many bytes.
const EXPRESSION: usize = 4 << 10;

/// Most problems reported of one bad input: enough to mend it, short enough to read.
const SHOWN: usize = 5;

/// The size of a schema, as work on it counts for [`crate::off_thread`].
fn work_of(schema: &JsonObject) -> usize {
    let mut expressions = 0;
    for_schemas_of(schema, &mut |schema| {
        let names = schema.get("patternProperties").and_then(Value::as_object).map_or(0, JsonObject::len);
        expressions += names + usize::from(schema.contains_key("pattern"));
    });
    bulk_of(schema).saturating_add(expressions * EXPRESSION)
}

impl InputSchema {
    /// Keeps `source` for later.
    pub fn new(source: Arc<JsonObject>) -> Self {
        let bulk = work_of(&source);
        let (verdict, defaults) = (OnceLock::new(), OnceLock::new());
        Self { source, bulk, tool: None, validator: Place::new(), verdict, defaults }
    }

    /// Names the tool in a warning about what of its schema is not checked.
    pub(crate) fn of_tool(mut self, name: Arc<str>) -> Self {
        self.tool = Some(name);
        self
    }

    /// Regular expressions that are not checked here. The server that offers the tool checks them.
    pub fn left_out(&self) -> &[LeftOut] {
        self.verdict().as_ref().map_or(&[], Vec::as_slice)
    }

    /// Fills in properties that are required, missing and have a default, in `arguments` and in the objects within.
    pub fn fill_defaults(&self, arguments: &mut JsonObject) {
        self.defaults.get_or_init(|| Defaults::of(&self.source)).fill(arguments);
    }

    /// The size of the schema, as work on it counts for [`crate::off_thread`].
    pub(crate) fn bulk(&self) -> usize {
        self.bulk
    }

    /// Checks `arguments`.
    ///
    /// # Errors
    /// One sentence per problem with its JSON pointer, or why the schema itself cannot be used.
    pub fn check(&self, arguments: &Value) -> Result<(), String> {
        let compiled = self.compiled().map_err(|why| {
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
        let limit = Limit::of(arguments);
        let is_valid = compiled.is_valid(arguments, finds_all);
        if limit.is_reached() {
            return Err("input: to check it takes too long, because the regular expressions of the tool's input schema are large. Send less, or have \
                 the server that offers the tool simplify the schema, or set `schemaValidation: off` for its app".to_owned());
        }
        if is_valid {
            return Ok(());
        }
        let mut problems: Vec<String> = Vec::new();
        for error in compiled.errors(arguments, finds_all) {
            if problems.len() == SHOWN {
                problems.push("…".to_owned());
                break;
            }
            let place = error.instance_path().to_string();
            let place = if place.is_empty() { "input".to_owned() } else { shorten_place(&place) };
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
        let _limit = Limit::of(arguments);
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
        self.verdict().as_ref().err().map(String::as_str)
    }

    fn verdict(&self) -> &Result<Vec<LeftOut>, String> {
        if self.verdict.get().is_none() {
            let _ = self.compiled();
        }
        self.verdict.get_or_init(|| Ok(Vec::new()))
    }

    fn compiled(&self) -> Result<Arc<Compiled>, &str> {
        if let Some(Err(why)) = self.verdict.get() {
            return Err(why);
        }
        let built = self.validator.get_or_build(|| {
            let mut compiled = Compiled::of(&self.source)?;
            let left_out = std::mem::take(&mut compiled.checked.left_out);
            self.verdict.get_or_init(|| Ok(self.noted(left_out)));
            Ok::<_, String>(compiled)
        });
        built.map_err(|why| match self.verdict.get_or_init(|| Err(why)) {
            Err(why) => why.as_str(),
            Ok(_) => "it cannot be compiled now",
        })
    }

    /// Logs what of the schema is not checked.
    fn noted(&self, left_out: Vec<LeftOut>) -> Vec<LeftOut> {
        if let Some(first) = left_out.first() {
            let number = left_out.len();
            tracing::warn!(tool.name = self.tool.as_deref(), pattern = %shorten(&format!("{:?}", first.pattern)), reason = first.reason, number,
                "a regular expression of the tool's input schema is not checked before calls: the server of the tool has to check it");
        }
        left_out
    }
}

/// Memory of a validator with its schema, as estimated, where so much work is done to build it.
fn memory(schema: &Value, work: u64) -> usize {
    let bytes = work.saturating_mul(BYTES_FOR_WORK).saturating_add(value_bytes(schema));
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

impl Compiled {
    fn of(source: &JsonObject) -> Result<Self, String> {
        let mut schema = Value::Object(source.clone());
        let checked = pattern::check(&mut schema).map_err(|why| shorten(&why))?;
        order::put_first_what_rules_out(&mut schema);
        order::look_for_required_first(&mut schema);
        let mut unrolled = cost::unrolled(&schema).ok_or("its references are nested too deep")?;
        let Some(work) = cost::building::work(&schema) else { return Err(MULTIPLIES.to_owned()) };
        let built = match pattern::options().build(&schema) {
            // References may lead to what was left out.
            Err(error)
                if !checked.left_out.is_empty()
                    && matches!(error.kind(), ValidationErrorKind::Referencing(_)) =>
            {
                (schema, unrolled) = (Value::Bool(true), 1);
                pattern::options().build(&schema)
            }
            built => built,
        };
        let validator = built.map_err(|error| shorten(&format!("{}: {error}", error.instance_path())))?;
        let (has_choice, heaviest) = (has_choice(&schema), owned::heaviest(&schema));
        let bytes = memory(&schema, work) * if has_choice { 2 } else { 1 };
        Ok(Self {
            validator,
            schema,
            checked,
            unrolled,
            heaviest,
            has_choice,
            bytes,
            located: OnceLock::new(),
        })
    }

    /// Tests whether every problem of `value` can be found; `None` if it takes too long to find out that there is one.
    fn finds_all(&self, value: &Value) -> Option<bool> {
        let of_value = if self.has_choice { value_bytes(value) } else { 0 };
        let owned = cost::longest_place(value) + self.heaviest + of_value;
        let most = EVERY_PROBLEM.min(OWNED / owned.max(1));
        let times = self.unrolled.saturating_mul(cost::values(value));
        if times <= most {
            return Some(true);
        }
        cost::applications(&self.schema, value, false)?;
        let all = cost::applications(&self.schema, value, true);
        Some(all.is_some_and(|times| times <= most))
    }

    /// Checks a value in the order that the count of its work expects.
    fn is_valid(&self, value: &Value, finds_all: bool) -> bool {
        if finds_all {
            self.validator.is_valid(value)
        } else {
            self.validator.is_valid(&order::with_plain_members_first(value))
        }
    }

    /// The problems of a value that is not valid: all, or the first one, or none where a choice has too many of them to find one.
    fn errors<'v>(
        &'v self,
        value: &'v Value,
        all: bool,
    ) -> Box<dyn Iterator<Item = ValidationError<'v>> + 'v> {
        if !self.has_choice {
            return match all {
                true => Box::new(self.validator.iter_errors(value)),
                false => Box::new(self.validator.validate(value).err().into_iter()),
            };
        }
        let located = self.located.get_or_init(|| Located::of(&self.schema)).as_ref();
        let is_short = cost::longest_place(value) <= LONGEST_PLACE;
        let first = located.filter(|_| all || is_short).and_then(|located| located.first_error(value));
        if !all {
            return Box::new(first.into_iter());
        }
        // Of an alternative, where that says more than the choice as a whole.
        let errors: Vec<_> = self.validator.iter_errors(value).collect();
        let is_within = |choice: &ValidationError<'_>, error: &ValidationError<'_>| {
            let kind = choice.kind();
            matches!(kind, ValidationErrorKind::AnyOf { .. } | ValidationErrorKind::OneOfNotValid { .. })
                && error.instance_path().as_str().len() > choice.instance_path().as_str().len()
        };
        match (located, first) {
            (Some(located), Some(first)) if errors.iter().any(|error| is_within(error, &first)) => {
                Box::new(located.validator.iter_errors(value))
            }
            _ => Box::new(errors.into_iter()),
        }
    }
}

impl Located {
    fn of(schema: &Value) -> Option<Self> {
        let schema = located::located(schema).filter(|schema| cost::building::work(schema).is_some())?;
        Some(Self { validator: pattern::options().build(&schema).ok()?, schema })
    }

    /// The first problem of `value`; `None` if it takes too long to find.
    fn first_error<'v>(&'v self, value: &'v Value) -> Option<ValidationError<'v>> {
        cost::to_first_problem(&self.schema, value)?;
        self.validator.validate(value).err()
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
    if let ValidationErrorKind::Not { schema } = error.kind()
        && let Some(problem) = located::no_fit(schema)
    {
        return problem;
    }
    if let ValidationErrorKind::Enum { options } = error.kind()
        && let Some(problem) = options::not_one_of(error.instance(), options)
    {
        return problem;
    }
    let mut problem = error.to_string();
    if problem.len() > LONGEST {
        // The value comes first in the sentence and would crowd out what is wrong with it.
        problem = error.masked().to_string();
    }
    shorten(&problem)
}

/// Longest place and longest problem in a message, in characters.
const LONGEST: usize = 300;

/// Characters of the beginning of a long place. Its end says more.
const BEGINNING: usize = 80;

fn shorten_place(place: &str) -> String {
    let starts = || place.char_indices().map(|(at, _)| at);
    match (starts().nth(LONGEST), starts().nth(BEGINNING), starts().rev().nth(LONGEST - BEGINNING)) {
        (Some(_), Some(beginning), Some(end)) => format!("{}…{}", &place[..beginning], &place[end..]),
        _ => place.to_owned(),
    }
}

fn shorten(text: &str) -> String {
    match text.char_indices().nth(LONGEST) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests;
