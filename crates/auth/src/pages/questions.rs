//! The page where users answer questions of plans.

use gatewright_core::{
    WaitingPlan,
    rmcp::model::{ElicitRequestParams, InputRequest},
};
use gatewright_pages::{Width, breakable, wait};
use http::StatusCode;
use maud::{Markup, html};
use serde_json::Value;

use super::{Page, plain};
use crate::{
    question_form::{Choice, Errors, Field, Format, Kind},
    web::{params::Params, responses::with_query},
};

/// Longest default of a field, in characters.
const LONGEST_DEFAULT: usize = 2_000;

/// A question of a plan on the page.
pub(crate) struct PageQuestion {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) parts: Vec<Part>,
}

/// One of the questions of a call.
pub(crate) enum Part {
    Form {
        message: String,
        fields: Vec<Field>,
    },
    Address {
        message: String,
        url: String,
    },
    /// A form that the page cannot show: its user can only decline or cancel.
    Unsupported {
        message: String,
    },
}

impl Part {
    /// The part that the question `n` of a call is.
    pub(crate) fn of(n: usize, request: &InputRequest) -> Self {
        let params = match request {
            InputRequest::Elicitation(elicit) => &elicit.params,
            _ => return Self::Unsupported { message: String::new() },
        };
        match params {
            ElicitRequestParams::FormElicitationParams { message, requested_schema, .. } => {
                let schema = serde_json::to_value(requested_schema).unwrap_or_default();
                match crate::question_form::fields(n, &schema) {
                    Some(fields) => Self::Form { message: message.clone(), fields },
                    None => Self::Unsupported { message: message.clone() },
                }
            }
            ElicitRequestParams::UrlElicitationParams { message, url, .. } => {
                Self::Address { message: message.clone(), url: url.clone() }
            }
            _ => Self::Unsupported { message: String::new() },
        }
    }

    /// Returns `true` if the page can take an answer to it.
    pub(crate) fn is_supported(&self) -> bool {
        !matches!(self, Self::Unsupported { .. })
    }
}

/// A form that was sent with errors. The page shows it again, with the values that were entered.
pub(crate) struct Sent<'a> {
    pub(crate) question: &'a str,
    pub(crate) params: &'a Params,
    pub(crate) errors: Errors,
}

/// Contents of the page of one plan.
pub(crate) struct QuestionsPage<'a> {
    pub(crate) server: &'a str,
    pub(crate) user: &'a str,
    pub(crate) action: &'a str,
    pub(crate) csrf: &'a str,
    pub(crate) plan: &'a WaitingPlan,
    pub(crate) questions: &'a [PageQuestion],
    pub(crate) now_ms: u64,
    pub(crate) sent: Option<Sent<'a>>,
    /// Error of the last answer.
    pub(crate) error: Option<&'a str>,
}

/// The page with the questions of one plan.
pub(crate) fn questions(content: &QuestionsPage<'_>) -> Page {
    let left = wait(content.plan.expires_ms.saturating_sub(content.now_ms) / 1000);
    let page = html! {
        div.row {
            h1 { "Questions at " (breakable(content.server)) }
            a href=(content.action) { "All plans" }
        }
        p.soft { "Signed in as " strong { (content.user) } "." }
        (alert(content.error))
        p { "Plan " strong { (title(content.plan)) } (of_client(content.plan)) ", kept for another " (left) "." }
        @if content.questions.is_empty() {
            p.card.offer {
                "Nothing of this plan waits for your answer. "
                @if content.plan.detached { "It goes on by itself." } @else { "Go back to your application, which goes on with it." }
            }
        } @else {
            p.soft { "The plan and its tools read your answers: enter no passwords here." }
            ul.approvals { @for (n, question) in content.questions.iter().enumerate() { (entry(content, n, question)) } }
        }
    };
    with_status(content.server, page, content.error.is_some() || content.sent.is_some())
}

