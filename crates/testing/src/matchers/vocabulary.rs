//! Expectations as suites write them: matchers by name, with an argument, inverted by `not`, at a path by `at`.

use std::{collections::BTreeMap, path::Path as FilePath, sync::Arc};

use gatewright_findings::{escape, unknown};
use serde_json::{Map, Value};

use super::{
    argument::BadArgument,
    arguments::{JsonSchema, KeptFiles, Path},
    at::apply_at,
    matching::{Match, apply},
    mismatch::Outcome,
    registry::{Equals, MatchesSchema, registered},
    subject::Subject,
};

/// The words that are no matchers.
const MODIFIERS: [&str; 2] = ["not", "at"];

/// The matchers that a suite can use, and the files that they keep.
#[derive(Clone, Copy)]
pub(crate) struct Vocabulary<'a> {
    /// The suite's own matchers: JSON Schemas by name, or names of files with one.
    pub(crate) own: &'a BTreeMap<String, Value>,
    /// The directory of the suite.
    pub(crate) dir: Option<&'a FilePath>,
    /// Snapshots and baselines.
    pub(crate) files: &'a Arc<KeptFiles>,
    /// True while a suite is only checked: an argument with a variable may become any value, and no file is read.
    pub(crate) is_check: bool,
}

/// An expectation that can be checked.
pub(crate) struct Expectation {
    name: String,
    negated: bool,
    path: Option<Path>,
    matcher: Box<dyn Match + Send + Sync>,
}

/// A problem of a written expectation, with its JSON pointer below it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Problem {
    pub(crate) pointer: String,
    pub(crate) text: String,
}

impl Expectation {
    pub(crate) fn check(&self, subject: &Subject<'_>) -> Outcome {
        match &self.path {
            None => apply(&*self.matcher, self.negated, subject),
            Some(path) => apply_at(path, &*self.matcher, self.negated, subject),
        }
    }

    /// True if the expectation is one of how long all repetitions of a step took.
    pub(crate) fn is_of_durations(&self) -> bool {
        self.path.is_none() && self.matcher.is_of_durations()
    }

    /// True if only a failed step can meet the expectation.
    pub(crate) fn expects_failure(&self) -> bool {
        let Some(path) = &self.path else { return self.matcher.expects_success() == Some(self.negated) };
        let holds = |value: bool| apply(&*self.matcher, self.negated, &Subject::Json(&value.into())).is_ok();
        match path.first() {
            Some("isError") => holds(true) && !holds(false),
            Some("error") => !self.negated,
            _ => false,
        }
    }
}

impl std::fmt::Display for Expectation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let not = if self.negated { "not " } else { "" };
        write!(f, "{not}{}", self.name)?;
        self.path.as_ref().map_or(Ok(()), |path| write!(f, " at `{path}`"))
    }
}

/// Several expectations of one value.
pub(super) struct All(pub(super) Vec<Expectation>);

impl Match for All {
    fn check(&self, subject: &Subject<'_>) -> Outcome {
        self.0.iter().try_for_each(|one| one.check(subject))
    }
}

impl Vocabulary<'_> {
    /// Reads a written expectation: a name, a mapping of names to arguments, or a list of these.
    ///
    /// # Errors
    /// Every problem: unknown names, bad arguments.
    pub(crate) fn expectations(&self, written: &Value) -> Result<Vec<Expectation>, Vec<Problem>> {
        self.collect(|reader| reader.read(String::new(), written))
    }

    /// Reads an expectation of a part of a value, where plain values are what the part equals.
    pub(super) fn expectations_or_value(&self, written: &Value) -> Result<Vec<Expectation>, Vec<Problem>> {
        self.collect(|reader| reader.read_part(String::new(), written))
    }

    fn collect(&self, read: impl FnOnce(&mut Reader<'_>)) -> Result<Vec<Expectation>, Vec<Problem>> {
        let mut reader = Reader { vocabulary: self, found: Vec::new(), problems: Vec::new() };
        read(&mut reader);
        if reader.problems.is_empty() { Ok(reader.found) } else { Err(reader.problems) }
    }

    /// Reads a JSON Schema, written out or named by its file.
    ///
    /// # Errors
    /// The file cannot be read, or the schema does not compile.
    pub(crate) fn json_schema(&self, written: &Value) -> Result<JsonSchema, String> {
        let schema = match written {
            Value::String(_) if self.is_check => Value::Bool(true),
            Value::String(file) => {
                let path = self.dir.map_or_else(|| FilePath::new(file).to_owned(), |dir| dir.join(file));
                let text = std::fs::read_to_string(&path)
                    .map_err(|error| format!("the JSON Schema {} cannot be read: {error}", path.display()))?;
                serde_json::from_str(&text)
                    .map_err(|error| format!("the JSON Schema {} is no JSON: {error}", path.display()))?
            }
            Value::Object(_) | Value::Bool(_) => written.clone(),
            other => return Err(format!("takes a JSON Schema, or the name of a file with one, not {other}")),
        };
        let schema = JsonSchema::from(schema);
        match &schema.0 {
            Ok(_) => Ok(schema),
            Err(problem) => Err(problem.clone()),
        }
    }

    /// Finds a matcher of the suite or the kit. Case and underscores do not matter: `to_be_error`, `toBeError`.
    fn is_matcher(&self, name: &str) -> bool {
        let wanted = normalized(name);
        self.own.contains_key(name) || registered().iter().any(|one| normalized(&one.name) == wanted)
    }

    fn matcher(
        &self,
        name: &str,
        argument: &Value,
    ) -> Result<(String, Box<dyn Match + Send + Sync>), BadArgument> {
        if let Some(schema) = self.own.get(name) {
            return match argument {
                Value::Null | Value::Bool(true) => {
                    Ok((name.to_owned(), Box::new(MatchesSchema(self.json_schema(schema)?))))
                }
                _ => Err(BadArgument::Takes("takes no argument")),
            };
        }
        let wanted = normalized(name);
        let one = registered().iter().find(|one| normalized(&one.name) == wanted).ok_or_else(|| {
            let known = registered().iter().map(|one| &*one.name);
            let known = known.chain(self.own.keys().map(String::as_str)).chain(MODIFIERS);
            match name.contains(['.', '/'])
                || ["content", "structuredContent", "isError", "status"].contains(&name)
            {
                true => format!(
                    "unknown expectation; paths into the outcome stand under `at`: `at: {{ {name}: … }}`"
                ),
                false => unknown("expectation", name, known),
            }
        })?;
        Ok((one.name.clone(), (one.create)(argument, self)?))
    }
}

