//! `/console/tool`: one tool with its schemas, and a form to call it.

use std::{collections::HashMap, sync::Arc};

use axum::{
    Form,
    extract::{Query, State},
    response::Response,
};
use gatewright_core::{ToolEntry, read_json, rmcp::model::JsonObject};
use http::StatusCode;
use maud::{Markup, html};
use serde::Deserialize;
use serde_json::Value;

use super::{
    NavItem, calls, charts, encode, hints, missing, page, pins, policy, result, stale, token, tool_path,
};
use crate::{
    ConsoleState,
    form::{self, Field, FieldError, FieldKind},
    guard,
    operator::CallAnswer,
    text,
};

/// Name of the field with the whole input as JSON.
const JSON: &str = "json";
/// Name of the field that confirms a destructive call.
const CONFIRM: &str = "sure";

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Params {
    name: String,
    /// Number of a call whose arguments are filled in.
    call: String,
}

/// A submitted form, and its outcome.
#[derive(Default)]
struct Submission {
    /// The caller that the operator asks about.
    asked: policy::Asked,
    typed: HashMap<String, String>,
    problems: Vec<FieldError>,
    alert: Option<Markup>,
    answer: Option<CallAnswer>,
}

pub(crate) async fn show(
    State(state): State<Arc<ConsoleState>>,
    Query(params): Query<Params>,
    Query(asked): Query<policy::Asked>,
) -> Response {
    let Some(tool) = tool(&state, &params.name).await else { return unknown(&state) };
    let mut sent = Submission { asked, ..Submission::default() };
    let repeated = params.call.parse().ok().and_then(|id| state.history.get(id));
    if let Some(arguments) = repeated.as_ref().and_then(|entry| entry.execution.arguments.as_ref()) {
        let json = serde_json::to_string_pretty(arguments).unwrap_or_default();
        sent.typed.insert(JSON.to_owned(), json);
    }
    render(&state, StatusCode::OK, &tool, &sent)
}

pub(crate) async fn call(
    State(state): State<Arc<ConsoleState>>,
    Query(params): Query<Params>,
    Form(typed): Form<HashMap<String, String>>,
) -> Response {
    let Some(tool) = tool(&state, &params.name).await else { return unknown(&state) };
    let mut sent = Submission { typed, ..Submission::default() };
    if !sent.typed.get(guard::FIELD).is_some_and(|token| state.guard.is_token(token)) {
        sent.alert = Some(stale());
        return render(&state, StatusCode::FORBIDDEN, &tool, &sent);
    }
    if destructive(&tool) && !sent.typed.contains_key(CONFIRM) {
        sent.alert =
            Some(alert("Nothing was called.", "This tool changes or deletes data: tick the box to confirm."));
        return render(&state, StatusCode::UNPROCESSABLE_ENTITY, &tool, &sent);
    }
    let input = match input(&tool, &sent.typed) {
        Ok(input) => input,
        Err(problems) => {
            sent.alert = Some(alert("Nothing was called.", "Some fields need another look."));
            sent.problems = problems;
            return render(&state, StatusCode::UNPROCESSABLE_ENTITY, &tool, &sent);
        }
    };
    let answer = state.operator.call(&tool.name, input).await;
    let status = match &answer.outcome {
        Err(refused) if refused.code == gatewright_core::codes::VALIDATION_ERROR => {
            StatusCode::UNPROCESSABLE_ENTITY
        }
        _ => StatusCode::OK,
    };
    sent.answer = Some(answer);
    render(&state, status, &tool, &sent)
}

async fn tool(state: &ConsoleState, name: &str) -> Option<Arc<ToolEntry>> {
    state.operator.view().await.shows(name).cloned()
}

fn unknown(state: &ConsoleState) -> Response {
    missing(state, "There is no such tool now. Its app may be down, or it was renamed.")
}

fn destructive(tool: &ToolEntry) -> bool {
    let hints = tool.tool.annotations.as_ref();
    hints.is_some_and(|hints| hints.destructive_hint == Some(true) && hints.read_only_hint != Some(true))
}

