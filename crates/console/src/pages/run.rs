//! `/console/runs/{id}`: the journal of one script: its state and outcome, what it waits for, its text with the line that failed, and its
//! calls with their inputs and answers, and the word of the policies on each.

use std::{sync::Arc, time::Duration};

use axum::{
    extract::{Path, Query, State},
    response::Response,
};
use gatewright_codecall::{RecordedCall, RecordedRun};
use gatewright_core::{
    CallRecord, Decision, Ending, MatchedPolicy, Policies, PolicyRequest, Snapshot, TraceContext, codes,
    read_json, rmcp::model::JsonObject,
};
use gatewright_executions::{Execution, ExecutionError, Head, Reader, State as RunState, WaitKind};
use http::StatusCode;
use maud::{Markup, html};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{
    NavItem, WAITING,
    call::advised,
    ending, missing, page,
    policy::{by, word},
    result,
    runs::{at, name, owner, question, state_of, unavailable},
    source, status, time, tool_path, waterfall,
};
use crate::{ConsoleState, Entry, MAX_CALLS, text};

/// Calls whose inputs and answers are on the page.
const MOST_SHOWN: usize = 20;
/// Characters of an input or answer on the page of the whole run.
const BRIEFLY: usize = 300;
/// Journals have times in these.
const MILLISECOND: Duration = Duration::from_millis(1);

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Params {
    /// Number of the call that is shown in full, from 1.
    call: String,
}

pub(crate) async fn show(
    State(state): State<Arc<ConsoleState>>,
    Path(id): Path<String>,
    Query(params): Query<Params>,
) -> Response {
    let Some(code_call) = &state.code_call else { return missing(&state, "Code mode is off.") };
    let execution = match code_call.executions().open(&id, Reader::Operator).await {
        Ok(execution) => execution,
        Err(ExecutionError::NotFound) => {
            return missing(&state, "This run is no longer kept, or there was none with this id.");
        }
        Err(error) => {
            return page(&state, StatusCode::SERVICE_UNAVAILABLE, NavItem::Runs, "Runs", unavailable(error));
        }
    };
    let recorded = RecordedRun::read(&execution).await;
    let number = params.call.parse().ok().filter(|number| *number > 0);
    if let (Ok(run), Some(number)) = (&recorded, number) {
        return one_call(&state, run, number);
    }
    let head = &execution.head;
    let body = html! {
        p.back { a href="/console/runs" { "Runs" } }
        h1 { (name(head)) " " (state_of(head, true)) }
        (facts(&state, &execution))
        (waits(head))
        @match &recorded {
            Ok(run) if state.shows_contents => (contents(&state, run)),
            Ok(_) => p.soft { "Scripts, arguments and answers are not shown: " code { "admin.contents" } " is off." },
            Err(why) => p.soft { (sentence(&why.to_string())) },
        }
    };
    page(&state, StatusCode::OK, NavItem::Runs, "Run", body)
}

fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|first| first.to_uppercase().to_string()).unwrap_or_default();
    format!("{first}{}.", letters.as_str())
}

/// The request of a client that began the run, if it is still kept.
pub(super) fn request(state: &ConsoleState, head: &Head) -> Option<Arc<Entry>> {
    let created = at(head.created_ms);
    let is_its = |one: &gatewright_core::Execution| {
        let apart = created.duration_since(one.started).unwrap_or_default();
        one.script.is_some_and(|script| script.sha256 == head.about.script)
            && one.principal.subject == head.owner.subject
            && one.started <= created + MILLISECOND
            && apart <= one.duration
    };
    state.history.choose(None, 1, is_its).pop()
}

fn facts(state: &ConsoleState, execution: &Execution) -> Markup {
    let head = &execution.head;
    let request = request(state, head);
    let trace = request.as_ref().and_then(|entry| entry.execution.trace.as_ref()).map(TraceContext::trace_id);
    html! {
        dl.facts {
            div { dt { "Id" } dd { code { (head.id) } } }
            div { dt { "Started" } dd { (time(at(head.created_ms))) } }
            div { dt { "Changed" } dd { (time(at(head.updated_ms))) } }
            div { dt { "Kept until" } dd { (time(at(head.expires_ms))) } }
            div { dt { "Caller" } dd { (owner(head)) } }
            @if head.about.detached { div { dt { "Client" } dd { "runs in the background" } } }
            div { dt { "Tool calls" } dd { (head.calls.made) @if head.calls.failed > 0 { ", " (head.calls.failed) " failed" } } }
            div { dt { "Resumed" } dd { (text::count(head.resumed as usize, "time")) } }
            @if let Some(entry) = &request { div { dt { "Request" } dd { a href=(format!("/console/calls/{}", entry.id)) { "call " (entry.id) } } } }
            @if let Some(trace) = &trace { div { dt { "Trace" } dd { code { (trace) } } } }
            div { dt { "Journal" } dd { @if head.complete { (text::size(head.bytes)) } @else { "too large to be kept" } } }
        }
    }
}

