//! The consent page: the client, the scopes it asks for, and the apps and tools that they reach.

use maud::{Markup, html};

use super::{FormStep, Page, plain};
use crate::consent_tools::{ConsentApp, ConsentTool, MAX_LISTED};

/// A scope on the consent page.
pub(crate) struct OfferedScope<'a> {
    pub(crate) scope: &'a str,
    pub(crate) words: &'a str,
    /// It was not offered for this client before.
    pub(crate) is_new: bool,
    /// Its box is ticked: not for a scope that the user refused before.
    pub(crate) is_ticked: bool,
}

/// Contents of the consent page.
pub(crate) struct ConsentPage<'a> {
    pub(crate) server: &'a str,
    pub(crate) user: &'a str,
    pub(crate) client: &'a str,
    pub(crate) client_host: &'a str,
    pub(crate) redirect_host: &'a str,
    pub(crate) loopback: bool,
    pub(crate) resource: &'a str,
    pub(crate) offered: &'a [OfferedScope<'a>],
    /// Apps that the offered scopes reach, when the tools are known.
    pub(crate) apps: Option<&'a [ConsentApp]>,
    /// Returns the meaning of a scope in words.
    pub(crate) words: &'a dyn Fn(&str) -> String,
}

/// The apps and tools that a grant reaches: their number, and their names in a list to open.
fn reach(apps: &[ConsentApp], words: &dyn Fn(&str) -> String) -> Markup {
    let more = |left: usize, what: &str| html! { @if left > 0 { li { "and " (left) " more " (what) } } };
    let (max_apps, max_tools) = MAX_LISTED;
    html! {
        h2 { "Apps and tools covered" }
        @if apps.is_empty() { p { "No tool is within reach of this." } }
        @for app in apps.iter().take(max_apps) {
            details {
                summary { strong { (plain(&app.app, 80)) } ": " (app.tools.len()) " of " (app.all) @if app.all == 1 { " tool" } @else { " tools" } }
                ul {
                    @for tool in app.tools.iter().take(max_tools) { (listed_tool(tool, words)) }
                    (more(app.tools.len().saturating_sub(max_tools), "tools"))
                }
            }
        }
        @if apps.len() > max_apps { ul { (more(apps.len() - max_apps, "apps")) } }
    }
}

fn listed_tool(tool: &ConsentTool, words: &dyn Fn(&str) -> String) -> Markup {
    let needs: Vec<String> = tool.scopes.iter().map(|scope| words(scope)).collect();
    html! {
        li {
            code { (plain(&tool.name, 120)) }
            @if !needs.is_empty() { " needs: " (needs.join(", ")) }
            @if tool.destructive { " " strong.new { "may delete or overwrite" } }
        }
    }
}

pub(crate) fn consent(content: &ConsentPage<'_>, step: &FormStep<'_>) -> Page {
    Page::new(
        &format!("Allow {}?", content.client),
        html! {
            h1 { "Allow " (content.client) "?" }
            p { "Signed in as " strong { (content.user) } "." }
            dl {
                dt { "Application" } dd { (content.client) }
                dt { "Identified by" } dd { (content.client_host) }
                dt { "Sends you back to" } dd { (content.redirect_host) }
                dt { "Gets access to" } dd { (content.server) " (" (content.resource) ")" }
            }
            @if content.loopback {
                p.warning role="note" { "This application runs on this computer. Any program on it could claim to be this application: allow only if you just started it." }
            }
            form method="post" action=(step.action) {
                (step.fields())
                fieldset {
                    legend { "It will be able to" }
                    @for (n, item) in content.offered.iter().enumerate() {
                        div.scope {
                            input type="checkbox" id={"scope" (n)} name="grant_scope" value=(item.scope) checked[item.is_ticked];
                            label for={"scope" (n)} { (item.words) @if item.is_new { " " strong.new { "new" } } " " code { (item.scope) } }
                        }
                    }
                }
                @if let Some(apps) = content.apps { (reach(apps, content.words)) }
                div.buttons {
                    button type="submit" name="decision" value="allow" { "Allow" }
                    button.quiet type="submit" name="decision" value="deny" { "Deny" }
                }
            }
        },
    )
}
