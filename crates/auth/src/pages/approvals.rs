//! The page where users decide on approvals.

use gatewright_core::ApprovalRecord;
use gatewright_pages::{Width, breakable, wait};
use maud::{Markup, html};

use super::{Page, plain};

/// Approvals on the page.
const MOST: usize = 50;

/// Contents of the page.
pub(crate) struct ApprovalsPage<'a> {
    pub(crate) server: &'a str,
    pub(crate) user: &'a str,
    pub(crate) subject: &'a str,
    pub(crate) action: &'a str,
    pub(crate) csrf: &'a str,
    pub(crate) waiting: &'a [ApprovalRecord],
    pub(crate) now_ms: u64,
    /// Error of the last decision.
    pub(crate) error: Option<&'a str>,
}

pub(crate) fn approvals(content: &ApprovalsPage<'_>) -> Page {
    let body = html! {
        div.row {
            h1 { "Approvals at " (breakable(content.server)) }
            a href=(content.action) { "Refresh" }
        }
        p.soft { "Signed in as " strong { (content.user) } "." }
        @if let Some(error) = content.error { p.alert role="alert" { (error) } }
        @if content.waiting.is_empty() {
            p.card.offer { "Nothing waits for you." }
        } @else {
            p.soft { "Each of these requests is made once you approve it, and only with exactly these arguments." }
            ul.approvals {
                @for (n, approval) in content.waiting.iter().take(MOST).enumerate() { (entry(content, n, approval)) }
            }
            @if content.waiting.len() > MOST {
                p.soft { "There are " (content.waiting.len() - MOST) " more." }
            }
        }
    };
    Page { width: Width::Wide, ..Page::new(&format!("Approvals at {}", content.server), body) }
}

fn entry(content: &ApprovalsPage<'_>, n: usize, approval: &ApprovalRecord) -> Markup {
    let left = wait(approval.expires_ms.saturating_sub(content.now_ms) / 1000);
    let durations = approval.durations();
    html! {
        li.approval.card {
            div.row {
                h2 id={"approval" (n)} { code { (breakable(&plain(&approval.object.to_string(), 120))) } }
                span.soft { "expires in " (left) }
            }
            p.reason { (plain(&approval.reason, 600)) }
            p.hint {
                @if approval.subject == content.subject { "Requested for you" } @else { "Requested for " strong { (plain(&approval.subject, 80)) } }
                @if let Some(client) = &approval.client { " by " (plain(client, 80)) }
                @if let Some(place) = approval.place() { ", as " (plain(&place, 80)) }
                "."
            }
            @if approval.arguments.is_empty() {
                @if approval.object.takes_arguments() { p.soft { "It has no arguments." } }
            } @else {
                h3.offer id={"arguments" (n)} { "Arguments" }
                ul.arguments aria-labelledby={"arguments" (n)} {
                    @for line in &approval.arguments { li { code { (plain(line, 400)) } } }
                }
            }
            form method="post" action=(content.action) {
                input type="hidden" name="csrf" value=(content.csrf);
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
