//! The pages of a logout.

use maud::html;

use super::Page;

/// The question. `stay` is the address for a user who wants to stay signed in.
pub(crate) fn sign_out(csrf: &str, action: &str, hidden: &[(&str, &str)], stay: Option<&str>) -> Page {
    Page::new(
        "Sign out?",
        html! {
            h1 { "Sign out?" }
            p.soft { "This browser is signed out, and the access that applications got in this session ends." }
            form method="post" action=(action) {
                input type="hidden" name="csrf" value=(csrf);
                @for (name, value) in hidden { input type="hidden" name=(name) value=(value); }
                div.buttons {
                    button type="submit" { "Sign out" }
                    @if let Some(stay) = stay { a.button.quiet href=(stay) { "Stay signed in" } }
                }
            }
        },
    )
}

pub(crate) fn signed_out() -> Page {
    Page::new("Signed out", html! { h1 { "Signed out" } p.soft { "You can close this page." } })
}
