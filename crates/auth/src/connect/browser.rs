//! What the user's browser sees: sign in here, allow it there, come back.

use std::time::Duration;

use axum::{
    body::Body,
    extract::{Path, State},
    response::{IntoResponse as _, Response},
};
use http::{HeaderMap, Request, StatusCode, header, request::Parts};
use serde::{Deserialize, Serialize};

use super::{
    LINK_LIFE, Link, Provider, UpstreamVault,
    client::{Identity, IssuerTag, NEEDS_CLIENT_ID},
};
use crate::{
    config::SessionMode,
    crypto::{b64, mint, same, sha256, sha256_hex},
    pages,
    records::{Grant, Pending, Wish},
    server::{
        Core,
        steps::{PENDING_LIFE, cookie, error_page, page, redirect, store_page, with_query},
    },
    store::Key,
};

/// An authorization at another server that is under way.
#[derive(Serialize, Deserialize)]
struct UnderWay {
    app: String,
    sub: String,
    resource: String,
    issuer: String,
    verifier: String,
    identity: Identity,
}

fn bad(text: &str) -> Response {
    page(StatusCode::BAD_REQUEST, text)
}

fn query(parts: &Parts) -> Vec<(String, String)> {
    url::form_urlencoded::parse(parts.uri.query().unwrap_or_default().as_bytes()).into_owned().collect()
}

fn get<'a>(query: &'a [(String, String)], name: &str) -> Option<&'a str> {
    query.iter().find(|(held, _)| held == name).map(|(_, value)| value.as_str())
}

/// Where the address that a client shows its user leads.
pub(super) async fn start(State(vault): State<UpstreamVault>, request: Request<Body>) -> Response {
    let (parts, _) = request.into_parts();
    match vault.begin(&parts).await {
        Ok(response) | Err(response) => response,
    }
}

/// Where the other server sends the browser back to.
pub(super) async fn callback(
    State(vault): State<UpstreamVault>,
    Path(issuer): Path<String>,
    request: Request<Body>,
) -> Response {
    let (parts, _) = request.into_parts();
    match vault.come_back(&parts, IssuerTag::parse(&issuer)).await {
        Ok(response) | Err(response) => response,
    }
}

impl UpstreamVault {
    async fn begin(&self, parts: &Parts) -> Result<Response, Response> {
        let core = &self.0.core;
        let ip = core.caller(parts).to_string();
        core.limit("connect", &[&ip], core.config.limits.authorize).await.map_err(error_page)?;
        if core.config.session_mode != SessionMode::Stateful {
            return Err(bad("Connecting other services needs `auth.sessionMode: stateful` on this server."));
        }
        let query = query(parts);
        let id = get(&query, "id").unwrap_or_default();
        let over = || bad("This address is over or was never given out. Call the tool again for a new one.");
        let key = Key::secret("connect", id);
        let held = core.store.get(&key).await.map_err(store_page)?.ok_or_else(over)?;
        let link: Link = serde_json::from_slice(&held).map_err(|_| over())?;
        if core.clock.now_ms() >= link.expires_ms {
            return Err(over());
        }
        let provider =
            self.provider(&link.app).map_err(|_| bad("This service is not connected here any more."))?;
        let unavailable = |why: String| {
            tracing::warn!(
                app.id = link.app,
                error = &*why,
                "an upstream's authorization server cannot be used"
            );
            page(StatusCode::BAD_GATEWAY, "The other service cannot be connected at the moment.")
        };
        let server = provider.server(core).await.map_err(unavailable)?;
        let callback = IssuerTag::of(&server.issuer).callback(core);
        let Some((_, session)) = core.session(&parts.headers).await.map_err(store_page)? else {
            return core.sign_in_first(&parts.headers, &link, id, &server.authorization_endpoint).await;
        };
        if session.sub != link.sub {
            return Err(page(
                StatusCode::FORBIDDEN,
                "This address was made for another user than the one signed in here. Sign out, then open it again.",
            ));
        }
        let identity = provider.identity(core, &server).await.map_err(|why| {
            let needs_client_id = why == NEEDS_CLIENT_ID;
            let response = unavailable(why);
            if !needs_client_id {
                return response;
            }
            let text = format!(
                "The other service knows only applications that were registered there before: whoever runs this server has to \
                 register it there, with the redirect address {callback}, and set `auth.clientId` of the app."
            );
            page(StatusCode::BAD_GATEWAY, &text)
        })?;
        // From here on the address is used up.
        core.store.take(&key).await.map_err(store_page)?.ok_or_else(over)?;
        let (state, verifier) = (mint::<32>(&*core.entropy), mint::<32>(&*core.entropy));
        let challenge = b64(sha256(&verifier));
        let scope = server.scopes.join(" ");
        let mut pairs = vec![
            ("response_type", "code"),
            ("client_id", identity.id.as_str()),
            ("redirect_uri", &callback),
            ("state", &state),
            ("code_challenge", &challenge),
            ("code_challenge_method", "S256"),
            ("resource", &provider.settings.resource),
        ];
        if !scope.is_empty() {
            pairs.push(("scope", &scope));
        }
        let target = with_query(&server.authorization_endpoint, &pairs);
        let under_way = UnderWay {
            app: link.app.clone(),
            sub: link.sub.clone(),
            resource: provider.settings.resource.clone(),
            issuer: server.issuer.clone(),
            verifier,
            identity: identity.clone(),
        };
        let key = Key::secret("connecting", &state);
        let plain = serde_json::to_vec(&under_way).unwrap_or_default();
        let sealed = core.sealer.seal(&*core.entropy, key.as_str(), &plain);
        core.store.put(&key, &sealed, LINK_LIFE).await.map_err(store_page)?;
        Ok(redirect(StatusCode::FOUND, &target))
    }

