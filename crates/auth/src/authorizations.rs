//! Authorization requests that are under way, each bound to the browser that began it.

use std::{sync::Arc, time::Duration};

use axum::{body::Body, response::Response};
use gatewright_core::{Claimant, Portion};
use http::{HeaderMap, HeaderValue, StatusCode, header, request::Parts};

use crate::{
    context::Context,
    crypto::{b64, derive, same, sha256_hex},
    error::OAuthError,
    net::ClientAddress,
    quota::Quota,
    records::AuthorizationRequest,
    store::{Key, StoreError},
    tuning::{BROWSER_COOKIE_S, RATE_WINDOW},
    web::{
        params::{Params, cookie, read_form},
        responses::{bad_request, error_page, page, store_page},
    },
};

/// Bytes of requests under way, for all networks: some 10 KB are written before anybody has signed in.
const MAX_BYTES: usize = 24 * 1024 * 1024;
/// ... besides them, for those that find no room there, and what one network may have of it: a few sign-ins, however many networks took the rest.
const LAST_BYTES: usize = 8 * 1024 * 1024;
const LAST_BYTES_OF_ONE: usize = 8 * 1024;
/// Bytes of a record besides its text, and of a login at a provider.
const OVERHEAD: usize = 512;

/// An authorization request as the store has it.
pub(crate) struct Stored {
    pub(crate) request: AuthorizationRequest,
    /// The record, for a compare-and-swap.
    pub(crate) record: Vec<u8>,
    /// The cookie of the browser.
    pub(crate) browser: String,
}

/// A form of a step of an authorization request, sent from the page of that step.
pub(crate) struct SubmittedStep {
    pub(crate) params: Params,
    pub(crate) id: String,
    pub(crate) stored: Stored,
}

/// The cookie that binds authorization requests to a browser.
pub(crate) struct BrowserCookie {
    pub(crate) value: String,
    /// The browser does not have it yet.
    is_new: bool,
}

/// The authorization requests under way.
pub(crate) struct Authorizations {
    ctx: Arc<Context>,
    /// Key of the values that prove a form to be ours.
    csrf_key: [u8; 32],
    quota: Quota,
    last: Quota,
}

fn login_cookie(id: &str) -> String {
    format!("login-{}", &sha256_hex(id)[..8])
}

impl Authorizations {
    pub(crate) fn new(ctx: Arc<Context>) -> Self {
        let csrf_key = ctx.sealer.root_for("csrf");
        let last = Quota::of(LAST_BYTES, Portion::Fixed(LAST_BYTES_OF_ONE));
        Self { ctx, csrf_key, quota: Quota::new(MAX_BYTES), last }
    }

    /// Returns the browser's cookie, or a new one.
    pub(crate) fn browser_cookie(&self, headers: &HeaderMap) -> BrowserCookie {
        let sent = cookie(headers, &self.ctx.cookie_name("browser")).filter(|value| value.len() == 43);
        let is_new = sent.is_none();
        BrowserCookie { value: sent.unwrap_or_else(|| self.ctx.new_secret()), is_new }
    }

    /// Sets the cookie where the browser does not have it yet.
    pub(crate) fn set_browser_cookie(&self, cookie: &BrowserCookie, response: &mut Response) {
        if cookie.is_new {
            let value = self.ctx.set_cookie("browser", &cookie.value, BROWSER_COOKIE_S);
            response.headers_mut().append(header::SET_COOKIE, value);
        }
    }

    /// Binds the request `id` to the browser in which the user signs in for it. Returns the cookie to set: one for each request, as several may be open
    /// in one browser.
    pub(crate) fn bind(&self, id: &str, request: &mut AuthorizationRequest) -> HeaderValue {
        let secret = self.ctx.new_secret();
        request.signed_in = Some(sha256_hex(&secret));
        self.ctx.set_cookie(&login_cookie(id), &secret, self.left(request).as_secs() + 1)
    }

    /// Returns the CSRF token of a form. It is bound to the browser's cookie, the step and the request, and made with a secret of the
    /// server: whoever plants a cookie in the browser cannot make it.
    pub(crate) fn csrf_token(&self, browser: &str, step: &str, id: &str) -> String {
        let framed = [browser, step, id].map(|part| format!("{}:{part}", part.len())).concat();
        b64(derive(&self.csrf_key, framed.as_bytes()))
    }

    /// Reserves room for a record of `bytes` that `caller` creates and that expires after `lifetime`.
    ///
    /// # Errors
    /// There is no room for its network.
    pub(crate) fn reserve(
        &self,
        caller: ClientAddress,
        bytes: usize,
        lifetime: Duration,
    ) -> Result<(), OAuthError> {
        let (claimant, now_ms) = (Claimant::at(caller.0), self.ctx.clock.now_ms());
        let reserve = |quota: &Quota| quota.reserve(claimant.clone(), bytes + OVERHEAD, now_ms, lifetime);
        let is_reserved = reserve(&self.quota) || reserve(&self.last);
        if is_reserved { Ok(()) } else { Err(OAuthError::too_many(RATE_WINDOW)) }
    }

