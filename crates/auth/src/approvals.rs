//! The page where users decide on approvals of tool calls: their own calls, or those of others where approvers are set.

use std::sync::Arc;

use axum::{
    Router,
    body::Body,
    extract::State,
    response::{IntoResponse as _, Response},
    routing::get,
};
use gatewright_core::{ApprovalDuration, ApprovalStore, Approver, CannotDecide, RecordsError};
use http::{Request, StatusCode, request::Parts};

use crate::{
    pages::{self, ApprovalsPage},
    records::{AuthorizationRequest, Session},
    server::{
        AuthorizationServer, Services,
        account_form::{AccountForm, count_visit},
        flow::begin,
        router::below_issuer,
        services::APPROVALS_PATH,
    },
    web::{
        params::Params,
        responses::{bad_request, page, redirect, store_page},
    },
};

/// Purpose of the page's CSRF tokens.
const PURPOSE: &str = "approvals";

/// The page where users decide on approvals.
#[derive(Clone)]
pub struct ApprovalPages {
    services: Arc<Services>,
    store: Arc<ApprovalStore>,
}

impl std::fmt::Debug for ApprovalPages {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ApprovalPages").finish_non_exhaustive()
    }
}

impl ApprovalPages {
    /// The page on `server` for the approvals in `store`.
    pub fn new(server: &AuthorizationServer, store: Arc<ApprovalStore>) -> Self {
        server.services().set_approvals(store.clone());
        Self { services: server.services().clone(), store }
    }

    /// Its address.
    pub fn address(&self) -> String {
        self.services.ctx.url(APPROVALS_PATH)
    }

    /// The endpoint.
    pub fn router(&self) -> Router {
        let routes = Router::new().route(APPROVALS_PATH, get(show).post(decide));
        below_issuer(&self.services.ctx.deployment.public_url, routes).with_state(self.clone())
    }

    async fn page(&self, parts: &Parts) -> Result<Response, Response> {
        count_visit(&self.services, parts).await?;
        match self.services.sessions.current(&parts.headers).await.map_err(store_page)? {
            Some((id, session)) => self.list(&id, &session, None).await,
            None => self.sign_in(parts).await,
        }
    }

    async fn list(
        &self,
        session_id: &str,
        session: &Session,
        error: Option<&str>,
    ) -> Result<Response, Response> {
        let ctx = &self.services.ctx;
        let holds = |scope: &str| self.services.may_hold(&session.sub, scope);
        let approver = Approver::User { subject: &session.sub, holds: &holds };
        let waiting = self.store.list(approver).await.map_err(no_store)?;
        let mut page = pages::approvals(&ApprovalsPage {
            server: &ctx.deployment.name,
            user: &pages::plain(&session.name, 80),
            subject: &session.sub,
            action: &ctx.url(APPROVALS_PATH),
            csrf: &self.services.authorizations.csrf_token(session_id, PURPOSE, ""),
            waiting: &waiting,
            now_ms: ctx.clock.now_ms(),
            error,
        });
        if error.is_some() {
            page.status = StatusCode::BAD_REQUEST;
        }
        page.account = self.services.account_url();
        Ok(page.into_response())
    }

    async fn decision(&self, parts: &Parts, body: Body) -> Result<Response, Response> {
        let AccountForm { session_id: id, session, params, .. } =
            AccountForm::read(&self.services, PURPOSE, parts, body).await?;
        let approved = decision_of(&params)?;
        let holds = |scope: &str| self.services.may_hold(&session.sub, scope);
        let approver = Approver::User { subject: &session.sub, holds: &holds };
        match self.store.decide_on_shown(params.get("id").unwrap_or_default(), approved, approver).await {
            Ok(_) => Ok(redirect(StatusCode::SEE_OTHER, &self.address())),
            Err(CannotDecide::Store(error)) => Err(no_store(error)),
            Err(_) => {
                let error = "This approval does not wait for you any more: it was decided on already, or has expired.";
                self.list(&id, &session, Some(error)).await
            }
        }
    }

    /// Signs the user in, which leads back to the page.
    async fn sign_in(&self, parts: &Parts) -> Result<Response, Response> {
        let now_ms = self.services.ctx.clock.now_ms();
        let request =
            |browser: &str| AuthorizationRequest::of_page("your approvals", APPROVALS_PATH, browser, now_ms);
        begin(&self.services, parts, request).await
    }
}

async fn show(State(pages): State<ApprovalPages>, request: Request<Body>) -> Response {
    let (parts, _) = request.into_parts();
    match pages.page(&parts).await {
        Ok(response) | Err(response) => response,
    }
}

async fn decide(State(pages): State<ApprovalPages>, request: Request<Body>) -> Response {
    let (parts, body) = request.into_parts();
    match pages.decision(&parts, body).await {
        Ok(response) | Err(response) => response,
    }
}

/// The decision that a form has: the time for which it is approved, or a no.
fn decision_of(params: &Params) -> Result<Option<ApprovalDuration>, Response> {
    match params.get("decision") {
        Some("approve") => Ok(Some(params.get("for").and_then(ApprovalDuration::named).unwrap_or_default())),
        Some("deny") => Ok(None),
        _ => Err(bad_request("The form does not say what to do.")),
    }
}

fn no_store(error: RecordsError) -> Response {
    tracing::warn!(%error, "approvals cannot be read or decided on");
    page(StatusCode::SERVICE_UNAVAILABLE, "The approvals cannot be reached at the moment. Try again soon.")
}
