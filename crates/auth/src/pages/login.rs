//! The login page, and the hidden fields of the forms of an authorization request.

use gatewright_pages::wait;
use http::StatusCode;
use maud::{Markup, html};

use super::{Page, PasskeyPrompt};
use crate::records::LoginFailure;

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

/// Contents of the login page.
pub(crate) struct LoginPage<'a> {
    pub(crate) server: &'a str,
    pub(crate) client: &'a str,
    pub(crate) step: &'a FormStep<'a>,
    /// Text to fill in as user name.
    pub(crate) hint: Option<&'a str>,
    /// Failure of the last try, and the time now in milliseconds.
    pub(crate) failure: Option<(LoginFailure, u64)>,
    /// Any name passes, without a password.
    pub(crate) demo: bool,
    pub(crate) passkey: Option<&'a PasskeyPrompt>,
}

/// Status and words of a failure.
fn told((failure, now_ms): (LoginFailure, u64)) -> (StatusCode, String) {
    let text = match failure {
        LoginFailure::Password => "The user name or password is wrong.",
        LoginFailure::Passkey => "That passkey was not accepted.",
        LoginFailure::PageExpired => "The page was open too long, or was used already. Try again.",
        LoginFailure::Locked { until_ms } if until_ms > now_ms => {
            let left = wait((until_ms - now_ms).div_ceil(1000));
            return (
                StatusCode::TOO_MANY_REQUESTS,
                format!("There were too many failed tries. Try again in {left}."),
            );
        }
        LoginFailure::Locked { .. } => "You can try again now.",
    };
    (StatusCode::UNAUTHORIZED, text.to_owned())
}

pub(crate) fn login(content: &LoginPage<'_>) -> Page {
    let &LoginPage { server, client, step, hint, failure, demo, passkey } = content;
    let failure = failure.map(told);
    let described = failure.is_some().then_some("wrong");
    let mut page = Page::new(
        &format!("Sign in to {server}"),
        html! {
            h1 { "Sign in to " (server) }
            p.soft { "You will continue to " strong { (client) } "." }
            @if let Some((_, text)) = &failure { p.alert role="alert" id="wrong" { (text) } }
            form method="post" action=(step.action) {
                (step.fields())
                div.field {
                    label for="username" { "User name" }
                    input id="username" name="username" value=[hint] autocomplete="username" autocapitalize="none" spellcheck="false" required autofocus aria-describedby=[described];
                }
                @if demo {
                    p.hint { "This is a demonstration: any name passes." }
                } @else {
                    div.field {
                        label for="password" { "Password" }
                        input id="password" name="password" type="password" autocomplete="current-password" required aria-describedby=[described];
                    }
                }
                button type="submit" { "Sign in" }
            }
            @if let Some(passkey) = passkey { (passkey.login(&step.fields())) }
        },
    );
    page.script = passkey.is_some();
    if let Some((status, _)) = failure {
        page.status = status;
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
