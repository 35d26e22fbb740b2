//! The authorization endpoint, and requests pushed to it (RFC 9126).

use std::{sync::Arc, time::Duration};

use axum::{
    body::Body,
    extract::State,
    response::{IntoResponse, Response},
};
use http::{Method, Request, StatusCode};
use serde::{Deserialize, Serialize};
use serde_json::json;
use url::Url;

use super::{
    Core,
    form::{OAuthError, Params, no_store, read_form},
    steps::{PENDING_LIFE, cookie, error_page, page, redirect, store_page, with_query},
};
use crate::{
    clients::OAuthClient,
    config::SessionMode,
    crypto::{mint, sha256_hex, unb64},
    dpop, pages,
    records::{Grant, Pending, Wish},
    store::Key,
};

const MOST_QUERY: usize = 16 * 1024;
const MOST_STATE: usize = 4096;
const MOST_NONCE: usize = 1024;
const MOST_HINT: usize = 256;
/// Prompts there are (OpenID Connect Core §3.1.2.1). An account is chosen by signing in with it.
pub(super) const PROMPTS: [&str; 4] = ["none", "login", "consent", "select_account"];
/// Parameters of an authorization request; `resource` besides. Whatever else is pushed, such as what the client authenticates itself with,
/// is not stored.
const REQUEST: [&str; 16] = [
    "client_id",
    "code_challenge",
    "code_challenge_method",
    "dpop_jkt",
    "id_token_hint",
    "login_hint",
    "max_age",
    "nonce",
    "prompt",
    "redirect_uri",
    "registration",
    "request",
    "response_mode",
    "response_type",
    "scope",
    "state",
];
const PUSHED_LIFE: Duration = Duration::from_secs(90);
const PUSHED_URN: &str = "urn:ietf:params:oauth:request_uri:";

/// A request that was pushed.
#[derive(Serialize, Deserialize)]
struct Pushed {
    client: String,
    text: String,
    expires_ms: u64,
}

pub(super) async fn endpoint(State(core): State<Arc<Core>>, request: Request<Body>) -> Response {
    let (parts, body) = request.into_parts();
    let ip = core.caller(&parts).to_string();
    if let Err(error) = core.limit("authorize", &[&ip], core.config.limits.authorize).await {
        return error_page(error);
    }
    let (params, status) = if parts.method == Method::POST {
        match read_form(&parts, body).await {
            Ok(params) => (params, StatusCode::SEE_OTHER),
            Err(error) => return error_page(error),
        }
    } else {
        let query = parts.uri.query().unwrap_or_default();
        if query.len() > MOST_QUERY {
            return page(StatusCode::URI_TOO_LONG, "The request is too long.");
        }
        (Params::parse(query.as_bytes()), StatusCode::FOUND)
    };
    match core.start(&parts.headers, params, &ip, status).await {
        Ok(response) | Err(response) => response,
    }
}

fn bad(text: &str) -> Response {
    page(StatusCode::BAD_REQUEST, text)
}

/// An authorization request whose client and redirect target are good: errors can go there.
struct Ask<'a> {
    params: &'a Params,
    client: &'a OAuthClient,
}

impl Core {
    async fn start(
        &self,
        headers: &http::HeaderMap,
        params: Params,
        ip: &str,
        status: StatusCode,
    ) -> Result<Response, Response> {
        let params = self.pushed_or(params).await?;
        let (client, target) = self.who_and_where(&params, Some(ip)).await?;
        let state = params.get("state").filter(|_| !params.is_repeated("state"));
        if state.is_some_and(|state| state.len() > MOST_STATE) {
            return Err(bad("The state is too long."));
        }
        let ask = Ask { params: &params, client: &client };
        let grant =
            self.read(&ask, &target).map_err(|error| self.send_back(&target, state, &error, status))?;
        let browser = cookie(headers, &self.cookie_name("browser")).filter(|held| held.len() == 43);
        let fresh = browser.is_none();
        let browser = browser.unwrap_or_else(|| mint::<32>(&*self.entropy));
        let prompt = params.get("prompt").unwrap_or_default();
        let has = |word: &str| prompt.split_ascii_whitespace().any(|held| held == word);
        let wish = self.wish(&params, &client.id).await;
        let wish = wish.map_err(|error| self.send_back(&target, state, &error, status))?;
        let mut pending = Pending {
            grant,
            client_name: client.name.clone(),
            state: state.unwrap_or_default().to_owned(),
            browser: sha256_hex(&browser),
            expires_ms: self.clock.now_ms() + PENDING_LIFE.as_millis() as u64,
            logged_in: false,
            ask_again: has("consent"),
            upstream: None,
            back: None,
            wish,
        };
        if self.config.session_mode == SessionMode::Stateful && !pending.wish.again {
            // Read before the session is: whoever is cut off meanwhile is cut off here, too.
            let now_ms = self.clock.now_ms();
            let now = now_ms / 1000;
            let held = self.session(headers).await.map_err(store_page)?;
            let recent = held.filter(|(_, session)| {
                let wish = &pending.wish;
                wish.max_age.is_none_or(|most| most > 0 && now.saturating_sub(session.auth_s) <= most)
                    && wish.subject.as_ref().is_none_or(|sub| *sub == session.sub)
            });
            if let Some((id, session)) = recent {
                self.note_login(&mut pending, &client, &session, Some(sha256_hex(id)), now_ms);
            }
        }
        let id = mint::<32>(&*self.entropy);
        let bytes = serde_json::to_vec(&pending).map_or(0, |text| text.len());
        self.make_room(ip, bytes, PENDING_LIFE).map_err(error_page)?;
        self.keep_pending(&id, None, &pending).await.map_err(store_page)?;
        let mut response = self.advance(&id, pending, &browser, has("none"), status).await;
        if fresh {
            let cookie = self.set_cookie("browser", &browser, 86_400);
            response.headers_mut().append(http::header::SET_COOKIE, cookie);
        }
        Ok(response)
    }

