//! TypeScript declarations of tools, sized for the context of a model.
//!
//! Schemas become types in `read`, equal types are one node in `node`, and `print` writes them with as many comments as there is room
//! for. Texts are cut in `words`.

mod node;
mod print;
mod read;
#[cfg(test)]
mod tests;
mod words;

use std::collections::HashMap;

use gatewright_core::{Paging, ToolEntry};

pub(crate) use words::{clean_descriptions, is_deprecated, misleads, sentence};

use crate::{hints, result_shape::ResultShape, shapes::declared::may_have_long_integers};
use node::{Graph, Id};
use print::{BRIEF, LEVELS, Level, Printer, plain};
use read::{Reader, quoted};
use words::short;

/// Room of an answer, in bytes, as JSON: so much, and so much more for each tool.
const ROOM: usize = 100;
const ROOM_OF_A_TOOL: usize = 440;
/// Note on numbers that the type `number` of results leaves out. JSON has no type for such an integer that JavaScript reads.
const LONG_INTEGERS: &str = "// Returned integers beyond 2^53 are strings.\n";
/// Note on a tool whose pages can be collected.
const PAGES: &str =
    "\n// All pages: callTool(name, input, {paginate: {max: 500}}) gives {items, hasMore, pages}";
/// Longest example that is shown.
const LONGEST_EXAMPLE: usize = 240;

/// A tool to declare.
pub(crate) struct Declared<'t> {
    pub(crate) tool: &'t ToolEntry,
    pub(crate) result: Option<&'t ResultShape>,
    /// A call of the tool, in one line of AgentScript.
    pub(crate) example: Option<String>,
}

/// The types of one tool.
struct Types {
    input: Id,
    result: Option<Id>,
}

