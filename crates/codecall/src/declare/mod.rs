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

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
};

use gatewright_core::{Paging, ToolEntry};

pub(crate) use words::{clean_descriptions, is_deprecated, misleads, sentence};

use crate::{
    hints,
    result_shape::ResultShape,
    shapes::declared::{self, may_have_long_integers},
};
use node::{Graph, Id};
use print::{BRIEF, LEVELS, Printer, plain};
use read::{Reader, quoted};
use words::short;

/// Room of an answer, in bytes, as JSON: so much, and so much more for each tool.
const ROOM: usize = 100;
const ROOM_OF_A_TOOL: usize = 440;
/// Note on numbers that the type `number` of results leaves out. JSON has no type for such an integer that JavaScript reads.
const LONG_INTEGERS: &str = "// Returned integers beyond 2^53 are strings.\n";
/// Note on tools whose pages can be collected, and its mark on each.
const PAGES: &str =
    "// paged: callTool(name, input, {paginate: {max: 500}}) gives all pages as {items, hasMore, pages}\n";
const PAGED: &str = "paged";
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
    let writer =
        Writer { graph: &graph, names: &names, of_inputs: graph.reached(&inputs), tools, types: &types };
    let may_be_long =
        |one: &Declared<'_>| one.result.is_some_and(|shape| may_have_long_integers(&shape.schema));
    let mut notes = String::new();
    if tools.iter().any(may_be_long) {
        notes.push_str(LONG_INTEGERS);
    }
    if tools.iter().any(|one| is_paged(one.tool)) {
        notes.push_str(PAGES);
    }
    let room = (ROOM + ROOM_OF_A_TOOL * tools.len()).saturating_sub(as_json(&notes));
    let mut terse = 1;
    loop {
        let (shared, methods) = writer.write(terse, room);
        let methods = methods.join("\n");
        terse += 1;
        if as_json(&shared) + as_json(&methods) <= room || names.is_empty() || terse == LEVELS.len() {
            break format!("{shared}{notes}interface Tools {{\n{methods}\n}}");
        }
    }
}

fn is_paged(tool: &ToolEntry) -> bool {
    tool.paging() == Paging::Described
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
    let of_result = result.map(|shape| (Reader::read(&mut graph, &shape.schema), observed(tool, shape)));
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
fn observed(tool: &ToolEntry, shape: &ResultShape) -> Option<String> {
    // What a tool declares was not observed, only what it leaves open.
    let part = if declared::read(tool).output.is_some() { " in part" } else { "" };
    let answers = shape.observed.map(|answers| match answers {
        1 => format!("observed{part}, 1 answer"),
        _ => format!("observed{part}, {answers} answers"),
    });
    match (answers, shape.text.map(|kind| kind.name())) {
        (Some(answers), Some(kind)) => Some(format!("{kind}; {answers}")),
        (answers, kind) => answers.or(kind.map(str::to_owned)),
    }
}

struct Writer<'g, 's> {
    graph: &'g Graph<'s>,
    names: &'g HashMap<Id, String>,
    /// Types of inputs, which are written in full.
    of_inputs: HashSet<Id>,
    tools: &'g [Declared<'g>],
    types: &'g [Types],
}

/// Types whose names were written.
type Used = RefCell<BTreeSet<Id>>;

impl Writer<'_, '_> {
    /// The named types as terse as the level `terse`, and the methods with what room they leave.
    fn write(&self, terse: usize, room: usize) -> (String, Vec<String>) {
        let all = Used::default();
        if !self.names.is_empty() {
            (0..self.tools.len()).for_each(|at| drop(self.method(at, terse, &all)));
        }
        let shared = self.shared(&all, terse);
        let used = Used::default();
        let methods = self.methods(room.saturating_sub(as_json(&shared)), &used);
        // Terse methods name fewer types.
        (if self.names.is_empty() { shared } else { self.shared(&used, terse) }, methods)
    }

    /// The named types in `used`, and those that they name.
    fn shared(&self, used: &Used, terse: usize) -> String {
        let mut printed: BTreeMap<Id, String> = BTreeMap::new();
        loop {
            let missing: Vec<Id> =
                used.borrow().iter().filter(|id| !printed.contains_key(id)).copied().collect();
            if missing.is_empty() {
                break;
            }
            for id in missing {
                let name = &self.names[&id];
                let printer =
                    Printer::new(self.graph, self.names, LEVELS[terse], !self.of_inputs.contains(&id));
                printed.insert(id, format!("type {name} = {};\n", printer.noting(used).in_place(id)));
            }
        }
        printed.into_values().collect()
    }

    /// Each tool gets an equal part of the room; what short ones leave goes to the others.
    fn methods(&self, room: usize, used: &Used) -> Vec<String> {
        let print = |at: usize, level: usize| {
            let names = Used::default();
            (self.method(at, level, &names), names.into_inner())
        };
        let mut methods: Vec<_> = (0..self.tools.len()).map(|at| print(at, 0)).collect();
        let mut order: Vec<usize> = (0..self.tools.len()).collect();
        order.sort_by_key(|at| methods[*at].0.len());
        let mut room = room;
        for (done, at) in order.into_iter().enumerate() {
            let part = room / (self.tools.len() - done);
            let mut level = 1;
            while as_json(&methods[at].0) > part && level < LEVELS.len() {
                methods[at] = print(at, level);
                level += 1;
            }
            room = room.saturating_sub(as_json(&methods[at].0));
        }
        let (methods, names): (Vec<String>, Vec<BTreeSet<Id>>) = methods.into_iter().unzip();
        used.borrow_mut().extend(names.into_iter().flatten());
        methods
    }

    fn method(&self, at: usize, level: usize, used: &Used) -> String {
        let (one, types, with_example, level) = (&self.tools[at], &self.types[at], level == 0, LEVELS[level]);
        let mut about = short(one.tool.own_description(), level.about);
        if hints::is_destructive(one.tool) {
            about = format!("[destructive] {about}");
        }
        if is_deprecated(one.tool.own_description()) && !is_deprecated(&about) {
            about = format!("[deprecated] {about}");
        }
        let printer = |result| Printer::new(self.graph, self.names, level, result).noting(used);
        let input = printer(false).beside(&one.tool.local_name, &about).in_place(types.input);
        let result = match types.result {
            Some(result) => printer(true).by_name(result),
            None => "unknown".to_owned(),
        };
        let mut text = String::new();
        if !about.trim().is_empty() {
            text.push_str(&format!("/** {} */\n", plain(about.trim())));
        }
        text.push_str(&format!("{}(input: {input}): Promise<{result}>;", quoted(&one.tool.tool.name)));
        let paged = is_paged(one.tool).then(|| PAGED.to_owned());
        let observed = one.result.and_then(|shape| observed(one.tool, shape));
        let notes: Vec<String> = paged.into_iter().chain(observed).collect();
        if !notes.is_empty() {
            text.push_str(&format!(" // {}", notes.join("; ")));
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