    /// The parameters, or those that were pushed when `request_uri` names them.
    async fn pushed_or(&self, params: Params) -> Result<Params, Response> {
        let Some(uri) = params.get("request_uri") else {
            if self.config.require_par {
                return Err(bad("This server takes pushed authorization requests only."));
            }
            return Ok(params);
        };
        let gone = || bad("The pushed request is over, was used, or belongs to another application.");
        let id = uri.strip_prefix(PUSHED_URN).ok_or_else(gone)?;
        let held = self.store.take(&Key::secret("pushed", id)).await.map_err(store_page)?.ok_or_else(gone)?;
        let pushed: Pushed = serde_json::from_slice(&held).map_err(|_| gone())?;
        if params.get("client_id") != Some(&pushed.client)
            || params.is_repeated("client_id")
            || self.clock.now_ms() >= pushed.expires_ms
        {
            return Err(gone());
        }
        Ok(Params::parse(pushed.text.as_bytes()))
    }

    /// The client and where it wants its answer. Anything wrong here must not redirect.
    async fn who_and_where(
        &self,
        params: &Params,
        ip: Option<&str>,
    ) -> Result<(OAuthClient, String), Response> {
        if params.is_repeated("client_id") || params.is_repeated("redirect_uri") {
            return Err(bad("The request names its application or its address more than once."));
        }
        let id = params
            .get("client_id")
            .ok_or_else(|| bad("The request does not say which application it is from."))?;
        let client = self.client(id, ip).await.map_err(|error| match error.status {
            StatusCode::UNAUTHORIZED if error.description == OAuthError::invalid_client().description => {
                bad("This application is not known here (invalid_client).")
            }
            StatusCode::UNAUTHORIZED => {
                bad(&format!("This application is not known here (invalid_client): {}.", error.description))
            }
            _ => error_page(error),
        })?;
        let target = client
            .target(params.get("redirect_uri"))
            .ok_or_else(|| bad("The address to go back to is not registered for this application."))?;
        Ok((client, target))
    }

    fn send_back(
        &self,
        target: &str,
        state: Option<&str>,
        error: &OAuthError,
        status: StatusCode,
    ) -> Response {
        let mut pairs = vec![("error", error.code), ("error_description", &*error.description)];
        pairs.extend(state.map(|state| ("state", state)));
        pairs.push(("iss", &self.deployment.public_url));
        redirect(status, &with_query(target, &pairs))
    }

    /// Checks everything else of a request.
    fn read(&self, ask: &Ask<'_>, target: &str) -> Result<Grant, OAuthError> {
        let params = ask.params;
        let invalid = OAuthError::invalid_request;
        if !params.repeated.is_empty() {
            return Err(invalid("a parameter is repeated"));
        }
        if params.get("request").is_some() {
            return Err(OAuthError::new("request_not_supported", "request objects are not supported"));
        }
        if params.get("state").is_none() {
            return Err(invalid("state is required"));
        }
        match params.get("response_type") {
            Some("code") => {}
            None => return Err(invalid("response_type is required")),
            Some(_) => return Err(OAuthError::new("unsupported_response_type", "only code is supported")),
        }
        if params.get("response_mode").is_some_and(|mode| mode != "query") {
            return Err(invalid("only response_mode=query is supported"));
        }
        let challenge = params.need("code_challenge", "code_challenge is required")?;
        if params.get("code_challenge_method") != Some("S256") {
            return Err(invalid("code_challenge_method must be S256"));
        }
        if challenge.len() != 43 || unb64(challenge).is_none_or(|bytes| bytes.len() != 32) {
            return Err(invalid("code_challenge is not an S256 challenge"));
        }
        if !ask.client.may("authorization_code") {
            return Err(OAuthError::new("unauthorized_client", "the client may not use this grant"));
        }
        if params.get("registration").is_some() {
            return Err(OAuthError::new(
                "registration_not_supported",
                "clients register at their own endpoint",
            ));
        }
        let prompts: Vec<&str> = params.get("prompt").unwrap_or_default().split_ascii_whitespace().collect();
        if prompts.iter().any(|word| !PROMPTS.contains(word)) {
            return Err(invalid("prompt may hold none, login, consent and select_account"));
        }
        if prompts.contains(&"none") && prompts.len() > 1 {
            return Err(invalid("prompt=none stands alone"));
        }
        if params.get("max_age").is_some_and(|text| text.parse::<u64>().is_err()) {
            return Err(invalid("max_age is a number of seconds"));
        }
        if params.get("nonce").is_some_and(|nonce| nonce.len() > MOST_NONCE) {
            return Err(invalid("the nonce is too long"));
        }
        let jkt = params.get("dpop_jkt").map(str::to_owned);
        if jkt.as_ref().is_some_and(|jkt| jkt.len() != 43) {
            return Err(invalid("dpop_jkt is not a thumbprint"));
        }
        Ok(Grant {
            client: ask.client.id.clone(),
            scopes: self.ceiling("", ask.client).request(params.get("scope"))?.record(),
            resources: self.resources(&params.resources)?,
            redirect: target.to_owned(),
            challenge: challenge.to_owned(),
            jkt,
            refreshes: self.config.refresh.enabled && ask.client.may("refresh_token"),
            nonce: params.get("nonce").map(str::to_owned),
            ..Grant::default()
        })
    }