    async fn come_back(&self, parts: &Parts, at: Option<IssuerTag>) -> Result<Response, Response> {
        let core = &self.0.core;
        let unmatched = || bad("The answer of the other service cannot be matched. Call the tool again.");
        let query = query(parts);
        let state = get(&query, "state").ok_or_else(unmatched)?;
        // Single use: taken before anything else is looked at.
        let key = Key::secret("connecting", state);
        let held = core.store.take(&key).await.map_err(store_page)?.ok_or_else(unmatched)?;
        let plain = core.sealer.open(key.as_str(), &held).ok_or_else(unmatched)?;
        let under_way: UnderWay = serde_json::from_slice(&plain).map_err(|_| unmatched())?;
        let session = core.session(&parts.headers).await.map_err(store_page)?;
        if !session.is_some_and(|(_, session)| same(&session.sub, &under_way.sub)) {
            return Err(page(
                StatusCode::FORBIDDEN,
                "This answer belongs to another user or another browser.",
            ));
        }
        let provider: std::sync::Arc<Provider> = self.provider(&under_way.app).map_err(|_| unmatched())?;
        let failed = |why: String| {
            tracing::warn!(
                app.id = under_way.app,
                error = why,
                "a user could not be connected to an upstream"
            );
            page(
                StatusCode::BAD_GATEWAY,
                "The other service did not complete the connection. Call the tool again.",
            )
        };
        let server = provider.server(core).await.map_err(failed)?;
        if server.issuer != under_way.issuer || provider.settings.resource != under_way.resource {
            return Err(unmatched());
        }
        // RFC 9700 §4.4.2 and RFC 9207 §2.4: an answer from another server is a mix-up attack.
        let iss = get(&query, "iss");
        let missing = server.authorization_response_iss_parameter_supported && iss.is_none();
        let elsewhere = at != Some(IssuerTag::of(&under_way.issuer));
        if elsewhere || missing || iss.is_some_and(|iss| iss != server.issuer) {
            return Err(bad("The answer is from another service than the one that was asked."));
        }
        if get(&query, "error").is_some() {
            return Err(page(
                StatusCode::FORBIDDEN,
                "The other service was not allowed, or refused. Nothing was connected.",
            ));
        }
        let code = get(&query, "code").filter(|code| !code.is_empty()).ok_or_else(unmatched)?;
        provider
            .redeem(core, &under_way.sub, &server, under_way.identity, (code, &under_way.verifier))
            .await
            .map_err(failed)?;
        let ip = core.caller(parts);
        core.tell("upstream.connected", Some(&under_way.sub), Some(&under_way.app), Some(ip), None);
        Ok(pages::connected(&core.deployment.name, &under_way.app).into_response())
    }
}

impl Core {
    /// Signs the user in with this server's own login, which leads back to the address they opened.
    async fn sign_in_first(
        &self,
        headers: &HeaderMap,
        link: &Link,
        id: &str,
        leads_to: &str,
    ) -> Result<Response, Response> {
        let held = cookie(headers, &self.cookie_name("browser")).filter(|held| held.len() == 43);
        let fresh = held.is_none();
        let browser = held.unwrap_or_else(|| mint::<32>(&*self.entropy));
        let life =
            PENDING_LIFE.min(Duration::from_millis(link.expires_ms.saturating_sub(self.clock.now_ms())));
        let pending = Pending {
            // The form may lead on to the other service: the page's policy names its origin.
            grant: Grant { redirect: leads_to.to_owned(), ..Grant::default() },
            client_name: format!("The connection to {}", link.app),
            state: String::new(),
            browser: sha256_hex(&browser),
            expires_ms: self.clock.now_ms() + life.as_millis() as u64,
            logged_in: false,
            ask_again: false,
            upstream: None,
            back: Some(with_query("/oauth/connect", &[("id", id)])),
            wish: Wish::default(),
        };
        let step = mint::<32>(&*self.entropy);
        self.keep_pending(&step, None, &pending).await.map_err(store_page)?;
        let mut response = self.advance(&step, pending, &browser, false, StatusCode::FOUND).await;
        if fresh {
            let cookie = self.set_cookie("browser", &browser, 86_400);
            response.headers_mut().append(header::SET_COOKIE, cookie);
        }
        Ok(response)
    }
}
