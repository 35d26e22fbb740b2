//! The page where users decide on approvals.

use gatewright_core::ApprovalRecord;
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
    pub(crate) sign_out: &'a str,
    /// Error of the last decision.
    pub(crate) error: Option<&'a str>,
}

pub(crate) fn approvals(content: &ApprovalsPage<'_>) -> Page {
    Page::new(
        &format!("Approvals at {}", content.server),
        html! {
            h1 { "Approvals at " (content.server) }
            p { "Signed in as " strong { (content.user) } "." }
            @if let Some(error) = content.error { p.error role="alert" { (error) } }
            @if content.waiting.is_empty() {
                p { "Nothing waits for you." }
            } @else {
                p { "Each of these requests is made once you approve it, and only with exactly these arguments." }
                ul.approvals {
                    @for (n, approval) in content.waiting.iter().take(MOST).enumerate() { (entry(content, n, approval)) }
                }
                @if content.waiting.len() > MOST {
                    p { "There are " (content.waiting.len() - MOST) " more." }
                }
            }
            p { a href=(content.action) { "Refresh" } }
            p { a href=(content.sign_out) { "Sign out" } }
        },
    )
}

fn entry(content: &ApprovalsPage<'_>, n: usize, approval: &ApprovalRecord) -> Markup {
    let minutes = approval.expires_ms.saturating_sub(content.now_ms) / 60_000;
    let standings = approval.standings();
    html! {
        li.approval {
            h2 id={"approval" (n)} { (plain(&approval.object.to_string(), 120)) }
            p { (plain(&approval.reason, 600)) }
            p {
                @if approval.subject == content.subject { "Requested for you" } @else { "Requested for " strong { (plain(&approval.subject, 80)) } }
                @if let Some(client) = &approval.client { " by " (plain(client, 80)) }
                @if let Some(place) = approval.place() { ", as " (plain(&place, 80)) }
                ". Expires in " (minutes) " minutes."
            }
            @if approval.arguments.is_empty() {
                @if approval.object.takes_arguments() { p { "It has no arguments." } }
            } @else {
                p id={"arguments" (n)} { "Arguments:" }
                ul.arguments aria-labelledby={"arguments" (n)} {
                    @for line in &approval.arguments { li { code { (plain(line, 400)) } } }
                }
            }
            form method="post" action=(content.action) {
                input type="hidden" name="csrf" value=(content.csrf);
                input type="hidden" name="id" value=(approval.id);
                @if standings.len() > 1 {
                    label for={"for" (n)} { "Approve" }
                    select id={"for" (n)} name="for" {
                        @for standing in standings { option value=(standing.name()) { (standing.label(&approval.object)) } }
                    }
                }
                button type="submit" name="decision" value="approve" aria-describedby={"approval" (n)} { "Approve" }
                button.quiet type="submit" name="decision" value="deny" aria-describedby={"approval" (n)} { "Deny" }
            }
        }
    }
}