    /// What the client asks of the login.
    async fn wish(&self, params: &Params, client: &str) -> Result<Wish, OAuthError> {
        let has =
            |word: &str| params.get("prompt").is_some_and(|held| held.split(' ').any(|held| held == word));
        let subject = match params.get("id_token_hint") {
            None => None,
            Some(text) => match self.hinted(text).await {
                Ok(hinted) if hinted.client == client => Some(hinted.sub),
                _ => {
                    let text = "id_token_hint is not an ID token that this server gave this client";
                    return Err(OAuthError::invalid_request(text));
                }
            },
        };
        Ok(Wish {
            again: has("login") || has("select_account"),
            max_age: params.get("max_age").and_then(|text| text.parse().ok()),
            hint: params.get("login_hint").map(|hint| pages::plain(hint, MOST_HINT)),
            subject,
        })
    }

    /// The resources asked for (RFC 8707); the one there is when none is named.
    pub(super) fn resources(&self, asked: &[String]) -> Result<Vec<String>, OAuthError> {
        let invalid = || OAuthError::new("invalid_target", "the resource is not served here");
        for resource in asked {
            let url = Url::parse(resource).map_err(|_| invalid())?;
            let ours = Url::parse(&self.deployment.resource).map_err(|_| invalid())?;
            if resource.contains('#') || url != ours {
                return Err(invalid());
            }
        }
        Ok(vec![self.deployment.resource.clone()])
    }
}

/// Takes a request ahead of the browser (RFC 9126).
pub(super) async fn push(State(core): State<Arc<Core>>, request: Request<Body>) -> Response {
    let (parts, body) = request.into_parts();
    match core.push(parts, body).await {
        Ok(response) => response,
        Err(error) => error.into_response(),
    }
}

impl Core {
    async fn push(&self, parts: http::request::Parts, body: Body) -> Result<Response, OAuthError> {
        let ip = self.caller(&parts).to_string();
        self.limit("par", &[&ip], self.config.limits.authorize).await?;
        let params = read_form(&parts, body).await?;
        let client = self.authenticate_client(&parts, &params, &ip).await?;
        if params.get("request_uri").is_some() {
            return Err(OAuthError::invalid_request("request_uri is not allowed here"));
        }
        let target = client
            .target(params.get("redirect_uri"))
            .ok_or_else(|| OAuthError::invalid_request("redirect_uri is not registered"))?;
        let mut params = params.only(&REQUEST);
        params.set("client_id", &client.id);
        // A proof binds the code to its key, as `dpop_jkt` does; both must say the same (RFC 9449 §10.1).
        if let Some(jkt) = dpop::of_request(self, &parts, "/oauth/par").await? {
            if params.get("dpop_jkt").is_some_and(|named| named != jkt) {
                return Err(OAuthError::new(
                    "invalid_dpop_proof",
                    "dpop_jkt names another key than the proof",
                ));
            }
            params.set("dpop_jkt", &jkt);
        }
        self.read(&Ask { params: &params, client: &client }, &target)?;
        let id = mint::<32>(&*self.entropy);
        let expires_ms = self.clock.now_ms() + PUSHED_LIFE.as_millis() as u64;
        let pushed = Pushed { client: client.id, text: params.to_text(), expires_ms };
        let value = serde_json::to_vec(&pushed).unwrap_or_default();
        self.make_room(&ip, value.len(), PUSHED_LIFE)?;
        self.store.put(&Key::secret("pushed", &id), &value, PUSHED_LIFE).await?;
        let body = json!({"request_uri": format!("{PUSHED_URN}{id}"), "expires_in": PUSHED_LIFE.as_secs()});
        Ok(no_store(StatusCode::CREATED, &body))
    }
}
