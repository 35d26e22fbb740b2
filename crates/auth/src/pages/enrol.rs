//! The pages behind an enrolment link.
//!
//! The code of a link follows its `#`, which a browser sends to nobody: it gets into no log of this server or of a proxy. The script
//! moves it into the form of the first page; without script it can be pasted.

use maud::html;

use super::{
    Page,
    passkeys::{PasskeyPrompt, needs_script},
};

/// The page that the link opens.
pub(crate) fn link(server: &str, action: &str, csrf: &str) -> Page {
    let mut page = Page::new(
        &format!("Set up your passkey for {server}"),
        html! {
            h1 { "Set up your passkey for " (server) }
            form method="post" action=(action) data-link {
                input type="hidden" name="csrf" value=(csrf);
                div.field {
                    label for="token" { "Code" }
                    p.hint #code { "The part of your link after the #." }
                    input id="token" name="token" aria-describedby="code" autocomplete="off" autocapitalize="none" spellcheck="false" required;
                }
                button type="submit" { "Continue" }
            }
        },
    );
    page.script = true;
    page
}

/// The page with the passkey button, for a valid code.
pub(crate) fn enrol(
    server: &str,
    user: &str,
    token: &str,
    csrf: &str,
    prompt: &PasskeyPrompt,
    error: Option<&str>,
) -> Page {
    let fields = html! {
        input type="hidden" name="csrf" value=(csrf);
        input type="hidden" name="token" value=(token);
        div.field {
            label for="name" { "Name of the passkey" }
            input id="name" name="name" maxlength="60" placeholder="My laptop" autocomplete="off";
        }
    };
    let mut page = Page::new(
        &format!("Set up your passkey for {server}"),
        html! {
            h1 { "Set up your passkey for " (server) }
            p.soft { "You will sign in as " strong { (user) } " with it. This link works once." }
            @if let Some(error) = error { p.alert role="alert" { (error) } }
            (needs_script())
            (prompt.form("create", &fields, "Make a passkey"))
        },
    );
    page.script = true;
    page
}
