//! The user's browser on its way: to the login here, to the other server, and back.

use axum::{
    body::Body,
    extract::{Path, State},
    response::{IntoResponse as _, Response},
};
use http::{Request, StatusCode, request::Parts};
use serde::{Deserialize, Serialize};

use super::{
    client::{ClientIdentity, IdentityError, IssuerTag},
    discovery::ServerMetadata,
    vault::{ConnectRequest, Provider, UpstreamVault},
};
use crate::{
    config::SessionMode,
    crypto::{b64, same, sha256},
    pages,
    records::{AuthorizationRequest, Grant},
    server::{Services, flow::begin},
    store::Key,
    tuning::CONNECT_LIFETIME,
    web::{
        params::Params,
        responses::{bad_request, error_page, page, redirect, store_page, with_query},
    },
};

/// An authorization at another server that is under way.
#[derive(Serialize, Deserialize)]
struct UpstreamAuthorization {
    app: String,
    sub: String,
    resource: String,
    #[serde(default)]
    scopes: Vec<String>,
    issuer: String,
    verifier: String,
    identity: ClientIdentity,
}

/// Handles the address that a client shows to its user.
pub(super) async fn start(State(vault): State<UpstreamVault>, request: Request<Body>) -> Response {
    let (parts, _) = request.into_parts();
    match vault.begin(&parts).await {
        Ok(response) | Err(response) => response,
    }
}

