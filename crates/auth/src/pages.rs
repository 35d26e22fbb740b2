//! The pages, rendered by the server with nothing from elsewhere. The only script is that of `passkeys`, on pages with a passkey button.
//!
//! `gatewright-pages` has their look. This file has the headers and the policy of every page. Each kind of page has a file of its own.

mod account;
mod approvals;
mod consent;
mod enrol;
mod login;
mod logout;
mod passkeys;
mod questions;
mod text;

use axum::response::{IntoResponse, Response};
use gatewright_pages::{Frame, Width};
use http::{HeaderName, HeaderValue, StatusCode, header};
use maud::{Markup, html};

pub(crate) use self::{
    account::{AccountPage, PasskeyChange, PasskeySection, account},
    approvals::{ApprovalsPage, approvals},
    consent::{ConsentPage, OfferedScope, consent},
    enrol::{enrol, link},
    login::{FormStep, LoginPage, login},
    logout::{sign_out, signed_out},
    passkeys::PasskeyPrompt,
    questions::{PageQuestion, Part, QuestionsPage, Sent, plans, questions},
    text::plain,
};

/// A page.
pub(crate) struct Page {
    pub(crate) title: String,
    pub(crate) body: Markup,
    pub(crate) width: Width,
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
        let (title, width) = (title.to_owned(), Width::Slim);
        Self { title, body, width, status: StatusCode::OK, form_target: None, account: None, script: false }
    }
}

impl IntoResponse for Page {
    fn into_response(self) -> Response {
        let account = self.account.as_ref();
        let frame = Frame {
            title: &self.title,
            width: self.width,
            body: self.body,
            footer: account.map(|account| html! { a href=(account) { "Your account" } }),
            script: self.script.then_some(&passkeys::SCRIPT),
        };
        let target = self.form_target.map(|target| format!(" {target}")).unwrap_or_default();
        let policy = frame.policy(&format!("'self'{target}"));
        let mut response = (self.status, frame.html()).into_response();
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
            p.notice role="status" { strong { (server) } " can now act for you at " strong { (app) } "." }
            p.soft { "You can close this window." }
        },
    )
}

pub(crate) fn error(status: StatusCode, text: &str) -> Page {
    let body = html! {
        h1 { "This did not work" }
        p.alert role="alert" { (text) }
        p.soft { "Go back to the application and start again." }
    };
    Page { status, ..Page::new("This did not work", body) }
}
