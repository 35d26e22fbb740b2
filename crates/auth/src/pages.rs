//! The pages, rendered by the server with nothing from elsewhere. The only script is that of `passkeys`, on pages with a passkey button.
//!
//! This file has the frame, the headers and the policy of every page. Each kind of page has a file of its own.

mod approvals;
mod consent;
mod enrol;
mod login;
mod logout;
mod passkeys;
mod text;

use axum::response::{IntoResponse, Response};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use http::{HeaderName, HeaderValue, StatusCode, header};
use maud::{DOCTYPE, Markup, html};

pub(crate) use self::{
    approvals::{ApprovalsPage, approvals},
    consent::{ConsentPage, OfferedScope, consent},
    enrol::{enrol, link},
    login::{FormStep, LoginFailure, LoginPage, login},
    logout::{sign_out, signed_out},
    passkeys::{AccountPage, PasskeyPrompt, account},
    text::plain,
};
use crate::crypto::sha256;

const STYLE: &str = include_str!("pages.css");

/// A page.
pub(crate) struct Page {
    pub(crate) title: String,
    pub(crate) body: Markup,
    pub(crate) status: StatusCode,
    /// Source that the answer to its form may lead to, besides this server.
    pub(crate) form_target: Option<String>,
    /// Address of the user's account page, to be linked.
    pub(crate) account: Option<String>,
    /// It has a passkey button, and its script.
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

/// The page for a user who connected their account at another server.
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

pub(crate) fn error(status: StatusCode, text: &str) -> Page {
    let body = html! { h1 { "This did not work" } p role="alert" { (text) } p { "Go back to the application and start again." } };
    Page { status, ..Page::new("This did not work", body) }
}
