//! The login page, and the hidden fields of the forms of an authorization request.

use http::StatusCode;
use maud::{Markup, html};

use super::{Page, PasskeyPrompt};

/// A form of a step of an authorization request.
pub(crate) struct FormStep<'a> {
    pub(crate) action: &'a str,
    pub(crate) pending: &'a str,
    pub(crate) csrf: &'a str,
}

impl FormStep<'_> {
    pub(super) fn fields(&self) -> Markup {
        html! {
            input type="hidden" name="pending" value=(self.pending);
            input type="hidden" name="csrf" value=(self.csrf);
        }
    }
}

/// A login that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LoginFailure {
    /// The name and the password do not fit.
    Password,
    /// The passkey was not accepted.
    Passkey,
    /// The passkey button of the page has expired or was used.
    PageExpired,
}

impl LoginFailure {
    fn words(self) -> &'static str {
        match self {
            Self::Password => "That name and password do not fit.",
            Self::Passkey => "That passkey was not accepted.",
            Self::PageExpired => "The page was open too long, or was used already. Try again.",
        }
    }
}

/// Contents of the login page.
pub(crate) struct LoginPage<'a> {
    pub(crate) server: &'a str,
    pub(crate) client: &'a str,
    pub(crate) step: &'a FormStep<'a>,
    /// Text to fill in as user name.
    pub(crate) hint: Option<&'a str>,
    pub(crate) failure: Option<LoginFailure>,
    /// Any name passes, without a password.
    pub(crate) demo: bool,
    pub(crate) passkey: Option<&'a PasskeyPrompt>,
}

pub(crate) fn login(content: &LoginPage<'_>) -> Page {
    let &LoginPage { server, client, step, hint, failure, demo, passkey } = content;
    let described = failure.map(|_| "wrong");
    let mut page = Page::new(
        &format!("Sign in to {server}"),
        html! {
            h1 { "Sign in to " (server) }
            p { strong { (client) } " asks for access." }
            @if let Some(failure) = failure { p.error role="alert" id="wrong" { (failure.words()) } }
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
    if failure.is_some() {
        page.status = StatusCode::UNAUTHORIZED;
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn b13_names_and_hints_of_strangers_are_text() {
        let page = login(&LoginPage {
            server: "s",
            client: "\"><script>alert(1)</script>",
            step: &FormStep { action: "/", pending: "p", csrf: "c" },
            hint: Some("\"><script>alert(2)</script>"),
            failure: None,
            demo: false,
            passkey: None,
        });
        let text = page.body.into_string();
        assert!(!text.contains("<script"), "{text}");
    }
}
