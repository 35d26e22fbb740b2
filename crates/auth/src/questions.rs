//! The page where users answer questions of plans whose clients cannot ask them.

use std::sync::Arc;

use axum::{
    Router,
    body::Body,
    extract::State,
    response::{IntoResponse as _, Response},
    routing::get,
};
use gatewright_core::{
    CannotAnswer, PlanQuestion, PlanQuestions,
    rmcp::model::{InputRequest, InputResponses},
};
use http::{Request, StatusCode, request::Parts};
use serde_json::{Value, json};

use crate::{
    pages::{self, Page, PageQuestion, Part, QuestionsPage, Sent},
    question_form::{Errors, content},
    records::{AuthorizationRequest, Session},
    server::{
        AuthorizationServer, Services,
        account_form::{AccountForm, count_visit},
        flow::begin,
        router::below_issuer,
        services::QUESTIONS_PATH,
    },
    web::{
        params::Params,
        responses::{bad_request, error_page, page, redirect, store_page, with_query},
    },
};

/// Purpose of the page's CSRF tokens.
const PURPOSE: &str = "questions";
/// Longest id of a plan, in bytes.
const LONGEST_ID: usize = 64;
/// Notice after the last answer to a plan. Anybody can make a link to it, so that it claims nothing but this.
const ANSWERED: &str = "Nothing of that plan waits for your answer now.";

/// The page where users answer questions of plans.
#[derive(Clone)]
pub struct QuestionPages {
    services: Arc<Services>,
    plans: Arc<dyn PlanQuestions>,
}

impl std::fmt::Debug for QuestionPages {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("QuestionPages").finish_non_exhaustive()
    }
}

impl QuestionPages {
    /// The page on `server` for the questions of `plans`; `None` where nobody stays signed in (`auth.sessionMode: stateless`).
    pub fn new(server: &AuthorizationServer, plans: Arc<dyn PlanQuestions>) -> Option<Self> {
        let services = server.services().clone();
        services.account_url()?;
        services.set_plans(plans.clone());
        Some(Self { services, plans })
    }

    /// Its address. With the id of an execution as the parameter `plan` it asks the questions of that one.
    pub fn address(&self) -> String {
        self.services.ctx.url(QUESTIONS_PATH)
    }

    /// The endpoint.
    pub fn router(&self) -> Router {
        let routes = Router::new().route(QUESTIONS_PATH, get(show).post(answer));
        below_issuer(&self.services.ctx.deployment.public_url, routes).with_state(self.clone())
    }

    async fn page(&self, parts: &Parts) -> Result<Response, Response> {
        count_visit(&self.services, parts).await?;
        let params = Params::of_query(parts).map_err(error_page)?;
        let plan = params.get("plan").filter(|plan| is_id(plan));
        let is_answered = params.get("answered").is_some();
        let Some((id, session)) = self.services.sessions.current(&parts.headers).await.map_err(store_page)?
        else {
            return self.sign_in(parts, plan).await;
        };
        match plan {
            Some(plan) if is_answered => match self.plans.questions(&session.sub, plan).await {
                // A run in the background may be over by now.
                Err(CannotAnswer::NotOpen) => self.list(&session, Some(ANSWERED), None).await,
                _ => self.plan(&id, &session, plan, None, None).await,
            },
            Some(plan) => self.plan(&id, &session, plan, None, None).await,
            None => self.list(&session, None, None).await,
        }
    }

    async fn list(
        &self,
        session: &Session,
        notice: Option<&str>,
        error: Option<CannotAnswer>,
    ) -> Result<Response, Response> {
        let waiting = self.plans.waiting(&session.sub).await.map_err(cannot_read)?;
        let (server, user) = (&*self.services.ctx.deployment.name, pages::plain(&session.name, 80));
        let error = error.map(sentence);
        Ok(self.finish(pages::plans((server, &user), &self.address(), &waiting, notice, error.as_deref())))
    }

    /// The page with the questions of one plan, after an answer that was not taken perhaps.
    async fn plan(
        &self,
        session_id: &str,
        session: &Session,
        plan: &str,
        sent: Option<Sent<'_>>,
        error: Option<CannotAnswer>,
    ) -> Result<Response, Response> {
        let ctx = &self.services.ctx;
        let (plan, questions) = match self.plans.questions(&session.sub, plan).await {
            Ok(found) => found,
            Err(CannotAnswer::Unavailable) => return Err(cannot_read(CannotAnswer::Unavailable)),
            Err(error) => return self.list(session, None, Some(error)).await,
        };
        let questions: Vec<_> = questions.iter().map(page_question).collect();
        let error = error.map(sentence);
        Ok(self.finish(pages::questions(&QuestionsPage {
            server: &ctx.deployment.name,
            user: &pages::plain(&session.name, 80),
            action: &self.address(),
            csrf: &self.services.authorizations.csrf_token(session_id, PURPOSE, ""),
            plan: &plan,
            questions: &questions,
            now_ms: ctx.clock.now_ms(),
            sent,
            error: error.as_deref(),
        })))
    }

    fn finish(&self, mut page: Page) -> Response {
        page.account = self.services.account_url();
        page.into_response()
    }

