//! The consent page: the client, the scopes it asks for, and the apps and tools that they reach.

use gatewright_pages::breakable;
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
    let (max_apps, _) = MAX_LISTED;
    html! {
        section {
            h2 { "Apps and tools covered" }
            @if apps.is_empty() { p.soft { "No tool is within reach of this." } }
            div.group { @for app in apps.iter().take(max_apps) { (listed_app(app, words)) } }
            @if apps.len() > max_apps { ul.bullets { (more(apps.len() - max_apps, "apps")) } }
        }
    }
}

fn listed_app(app: &ConsentApp, words: &dyn Fn(&str) -> String) -> Markup {
    let (_, max_tools) = MAX_LISTED;
    html! {
        details {
            summary {
                span { strong { (breakable(&plain(&app.app, 80))) } ": " (app.tools.len()) " of " (app.all) @if app.all == 1 { " tool" } @else { " tools" } }
            }
            ul.bullets {
                @for tool in app.tools.iter().take(max_tools) { (listed_tool(tool, words)) }
                (more(app.tools.len().saturating_sub(max_tools), "tools"))
            }
        }
    }
}

/// An item that counts what is not listed.
fn more(left: usize, what: &str) -> Markup {
    html! { @if left > 0 { li { "and " (left) " more " (what) } } }
}

fn listed_tool(tool: &ConsentTool, words: &dyn Fn(&str) -> String) -> Markup {
    let needs: Vec<String> = tool.scopes.iter().map(|scope| words(scope)).collect();
    html! {
        li {
            code { (breakable(&plain(&tool.name, 120))) }
            @if !needs.is_empty() { " needs: " (needs.join(", ")) }
            @if tool.destructive { " " span.tag.warn { "may delete or overwrite" } }
        }
    }
}

pub(crate) fn consent(content: &ConsentPage<'_>, step: &FormStep<'_>) -> Page {
    Page::new(
        &format!("Allow {}?", content.client),
        html! {
            h1 { "Allow " (content.client) "?" }
            p.soft { "Signed in as " strong { (content.user) } "." }
            dl.facts.offer {
                div { dt { "Application" } dd { (breakable(content.client)) } }
                div { dt { "Identified by" } dd { (breakable(content.client_host)) } }
                div { dt { "Sends you back to" } dd { (breakable(content.redirect_host)) } }
                div { dt { "Gets access to" } dd { (breakable(content.server)) br; span.soft { (breakable(content.resource)) } } }
            }
            @if content.loopback {
                p.notice.warn role="note" { "This application runs on this computer. Any program on it could claim to be this application: allow only if you just started it." }
            }
            form method="post" action=(step.action) {
                (step.fields())
                fieldset.offer {
                    legend { "It will be able to" }
                    ul.list {
                        @for (n, item) in content.offered.iter().enumerate() {
                            li.check {
                                input type="checkbox" id={"scope" (n)} name="grant_scope" value=(item.scope) checked[item.is_ticked];
                                label for={"scope" (n)} {
                                    span { (item.words) @if item.is_new { " " strong.new { "new" } } }
                                    code { (breakable(item.scope)) }
                                }
                            }
                        }
                    }
                }
                @if let Some(apps) = content.apps { (reach(apps, content.words)) }
                div.buttons.bar {
                    button type="submit" name="decision" value="allow" { "Allow" }
                    button.quiet type="submit" name="decision" value="deny" { "Deny" }
                }
            }
        },
    )
}
