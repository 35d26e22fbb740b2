//! The pages behind an enrolment link.
//!
//! The link carries its code after the `#`, which a browser sends to nobody: neither this server's log nor that of a proxy before it gets
//! a code that still works. The script moves it into the form of the first page and sends that; without script it can be pasted.

use maud::html;

use super::{
    Page,
    passkeys::{Ask, needs_script},
};

/// The page that the link opens.
pub(crate) fn link(server: &str, action: &str, csrf: &str) -> Page {
    let mut page = Page::new(
        &format!("Set up your passkey for {server}"),
        html! {
            h1 { "Set up your passkey for " (server) }
            form method="post" action=(action) data-link {
                input type="hidden" name="csrf" value=(csrf);
                label for="token" { "Code: what follows the # in your link" }
                input id="token" name="token" autocomplete="off" autocapitalize="none" spellcheck="false" required;
                button type="submit" { "Go on" }
            }
        },
    );
    page.script = true;
    page
}

/// The page with the passkey button, once the code is known to be good.
pub(crate) fn enrol(
    server: &str,
    user: &str,
    token: &str,
    csrf: &str,
    ask: &Ask,
    note: Option<&str>,
) -> Page {
    let fields = html! {
        input type="hidden" name="csrf" value=(csrf);
        input type="hidden" name="token" value=(token);
        label for="name" { "Name of the passkey" }
        input id="name" name="name" maxlength="60" placeholder="My laptop" autocomplete="off";
    };
    let mut page = Page::new(
        &format!("Set up your passkey for {server}"),
        html! {
            h1 { "Set up your passkey for " (server) }
            p { "You will sign in as " strong { (user) } " with it. This link works once." }
            @if let Some(note) = note { p.error role="alert" { (note) } }
            (needs_script())
            (ask.form("create", &fields, "Make a passkey"))
        },
    );
    page.script = true;
    page
}