    async fn answer(&self, parts: &Parts, body: Body) -> Result<Response, Response> {
        let AccountForm { session_id: id, session, params, .. } =
            AccountForm::read(&self.services, PURPOSE, parts, body).await?;
        if !params.repeated.is_empty() {
            return Err(bad_request("The form has a field more than once."));
        }
        let field = |name| params.get(name).unwrap_or_default();
        let (plan, name) = (field("plan"), field("question"));
        let action = Action::named(field("action"))?;
        let open = match self.plans.questions(&session.sub, plan).await {
            Ok((_, open)) => open,
            Err(CannotAnswer::Unavailable) => return Err(cannot_read(CannotAnswer::Unavailable)),
            Err(error) => return self.list(&session, None, Some(error)).await,
        };
        let Some(question) = open.iter().find(|question| question.id == name) else {
            return self.plan(&id, &session, plan, None, Some(CannotAnswer::NotOpen)).await;
        };
        if action == Action::Accept && !page_question(question).parts.iter().all(Part::is_supported) {
            return Err(bad_request("This page cannot take an answer to this question."));
        }
        let responses = match responses(question, action, &params) {
            Ok(responses) => responses,
            Err(errors) => {
                let sent = Sent { question: name, params: &params, errors };
                return self.plan(&id, &session, plan, Some(sent), None).await;
            }
        };
        match self.plans.answer(&session.sub, plan, name, responses).await {
            Ok(()) => {
                let next = with_query(&self.address(), &[("plan", plan), ("answered", "1")]);
                Ok(redirect(StatusCode::SEE_OTHER, &next))
            }
            Err(CannotAnswer::Unavailable) => Err(cannot_read(CannotAnswer::Unavailable)),
            Err(error) => self.plan(&id, &session, plan, None, Some(error)).await,
        }
    }

    /// Signs the user in, which leads back to the page.
    async fn sign_in(&self, parts: &Parts, plan: Option<&str>) -> Result<Response, Response> {
        let now_ms = self.services.ctx.clock.now_ms();
        let path = match plan {
            Some(plan) => with_query(QUESTIONS_PATH, &[("plan", plan)]),
            None => QUESTIONS_PATH.to_owned(),
        };
        let request = |browser: &str| AuthorizationRequest::of_page("your questions", &path, browser, now_ms);
        begin(&self.services, parts, request).await
    }
}

async fn show(State(pages): State<QuestionPages>, request: Request<Body>) -> Response {
    let (parts, _) = request.into_parts();
    match pages.page(&parts).await {
        Ok(response) | Err(response) => response,
    }
}

async fn answer(State(pages): State<QuestionPages>, request: Request<Body>) -> Response {
    let (parts, body) = request.into_parts();
    match pages.answer(&parts, body).await {
        Ok(response) | Err(response) => response,
    }
}

/// A user's decision on a question (MCP 2025-11-25, elicitation).
#[derive(Clone, Copy, PartialEq, Eq)]
enum Action {
    Accept,
    Decline,
    Cancel,
}

impl Action {
    fn named(name: &str) -> Result<Self, Response> {
        match name {
            "accept" => Ok(Self::Accept),
            "decline" => Ok(Self::Decline),
            "cancel" => Ok(Self::Cancel),
            _ => Err(bad_request("The form does not say what to do.")),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Accept => "accept",
            Self::Decline => "decline",
            Self::Cancel => "cancel",
        }
    }
}

/// The answers to the questions of a call, as a client gives them.
///
/// # Errors
/// Fields that are missing, or that do not fit.
fn responses(question: &PlanQuestion, action: Action, params: &Params) -> Result<InputResponses, Errors> {
    let (mut responses, mut errors) = (InputResponses::new(), Errors::new());
    for (n, (key, request)) in question.requests.iter().enumerate() {
        let mut response = json!({"action": action.name()});
        if action == Action::Accept
            && let Some(content) = entered(n, request, params).transpose().unwrap_or_else(|wrong| {
                errors.extend(wrong);
                None
            })
        {
            response["content"] = content;
        }
        responses.insert(key.clone(), response);
    }
    if errors.is_empty() { Ok(responses) } else { Err(errors) }
}

/// The content of the form that the question `n` is; `None` for an address.
fn entered(n: usize, request: &InputRequest, params: &Params) -> Option<Result<Value, Errors>> {
    match Part::of(n, request) {
        Part::Form { fields, .. } => Some(content(&fields, params)),
        Part::Address { .. } | Part::Unsupported { .. } => None,
    }
}

/// The question as the page asks it.
fn page_question(question: &PlanQuestion) -> PageQuestion {
    let parts = question.requests.values().enumerate().map(|(n, request)| Part::of(n, request));
    PageQuestion { id: question.id.clone(), name: question.name.clone(), parts: parts.collect() }
}

fn is_id(text: &str) -> bool {
    text.len() <= LONGEST_ID && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte))
}

/// The error as a sentence.
fn sentence(error: CannotAnswer) -> String {
    let text = error.to_string();
    let mut chars = text.chars();
    let first = chars.next().map(|first| first.to_ascii_uppercase());
    first.into_iter().chain(chars).chain(['.']).collect()
}

fn cannot_read(error: CannotAnswer) -> Response {
    tracing::debug!(%error, "questions of plans cannot be read or answered");
    page(StatusCode::SERVICE_UNAVAILABLE, "The plans cannot be reached at the moment. Try again soon.")
}
