//! The pages people see: login, consent, error, signed-out. Server-rendered, nothing from elsewhere; the only script is that of
//! `passkeys`, on pages with a passkey button.

mod passkeys;

use axum::response::{IntoResponse, Response};
use http::{HeaderName, HeaderValue, StatusCode, header};
use maud::{DOCTYPE, Markup, html};

pub(crate) use self::passkeys::{Ask, OnAccount, account, enrol};
use crate::{
    covered::{CoveredApp, CoveredTool, MOST},
    crypto::sha256,
};
use base64::{Engine as _, engine::general_purpose::STANDARD};

const STYLE: &str = include_str!("pages.css");

/// Text from strangers made fit to show: no control or direction characters, at most `most` characters.
pub(crate) fn plain(text: &str, most: usize) -> String {
    let hidden = |c: char| {
        c.is_control()
            || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{61c}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
    };
    let clean: String = text.chars().filter(|c| !hidden(*c)).collect();
    let clean = clean.trim();
    match clean.char_indices().nth(most) {
        Some((at, _)) => format!("{}…", &clean[..at]),
        None => clean.to_owned(),
    }
}

/// A page, and where its form may lead besides this server.
pub(crate) struct Page {
    pub(crate) title: String,
    pub(crate) body: Markup,
    pub(crate) status: StatusCode,
    pub(crate) form_target: Option<String>,
    /// Where the user's account page is, to be linked.
    pub(crate) account: Option<String>,
    /// Whether there is a passkey button.
    pub(crate) script: bool,
}

impl Page {
    pub(crate) fn new(title: &str, body: Markup) -> Self {
        let title = title.to_owned();
        Self { title, body, status: StatusCode::OK, form_target: None, account: None, script: false }
    }
}

impl IntoResponse for Page {
    fn into_response(self) -> Response {
        let document = html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    meta name="color-scheme" content="light dark";
                    title { (self.title) }
                    style { (maud::PreEscaped(STYLE)) }
                }
                body {
                    main {
                        (self.body)
                        @if let Some(account) = &self.account { p { a href=(account) { "Your account and passkeys" } } }
                    }
                    @if self.script { script { (maud::PreEscaped(passkeys::SCRIPT)) } }
                }
            }
        };
        let script = match self.script {
            true => format!("script-src 'sha256-{}'; ", STANDARD.encode(sha256(passkeys::SCRIPT))),
            false => String::new(),
        };
        let policy = format!(
            "default-src 'none'; {script}style-src 'sha256-{}'; form-action 'self'{}; frame-ancestors 'none'; base-uri 'none'",
            STANDARD.encode(sha256(STYLE)),
            self.form_target.map(|target| format!(" {target}")).unwrap_or_default(),
        );
        let mut response = (self.status, document.into_string()).into_response();
        let headers = response.headers_mut();
        let set = [
            (header::CONTENT_TYPE, "text/html; charset=utf-8"),
            (header::CACHE_CONTROL, "no-store"),
            (header::X_FRAME_OPTIONS, "DENY"),
            (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
            (header::REFERRER_POLICY, "no-referrer"),
            (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
        ];
        for (name, value) in set {
            headers.insert(name, HeaderValue::from_static(value));
        }
        if let Ok(policy) = HeaderValue::try_from(policy) {
            headers.insert(header::CONTENT_SECURITY_POLICY, policy);
        }
        response
    }
}

/// What a form of a pending authorization carries.
pub(crate) struct Step<'a> {
    pub(crate) action: &'a str,
    pub(crate) pending: &'a str,
    pub(crate) csrf: &'a str,
}

impl Step<'_> {
    fn fields(&self) -> Markup {
        html! {
            input type="hidden" name="pending" value=(self.pending);
            input type="hidden" name="csrf" value=(self.csrf);
        }
    }
}

/// A user let the gateway act for them at another server.
pub(crate) fn connected(server: &str, app: &str) -> Page {
    Page::new(
        &format!("Connected to {app}"),
        html! {
            h1 { "Connected" }
            p { strong { (server) } " can now act for you at " strong { (app) } "." }
            p { "You can close this window and go on." }
        },
    )
}

/// Why the login page is shown again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wrong {
    /// The name and the password do not fit.
    Password,
    /// The passkey was not accepted.
    Passkey,
    /// The page's passkey button can be used no more.
    Over,
}

impl Wrong {
    fn words(self) -> &'static str {
        match self {
            Self::Password => "That name and password do not fit.",
            Self::Passkey => "That passkey was not accepted.",
            Self::Over => "The page was open too long, or was used already. Try again.",
        }
    }
}

pub(crate) fn login(
    server: &str,
    client: &str,
    step: &Step<'_>,
    hint: Option<&str>,
    wrong: Option<Wrong>,
    demo: bool,
    passkey: Option<&Ask>,
) -> Page {
    let described = wrong.map(|_| "wrong");
    let mut page = Page::new(
        &format!("Sign in to {server}"),
        html! {
            h1 { "Sign in to " (server) }
            p { strong { (client) } " asks for access." }
            @if let Some(wrong) = wrong { p.error role="alert" id="wrong" { (wrong.words()) } }
            form method="post" action=(step.action) {
                (step.fields())
                label for="username" { "User name" }
                input id="username" name="username" value=[hint] autocomplete="username" autocapitalize="none" spellcheck="false" required autofocus aria-describedby=[described];
                @if demo {
                    p { "This is a demonstration: any name passes." }
                } @else {
                    label for="password" { "Password" }
                    input id="password" name="password" type="password" autocomplete="current-password" required aria-describedby=[described];
                }
                button type="submit" { "Sign in" }
            }
            @if let Some(passkey) = passkey { (passkey.login(&step.fields())) }
        },
    );
    page.script = passkey.is_some();
    if wrong.is_some() {
        page.status = StatusCode::UNAUTHORIZED;
    }
    page
}

/// A scope on the consent page.
pub(crate) struct Offered<'a> {
    pub(crate) scope: &'a str,
    pub(crate) words: &'a str,
    pub(crate) new: bool,
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
                            input type="checkbox" id={"scope" (n)} name="grant_scope" value=(item.scope) checked;
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

pub(crate) fn error(status: StatusCode, text: &str) -> Page {
    let body = html! { h1 { "This did not work" } p role="alert" { (text) } p { "Go back to the application and start again." } };
    Page { status, ..Page::new("This did not work", body) }
}

pub(crate) fn sign_out(csrf: &str, action: &str, hidden: &[(&str, &str)]) -> Page {
    Page::new(
        "Sign out?",
        html! {
            h1 { "Sign out?" }
            form method="post" action=(action) {
                input type="hidden" name="csrf" value=(csrf);
                @for (name, value) in hidden { input type="hidden" name=(name) value=(value); }
                button type="submit" { "Sign out" }
            }
        },
    )
}

pub(crate) fn signed_out() -> Page {
    Page::new("Signed out", html! { h1 { "Signed out" } p { "You can close this page." } })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn b13_text_from_strangers_is_cleaned_and_cut() {
        assert_eq!(plain("a\u{202e}b\u{0}c\n", 80), "abc");
        assert_eq!(plain(&"x".repeat(10_000), 80).chars().count(), 81);
        let page = login(
            "s",
            "\"><script>alert(1)</script>",
            &Step { action: "/", pending: "p", csrf: "c" },
            Some("\"><script>alert(2)</script>"),
            None,
            false,
            None,
        );
        let text = page.body.into_string();
        assert!(!text.contains("<script"), "{text}");
    }
}
