//! One saved plan: its text, and the tool that its header describes.

use std::{fs::File, io::Read as _, path::Path, sync::Arc};

use gatewright_agentscript::{Rejection, ScriptSource};
use gatewright_core::{
    InputSchema, InvalidField, check_tool_name,
    rmcp::model::{JsonObject, MetaObject, Tool},
};
use gatewright_findings::{Finding, with_lines};
use serde_json::{Value, json};

use super::header::{Annotations, FrontMatter, PlanHeader, at_line};
use crate::settings::Settings;

/// Longest file, in bytes. The limit of a script is lower.
const LONGEST: u64 = 1024 * 1024;
/// Property of a wrapped result.
pub(super) const RESULT: &str = "result";

/// A plan that can run.
#[derive(Debug)]
pub(crate) struct Plan {
    /// Name of the tool, without that of the app.
    pub(crate) name: Arc<str>,
    /// The whole file.
    pub(crate) source: String,
    pub(crate) output: Option<Output>,
    /// The tool as the header describes it, without annotations.
    pub(super) tool: Tool,
    pub(super) annotations: Annotations,
    /// Tools that the text names, and whether these are all that it can call.
    pub(super) calls: Vec<String>,
    pub(super) names_every_tool: bool,
    /// Problems that do not keep it from running.
    pub(super) warnings: Vec<Finding>,
}

/// The declared result of a plan.
#[derive(Debug)]
pub(crate) struct Output {
    pub(crate) schema: InputSchema,
    /// The declared value is the property `result` of an object: MCP wants an object.
    pub(crate) is_wrapped: bool,
}

impl Output {
    /// The value as it is sent.
    pub(crate) fn wrap(&self, value: Value) -> Value {
        if self.is_wrapped { json!({RESULT: value}) } else { value }
    }
}

impl Plan {
    /// Reads the plan at `path`, of the app `app`.
    ///
    /// # Errors
    /// Every problem of the file, with its line.
    pub(super) fn read(path: &Path, app: &str, settings: &Settings) -> Result<Self, Vec<Finding>> {
        let text = text(path).map_err(|problem| vec![at_line(1, problem)])?;
        let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
        Self::parse(text, stem, app, settings)
    }

    fn parse(source: String, stem: &str, app: &str, settings: &Settings) -> Result<Self, Vec<Finding>> {
        let script = ScriptSource::new(&source).validate(&settings.policy, &settings.limits);
        let mut problems: Vec<Finding> = script.as_ref().err().map(rejected).into_iter().collect();
        let FrontMatter { header, lines } = FrontMatter::read(&source).map_err(|mut found| {
            // A syntax error of what is no plan at all says nothing more.
            found.append(&mut problems);
            found
        })?;
        let name = header.name.clone().unwrap_or_else(|| stem.to_owned());
        let mut wrong = check(&header, &name);
        let input = input_schema(header.input.clone(), &mut wrong);
        let output = header.output.clone().map(|schema| output_schema(schema, &mut wrong));
        let wrong = wrong.into_iter().map(|field| Finding::at(&field.path, field.problem)).collect();
        problems.extend(with_lines(wrong, &lines));
        let Ok(script) = script else { return Err(problems) };
        let calls = || script.plan().calls.iter().filter(|call| call.input.is_some());
        let own = format!("{app}:{name}");
        if let Some(call) = calls().find(|call| call.name == own) {
            let line = script.location(call.at).line as usize;
            problems.push(at_line(line, format!("the plan calls itself (`{own}`); use a loop")));
        }
        if !problems.is_empty() {
            return Err(problems);
        }
        let warning = |note: &gatewright_agentscript::Note| {
            at_line(script.location(note.at).line as usize, note.message())
        };
        let warnings = script.plan().notes.iter().map(warning).collect();
        let calls = calls().map(|call| call.name.clone()).collect();
        Ok(Self {
            tool: tool(&header, &name, input, output.as_ref()),
            name: name.into(),
            output,
            annotations: header.annotations,
            calls,
            names_every_tool: script.names_every_tool(),
            warnings,
            source,
        })
    }
}

/// The text of a file.
fn text(path: &Path) -> Result<String, String> {
    let told = |error: std::io::Error| format!("it cannot be read: {error}");
    // Opening a pipe would wait for a writer.
    if !path.metadata().map_err(told)?.is_file() {
        return Err("it is not a file".to_owned());
    }
    let mut text = String::new();
    let file = File::open(path).map_err(told)?;
    file.take(LONGEST + 1).read_to_string(&mut text).map_err(told)?;
    if text.len() as u64 > LONGEST {
        return Err(format!("it is longer than {LONGEST} bytes"));
    }
    Ok(text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text))
}

