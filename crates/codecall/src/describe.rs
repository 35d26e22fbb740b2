//! `codecall:describe`: declarations, or schemas and examples, of tools.

use std::{collections::HashSet, sync::Arc};

use gatewright_agentscript::excerpt;
use gatewright_core::{
    Caller, ToolEntry, UsageExample, View, off_thread, rmcp::model::JsonObject, value_bytes,
};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::{
    CodeCall,
    declare::{self, Declared},
    examples, hints, meta_tools,
    result_shape::ResultShape,
    settings::Settings,
    shapes::Shapes,
};

/// Input of `codecall:describe`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct DescribeInput {
    tool_names: Vec<String>,
    #[serde(default)]
    detail: Detail,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Detail {
    /// A TypeScript declaration of each tool.
    Types,
    /// The contract's fields.
    #[default]
    Full,
}

/// Memory of the full descriptions in one answer, in bytes; the first one is there however long it is. Schemas are as long as their servers like, and an
/// answer is written several times.
const MOST_BYTES: u64 = 4 << 20;

/// Unknown names that are compared with those of all tools.
const MOST_COMPARED: usize = 10;

impl CodeCall {
    /// Meta-tools and tools the caller may not call are `notFound`, as if they did not exist, with the `nearest` name; tools of an app that is not there at the
    /// moment are `unavailable`. Full descriptions beyond [`MOST_BYTES`] are `leftOut`.
    pub(crate) async fn describe(&self, input: DescribeInput, caller: &Caller) -> Value {
        let settings = self.settings();
        self.invoker.registry().first_connections().await;
        let view = self.invoker.registry().ready_view(caller).await;
        let (shapes, caller) = (self.shapes.clone(), caller.clone());
        // Schemas are as long as their servers like.
        off_thread(usize::MAX, move || body(input, &view, &settings, &shapes, &caller)).await
    }

    /// The TypeScript declaration of `tool`, as it is given to `caller`.
    pub fn declaration(&self, tool: &ToolEntry, caller: &Caller) -> String {
        let result = self.shapes.shown_shape(tool, caller);
        declare::declarations(&[Declared { tool, result: result.as_ref(), example: None }])
    }

    /// Up to five examples of the use of `tool` in a script: those of its author, then ones made from its schema.
    pub fn usage_examples(&self, tool: &ToolEntry) -> Vec<UsageExample> {
        examples::of(tool, None)
    }
}

fn body(input: DescribeInput, view: &View, settings: &Settings, shapes: &Shapes, caller: &Caller) -> Value {
    let (mut tools, mut not_found, mut unavailable) = (Vec::new(), Vec::new(), Vec::new());
    // A name that is given several times is described once. No tool has one that is cut.
    let mut asked = HashSet::new();
    let names = input.tool_names.iter().map(|name| excerpt::name(name).into_owned());
    for name in names.filter(|name| asked.insert(name.clone())) {
        match view.shows(&name).filter(|tool| settings.config.mode.in_code(tool)) {
            Some(tool) => tools.push(Described {
                tool,
                result: shapes.shown_shape(tool, caller),
                input: shapes.observed_input(tool, caller),
            }),
            None => match view.unavailable_owner(&name).filter(|_| !meta_tools::is_meta_tool(&name)) {
                Some(app) => {
                    let message = settings.sanitizer.text(&app.to_string()).into_owned();
                    unavailable.push(json!({"name": name, "code": app.code(), "message": message}));
                }
                None => not_found.push(name),
            },
        }
    }
    let mut body = match input.detail {
        Detail::Types => json!({"types": types(&tools)}),
        Detail::Full => in_full(&tools),
    };
    let in_code = |tool: &ToolEntry| settings.config.mode.in_code(tool);
    let unknown = not_found.iter().filter(|name| !meta_tools::is_meta_tool(name)).take(MOST_COMPARED);
    let nearest = unknown.filter_map(|name| Some((name.clone(), view.nearest(name, in_code)?.into())));
    let nearest: Map<String, Value> = nearest.collect();
    if !not_found.is_empty() {
        body["notFound"] = json!(not_found);
    }
    if !nearest.is_empty() {
        body["nearest"] = nearest.into();
    }
    if !unavailable.is_empty() {
        body["unavailable"] = unavailable.into();
    }
    body
}

/// The tools in full, as far as there is room.
fn in_full(tools: &[Described<'_>]) -> Value {
    let (mut described, mut bytes) = (Vec::with_capacity(tools.len()), 0);
    for tool in tools {
        let one = tool.in_full();
        bytes += value_bytes(&one);
        if bytes > MOST_BYTES && !described.is_empty() {
            break;
        }
        described.push(one);
    }
    let left_out: Vec<&str> = tools[described.len()..].iter().map(|one| &*one.tool.tool.name).collect();
    let mut body = json!({"tools": described});
    if !left_out.is_empty() {
        body["leftOut"] = json!({"names": left_out, "why": "the answer would be too long: describe fewer tools at a time, or with detail \"types\""});
    }
    body
}

/// A tool to describe.
struct Described<'v> {
    tool: &'v Arc<ToolEntry>,
    /// The shape of its results.
    result: Option<ResultShape>,
    /// The input schema with the types of accepted inputs, where it leaves them open.
    input: Option<JsonObject>,
}

fn types(tools: &[Described<'_>]) -> String {
    let declared = tools.iter().map(|Described { tool, result, input }| Declared {
        tool,
        result: result.as_ref(),
        example: examples::call_worth_showing(tool, input.as_ref()),
    });
    declare::declarations(&declared.collect::<Vec<_>>())
}

impl Described<'_> {
    fn in_full(&self) -> Value {
        let Self { tool, result, input } = self;
        let mut described = json!({
            "name": tool.tool.name,
            "appId": *tool.app_id,
            "description": tool.description(),
            "inputSchema": tool.input_schema(),
            "outputSchema": tool.tool.output_schema,
            "annotations": hints::annotations(tool),
            "usageExamples": examples::of(tool, input.as_ref()),
        });
        declare::clean_descriptions(&mut described);
        if let Some(ResultShape { schema, observed: Some(answers), .. }) = result {
            described["observedOutput"] = json!({"schema": schema, "answers": answers});
        }
        if let Some(kind) = result.as_ref().and_then(|shape| shape.text) {
            described["observedText"] = kind.name().into();
        }
        described
    }
}

/// The result of `getTool`: name, description, input and output schemas, and the declaration.
pub(crate) fn metadata(tool: &ToolEntry, result: Option<&ResultShape>) -> Value {
    let declared = Declared { tool, result, example: None };
    let mut metadata = json!({
        "name": tool.tool.name,
        "description": tool.description(),
        "inputSchema": tool.input_schema(),
        "outputSchema": tool.tool.output_schema,
        "types": declare::declarations(&[declared]),
    });
    declare::clean_descriptions(&mut metadata);
    metadata
}
