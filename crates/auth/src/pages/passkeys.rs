//! Passkeys on pages: the button of the login page, the account page, and the only script.
//!
//! Pages work without the script except for passkeys: only a script can reach an authenticator. The script is inline and its hash is in
//! the page's policy, so that no other script runs.

use maud::{Markup, html};

use super::Page;
use crate::store::Passkey;

/// The script of pages with a passkey button.
pub(super) const SCRIPT: &str = include_str!("passkeys.js");

/// A passkey button and its ceremony.
pub(crate) struct PasskeyPrompt {
    /// Address that the response is sent to.
    pub(crate) action: String,
    /// Options of `navigator.credentials`, as JSON.
    pub(crate) options: String,
    /// Encrypted state that the form returns with the response.
    pub(crate) ceremony: String,
}

impl PasskeyPrompt {
    /// Returns a form that is hidden until the script finds that the browser supports passkeys.
    pub(super) fn form(&self, kind: &str, fields: &Markup, button: &str) -> Markup {
        html! {
            form method="post" action=(self.action) data-passkey=(kind) data-options=(self.options) hidden {
                (fields)
                input type="hidden" name="ceremony" value=(self.ceremony);
                input type="hidden" name="credential" value="";
                button.quiet[kind == "get"] type="submit" { (button) }
                p role="status" {}
            }
        }
    }

    /// Returns the button of the login page.
    pub(super) fn login(&self, fields: &Markup) -> Markup {
        self.form("get", fields, "Sign in with a passkey")
    }
}

/// Contents of the account page.
pub(crate) struct AccountPage<'a> {
    pub(crate) server: &'a str,
    pub(crate) user: &'a str,
    pub(crate) action: &'a str,
    pub(crate) csrf: &'a str,
    pub(crate) passkeys: &'a [Passkey],
    /// Button to add a passkey; `None` when the user has as many as allowed.
    pub(crate) add: Option<&'a PasskeyPrompt>,
    pub(crate) sign_out: &'a str,
    /// Error of the last change.
    pub(crate) error: Option<&'a str>,
}

pub(crate) fn account(content: &AccountPage<'_>) -> Page {
    let mut page = Page::new(
        &format!("Your account at {}", content.server),
        html! {
            h1 { "Your account at " (content.server) }
            p { "Signed in as " strong { (content.user) } "." }
            @if let Some(error) = content.error { p.error role="alert" { (error) } }
            h2 { "Passkeys" }
            @if content.passkeys.is_empty() {
                p { "You have none yet. With a passkey you sign in with your fingerprint, face, PIN or security key instead of a password." }
            } @else {
                ul.passkeys { @for (n, passkey) in content.passkeys.iter().enumerate() { li { (entry(content, n, passkey)) } } }
            }
            @if let Some(prompt) = content.add {
                (needs_script())
                (prompt.form("create", &html! {
                    input type="hidden" name="csrf" value=(content.csrf);
                    input type="hidden" name="action" value="add";
                    label for="name" { "Name of the new passkey" }
                    input id="name" name="name" maxlength="60" placeholder="My laptop" autocomplete="off";
                }, "Add a passkey"))
            } @else {
                p { "You have as many passkeys as this server allows. Remove one to add another." }
            }
            p { a href=(content.sign_out) { "Sign out" } }
        },
    );
    page.script = content.add.is_some();
    page
}

/// A passkey of the list.
fn entry(content: &AccountPage<'_>, n: usize, passkey: &Passkey) -> Markup {
    let fields = |action: &str| {
        html! {
            input type="hidden" name="csrf" value=(content.csrf);
            input type="hidden" name="action" value=(action);
            input type="hidden" name="id" value=(passkey.id);
        }
    };
    html! {
        h3 id={"passkey" (n)} { (passkey.name) }
        p {
            "Added on " (date(passkey.created_ms))
            @match passkey.used_ms { Some(at) => { ", last used on " (date(at)) } None => ", not used yet" }
            @if passkey.backed_up { ", synced to your other devices" } "."
        }
        form method="post" action=(content.action) {
            (fields("rename"))
            label for={"name" (n)} { "New name of " (passkey.name) }
            input id={"name" (n)} name="name" maxlength="60" value=(passkey.name) required autocomplete="off";
            button.quiet type="submit" { "Rename" }
        }
        form method="post" action=(content.action) {
            (fields("remove"))
            div.scope {
                input type="checkbox" id={"everywhere" (n)} name="everywhere" value="yes";
                label for={"everywhere" (n)} { "Also sign out everywhere and end the access of every application" }
            }
            button.quiet type="submit" aria-describedby={"passkey" (n)} { "Remove" }
        }
    }
}

/// A note that is visible until the script runs.
pub(super) fn needs_script() -> Markup {
    html! { p.warning role="note" data-without-passkeys { "To add a passkey, open this page in a browser that knows passkeys, with scripts turned on." } }
}

/// Formats a day as `2026-11-21`, UTC (days to civil date).
fn date(ms: u64) -> String {
    let days = ms / 86_400_000 + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let of_year = day - (365 * year + year / 4 - year / 100);
    let shifted = (5 * of_year + 2) / 153;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = year + era * 400 + u64::from(month <= 2);
    format!("{year}-{month:02}-{:02}", of_year - (153 * shifted + 2) / 5 + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_shown_as_dates() {
        for (ms, text) in [
            (0, "1970-01-01"),
            (951_782_400_000, "2000-02-29"),
            (951_868_800_000, "2000-03-01"),
            (1_795_219_199_999, "2026-11-20"),
            (1_798_675_200_000, "2026-12-31"),
            (1_798_761_600_000, "2027-01-01"),
        ] {
            assert_eq!(date(ms), text);
        }
    }

    #[test]
    fn the_script_reaches_for_nothing_but_the_authenticator() {
        for word in
            ["fetch", "XMLHttpRequest", "import", "eval", "innerHTML", "http", "localStorage", "cookie"]
        {
            assert!(!SCRIPT.contains(word), "{word}");
        }
        assert!(!SCRIPT.contains("</"), "it is inline");
    }
}