/// The declarations of `tools`: types that several of them use, then an interface with a method for each.
pub(crate) fn declarations(tools: &[Declared<'_>]) -> String {
    if tools.is_empty() {
        return String::new();
    }
    let mut graph = Graph::default();
    let types: Vec<Types> = tools
        .iter()
        .map(|one| Types {
            input: Reader::read(&mut graph, one.tool.input_schema()),
            result: one.result.map(|shape| Reader::read(&mut graph, &shape.schema)),
        })
        .collect();
    let inputs: Vec<Id> = types.iter().map(|types| types.input).collect();
    let results: Vec<Id> = types.iter().filter_map(|types| types.result).collect();
    let names = graph.names(&inputs, &results);
    let writer = Writer { graph: &graph, names: &names };
    let may_be_long =
        |one: &Declared<'_>| one.result.is_some_and(|shape| may_have_long_integers(&shape.schema));
    let note = if tools.iter().any(may_be_long) { LONG_INTEGERS } else { "" };
    let room = ROOM + ROOM_OF_A_TOOL * tools.len() - note.len();
    let shared = writer.shared(room / 2);
    let methods = writer.methods(tools, &types, room.saturating_sub(shared.len()));
    format!("{shared}{note}interface Tools {{\n{}\n}}", methods.join("\n"))
}

/// The types of one tool on their own.
pub(crate) struct Brief {
    pub(crate) input: String,
    /// With the number of answers it was observed in.
    pub(crate) result: Option<String>,
}

impl Brief {
    /// Bytes as JSON.
    pub(crate) fn len(&self) -> usize {
        as_json(&self.input) + self.result.as_deref().map_or(0, as_json)
    }
}

/// Parameters of a tool whose types are short.
const FEW_PARAMETERS: usize = 12;

/// The types of `tool` with short comments, beside its name and the description `about`; `None` if it has many parameters, or a type that needs a name.
pub(crate) fn brief(tool: &ToolEntry, about: &str, result: Option<&ResultShape>) -> Option<Brief> {
    let parameters = tool.input_schema().get("properties").and_then(serde_json::Value::as_object);
    if parameters.is_some_and(|parameters| parameters.len() > FEW_PARAMETERS) {
        return None;
    }
    let mut graph = Graph::default();
    let input = Reader::read(&mut graph, tool.input_schema());
    let of_result = result.map(|shape| (Reader::read(&mut graph, &shape.schema), observed(shape)));
    let results: Vec<Id> = of_result.iter().map(|(result, _)| *result).collect();
    // A type of both the input and the result is short enough to be written twice.
    let names = graph.names(&[input], &[]);
    if !names.is_empty() || !graph.names(&[], &results).is_empty() {
        return None;
    }
    let input = Printer::new(&graph, &names, BRIEF, false).beside(&tool.local_name, about).in_place(input);
    let result = of_result.map(|(result, note)| {
        let mut text = Printer::new(&graph, &names, BRIEF, true).in_place(result);
        if let Some(note) = note {
            text.push_str(&format!(" // {note}"));
        }
        text
    });
    Some(Brief { input, result })
}

/// Observations of results: their number, and the format of texts.
fn observed(shape: &ResultShape) -> Option<String> {
    let answers = shape.observed.map(|answers| format!("observed, {answers} answers"));
    match (answers, shape.text.map(|kind| kind.name())) {
        (Some(answers), Some(kind)) => Some(format!("{kind}; {answers}")),
        (answers, kind) => answers.or(kind.map(str::to_owned)),
    }
}

struct Writer<'g, 's> {
    graph: &'g Graph<'s>,
    names: &'g HashMap<Id, String>,
}

impl Writer<'_, '_> {
    /// The named types, wordy if they fit into `room`.
    fn shared(&self, room: usize) -> String {
        let mut named: Vec<(&Id, &String)> = self.names.iter().collect();
        named.sort_unstable();
        let print = |level: Level| -> String {
            let types = named.iter().map(|(id, name)| {
                format!(
                    "type {name} = {};\n",
                    Printer::new(self.graph, self.names, level, false).in_place(**id)
                )
            });
            types.collect()
        };
        let wordy = print(LEVELS[1]);
        if as_json(&wordy) <= room { wordy } else { print(LEVELS[4]) }
    }

    /// Each tool gets an equal part of the room; what short ones leave goes to the others.
    fn methods(&self, tools: &[Declared<'_>], types: &[Types], room: usize) -> Vec<String> {
        let print = |at: usize, level: usize| self.method(&tools[at], &types[at], LEVELS[level], level == 0);
        let mut methods: Vec<String> = (0..tools.len()).map(|at| print(at, 0)).collect();
        let mut order: Vec<usize> = (0..tools.len()).collect();
        order.sort_by_key(|at| methods[*at].len());
        let mut room = room;
        for (done, at) in order.into_iter().enumerate() {
            let part = room / (tools.len() - done);
            let mut level = 1;
            while as_json(&methods[at]) > part && level < LEVELS.len() {
                methods[at] = print(at, level);
                level += 1;
            }
            room = room.saturating_sub(as_json(&methods[at]));
        }
        methods
    }

    fn method(&self, one: &Declared<'_>, types: &Types, level: Level, with_example: bool) -> String {
        let mut about = short(one.tool.own_description(), level.about);
        if hints::is_destructive(one.tool) {
            about = format!("[destructive] {about}");
        }
        if is_deprecated(one.tool.own_description()) && !is_deprecated(&about) {
            about = format!("[deprecated] {about}");
        }
        let input = Printer::new(self.graph, self.names, level, false).beside(&one.tool.local_name, &about);
        let input = input.in_place(types.input);
        let result = match types.result {
            Some(result) => Printer::new(self.graph, self.names, level, true).by_name(result),
            None => "unknown".to_owned(),
        };
        let mut text = String::new();
        if !about.trim().is_empty() {
            text.push_str(&format!("/** {} */\n", plain(about.trim())));
        }
        text.push_str(&format!("{}(input: {input}): Promise<{result}>;", quoted(&one.tool.tool.name)));
        if let Some(note) = one.result.and_then(observed) {
            text.push_str(&format!(" // {note}"));
        }
        if one.tool.paging() == Paging::Described {
            text.push_str(PAGES);
        }
        if let Some(example) = one.example.as_deref().filter(|e| with_example && e.len() <= LONGEST_EXAMPLE) {
            text.push_str(&format!("\n// e.g. {}", plain(example)));
        }
        text
    }
}

/// Bytes of a text in a JSON string.
fn as_json(text: &str) -> usize {
    text.len() + text.bytes().filter(|byte| matches!(byte, b'"' | b'\\' | b'\n')).count()
}
