//! Regular expressions of schemas (`pattern` and `patternProperties`), read and matched in bounded time and memory.
//!
//! `pattern` is matched by programs of our own, whose steps are counted, and which are kept in one cache for the process. The names of
//! `patternProperties` are matched by the `regex` crate in `jsonschema`, where they are small. All others, such as those with lookaround, are
//! left to the server that offers the tool: [`loosen`] takes them out of the schema.

mod cache;
mod ecma;
mod loosen;
mod program;
mod reserve;

use std::{cell::Cell, collections::HashSet, sync::Arc};

use jsonschema::{Keyword, PatternOptions, ValidationError, ValidationOptions};
use rmcp::model::JsonObject;
use serde_json::Value;

use self::{
    program::{NoProgram, Program},
    reserve::{Reserved, reserve},
};
use super::walk::for_schemas;

/// Longest expression that is read, in bytes.
const LONGEST: usize = 8 << 10;
/// Longest text that an error repeats.
const LONGEST_SHOWN: usize = 200;
/// Most work of translating an expression: each escape takes another pass.
const MOST_TRANSLATED: usize = 400_000;
/// Most work of reading the expressions of one schema.
pub(super) const MOST_EFFORT: usize = 400_000;
/// Work of reading a short expression.
const EFFORT: usize = 500;

/// Steps of a program that take as long as a unit of such work.
const STEPS_OF_EFFORT: u64 = 8;

/// Largest program of a name of `patternProperties`, and largest automaton of one, in bytes.
const MOST_OF_NAME: usize = 1_000;
const AUTOMATON: usize = 128 << 10;

/// A regular expression that is left to the server that offers the tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftOut {
    /// The expression.
    pub pattern: String,
    /// `pattern` or `patternProperties`.
    pub keyword: &'static str,
    /// The reason, as the end of a sentence.
    pub reason: &'static str,
}

const UNSUPPORTED: &str =
    "it needs lookaround, back references or other parts that cannot be matched in bounded time";
const TOO_LARGE: &str = "it is too large";
const TOO_MANY: &str = "there are too many others";

/// A schema with regular expressions that can be checked.
#[derive(Debug, Default)]
pub(super) struct Checked {
    pub(super) left_out: Vec<LeftOut>,
    /// Room for the automata of `patternProperties`.
    _room: Vec<Reserved>,
}

/// Reads the regular expressions of `schema`, and takes those out that cannot be checked.
///
/// # Errors
/// One is no regular expression.
pub(super) fn check(schema: &mut Value) -> Result<Checked, String> {
    let checked = {
        let mut reader = Reader { effort: MOST_EFFORT, ..Reader::default() };
        for_schemas(schema, &mut |schema| reader.read(schema));
        if let Some(wrong) = reader.wrong {
            return Err(format!("it has an invalid regular expression: {wrong:?}"));
        }
        Checked { left_out: reader.left_out, _room: reader.room }
    };
    if !checked.left_out.is_empty() {
        loosen::loosen(schema, &checked.left_out);
    }
    Ok(checked)
}

/// Options of validators with our `pattern`.
pub(super) fn options<'s>() -> ValidationOptions<'s> {
    jsonschema::options()
        .with_pattern_options(PatternOptions::regex().size_limit(AUTOMATON).dfa_size_limit(AUTOMATON))
        .with_keyword("pattern", |_: &JsonObject, pattern: &Value, _| {
            let pattern = pattern.as_str().unwrap_or_default().into();
            Ok(Box::new(Pattern(pattern)) as Box<dyn for<'i> Keyword<'i>>)
        })
}

/// Number of instructions of an expression, by which the time of a search is counted; 0 for one that cannot be checked.
pub fn instructions(expression: &str) -> u64 {
    program(expression).map_or(0, |program| program.len() as u64)
}