struct Reader<'a> {
    vocabulary: &'a Vocabulary<'a>,
    found: Vec<Expectation>,
    problems: Vec<Problem>,
}

impl Reader<'_> {
    fn problem(&mut self, pointer: String, text: impl Into<String>) {
        self.problems.push(Problem { pointer, text: text.into() });
    }

    fn read(&mut self, pointer: String, written: &Value) {
        match written {
            Value::String(name) => self.matcher(pointer, name, &Value::Null),
            Value::Object(fields) if !fields.is_empty() => {
                for (name, argument) in fields {
                    let pointer = format!("{pointer}/{}", escape(name));
                    match name.as_str() {
                        "not" => {
                            self.within(|one| one.negated = !one.negated, |all| all.read(pointer, argument))
                        }
                        "at" => self.read_at(&pointer, argument),
                        name => self.matcher(pointer, name, argument),
                    }
                }
            }
            Value::Array(items) if !items.is_empty() => {
                for (at, item) in items.iter().enumerate() {
                    self.read(format!("{pointer}/{at}"), item);
                }
            }
            Value::Object(_) | Value::Array(_) => self.problem(pointer, "an expectation is empty"),
            other => {
                let text = format!(
                    "an expectation is a name, names with their arguments, or a list of these, not {other}"
                );
                self.problem(pointer, text);
            }
        }
    }

    fn read_at(&mut self, pointer: &str, written: &Value) {
        let Some(paths) = written.as_object().filter(|paths| !paths.is_empty()) else {
            return self.problem(
                pointer.to_owned(),
                "`at` takes paths with their expectations, such as {structuredContent.city: Oslo}",
            );
        };
        self.paths(pointer, paths);
    }

    fn paths(&mut self, pointer: &str, paths: &Map<String, Value>) {
        for (path, written) in paths {
            let (pointer, path) = (format!("{pointer}/{}", escape(path)), Path::from(path.as_str()));
            self.within(
                |one| {
                    one.path = Some(one.path.as_ref().map_or_else(|| path.clone(), |below| path.join(below)))
                },
                |all| all.read_part(pointer, written),
            );
        }
    }

    /// Reads the expectation of a part: a matcher, or a plain value that it equals.
    fn read_part(&mut self, pointer: String, written: &Value) {
        match written {
            Value::Object(_) | Value::Array(_) => self.read(pointer, written),
            Value::String(name) if self.vocabulary.is_matcher(name) => self.read(pointer, written),
            value => self.found.push(Expectation {
                name: "toEqual".into(),
                negated: false,
                path: None,
                matcher: Box::new(Equals(value.clone())),
            }),
        }
    }

    /// Changes every expectation that `read` adds.
    fn within(&mut self, change: impl Fn(&mut Expectation), read: impl FnOnce(&mut Self)) {
        let first = self.found.len();
        read(self);
        self.found[first..].iter_mut().for_each(change);
    }

    fn matcher(&mut self, pointer: String, name: &str, argument: &Value) {
        let (name, matcher) = match self.vocabulary.matcher(name, argument) {
            Ok(found) => found,
            Err(BadArgument::Within(problems)) => {
                let below = |one: Problem| Problem { pointer: pointer.clone() + &one.pointer, ..one };
                return self.problems.extend(problems.into_iter().map(below));
            }
            Err(_)
                if self.vocabulary.is_check && self.vocabulary.is_matcher(name) && has_variable(argument) =>
            {
                return;
            }
            Err(BadArgument::Takes(takes)) => {
                return self.problem(pointer, format!("`{name}` {takes}, not {argument}"));
            }
            Err(BadArgument::Problem(problem)) => {
                return self.problem(pointer, format!("`{name}`: {problem}"));
            }
        };
        self.found.push(Expectation { name, negated: false, path: None, matcher });
    }
}

fn normalized(name: &str) -> String {
    name.replace('_', "").to_lowercase()
}

fn has_variable(value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains("${"),
        Value::Array(items) => items.iter().any(has_variable),
        Value::Object(fields) => fields.values().any(has_variable),
        _ => false,
    }
}