fn waits(head: &Head) -> Markup {
    html! {
        @if !head.waiting_for.is_empty() {
            section aria-labelledby="waits" {
                h2 #waits { "Waits for" }
                ul.list { @for waiting in &head.waiting_for { li { (question(waiting)) } } }
                @if head.waiting_for.iter().any(|waiting| waiting.kind == WaitKind::Approval) {
                    p.buttons { a.button.quiet href="/console/approvals" { "Decide on approvals" } }
                }
            }
        }
    }
}

fn contents(state: &ConsoleState, run: &RecordedRun) -> Markup {
    let head = run.head();
    let outcome = run.outcome();
    let place = outcome.as_ref().and_then(|outcome| outcome.place);
    let failed = head.ending.as_ref().is_some_and(|ending| ending.status != "ok");
    let codes = head.ending.iter().flat_map(|ending| [ending.code.clone(), Some(ending.status.clone())]);
    let calls = run.calls();
    html! {
        p.buttons { a.button.quiet href=(format!("/console/script?run={}", head.id)) { "Repeat in the pad" } }
        @if let Some(outcome) = &outcome {
            section.result.failed[failed] aria-labelledby="outcome" {
                div.row { h2 #outcome { @if failed { "Error" } @else { "Result" } } @if run.is_rehearsal() { span.tag { "dry run" } } }
                (result::block(&pretty(&outcome.result)))
                @if !outcome.logs.is_empty() { h3 { "Logs" } (result::block(&outcome.logs)) }
            }
        } @else if head.state == RunState::Ended { p.soft { "No outcome was kept." } }
        @if failed { (advised(codes.flatten().collect())) }
        section aria-labelledby="script" {
            h2 #script { "Script" }
            (source::numbered(run.script(), place))
        }
        @if let Some(context) = run.context() {
            section aria-labelledby="context" { h2 #context { "Context" } details { summary { "Read as " code { "codecallContext" } } (result::json(&context)) } }
        }
        (calls_of(state, run, &calls))
    }
}

/// JSON with line breaks; other text as it is.
fn pretty(json: &str) -> String {
    let value = read_json::<serde_json::Value>(json).ok();
    value.and_then(|value| serde_json::to_string_pretty(&value).ok()).unwrap_or_else(|| json.to_owned())
}

/// The calls as records of observers have them.
fn records(head: &Head, calls: &[RecordedCall<'_>]) -> Vec<CallRecord> {
    let record = |call: &RecordedCall<'_>| CallRecord {
        tool: call.name.into(),
        app: "".into(),
        start: call.called,
        duration: call.answered.unwrap_or(call.called).saturating_sub(call.called),
        ending: ending_of(head, call),
        bytes: call.answer.and_then(|answer| Some(answer.ok()?.get().len() as u64)),
        span_id: None,
        transport: None,
    };
    calls.iter().take(MAX_CALLS).map(record).collect()
}

fn ending_of(head: &Head, call: &RecordedCall<'_>) -> Ending {
    match &call.answer {
        Some(Ok(_)) => Ending::OK,
        Some(Err(failure)) => Ending::new(failure.code.clone()),
        None if head.state == RunState::Ended => Ending::new("no answer"),
        None if call.asked_approval => Ending::new(codes::APPROVAL_REQUIRED),
        None => Ending::new(WAITING),
    }
}

fn calls_of(state: &ConsoleState, run: &RecordedRun, calls: &[RecordedCall<'_>]) -> Markup {
    let records = records(run.head(), calls);
    let end = records.iter().map(|call| call.start + call.duration).max().unwrap_or(Duration::ZERO);
    let judge = Judge::new(state, run);
    html! {
        section aria-labelledby="over-time" {
            h2 #over-time { "Calls over time" }
            (waterfall::waterfall(&records, calls.len() - records.len(), end))
        }
        @if !calls.is_empty() {
            section aria-labelledby="calls" {
                h2 #calls { "Inputs and answers" }
                div.group {
                    @for (at, call) in calls.iter().take(MOST_SHOWN).enumerate() {
                        details {
                            summary {
                                span { (at + 1) ". " code { (text::line(call.name, 100)) } }
                                (ending(&ending_of(run.head(), call)))
                            }
                            (input_and_answer(call, BRIEFLY))
                            (judge.words(at, call))
                            p { a href=(format!("/console/runs/{}?call={}", run.head().id, at + 1)) { "In full" } " · " a href=(tool_path(call.name)) { "Tool" } }
                        }
                    }
                }
                @if calls.len() > MOST_SHOWN {
                    p.soft { (calls.len() - MOST_SHOWN) " more have pages of their own: add " code { "?call=" } " and the number to the address." }
                }
            }
        }
    }
}

fn input_and_answer(call: &RecordedCall<'_>, most: usize) -> Markup {
    let shown = |json: &RawValue| pretty(json.get()).chars().take(most).collect::<String>();
    let is_cut = |json: &RawValue| json.get().chars().nth(most).is_some();
    html! {
        div {
            h3 { "Input" }
            (result::block(&shown(call.input)))
            @if is_cut(call.input) { p.soft { "This is the beginning." } }
            @match &call.answer {
                Some(Ok(answer)) => {
                    h3 { "Answer" }
                    (result::block(&shown(answer)))
                    @if is_cut(answer) { p.soft { "This is the beginning." } }
                }
                Some(Err(failure)) => {
                    div.alert { strong { (text::line(&failure.code, 60)) } " " (text::message(&failure.message)) }
                    @if let Some(advice) = crate::advice::on(&failure.code) { p { (text::prose(advice, 400)) } }
                }
                None => p.soft { "There is no answer." },
            }
            @if call.has_blocks { p.soft { "The answer also had images, audio or resources." } }
        }
    }
}

fn one_call(state: &ConsoleState, run: &RecordedRun, number: usize) -> Response {
    let calls = run.calls();
    let Some(call) = calls.get(number - 1).filter(|_| state.shows_contents) else {
        return missing(state, "The run made no call of this number, or it is not shown.");
    };
    let judge = Judge::new(state, run);
    let body = html! {
        p.back { a href=(format!("/console/runs/{}", run.head().id)) { (name(run.head())) } }
        h1 { (number) ". " code { (text::line(call.name, 100)) } }
        dl.facts {
            div { dt { "Called" } dd { (text::duration(call.called)) " after the start" } }
            @if let Some(answered) = call.answered { div { dt { "Took" } dd { (text::duration(answered.saturating_sub(call.called))) } } }
        }
        (input_and_answer(call, text::LONGEST))
        (judge.words(number - 1, call))
        p { a href=(tool_path(call.name)) { "Tool" } }
    };
    page(state, StatusCode::OK, NavItem::Runs, "Call of a run", body)
}

/// Tells of the policies on calls of a run: as its journal shows it, and as if the calls were made now.
struct Judge<'r> {
    policies: Option<Arc<Policies>>,
    snapshot: Arc<Snapshot>,
    head: &'r Head,
    is_rehearsal: bool,
}

impl<'r> Judge<'r> {
    fn new(state: &ConsoleState, run: &'r RecordedRun) -> Self {
        let registry = state.operator.gateway().registry();
        Self {
            policies: registry.policies(),
            snapshot: registry.operator_snapshot(),
            head: run.head(),
            is_rehearsal: run.is_rehearsal(),
        }
    }

    fn words(&self, at: usize, call: &RecordedCall<'_>) -> Markup {
        let (then, now) = (self.then(call), self.decision(at, call));
        html! {
            @if let Some(then) = then { p { "Policies, when it was called: " (then) } }
            @if let Some((now, matched)) = &now { p { "Policies, as they are now: " (word(now)) (by(now, matched)) } }
        }
    }

    /// The decision when the call was made, if the journal shows it: an app answers only what policies let pass. A rehearsal invents answers.
    fn then(&self, call: &RecordedCall<'_>) -> Option<Markup> {
        let refused = [codes::ACCESS_DENIED, codes::APPROVAL_REQUIRED, codes::APPROVAL_DENIED];
        let words = match &call.answer {
            _ if self.is_rehearsal => return None,
            Some(Ok(_)) if call.asked_approval => html! { (status(true, "yes")) " after an approval" },
            // Without policies nothing was decided, as far as anybody knows.
            Some(Ok(_)) => self.policies.as_ref().map(|_| status(true, "yes"))?,
            Some(Err(failure)) if refused.contains(&&*failure.code) => {
                html! { (status(false, "no")) " " (text::line(&failure.message, 300)) }
            }
            None if call.asked_approval => html! { span.tag.warn { "waits for an approval" } },
            Some(Err(_)) | None => return None,
        };
        Some(words)
    }

    /// The decision on the call `at`, if there are policies and such a tool.
    fn decision(&self, at: usize, call: &RecordedCall<'_>) -> Option<(Decision, Vec<MatchedPolicy>)> {
        let tool = self.snapshot.tool(call.name)?;
        let mut arguments: JsonObject = read_json(call.input.get()).ok()?;
        tool.fill_defaults(&mut arguments);
        let request = PolicyRequest {
            principal: &self.head.owner,
            object: tool.policy_object(),
            arguments: Some(&arguments),
            script: true,
            calls: at as u64,
            time: std::time::SystemTime::now(),
        };
        let policies = self.policies.as_ref()?;
        let matched = policies.engine.as_ref().map(|engine| engine.matching(&request)).unwrap_or_default();
        Some((policies.decide(&request), matched))
    }
}