    /// Stores a new request, whose bytes count for `caller`, and returns its identifier.
    ///
    /// # Errors
    /// There is no room for the network of the caller, or the store does not answer.
    pub(crate) async fn begin(
        &self,
        caller: ClientAddress,
        request: &AuthorizationRequest,
    ) -> Result<String, OAuthError> {
        let (id, value) = (self.ctx.new_secret(), serde_json::to_vec(request).unwrap_or_default());
        let left = self.left(request);
        self.reserve(caller, value.len(), left)?;
        self.ctx.store.put_new(&Self::key(&id), &value, left).await?;
        Ok(id)
    }

    fn left(&self, request: &AuthorizationRequest) -> Duration {
        Duration::from_millis(request.expires_ms.saturating_sub(self.ctx.clock.now_ms()).max(1))
    }

    /// Returns the authorization request `id` of this browser.
    ///
    /// # Errors
    /// A page: it is over, or of another browser.
    pub(crate) async fn load(&self, headers: &HeaderMap, id: &str) -> Result<Stored, Response> {
        let gone = || bad_request("This sign-in is over, or began in another browser.");
        let browser = cookie(headers, &self.ctx.cookie_name("browser")).ok_or_else(gone)?;
        let record = self.ctx.store.get(&Self::key(id)).await.map_err(store_page)?.ok_or_else(gone)?;
        let request: AuthorizationRequest = serde_json::from_slice(&record).map_err(|_| gone())?;
        if request.browser != sha256_hex(&browser) || self.ctx.clock.now_ms() >= request.expires_ms {
            return Err(gone());
        }
        if let Some(signed_in) = &request.signed_in {
            let sent = cookie(headers, &self.ctx.cookie_name(&login_cookie(id))).ok_or_else(gone)?;
            if *signed_in != sha256_hex(&sent) {
                return Err(gone());
            }
        }
        Ok(Stored { request, record, browser })
    }

    /// Stores a request in place of the record `before`. Returns `false` when another request came between.
    pub(crate) async fn save(
        &self,
        id: &str,
        before: &[u8],
        request: &AuthorizationRequest,
    ) -> Result<bool, StoreError> {
        let value = serde_json::to_vec(request).unwrap_or_default();
        self.ctx.store.replace(&Self::key(id), before, &value, self.left(request)).await
    }

    pub(crate) async fn discard(&self, id: &str) -> Result<(), StoreError> {
        self.ctx.store.remove(&Self::key(id)).await
    }

    /// Uses a request up. Of concurrent calls exactly one returns `true`.
    pub(crate) async fn consume(&self, id: &str) -> Result<bool, StoreError> {
        Ok(self.ctx.store.take(&Self::key(id)).await?.is_some())
    }

    /// Returns the record as it is stored.
    pub(crate) async fn record(&self, id: &str) -> Result<Option<Vec<u8>>, StoreError> {
        self.ctx.store.get(&Self::key(id)).await
    }

    fn key(id: &str) -> Key {
        Key::secret("pending", id)
    }

    /// Reads the form of a step: sent from our page, by the browser that began, with the CSRF token of the step.
    ///
    /// # Errors
    /// A page that says what does not hold.
    pub(crate) async fn read_step(
        &self,
        parts: &Parts,
        body: Body,
        step: &str,
    ) -> Result<SubmittedStep, Response> {
        self.check_origin(&parts.headers)?;
        let params = read_form(parts, body).await.map_err(error_page)?;
        let id = params.get("pending").unwrap_or_default().to_owned();
        let stored = self.load(&parts.headers, &id).await?;
        self.check_csrf(&params, &self.csrf_token(&stored.browser, step, &id))?;
        Ok(SubmittedStep { params, id, stored })
    }

    /// Checks the CSRF token of a form.
    ///
    /// # Errors
    /// A page with status 403.
    pub(crate) fn check_csrf(&self, params: &Params, expected: &str) -> Result<(), Response> {
        match same(params.get("csrf").unwrap_or_default(), expected) {
            true => Ok(()),
            false => Err(page(StatusCode::FORBIDDEN, "The form is not the one this server showed you.")),
        }
    }

    /// Refuses a form that was not sent from our own pages, as far as the browser says.
    ///
    /// # Errors
    /// A page with status 403.
    pub(crate) fn check_origin(&self, headers: &HeaderMap) -> Result<(), Response> {
        let Ok(url) = url::Url::parse(&self.ctx.deployment.public_url) else { return Ok(()) };
        let ours = url.origin().ascii_serialization();
        // Our pages are `no-referrer`, which makes browsers send `Origin: null` with their forms (Fetch §3.2, "append a request Origin
        // header"). That such a form is ours is known from `Sec-Fetch-Site`, which no page can set.
        let is_same_site = headers.get("sec-fetch-site").is_some_and(|site| site == "same-origin");
        let is_foreign = |origin: &HeaderValue| {
            origin.as_bytes() != ours.as_bytes() && !(origin == "null" && is_same_site)
        };
        match headers.get(header::ORIGIN).is_some_and(is_foreign) {
            true => Err(page(StatusCode::FORBIDDEN, "The form was sent from another site.")),
            false => Ok(()),
        }
    }
}
