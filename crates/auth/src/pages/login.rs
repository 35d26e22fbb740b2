//! The login page, and what the forms of a pending authorization carry.

use http::StatusCode;
use maud::{Markup, html};

use super::{Ask, Page};

/// What a form of a pending authorization carries.
pub(crate) struct Step<'a> {
    pub(crate) action: &'a str,
    pub(crate) pending: &'a str,
    pub(crate) csrf: &'a str,
}

impl Step<'_> {
    pub(super) fn fields(&self) -> Markup {
        html! {
            input type="hidden" name="pending" value=(self.pending);
            input type="hidden" name="csrf" value=(self.csrf);
        }
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn b13_names_and_hints_of_strangers_are_text() {
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
