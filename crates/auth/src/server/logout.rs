//! Signing out (OpenID Connect RP-Initiated Logout 1.0): a client asks, the user says so on our page.

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
    steps::{cookie, error_page, form_target, page, redirect, store_page, with_query},
};
use crate::{
    crypto::{same, sha256_hex},
    pages::{self, Page},
    store::Key,
};

/// What a client's request carries on to the form.
const KEPT: [&str; 4] = ["client_id", "post_logout_redirect_uri", "state", "id_token_hint"];

pub(super) async fn ask(State(core): State<Arc<Core>>, request: Request<Body>) -> Response {
    let (parts, _) = request.into_parts();
    let params = Params::parse(parts.uri.query().unwrap_or_default().as_bytes());
    if let Err(refusal) = core.who_sends_away(&params).await {
        return refusal;
    }
    let Some(session) = cookie(&parts.headers, &core.cookie_name("session")) else {
        return core.signed_out_already(&params).await;
    };
    let hidden: Vec<(&str, &str)> = KEPT.iter().filter_map(|name| Some((*name, params.get(name)?))).collect();
    // Browsers hold the answer to a form to the page's policy, too.
    let form_target = core.after_logout(&params).await.and_then(|target| form_target(&target));
    let page = pages::sign_out(&core.csrf(&session, "logout", ""), &core.url("/oauth/logout"), &hidden);
    Page { form_target, ..page }.into_response()
}

pub(super) async fn submit(State(core): State<Arc<Core>>, request: Request<Body>) -> Response {
    let (parts, body) = request.into_parts();
    match core.sign_out(&parts, body).await {
        Ok(response) | Err(response) => response,
    }
}

impl Core {
    fn signed_out_page(&self) -> Response {
        Page { account: self.account_link(), ..pages::signed_out() }.into_response()
    }

    async fn sign_out(&self, parts: &http::request::Parts, body: Body) -> Result<Response, Response> {
        let params = read_form(parts, body).await.map_err(error_page)?;
        let Some(csrf) = params.get("csrf") else {
            // A client's own form: it comes without our cookie, the address it is sent on to gets it.
            let pairs: Vec<(&str, &str)> =
                KEPT.iter().filter_map(|name| Some((*name, params.get(name)?))).collect();
            let target = self.url("/oauth/logout");
            let target = if pairs.is_empty() { target } else { with_query(&target, &pairs) };
            return Ok(redirect(StatusCode::SEE_OTHER, &target));
        };
        if let Some(refusal) = refuse_origin(self, &parts.headers) {
            return Err(refusal);
        }
        self.who_sends_away(&params).await?;
        let Some(session) = cookie(&parts.headers, &self.cookie_name("session")) else {
            return Ok(self.signed_out_already(&params).await);
        };
        if !same(csrf, self.csrf(&session, "logout", "")) {
            return Err(page(StatusCode::FORBIDDEN, "The form is not the one this server showed you."));
        }
        let sub = self.session(&parts.headers).await.map_err(store_page)?.map(|(_, held)| held.sub);
        self.store.remove(&Key::secret("session", &session)).await.map_err(store_page)?;
        self.store.remove(&Key::secret("vault", &session)).await.map_err(store_page)?;
        self.cut("session", &sha256_hex(&session)).await.map_err(store_page)?;
        self.tell("logout", sub.as_deref(), None, Some(self.caller(parts)), None);
        let mut response = match self.after_logout(&params).await {
            Some(target) => redirect(StatusCode::SEE_OTHER, &target),
            None => self.signed_out_page(),
        };
        response.headers_mut().append(header::SET_COOKIE, self.set_cookie("session", "", 0));
        Ok(response)
    }

    /// The client that asks: by its name, or as the audience of the ID token it shows; both must be one (§2). An ID token that is not ours,
    /// or whose key is gone, says nothing.
    async fn who_sends_away(&self, params: &Params) -> Result<Option<String>, Response> {
        let named = params.get("client_id").map(str::to_owned);
        let Some(hint) = params.get("id_token_hint") else { return Ok(named) };
        match (self.hinted(hint).await.ok(), named) {
            (Some(hinted), Some(named)) if hinted.client != named => {
                let text = "The request names another application than the ID token it shows.";
                Err(page(StatusCode::BAD_REQUEST, text))
            }
            (Some(hinted), _) => Ok(Some(hinted.client)),
            (None, _) => Ok(None),
        }
    }

    /// Where to go: only to an address that the client registered, byte for byte.
    async fn after_logout(&self, params: &Params) -> Option<String> {
        let id = self.who_sends_away(params).await.ok()??;
        let target = params.get("post_logout_redirect_uri")?;
        let client = self.client(&id, None).await.ok()?;
        let known = client.post_logout_redirect_uris.iter().any(|held| held == target);
        let state: Vec<_> = params.get("state").map(|state| ("state", state)).into_iter().collect();
        known.then(|| if state.is_empty() { target.to_owned() } else { with_query(target, &state) })
    }

    /// Nobody is signed in: whoever shows an ID token of ours goes on at once.
    async fn signed_out_already(&self, params: &Params) -> Response {
        let target = match params.get("id_token_hint") {
            Some(_) => self.after_logout(params).await,
            None => None,
        };
        match target {
            Some(target) => redirect(StatusCode::SEE_OTHER, &target),
            None => self.signed_out_page(),
        }
    }
}