/// Handles the redirect back from the other server.
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
        let services = &*self.0.services;
        let ctx = &services.ctx;
        ctx.limit_caller("connect", &[], ctx.caller(parts), ctx.config.limits.authorize)
            .await
            .map_err(error_page)?;
        if ctx.config.session_mode != SessionMode::Stateful {
            return Err(bad_request(
                "Connecting other services needs `auth.sessionMode: stateful` on this server.",
            ));
        }
        let params = Params::of_query(parts).map_err(error_page)?;
        let id = params.get("id").unwrap_or_default();
        let over =
            || bad_request("This address is over or was never given out. Call the tool again for a new one.");
        let (handle, nonce) = id.split_once('.').ok_or_else(over)?;
        let key = ConnectRequest::key(handle);
        let record = ctx.store.get(&key).await.map_err(store_page)?.ok_or_else(over)?;
        let link: ConnectRequest = serde_json::from_slice(&record).map_err(|_| over())?;
        if ctx.clock.now_ms() >= link.expires_ms || link.nonce != nonce {
            return Err(over());
        }
        let provider = self
            .provider(&link.app)
            .map_err(|_| bad_request("This service is not connected here any more."))?;
        let unavailable = |why: String| {
            tracing::warn!(
                app.id = link.app,
                error = &*why,
                "an upstream's authorization server cannot be used"
            );
            page(StatusCode::BAD_GATEWAY, "The other service cannot be connected at the moment.")
        };
        let server = provider.server(ctx).await.map_err(unavailable)?;
        let callback = IssuerTag::of(&server.issuer).callback(ctx);
        let Some((_, session)) = services.sessions.current(&parts.headers).await.map_err(store_page)? else {
            return sign_in_first(services, parts, &link, id, &server.authorization_endpoint).await;
        };
        if session.sub != link.sub {
            return Err(page(
                StatusCode::FORBIDDEN,
                "This address was made for another user than the one signed in here. Sign out, then open it again.",
            ));
        }
        let identity = provider.identity(ctx, &server).await.map_err(|error| {
            let response = unavailable(error.to_string());
            if matches!(error, IdentityError::Failed(_)) {
                return response;
            }
            let text = format!(
                "The other service knows only applications that were registered there before: whoever runs this server has to \
                 register it there, with the redirect address {callback}, and set `auth.clientId` of the app."
            );
            page(StatusCode::BAD_GATEWAY, &text)
        })?;
        // From here on the address is used up.
        ctx.store.take(&key).await.map_err(store_page)?.ok_or_else(over)?;
        let target = self.authorization_request(&link, &provider, &server, identity, &callback).await?;
        Ok(redirect(StatusCode::FOUND, &target))
    }

    /// Stores an authorization request, and returns its address at the upstream's authorization server.
    async fn authorization_request(
        &self,
        link: &ConnectRequest,
        provider: &Provider,
        server: &ServerMetadata,
        identity: ClientIdentity,
        callback: &str,
    ) -> Result<String, Response> {
        let ctx = &self.0.services.ctx;
        let (state, verifier) = (ctx.new_secret(), ctx.new_secret());
        let challenge = b64(sha256(&verifier));
        let mut scopes = server.scopes.clone();
        scopes.extend(link.scopes.iter().filter(|scope| !server.scopes.contains(scope)).cloned());
        let scope = scopes.join(" ");
        let mut pairs = vec![
            ("response_type", "code"),
            ("client_id", identity.id.as_str()),
            ("redirect_uri", callback),
            ("state", &state),
            ("code_challenge", &challenge),
            ("code_challenge_method", "S256"),
        ];
        if provider.settings.is_mcp {
            pairs.push(("resource", &provider.settings.resource));
        }
        let more = provider.settings.parameters.iter();
        pairs.extend(more.map(|(name, value)| (name.as_str(), value.as_str())));
        if !scope.is_empty() {
            pairs.push(("scope", &scope));
        }
        let target = with_query(&server.authorization_endpoint, &pairs);
        let authorization = UpstreamAuthorization {
            app: link.app.clone(),
            sub: link.sub.clone(),
            resource: provider.settings.resource.clone(),
            scopes,
            issuer: server.issuer.clone(),
            verifier,
            identity,
        };
        let key = Key::secret("connecting", &state);
        let plain = serde_json::to_vec(&authorization).unwrap_or_default();
        ctx.put_sealed(&key, &plain, CONNECT_LIFETIME).await.map_err(store_page)?;
        Ok(target)
    }

    async fn come_back(&self, parts: &Parts, at: Option<IssuerTag>) -> Result<Response, Response> {
        let services = &*self.0.services;
        let ctx = &services.ctx;
        let unmatched =
            || bad_request("The answer of the other service cannot be matched. Call the tool again.");
        let params = Params::of_query(parts).map_err(error_page)?;
        let state = params.get("state").ok_or_else(unmatched)?;
        // Single use: taken before anything else is looked at.
        let key = Key::secret("connecting", state);
        let record = ctx.store.take(&key).await.map_err(store_page)?.ok_or_else(unmatched)?;
        let plain = ctx.sealer.open(key.as_str(), &record).ok_or_else(unmatched)?;
        let authorization: UpstreamAuthorization = serde_json::from_slice(&plain).map_err(|_| unmatched())?;
        let session = services.sessions.current(&parts.headers).await.map_err(store_page)?;
        if !session.is_some_and(|(_, session)| same(&session.sub, &authorization.sub)) {
            return Err(page(
                StatusCode::FORBIDDEN,
                "This answer belongs to another user or another browser.",
            ));
        }
        let provider: std::sync::Arc<Provider> =
            self.provider(&authorization.app).map_err(|_| unmatched())?;
        let failed = |why: String| {
            tracing::warn!(
                app.id = authorization.app,
                error = why,
                "a user could not be connected to an upstream"
            );
            page(
                StatusCode::BAD_GATEWAY,
                "The other service did not complete the connection. Call the tool again.",
            )
        };
        let server = provider.server(ctx).await.map_err(failed)?;
        if server.issuer != authorization.issuer || provider.settings.resource != authorization.resource {
            return Err(unmatched());
        }
        // RFC 9700 §4.4.2 and RFC 9207 §2.4: an answer from another server is a mix-up attack.
        let iss = params.get("iss");
        let missing = server.authorization_response_iss_parameter_supported && iss.is_none();
        let elsewhere = at != Some(IssuerTag::of(&authorization.issuer));
        let is_other = !server.is_unnamed && iss.is_some_and(|iss| iss != server.issuer);
        if elsewhere || missing || is_other {
            return Err(bad_request("The answer is from another service than the one that was asked."));
        }
        if params.get("error").is_some() {
            return Err(page(
                StatusCode::FORBIDDEN,
                "The other service was not allowed, or refused. Nothing was connected.",
            ));
        }
        let code = params.get("code").filter(|code| !code.is_empty()).ok_or_else(unmatched)?;
        provider
            .redeem(
                ctx,
                &authorization.sub,
                &server,
                (authorization.identity, authorization.scopes),
                (code, &authorization.verifier),
            )
            .await
            .map_err(failed)?;
        let ip = ctx.caller(parts);
        ctx.record_event(
            "upstream.connected",
            Some(&authorization.sub),
            Some(&authorization.app),
            Some(ip),
            None,
        );
        Ok(pages::connected(&ctx.deployment.name, &authorization.app).into_response())
    }
}

/// Signs the user in with this server's own login, which leads back to the address they opened.
async fn sign_in_first(
    services: &Services,
    parts: &Parts,
    link: &ConnectRequest,
    id: &str,
    authorization_endpoint: &str,
) -> Result<Response, Response> {
    let path = with_query("/oauth/connect", &[("id", id)]);
    let name = format!("the connection to {}", link.app);
    let now_ms = services.ctx.clock.now_ms();
    let request = |browser: &str| {
        let request = AuthorizationRequest::of_page(&name, &path, browser, now_ms);
        AuthorizationRequest {
            // The form may lead on to the other service: the page's policy names its origin.
            grant: Grant { redirect: authorization_endpoint.to_owned(), ..Grant::default() },
            expires_ms: request.expires_ms.min(link.expires_ms),
            ..request
        }
    };
    begin(services, parts, request).await
}
