//! Signing out: asked by GET, done by POST.

use std::sync::Arc;

use axum::{
    body::Body,
    extract::State,
    response::{IntoResponse, Response},
};
use http::{Request, StatusCode, header};

use super::{
    Core,
    form::{Params, read_form},
    login::refuse_origin,
    steps::{cookie, error_page, page, redirect, store_page, with_query},
};
use crate::{
    crypto::{same, sha256_hex},
    pages,
    store::Key,
};

pub(super) async fn ask(State(core): State<Arc<Core>>, request: Request<Body>) -> Response {
    let (parts, _) = request.into_parts();
    let Some(session) = cookie(&parts.headers, &core.cookie_name("session")) else {
        return pages::signed_out().into_response();
    };
    let params = Params::parse(parts.uri.query().unwrap_or_default().as_bytes());
    let kept = ["client_id", "post_logout_redirect_uri", "state"];
    let hidden: Vec<(&str, &str)> = kept.iter().filter_map(|name| Some((*name, params.get(name)?))).collect();
    pages::sign_out(&core.csrf(&session, "logout", ""), &core.url("/oauth/logout"), &hidden).into_response()
}

pub(super) async fn submit(State(core): State<Arc<Core>>, request: Request<Body>) -> Response {
    let (parts, body) = request.into_parts();
    match core.sign_out(&parts, body).await {
        Ok(response) | Err(response) => response,
    }
}

impl Core {
    async fn sign_out(&self, parts: &http::request::Parts, body: Body) -> Result<Response, Response> {
        if let Some(refusal) = refuse_origin(self, &parts.headers) {
            return Err(refusal);
        }
        let params = read_form(parts, body).await.map_err(error_page)?;
        let Some(session) = cookie(&parts.headers, &self.cookie_name("session")) else {
            return Ok(pages::signed_out().into_response());
        };
        if !same(params.get("csrf").unwrap_or_default(), self.csrf(&session, "logout", "")) {
            return Err(page(StatusCode::FORBIDDEN, "The form is not the one this server showed you."));
        }
        let sub = self.session(&parts.headers).await.map_err(store_page)?.map(|(_, held)| held.sub);
        self.store.remove(&Key::secret("session", &session)).await.map_err(store_page)?;
        self.store.remove(&Key::secret("vault", &session)).await.map_err(store_page)?;
        self.cut("session", &sha256_hex(&session)).await.map_err(store_page)?;
        self.tell("logout", sub.as_deref(), None, Some(self.caller(parts)), None);
        let mut response = match self.after_logout(&params).await {
            Some(target) => redirect(StatusCode::SEE_OTHER, &target),
            None => pages::signed_out().into_response(),
        };
        response.headers_mut().append(header::SET_COOKIE, self.set_cookie("session", "", 0));
        Ok(response)
    }

    /// Where to go: only to an address that the named client registered, byte for byte.
    async fn after_logout(&self, params: &Params) -> Option<String> {
        let (id, target) = (params.get("client_id")?, params.get("post_logout_redirect_uri")?);
        let client = self.client(id, None).await.ok()?;
        let known = client.post_logout_redirect_uris.iter().any(|held| held == target);
        let state: Vec<_> = params.get("state").map(|state| ("state", state)).into_iter().collect();
        known.then(|| if state.is_empty() { target.to_owned() } else { with_query(target, &state) })
    }
}
