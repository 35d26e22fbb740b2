//! The consent page: who asks, for what, and what it reaches.

use maud::{Markup, html};

use super::{Page, Step, plain};
use crate::covered::{CoveredApp, CoveredTool, MOST};

/// A scope on the consent page.
pub(crate) struct Offered<'a> {
    pub(crate) scope: &'a str,
    pub(crate) words: &'a str,
    pub(crate) new: bool,
    /// The box is ticked: not for a scope that the user refused before.
    pub(crate) ticked: bool,
}

pub(crate) struct Consent<'a> {
    pub(crate) server: &'a str,
    pub(crate) user: &'a str,
    pub(crate) client: &'a str,
    pub(crate) client_host: &'a str,
    pub(crate) redirect_host: &'a str,
    pub(crate) loopback: bool,
    pub(crate) resource: &'a str,
    pub(crate) offered: &'a [Offered<'a>],
    /// What the offered scopes reach, when that is known.
    pub(crate) covered: Option<&'a [CoveredApp]>,
    /// What a scope means.
    pub(crate) words: &'a dyn Fn(&str) -> String,
}

/// The apps and tools that a grant reaches: how many, and their names for those who open the list.
fn covered(apps: &[CoveredApp], words: &dyn Fn(&str) -> String) -> Markup {
    let more = |left: usize, what: &str| html! { @if left > 0 { li { "and " (left) " more " (what) } } };
    let (most_apps, most_tools) = MOST;
    html! {
        h2 { "Apps and tools covered" }
        @if apps.is_empty() { p { "No tool is within reach of this." } }
        @for app in apps.iter().take(most_apps) {
            details {
                summary { strong { (plain(&app.app, 80)) } ": " (app.tools.len()) " of " (app.all) @if app.all == 1 { " tool" } @else { " tools" } }
                ul {
                    @for tool in app.tools.iter().take(most_tools) { (covered_tool(tool, words)) }
                    (more(app.tools.len().saturating_sub(most_tools), "tools"))
                }
            }
        }
        @if apps.len() > most_apps { ul { (more(apps.len() - most_apps, "apps")) } }
    }
}

fn covered_tool(tool: &CoveredTool, words: &dyn Fn(&str) -> String) -> Markup {
    let needs: Vec<String> = tool.scopes.iter().map(|scope| words(scope)).collect();
    html! {
        li {
            code { (plain(&tool.name, 120)) }
            @if !needs.is_empty() { " needs: " (needs.join(", ")) }
            @if tool.destructive { " " strong.new { "may delete or overwrite" } }
        }
    }
}

pub(crate) fn consent(ask: &Consent<'_>, step: &Step<'_>) -> Page {
    Page::new(
        &format!("Allow {}?", ask.client),
        html! {
            h1 { "Allow " (ask.client) "?" }
            p { "Signed in as " strong { (ask.user) } "." }
            dl {
                dt { "Application" } dd { (ask.client) }
                dt { "Identified by" } dd { (ask.client_host) }
                dt { "Sends you back to" } dd { (ask.redirect_host) }
                dt { "Gets access to" } dd { (ask.server) " (" (ask.resource) ")" }
            }
            @if ask.loopback {
                p.warning role="note" { "This application runs on this computer. Any program on it could claim to be this application: allow only if you just started it." }
            }
            form method="post" action=(step.action) {
                (step.fields())
                fieldset {
                    legend { "It will be able to" }
                    @for (n, item) in ask.offered.iter().enumerate() {
                        div.scope {
                            input type="checkbox" id={"scope" (n)} name="grant_scope" value=(item.scope) checked[item.ticked];
                            label for={"scope" (n)} { (item.words) @if item.new { " " strong.new { "new" } } " " code { (item.scope) } }
                        }
                    }
                }
                @if let Some(apps) = ask.covered { (covered(apps, ask.words)) }
                div.buttons {
                    button type="submit" name="decision" value="allow" { "Allow" }
                    button.quiet type="submit" name="decision" value="deny" { "Deny" }
                }
            }
        },
    )
}
