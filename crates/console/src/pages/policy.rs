//! The section about who may call a tool: its scopes, the word of the policies for a caller that the operator names, and of those seen lately.

use std::{collections::HashSet, sync::Arc, time::SystemTime};

use gatewright_core::{
    Decision, Groups, MatchedPolicy, PolicyRequest, Principal, Scopes, ToolEntry, rmcp::model::JsonObject,
};
use maud::{Markup, html};
use serde::Deserialize;

use super::{calls::caller, status};
use crate::{ConsoleState, text};

/// Executions among which callers are looked for.
const LATEST: usize = 200;
/// Callers that are listed.
const MOST: usize = 8;
/// Policies that are named for one decision.
const MOST_NAMED: usize = 5;

/// The caller that the operator asks about.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Asked {
    subject: String,
    client: String,
    /// Separated by spaces; `*` for all.
    scopes: String,
    /// Separated by commas.
    groups: String,
}

impl Asked {
    fn principal(&self) -> Option<Principal> {
        let named = |text: &str| Some(text.trim()).filter(|text| !text.is_empty()).map(Arc::<str>::from);
        let (subject, client_id) = (named(&self.subject), named(&self.client));
        let groups = self.groups.split(',').map(str::trim).filter(|name| !name.is_empty());
        let groups = Groups::new(groups).unwrap_or_default();
        let is_asked =
            subject.is_some() || client_id.is_some() || !self.scopes.trim().is_empty() || !groups.is_empty();
        is_asked.then(|| Principal {
            subject: subject.unwrap_or_else(|| "anonymous".into()),
            client_id,
            scopes: Scopes::parse(self.scopes.trim()),
            groups,
            endpoint: None,
        })
    }
}

/// The section of a tool's page.
pub(crate) fn section(state: &ConsoleState, tool: &ToolEntry, asked: &Asked) -> Markup {
    let scopes: HashSet<&String> = tool.meta.scopes.iter().collect();
    let mut scopes: Vec<&&String> = scopes.iter().collect();
    scopes.sort_unstable();
    let policies = state.operator.gateway().registry().policies();
    let principal = asked.principal();
    html! {
        section aria-labelledby="who" {
            h2 #who { "Who may call this" }
            @if scopes.is_empty() { p { "It needs no scope: every caller who may connect has it, as far as policies permit." } }
            @else { p { "Callers with " @for (at, scope) in scopes.iter().enumerate() { @if at > 0 { " and " } code { (text::line(scope, 80)) } } "." } }
            @if let Some(approval) = tool.approval { p { "Approval, by the configuration of the tool: " code { (format!("{approval:?}").to_lowercase()) } "." } }
            @if policies.is_none() { p.soft { "There are no policies." } }
            (seen(state, tool))
            details open[principal.is_some()] {
                summary { "Ask about a caller" }
                form.filter method="get" action="/console/tool#who" {
                    input type="hidden" name="name" value=(tool.tool.name);
                    div { label for="who-subject" { "Subject" } input #who-subject name="subject" maxlength="200" value=(asked.subject); }
                    div { label for="who-client" { "Client" } input #who-client name="client" maxlength="200" value=(asked.client); }
                    div { label for="who-scopes" { "Scopes" } input #who-scopes name="scopes" maxlength="2000" value=(asked.scopes); }
                    div { label for="who-groups" { "Groups" } input #who-groups name="groups" maxlength="2000" value=(asked.groups); }
                    button { "Ask" }
                }
                @if let Some(principal) = &principal { (answer(state, tool, principal)) }
            }
        }
    }
}

/// The decision for callers who called something lately.
fn seen(state: &ConsoleState, tool: &ToolEntry) -> Markup {
    let mut known = HashSet::new();
    let latest = state.history.latest(None, LATEST);
    let callers = latest.iter().map(|one| &one.execution.principal);
    let callers: Vec<&Principal> = callers
        .filter(|principal| *principal.subject != *crate::OPERATOR)
        .filter(|principal| known.insert((&principal.subject, &principal.client_id)))
        .take(MOST)
        .collect();
    html! {
        @if !callers.is_empty() {
            ul.list.callers aria-label="Callers seen lately" {
                @for principal in callers { li { span { (caller(principal)) } span { (verdict(state, tool, principal)) } } }
            }
        }
    }
}

fn verdict(state: &ConsoleState, tool: &ToolEntry, principal: &Principal) -> Markup {
    let missing = principal.missing(&tool.meta.scopes);
    html! {
        @if !missing.is_empty() { (status(false, "no")) " lacks " code { (text::line(&missing.join(" "), 100)) } }
        @else { (word(&decision(state, tool, principal).0)) }
    }
}

fn answer(state: &ConsoleState, tool: &ToolEntry, principal: &Principal) -> Markup {
    let (_, matched) = decision(state, tool, principal);
    html! {
        div #answer role="status" {
            p { (caller(principal)) ": " (verdict(state, tool, principal)) }
            @if !matched.is_empty() {
                ul.bullets { @for one in matched.iter().take(40) { li { code { (text::line(&one.policy, 80)) } " (" (one.effect) ") at " (text::line(&one.place, 120)) } } }
            }
            p.soft { "For a call without arguments, now. " code { "gatewright policy explain" } " asks about one with arguments." }
        }
    }
}

fn decision(state: &ConsoleState, tool: &ToolEntry, principal: &Principal) -> (Decision, Vec<MatchedPolicy>) {
    let Some(policies) = state.operator.gateway().registry().policies() else {
        return (Decision::Permit, Vec::new());
    };
    let mut arguments = JsonObject::new();
    tool.fill_defaults(&mut arguments);
    let request = PolicyRequest {
        principal,
        object: tool.policy_object(),
        arguments: Some(&arguments),
        script: false,
        calls: 0,
        time: SystemTime::now(),
    };
    let matched = policies.engine.as_ref().map(|engine| engine.matching(&request)).unwrap_or_default();
    (policies.decide(&request), matched)
}

/// The policies that a decision rests on, by name and place: of those that match, the ones with its effect.
pub(crate) fn by(decision: &Decision, matched: &[MatchedPolicy]) -> Markup {
    let effect = match decision {
        Decision::Permit => "permit",
        Decision::Ask { .. } => "ask",
        Decision::Forbid(_) => "forbid",
    };
    let all: Vec<&MatchedPolicy> = matched.iter().filter(|one| one.effect == effect).collect();
    html! {
        @if !all.is_empty() {
            " – by "
            @for (at, one) in all.iter().take(MOST_NAMED).enumerate() {
                @if at > 0 { ", " }
                code { (text::line(&one.policy, 120)) }
                @if *one.policy != *one.place { " at " (text::line(&one.place, 120)) }
            }
            @if all.len() > MOST_NAMED { " and " (all.len() - MOST_NAMED) " more" }
        }
    }
}

/// A decision in words.
pub(crate) fn word(decision: &Decision) -> Markup {
    html! {
        @match decision {
            Decision::Permit => (status(true, "yes")),
            Decision::Ask { policy, reason, approvers, .. } => {
                span.tag.warn { "after an approval" } " " code { (text::line(policy, 80)) } ": " (text::line(reason, 200))
                @if let Some(scope) = approvers { "; by holders of " code { (text::line(scope, 60)) } }
            }
            Decision::Forbid(why) => { (status(false, "no")) " " (text::line(&why.to_string(), 300)) }
        }
    }
}