fn rejected(rejection: &Rejection) -> Finding {
    match rejection {
        Rejection::SyntaxError { message, location } => at_line(location.line as usize, message),
        Rejection::Illegal { kind, message, location } => {
            at_line(location.line as usize, format!("{kind}: {message}"))
        }
        other => at_line(1, other.to_string()),
    }
}

/// Problems of a header that its schema does not tell.
fn check(header: &PlanHeader, name: &str) -> Vec<InvalidField> {
    let mut wrong = Vec::new();
    if let Err(problem) = check_tool_name(name) {
        let problem = match &header.name {
            Some(_) => problem,
            None => format!("{problem}; the header has no `name`, so it is that of the file"),
        };
        wrong.push(InvalidField::new("name", problem));
    }
    if header.description.trim().is_empty() {
        wrong.push(InvalidField::new(
            "description",
            "must say what the plan does: agents find it by these words",
        ));
    }
    wrong
}

/// The input schema as it is listed.
fn input_schema(schema: Option<JsonObject>, wrong: &mut Vec<InvalidField>) -> Arc<JsonObject> {
    let mut schema = schema.unwrap_or_else(|| {
        JsonObject::from_iter([
            ("properties".to_owned(), json!({})),
            ("additionalProperties".to_owned(), false.into()),
        ])
    });
    if schema.entry("type").or_insert_with(|| "object".into()) != "object" {
        wrong.push(InvalidField::new(
            "input.type",
            "must be `object`: the input of a tool has named properties",
        ));
    }
    let schema = Arc::new(schema);
    name_faults("input", &InputSchema::new(schema.clone()), wrong);
    schema
}

fn output_schema(schema: JsonObject, wrong: &mut Vec<InvalidField>) -> Output {
    let is_wrapped = schema.get("type").is_none_or(|kind| kind != "object");
    let schema = if is_wrapped { wrapped(schema) } else { schema };
    let schema = InputSchema::new(Arc::new(schema));
    name_faults("output", &schema, wrong);
    Output { schema, is_wrapped }
}

/// Names what of a schema cannot be checked. There is no server behind a plan that would.
fn name_faults(key: &'static str, schema: &InputSchema, wrong: &mut Vec<InvalidField>) {
    if let Some(defect) = schema.defect() {
        wrong.push(InvalidField::new(key, format!("is not a JSON Schema: {defect}")));
    }
    if let Some(first) = schema.left_out().first() {
        let pattern: String = first.pattern.chars().take(LONGEST_PATTERN).collect();
        let problem = format!(
            "has a regular expression, {pattern:?}, that is not checked: {}. Write another one, or leave it out",
            first.reason
        );
        wrong.push(InvalidField::new(key, problem));
    }
}

/// Characters of a regular expression that an error repeats.
const LONGEST_PATTERN: usize = 200;

/// The schema of an object with a value of `schema` as its property `result`.
fn wrapped(mut schema: JsonObject) -> JsonObject {
    let mut whole = JsonObject::new();
    whole.insert("type".to_owned(), "object".into());
    for definitions in ["$defs", "definitions"] {
        if let Some(definitions_of_it) = schema.shift_remove(definitions) {
            whole.insert(definitions.to_owned(), definitions_of_it);
        }
    }
    whole.insert("properties".to_owned(), json!({RESULT: schema}));
    whole.insert("required".to_owned(), json!([RESULT]));
    whole.insert("additionalProperties".to_owned(), false.into());
    whole
}

fn tool(header: &PlanHeader, name: &str, input: Arc<JsonObject>, output: Option<&Output>) -> Tool {
    let description = header.description.trim().to_owned();
    let mut tool = Tool::new(name.to_owned(), description, input);
    if let Some(title) = &header.title {
        tool = tool.with_title(title);
    }
    if let Some(output) = output {
        tool = tool.with_raw_output_schema(output.schema.source().clone());
    }
    let meta = json!({
        "scopes": header.scopes,
        "enabledInCodeCall": header.enabled_in_code_call,
        "visibleInListTools": header.visible_in_list_tools,
    });
    tool.with_meta(MetaObject(JsonObject::from_iter([("gatewright".to_owned(), meta)])))
}
