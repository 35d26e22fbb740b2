//! Passkeys on pages: the button, and the only script.
//!
//! Pages work without the script except for passkeys: only a script can reach an authenticator. The script is inline and its hash is in
//! the page's policy, so that no other script runs.

use gatewright_pages::Inline;
use maud::{Markup, html};

/// The script of pages with a passkey button.
pub(super) static SCRIPT: Inline = Inline::new(include_str!("passkeys.js"));

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
                @if kind == "get" { p.or { "or" } }
                (fields)
                input type="hidden" name="ceremony" value=(self.ceremony);
                input type="hidden" name="credential" value="";
                button.quiet[kind == "get"] type="submit" { (button) }
                p.hint role="status" {}
            }
        }
    }

    /// Returns the button of the login page.
    pub(super) fn login(&self, fields: &Markup) -> Markup {
        self.form("get", fields, "Sign in with a passkey")
    }
}

/// A note that is visible until the script runs.
pub(super) fn needs_script() -> Markup {
    html! { p.notice.warn role="note" data-without-passkeys { "To add a passkey, open this page in a browser that knows passkeys, with scripts turned on." } }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_script_reaches_for_nothing_but_the_authenticator() {
        for word in
            ["fetch", "XMLHttpRequest", "import", "eval", "innerHTML", "http", "localStorage", "cookie"]
        {
            assert!(!SCRIPT.text().contains(word), "{word}");
        }
        assert!(!SCRIPT.text().contains("</"), "it is inline");
    }
}