/// Returns the number of texts that validators compare a name with in place of searching for an expression in `patternProperties`; `None` if
/// they search.
pub(super) fn compared(expression: &str) -> Option<u64> {
    use jsonschema_regex::PatternAnalysis;
    let analysis =
        Some(expression).filter(|it| it.len() <= LONGEST).and_then(jsonschema_regex::analyze_pattern)?;
    Some(match analysis {
        PatternAnalysis::Alternation(texts) => texts.len() as u64,
        _ => 1,
    })
}

/// Returns the least work of reading an expression.
pub(super) fn least_effort(expression: &str) -> usize {
    EFFORT + expression.len().min(LONGEST)
}

#[derive(Default)]
struct Reader<'s> {
    known: HashSet<(&'static str, &'s str)>,
    left_out: Vec<LeftOut>,
    room: Vec<Reserved>,
    wrong: Option<&'s str>,
    effort: usize,
}

impl<'s> Reader<'s> {
    fn read(&mut self, schema: &'s JsonObject) {
        if let Some(Value::String(expression)) = schema.get("pattern")
            && self.known.insert(("pattern", expression))
        {
            let outcome = self.program(expression).map(|_| ());
            self.note("pattern", expression, outcome);
        }
        let Some(Value::Object(names)) = schema.get("patternProperties") else { return };
        // Validators compare these with names, without an automaton.
        if names.keys().all(|name| compared(name).is_some()) {
            return;
        }
        for name in names.keys() {
            if self.known.insert(("patternProperties", name)) {
                let outcome = self.name(name);
                self.note("patternProperties", name, outcome);
            }
        }
    }

    fn note(&mut self, keyword: &'static str, expression: &'s str, outcome: Result<(), Unchecked>) {
        let reason = match outcome {
            Ok(()) => return,
            Err(Unchecked::Wrong) => {
                self.wrong = self.wrong.or(Some(expression));
                return;
            }
            Err(Unchecked::Left(reason)) => reason,
        };
        self.left_out.push(LeftOut { pattern: expression.to_owned(), keyword, reason });
    }

    fn program(&mut self, expression: &str) -> Result<Arc<Program>, Unchecked> {
        if expression.len() <= LONGEST {
            self.spend(before_reading(&ecma::rewritten(expression)))?;
        }
        let program = program(expression)?;
        self.spend(program.len() + program.ranges())?;
        Ok(program)
    }

    /// Reads a name of `patternProperties`.
    fn name(&mut self, name: &str) -> Result<(), Unchecked> {
        let program = self.program(name)?;
        if program.len() > MOST_OF_NAME {
            return Err(Unchecked::Left(TOO_LARGE));
        }
        self.spend(8 * (program.len() + program.ranges()))?;
        let translated = jsonschema_regex::to_rust_regex(name).map_err(|()| not_read(name))?;
        let automaton =
            regex::RegexBuilder::new(&translated).size_limit(AUTOMATON).dfa_size_limit(AUTOMATON).build();
        automaton.map_err(|error| {
            Unchecked::Left(match error {
                regex::Error::CompiledTooBig(_) => TOO_LARGE,
                _ => UNSUPPORTED,
            })
        })?;
        self.room.push(reserve(program.len() + program.ranges()).ok_or(Unchecked::Left(TOO_MANY))?);
        Ok(())
    }

    fn spend(&mut self, effort: usize) -> Result<(), Unchecked> {
        let left = self.effort.checked_sub(effort);
        self.effort = left.unwrap_or(0);
        left.map(|_| ()).ok_or(Unchecked::Left(TOO_MANY))
    }
}

/// An expression that is not checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unchecked {
    /// It is no regular expression.
    Wrong,
    /// It is left out, for this reason.
    Left(&'static str),
}

/// Work of reading `expression` besides its program.
fn before_reading(expression: &str) -> usize {
    EFFORT + expression.len() + translation(expression) / 16
}

/// Bytes that are read to translate `expression`.
fn translation(expression: &str) -> usize {
    expression.len().saturating_mul(expression.bytes().filter(|byte| *byte == b'\\').count())
}

