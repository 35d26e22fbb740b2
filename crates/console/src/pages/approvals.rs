//! `/console/approvals`: requests that wait for somebody's approval, which the operator may give.

use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, UNIX_EPOCH},
};

use axum::{Form, extract::State, response::Response};
use gatewright_core::{ApprovalDuration, ApprovalRecord, Approver};
use http::StatusCode;
use maud::{Markup, html};

use super::{NavItem, page, stale, subject, time, token};
use crate::{ConsoleState, OPERATOR, guard, text};

/// Approvals on the page.
const MOST: usize = 100;

pub(crate) async fn list(State(state): State<Arc<ConsoleState>>) -> Response {
    render(&state, StatusCode::OK, None).await
}

pub(crate) async fn decide(
    State(state): State<Arc<ConsoleState>>,
    Form(typed): Form<HashMap<String, String>>,
) -> Response {
    let field = |name: &str| typed.get(name).map(String::as_str).unwrap_or_default();
    if !state.guard.is_token(field(guard::FIELD)) {
        return render(&state, StatusCode::FORBIDDEN, Some(stale())).await;
    }
    let approved = match field("decision") {
        "approve" => Some(ApprovalDuration::named(field("for")).unwrap_or_default()),
        "deny" => None,
        _ => {
            let problem = alert("Nothing was decided.", "The form does not say what to do.");
            return render(&state, StatusCode::UNPROCESSABLE_ENTITY, Some(problem)).await;
        }
    };
    let store = state.operator.gateway().invoker().approvals();
    match store.decide_on_shown(field("id"), approved, Approver::Operator(OPERATOR)).await {
        Ok(record) => {
            let word = if approved.is_some() { "Approved." } else { "Denied." };
            let done = html! { p.notice role="status" { strong { (word) } " The request for " code { (text::line(&record.object.to_string(), 100)) } " learns of it when it is made again." } };
            render(&state, StatusCode::OK, Some(done)).await
        }
        Err(error) => {
            let problem = alert("Nothing was decided.", &format!("{error}."));
            render(&state, StatusCode::UNPROCESSABLE_ENTITY, Some(problem)).await
        }
    }
}

async fn render(state: &ConsoleState, status: StatusCode, note: Option<Markup>) -> Response {
    let store = state.operator.gateway().invoker().approvals();
    let listed = store.list(Approver::Operator(OPERATOR)).await;
    let body = html! {
        div.row {
            h1 { "Approvals" }
            a href="/console/approvals" { "Refresh" }
        }
        p.soft { "Requests that policies let pass once somebody approved them. Each approval is for one request with exactly these arguments." }
        @if let Some(note) = &note { (note) }
        @match &listed {
            Ok(waiting) if waiting.is_empty() => p.soft { "No request waits for an approval." },
            Ok(waiting) => {
                ol.waiting { @for (n, approval) in waiting.iter().take(MOST).enumerate() { (entry(state, n, approval)) } }
                @if waiting.len() > MOST { p.soft { "There are " (waiting.len() - MOST) " more." } }
            },
            Err(error) => (alert("The approvals cannot be shown.", &format!("{error}."))),
        }
    };
    let status = if listed.is_ok() { status } else { StatusCode::SERVICE_UNAVAILABLE };
    page(state, status, NavItem::Approvals, "Approvals", body)
}

fn entry(state: &ConsoleState, n: usize, approval: &ApprovalRecord) -> Markup {
    let at = |ms| UNIX_EPOCH + Duration::from_millis(ms);
    let durations = approval.durations();
    html! {
        li.card {
            h2 id={"approval" (n)} { code { (text::line(&approval.object.to_string(), 100)) } }
            p.reason { (text::prose(&approval.reason, 600)) }
            dl.facts {
                div { dt { "Caller" } dd { (subject(&approval.subject, approval.client.as_deref())) } }
                @if let Some(place) = approval.place() { div { dt { "Place" } dd { (text::line(&place, 100)) } } }
                div { dt { "Policy" } dd { (text::line(&approval.policy, 100)) } }
                @if let Some(scope) = &approval.approvers { div { dt { "Approvers" } dd { "holders of " code { (text::line(scope, 60)) } } } }
                div { dt { "Asked" } dd { (time(at(approval.created_ms))) } }
                div { dt { "Expires" } dd { (time(at(approval.expires_ms))) } }
            }
            @if approval.arguments.is_empty() {
                @if approval.object.takes_arguments() { p.soft { "It has no arguments." } }
            } @else { ul.arguments aria-label="Arguments" { @for line in &approval.arguments { li { code { (text::line(line, 400)) } } } } }
            form method="post" action="/console/approvals" {
                (token(state))
                input type="hidden" name="id" value=(approval.decision_id());
                @if durations.len() > 1 {
                    div.field {
                        label for={"for" (n)} { "Approve" }
                        select id={"for" (n)} name="for" {
                            @for duration in durations { option value=(duration.name()) { (duration.label(&approval.object)) } }
                        }
                    }
                }
                div.buttons {
                    button type="submit" name="decision" value="approve" aria-describedby={"approval" (n)} { "Approve" }
                    button.quiet.danger type="submit" name="decision" value="deny" aria-describedby={"approval" (n)} { "Deny" }
                }
            }
        }
    }
}

fn alert(head: &str, text: &str) -> Markup {
    html! { div.alert role="alert" { strong { (head) } " " (text) } }
}