/// The page with the plans that wait for a user.
pub(crate) fn plans(
    (server, user): (&str, &str),
    action: &str,
    plans: &[WaitingPlan],
    notice: Option<&str>,
    error: Option<&str>,
) -> Page {
    let page = html! {
        div.row {
            h1 { "Questions at " (breakable(server)) }
            a href=(action) { "Refresh" }
        }
        p.soft { "Signed in as " strong { (user) } "." }
        (alert(error))
        @if let Some(notice) = notice { p.notice role="status" { (notice) } }
        @if plans.is_empty() {
            p.card.offer { "Nothing waits for you." }
        } @else {
            p.soft { "These plans wait for your answers." }
            ul.list.offer {
                @for plan in plans {
                    li {
                        a.name href=(with_query(action, &[("plan", &plan.id)])) { (title(plan)) }
                        @for asks in plan.asks.iter().take(3) { p.soft { (plain(asks, 200)) } }
                    }
                }
            }
        }
    };
    with_status(server, page, error.is_some())
}

fn with_status(server: &str, body: Markup, is_error: bool) -> Page {
    let status = if is_error { StatusCode::BAD_REQUEST } else { StatusCode::OK };
    Page { width: Width::Wide, status, ..Page::new(&format!("Questions at {server}"), body) }
}

fn alert(error: Option<&str>) -> Markup {
    html! { @if let Some(error) = error { p.alert role="alert" { (error) } } }
}

fn title(plan: &WaitingPlan) -> String {
    match plan.title.as_deref().map(|title| plain(title, 80)) {
        Some(title) if !title.is_empty() => title,
        _ => plan.id.clone(),
    }
}

fn of_client(plan: &WaitingPlan) -> Markup {
    html! { @if let Some(client) = &plan.client { " of the application " (plain(client, 80)) } }
}

fn entry(content: &QuestionsPage<'_>, n: usize, question: &PageQuestion) -> Markup {
    let sent = content.sent.as_ref().filter(|sent| sent.question == question.id);
    let is_supported = question.parts.iter().all(Part::is_supported);
    html! {
        li.approval.card {
            h2 id={"question" (n)} { code { (breakable(&plain(&question.name, 120))) } " asks" }
            form method="post" action=(content.action) {
                input type="hidden" name="csrf" value=(content.csrf);
                input type="hidden" name="plan" value=(content.plan.id);
                input type="hidden" name="question" value=(question.id);
                @for part in &question.parts { (part_markup(n, part, sent)) }
                div.buttons {
                    @if is_supported {
                        button type="submit" name="action" value="accept" aria-describedby={"question" (n)} { "Answer" }
                    }
                    button.quiet.danger type="submit" name="action" value="decline" formnovalidate aria-describedby={"question" (n)} { "Decline" }
                    button.quiet type="submit" name="action" value="cancel" formnovalidate aria-describedby={"question" (n)} { "Cancel" }
                }
            }
        }
    }
}

fn part_markup(n: usize, part: &Part, sent: Option<&Sent<'_>>) -> Markup {
    match part {
        Part::Form { message, fields } => html! {
            p { (plain(message, 2_000)) }
            @for field in fields { (field_markup(n, field, sent)) }
        },
        Part::Address { message, url } => html! {
            p { (plain(message, 2_000)) }
            p { a href=(url) target="_blank" rel="noopener noreferrer" { (breakable(url)) } }
            p.hint { "The tool asks you to open this address, in a new window. Come back and answer when you are done there." }
        },
        Part::Unsupported { message } => html! {
            p { (plain(message, 2_000)) }
            p.hint { "This page cannot show the form. Answer in another application, or decline." }
        },
    }
}

