//! The pages of a logout.

use maud::html;

use super::Page;

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