fn input(tool: &ToolEntry, typed: &HashMap<String, String>) -> Result<JsonObject, Vec<FieldError>> {
    if let Some(json) = typed.get(JSON) {
        let wrong = |text: String| vec![FieldError { field: JSON.to_owned(), text }];
        return match read_json(json) {
            Ok(Value::Object(input)) => Ok(input),
            Ok(_) => Err(wrong("The input must be a JSON object.".to_owned())),
            Err(error) => Err(wrong(format!("This is not JSON: {error}."))),
        };
    }
    let fields = form::fields(tool.input_schema()).unwrap_or_default();
    form::read(&fields, typed).map_err(|mut problems| {
        problems.iter_mut().for_each(|problem| problem.field = form::key(&problem.field));
        problems
    })
}

fn alert(head: &str, text: &str) -> Markup {
    html! { div.alert role="alert" { strong { (head) } " " (text) } }
}

fn render(state: &ConsoleState, status: StatusCode, tool: &ToolEntry, sent: &Submission) -> Response {
    let name = text::line(&tool.tool.name, 100);
    let fields = form::fields(tool.input_schema());
    let as_json = sent.typed.contains_key(JSON) || fields.is_none();
    let body = html! {
        p.back { a href="/console/tools" { "Tools" } }
        h1 { code { (name) } }
        p.tags {
            span.tag { "app " (text::line(&tool.app_id, 60)) }
            (hints(tool.tool.annotations.as_ref()))
            @for scope in &tool.meta.scopes { span.tag { "scope " (text::line(scope, 60)) } }
            @if let Some(pin) = pins::word(state, &tool.app_id, &tool.upstream_name) { (pin) }
        }
        @if !tool.description().is_empty() { p.description { (text::plain(text::cut(tool.description()).0)) } }
        (last_hour(state, tool))
        @if let Some(alert) = &sent.alert { (alert) }
        @if let Some(answer) = &sent.answer { (result::answer(answer)) }
        section aria-labelledby="call" {
            h2 #call { "Call it" }
            @if let Some(fields) = &fields {
                details open[!as_json] { summary { "Fill in a form" } (fields_form(state, tool, fields, sent)) }
            }
            details open[as_json] { summary { "Write the input as JSON" } (json_form(state, tool, sent)) }
        }
        (examples(state, tool))
        (policy::section(state, tool, &sent.asked))
        section aria-labelledby="schemas" {
            h2 #schemas { "Schemas" }
            @if let Some(code_call) = &state.code_call {
                details { summary { "Declaration, as scripts see it" } (result::block(&code_call.declaration(tool, &state.operator.caller()))) }
            }
            details { summary { "Input" } (result::json(&Value::Object((**tool.input_schema()).clone()))) }
            @match tool.output_schema() {
                Some(schema) => details { summary { "Output" } (result::json(&schema)) },
                None => p.soft { "The tool names no output schema." },
            }
            @if let Some((schema, answers)) = observed(state, tool) {
                details {
                    summary { "Output, observed in " (answers) @if answers == 1 { " answer" } @else { " answers" } }
                    (result::json(&Value::Object((*schema).clone())))
                }
            }
        }
    };
    page(state, status, NavItem::Tools, &name, body)
}

/// Numbers of the last hour, if it was called then.
fn last_hour(state: &ConsoleState, tool: &ToolEntry) -> Markup {
    let hour = state.history.last_hour();
    let numbers = hour.tools.iter().find(|(name, _)| **name == *tool.name).map(|(_, numbers)| numbers);
    html! {
        @if let Some(one) = numbers {
            dl.facts {
                div { dt { "Calls in the last hour" } dd { a href=(calls::path_of_tool(&tool.name)) { (text::grouped(one.all.into())) } } }
                div { dt { "Errors" } dd { (text::grouped(one.failed.into())) } }
                div { dt { "p50" } dd { (charts::time(one.p50_us)) } }
                div { dt { "p95" } dd { (charts::time(one.p95_us)) } }
            }
        }
    }
}

fn examples(state: &ConsoleState, tool: &ToolEntry) -> Markup {
    let examples =
        state.code_call.as_ref().map(|code_call| code_call.usage_examples(tool)).unwrap_or_default();
    html! {
        @if !examples.is_empty() {
            section aria-labelledby="examples" {
                h2 #examples { "Examples" }
                @for (at, example) in examples.iter().enumerate() {
                    details open[at == 0] {
                        summary { (text::line(&example.description, 150)) }
                        (result::block(&example.code))
                        p { a.button.quiet href=(format!("/console/script?tool={}&example={at}", encode(&tool.tool.name))) { "Open in the pad" } }
                    }
                }
            }
        }
    }
}