/// The program of `expression`, and the steps that it took to make it, if it was not known.
fn known_or_made(expression: &str) -> Result<(Arc<Program>, u64), Unchecked> {
    if expression.len() > LONGEST {
        return Err(Unchecked::Left(TOO_LARGE));
    }
    if let Some(known) = cache::get(expression) {
        return Ok((known, 0));
    }
    let rewritten = ecma::rewritten(expression);
    if translation(&rewritten) > MOST_TRANSLATED {
        return Err(Unchecked::Left(TOO_LARGE));
    }
    let translated = jsonschema_regex::to_rust_regex(&rewritten).map_err(|()| not_read(expression))?;
    let program = Program::new(&translated).map_err(|why| {
        Unchecked::Left(match why {
            NoProgram::Unsupported => UNSUPPORTED,
            NoProgram::TooLarge => TOO_LARGE,
        })
    })?;
    let work = before_reading(&rewritten) + program.len() + program.ranges();
    let program = Arc::new(program);
    cache::insert(expression, program.clone());
    Ok((program, STEPS_OF_EFFORT * work as u64))
}

/// The reason why an expression has no translation.
fn not_read(expression: &str) -> Unchecked {
    match jsonschema_regex::is_valid_ecma_regex(expression) {
        true => Unchecked::Left(UNSUPPORTED),
        false => Unchecked::Wrong,
    }
}

fn program(expression: &str) -> Result<Arc<Program>, Unchecked> {
    known_or_made(expression).map(|(program, _)| program)
}

/// Steps of programs for one value, whatever its length; and for each byte of it.
const STEPS: u64 = 8_000_000;
const STEPS_FOR_EACH: u64 = 24;

thread_local! {
    static STEPS_LEFT: Cell<u64> = const { Cell::new(u64::MAX) };
}

/// Limit of the steps that programs take on this thread, until it is dropped.
pub(super) struct Limit(u64);

impl Limit {
    /// The limit for checking `value`.
    pub(super) fn of(value: &Value) -> Self {
        Self(STEPS_LEFT.replace(text_bytes(value).saturating_mul(STEPS_FOR_EACH).saturating_add(STEPS)))
    }

    /// Returns `true` if it was reached. Texts pass without being searched from then on.
    pub(super) fn is_reached(&self) -> bool {
        STEPS_LEFT.get() == 0
    }
}

impl Drop for Limit {
    fn drop(&mut self) {
        STEPS_LEFT.set(self.0);
    }
}

/// Bytes of the texts and names in `value`.
fn text_bytes(value: &Value) -> u64 {
    match value {
        Value::String(text) => text.len() as u64,
        Value::Array(items) => items.iter().map(text_bytes).sum(),
        Value::Object(members) => {
            members.iter().map(|(name, value)| name.len() as u64 + text_bytes(value)).sum()
        }
        _ => 0,
    }
}

/// The keyword `pattern`.
struct Pattern(Arc<str>);

impl Pattern {
    fn matches(&self, text: &str) -> bool {
        let mut left = STEPS_LEFT.get();
        if left == 0 {
            return true;
        }
        let Ok((program, work)) = known_or_made(&self.0) else { return true };
        left = left.saturating_sub(work);
        let found = program.is_match(text, &mut left);
        STEPS_LEFT.set(if found.is_some() { left } else { 0 });
        found.unwrap_or(true)
    }
}

impl<'i> Keyword<'i> for Pattern {
    fn validate(&self, value: &'i Value) -> Result<(), ValidationError<'i>> {
        if self.is_valid(value) {
            return Ok(());
        }
        let text = value.as_str().filter(|text| text.len() <= LONGEST_SHOWN);
        let text = text.map_or_else(|| "value".to_owned(), |text| format!("{text:?}"));
        Err(ValidationError::custom(format!("{text} does not match \"{}\"", self.0)))
    }

    fn is_valid(&self, value: &'i Value) -> bool {
        value.as_str().is_none_or(|text| self.matches(text))
    }
}

#[cfg(test)]
mod tests;