fn field_markup(n: usize, field: &Field, sent: Option<&Sent<'_>>) -> Markup {
    let id = format!("{n}.{}", field.input);
    let label = plain(field.title.as_deref().unwrap_or(&field.property), 120);
    let error = sent.and_then(|sent| sent.errors.get(&field.input));
    let hint = field.description.as_deref().map(|text| plain(text, 400));
    let about = match (error, &hint) {
        (Some(_), _) => Some(format!("{id}.error")),
        (None, Some(_)) => Some(format!("{id}.hint")),
        (None, None) => None,
    };
    let more = html! {
        @if let Some(hint) = &hint { p.hint id={(id) ".hint"} { (hint) } }
        @if let Some(error) = error { p.error id={(id) ".error"} { (error) } }
    };
    let needed = (!field.is_required).then(|| html! { span.soft { " (optional)" } });
    let is_invalid = error.map(|_| "true");
    match &field.kind {
        Kind::Yes => html! {
            div.field {
                div.check {
                    input type="checkbox" id=(id) name=(field.input) checked[is_ticked(field, sent)] aria-describedby=[about];
                    label for=(id) { (label) }
                }
                (more)
            }
        },
        Kind::Many { choices, .. } => html! {
            fieldset.field aria-describedby=[about] {
                legend { (label) (needed.unwrap_or_default()) }
                @for (at, choice) in choices.iter().enumerate() {
                    div.check {
                        input type="checkbox" id={(id) "." (at)} name=(field.option(at)) checked[is_among(field, at, choice, sent)];
                        label for={(id) "." (at)} { (plain(&choice.title, 120)) }
                    }
                }
                (more)
            }
        },
        Kind::One(choices) => html! {
            div.field {
                label for=(id) { (label) (needed.unwrap_or_default()) }
                select id=(id) name=(field.input) required[field.is_required] aria-invalid=[is_invalid] aria-describedby=[about] {
                    option value="" { "Choose" }
                    @for (at, choice) in choices.iter().enumerate() {
                        option value=(at) selected[is_chosen(field, at, choice, sent)] { (plain(&choice.title, 120)) }
                    }
                }
                (more)
            }
        },
        Kind::Number { is_integer, least, most } => {
            let step = if *is_integer { "1" } else { "any" };
            html! {
                div.field {
                    label for=(id) { (label) (needed.unwrap_or_default()) }
                    input type="number" id=(id) name=(field.input) value=(entered(field, sent)) required[field.is_required] step=(step) min=[least] max=[most] aria-invalid=[is_invalid] aria-describedby=[about];
                    (more)
                }
            }
        }
        Kind::Text { format, least, most } => {
            let (kind, zone) = match format {
                Format::Any => ("text", ""),
                Format::Email => ("email", ""),
                Format::Uri => ("url", ""),
                Format::Date => ("date", ""),
                Format::DateTime => ("datetime-local", " (UTC)"),
            };
            // Browsers count in another unit than schemas.
            let least =
                Some(*least).filter(|least| *format == Format::Any && *least > 0 && field.is_required);
            let most = most.filter(|_| *format == Format::Any);
            html! {
                div.field {
                    label for=(id) { (label) (zone) (needed.unwrap_or_default()) }
                    input type=(kind) id=(id) name=(field.input) value=(entered(field, sent)) required[field.is_required] minlength=[least] maxlength=[most.map(|most| most.saturating_mul(2))] autocomplete="off" aria-invalid=[is_invalid] aria-describedby=[about];
                    (more)
                }
            }
        }
    }
}

/// The text in a field: what was sent, or the default.
fn entered(field: &Field, sent: Option<&Sent<'_>>) -> String {
    match (sent, &field.default) {
        (Some(sent), _) => sent.params.get(&field.input).unwrap_or_default().to_owned(),
        (None, Value::String(text)) if matches!(&field.kind, Kind::Text { format: Format::DateTime, .. }) => {
            text.strip_suffix('Z').unwrap_or_default().to_owned()
        }
        // A default that cannot be seen as it is would be answered unread.
        (None, Value::String(text)) if plain(text, LONGEST_DEFAULT) == text.trim() => text.clone(),
        (None, Value::Number(number)) => number.to_string(),
        (None, _) => String::new(),
    }
}

fn is_ticked(field: &Field, sent: Option<&Sent<'_>>) -> bool {
    match sent {
        Some(sent) => sent.params.get(&field.input).is_some(),
        None => field.default == true,
    }
}

fn is_among(field: &Field, at: usize, choice: &Choice, sent: Option<&Sent<'_>>) -> bool {
    match sent {
        Some(sent) => sent.params.get(&field.option(at)).is_some(),
        None => field.default.as_array().is_some_and(|all| all.iter().any(|one| *one == choice.value)),
    }
}

fn is_chosen(field: &Field, at: usize, choice: &Choice, sent: Option<&Sent<'_>>) -> bool {
    match sent {
        Some(sent) => sent.params.get(&field.input) == Some(at.to_string().as_str()),
        None => field.default == choice.value,
    }
}