fn observed(state: &ConsoleState, tool: &ToolEntry) -> Option<(Arc<JsonObject>, u64)> {
    state.code_call.as_ref()?.observed_output(tool, &state.operator.caller())
}

fn fields_form(state: &ConsoleState, tool: &ToolEntry, fields: &[Field], sent: &Submission) -> Markup {
    html! {
        form.call method="post" action=(tool_path(&tool.tool.name)) {
            (token(state))
            @if fields.is_empty() { p.soft { "The tool takes no input." } }
            @for (at, one) in fields.iter().enumerate() { (field(at, one, sent)) }
            (confirmation(tool, "confirm-form"))
            button { "Call tool" }
        }
    }
}

fn field(at: usize, field: &Field, sent: &Submission) -> Markup {
    let (id, key) = (format!("f{at}"), form::key(&field.name));
    let typed = sent.typed.get(&key).map(String::as_str).unwrap_or_default();
    let problem = sent.problems.iter().find(|problem| problem.field == key);
    let hint = (!field.description.is_empty()).then(|| format!("{id}-hint"));
    let error = problem.map(|_| format!("{id}-error"));
    let described: Vec<&str> = [&hint, &error].into_iter().filter_map(|id| id.as_deref()).collect();
    let described = (!described.is_empty()).then(|| described.join(" "));
    let invalid = problem.map(|_| "true");
    let placeholder = field.default.as_ref().map(|default| format!("default {}", text::line(default, 60)));
    html! {
        div.field {
            label for=(id) {
                (text::line(&field.name, 80))
                @if field.required { span.required { " required" } }
            }
            @if let Some(hint) = &hint { p.hint id=(hint) { (text::plain(text::cut(&field.description).0)) } }
            @match &field.kind {
                FieldKind::Text(kind) => input id=(id) name=(key) type=(kind) value=(typed) required[field.required && *kind != "text"]
                    placeholder=[&placeholder] autocomplete="off" aria-describedby=[&described] aria-invalid=[invalid];,
                FieldKind::Number { whole, min, max } => input id=(id) name=(key) type="number" value=(typed) required[field.required]
                    min=[min] max=[max] step=(if *whole { "1" } else { "any" })
                    placeholder=[&placeholder] aria-describedby=[&described] aria-invalid=[invalid];,
                FieldKind::Choice(choices) => select id=(id) name=(key) required[field.required] aria-describedby=[&described] aria-invalid=[invalid] {
                    option value="" { @if let Some(default) = &placeholder { (default) } @else { "not set" } }
                    @for choice in choices {
                        @let value = choice.to_string();
                        option value=(value) selected[value == typed] { (text::line(choice.as_str().unwrap_or(&value), 80)) }
                    }
                },
                FieldKind::LongText | FieldKind::Lines { .. } | FieldKind::Json => {
                    textarea id=(id) name=(key) rows="3" required[field.required] spellcheck="false"
                        placeholder=[&placeholder] aria-describedby=[&described] aria-invalid=[invalid] { "\n" (typed) }
                    @match field.kind {
                        FieldKind::Lines { .. } => p.hint { "One a line." },
                        FieldKind::Json => p.hint { "JSON." },
                        _ => {},
                    }
                }
            }
            @if let (Some(problem), Some(id)) = (problem, &error) { p.error id=(id) { (text::plain(&problem.text)) } }
        }
    }
}

fn json_form(state: &ConsoleState, tool: &ToolEntry, sent: &Submission) -> Markup {
    let typed = sent.typed.get(JSON).map_or("{}", String::as_str);
    let problem = sent.problems.iter().find(|problem| problem.field == JSON);
    html! {
        form.call method="post" action=(tool_path(&tool.tool.name)) {
            (token(state))
            div.field {
                label for="json" { "Input" }
                textarea #json name=(JSON) rows="8" spellcheck="false" aria-invalid=[problem.map(|_| "true")]
                    aria-describedby=[problem.map(|_| "json-error")] { "\n" (typed) }
                @if let Some(problem) = problem { p.error #json-error { (text::plain(&problem.text)) } }
            }
            (confirmation(tool, "confirm-json"))
            button { "Call tool" }
        }
    }
}

fn confirmation(tool: &ToolEntry, id: &str) -> Markup {
    html! {
        @if destructive(tool) {
            div.check {
                input type="checkbox" id=(id) name=(CONFIRM) value="yes" required;
                label for=(id) { "Yes, change or delete data" }
            }
        }
    }
}
