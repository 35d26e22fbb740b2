//! The login and consent steps.

use std::{sync::Arc, time::Duration};

use axum::{
    body::Body,
    extract::State,
    response::{IntoResponse, Response},
};
use http::{HeaderMap, Request, StatusCode, header};

use super::{
    Core,
    clearance::Cleared,
    form::{OAuthError, Params, read_form},
    steps::{error_page, page, redirect, store_page, with_query},
};
use crate::{
    config::{Login, SessionMode},
    crypto::{derive, same, sha256_hex},
    lockout::{LOCK, Lockout},
    net::Caller,
    pages::Wrong,
    password::Phc,
    records::{Pending, Person, Session},
    store::{Key, StoreError},
};

impl Pending {
    /// Notes who logged in, and when: what is cut off from then on ends it.
    pub(super) fn log_in(&mut self, session: &Session, id: Option<String>, now_ms: u64) {
        self.logged_in = true;
        self.grant.issued_ms = now_ms;
        self.grant.sub.clone_from(&session.sub);
        self.grant.auth_s = session.auth_s;
        self.grant.credential.clone_from(&session.credential);
        self.grant.session = id;
        self.grant.person.clone_from(&session.person);
    }
}

/// Shows the step a pending authorization is at (after a reload or a redirect).
pub(super) async fn show(State(core): State<Arc<Core>>, request: Request<Body>) -> Response {
    let (parts, _) = request.into_parts();
    let params = Params::parse(parts.uri.query().unwrap_or_default().as_bytes());
    let id = params.get("pending").unwrap_or_default();
    match core.pending(&parts.headers, id).await {
        Ok((pending, _, browser)) => core.advance(id, pending, &browser, false, StatusCode::FOUND).await,
        Err(response) => response,
    }
}

pub(super) async fn submit(State(core): State<Arc<Core>>, request: Request<Body>) -> Response {
    let (parts, body) = request.into_parts();
    match core.log_in(&parts, body).await {
        Ok(response) | Err(response) => response,
    }
}

pub(super) async fn decide(State(core): State<Arc<Core>>, request: Request<Body>) -> Response {
    let (parts, body) = request.into_parts();
    match core.decide(&parts, body).await {
        Ok(response) | Err(response) => response,
    }
}

/// The refusal of a form that was not sent from our own pages, as far as the browser says.
pub(super) fn refuse_origin(core: &Core, headers: &HeaderMap) -> Option<Response> {
    let ours = url::Url::parse(&core.deployment.public_url).ok()?.origin().ascii_serialization();
    // Our pages are `no-referrer`, which makes browsers send `Origin: null` with their forms (Fetch §3.2, "append a request Origin
    // header"); that the form is ours, `Sec-Fetch-Site` tells, which no page can set.
    let ours_unnamed = headers.get("sec-fetch-site").is_some_and(|site| site == "same-origin");
    let other = headers
        .get(header::ORIGIN)
        .is_some_and(|origin| origin.as_bytes() != ours.as_bytes() && !(origin == "null" && ours_unnamed));
    other.then(|| page(StatusCode::FORBIDDEN, "The form was sent from another site."))
}

impl Core {
    pub(super) async fn form_of_step(
        &self,
        parts: &http::request::Parts,
        body: Body,
        step: &str,
    ) -> Result<(Params, String, Pending, Vec<u8>, String), Response> {
        if let Some(refusal) = refuse_origin(self, &parts.headers) {
            return Err(refusal);
        }
        let params = read_form(parts, body).await.map_err(error_page)?;
        let id = params.get("pending").unwrap_or_default().to_owned();
        let (pending, held, browser) = self.pending(&parts.headers, &id).await?;
        if !same(params.get("csrf").unwrap_or_default(), self.csrf(&browser, step, &id)) {
            return Err(page(StatusCode::FORBIDDEN, "The form is not the one this server showed you."));
        }
        Ok((params, id, pending, held, browser))
    }

    async fn log_in(&self, parts: &http::request::Parts, body: Body) -> Result<Response, Response> {
        let ip = self.caller(parts);
        self.limit("login", &[&ip.to_string()], self.config.limits.login).await.map_err(error_page)?;
        let (params, id, mut pending, held, browser) = self.form_of_step(parts, body, "login").await?;
        if pending.logged_in || self.provider.is_some() {
            return Err(page(StatusCode::BAD_REQUEST, "This step is not open."));
        }
        let name = params.get("username").unwrap_or_default();
        let password = params.get("password").unwrap_or_default();
        let Some(session) = self.check_login(name, password, ip).await? else {
            let actor: String = name.chars().take(64).collect();
            self.tell("login.failed", Some(&actor), Some(&pending.grant.client), Some(ip), None);
            return Ok(self.login_page(&id, &pending, &browser, Some(Wrong::Password)));
        };
        self.tell("login.ok", Some(&session.sub), Some(&pending.grant.client), Some(ip), None);
        self.logged_in(&parts.headers, &id, &mut pending, &held, &session).await.map_err(store_page)
    }

    /// Begins the session and goes on to the next step.
    pub(crate) async fn logged_in(
        &self,
        headers: &HeaderMap,
        id: &str,
        pending: &mut Pending,
        held: &[u8],
        session: &Session,
    ) -> Result<Response, StoreError> {
        let (mut cookie, mut session_id) = (None, None);
        if self.config.session_mode == SessionMode::Stateful {
            let (id, value) = self.begin_session(headers, session).await?;
            (cookie, session_id) = (Some(value), Some(sha256_hex(id)));
        }
        // A login that no client asked for has none.
        match self.client(&pending.grant.client, None).await {
            Ok(client) => self.note_login(pending, &client, session, session_id, session.started_ms),
            Err(_) => pending.log_in(session, session_id, session.started_ms),
        }
        if !self.keep_pending(id, Some(held), pending).await? {
            return Ok(page(StatusCode::BAD_REQUEST, "This sign-in went on elsewhere."));
        }
        let next = with_query(&self.url("/oauth/consent"), &[("pending", id)]);
        let mut response = redirect(StatusCode::SEE_OTHER, &next);
        if let Some(cookie) = cookie {
            response.headers_mut().append(header::SET_COOKIE, cookie);
        }
        Ok(response)
    }

    /// The session of a user whose name and password fit. Unknown names take as long as wrong passwords.
    async fn check_login(&self, name: &str, password: &str, ip: Caller) -> Result<Option<Session>, Response> {
        let now = self.clock.now_ms();
        let session = |sub: String, credential| Session {
            name: name.to_owned(),
            sub,
            auth_s: now / 1000,
            started_ms: now,
            seen_ms: now,
            credential,
            person: Person::default(),
        };
        if self.config.local.login == Login::Demo {
            let fits = !name.is_empty() && name.len() <= 64;
            return Ok(fits.then(|| session(format!("user:{name}"), None)));
        }
        let lockout = Lockout::of(name, ip);
        let is_open = async || {
            let most = self.config.limits.wrong_passwords;
            let is_locked = lockout.is_locked(&*self.store, most).await.map_err(store_page)?;
            if is_locked { Err(error_page(OAuthError::too_many(LOCK))) } else { Ok(()) }
        };
        is_open().await?;
        let turn = self.hashing.turn(ip.network()).await;
        let turn = turn.map_err(|_| error_page(OAuthError::too_many(Duration::from_secs(1))))?;
        // Those before in line have failed meanwhile.
        is_open().await?;
        let user = self.users.get(name);
        let (phc, has_password) = self.hash_for(name);
        let (phc, password) = (phc.cloned(), password.to_owned());
        let checked =
            tokio::task::spawn_blocking(move || (phc.is_some_and(|phc| phc.verify(&password)), turn));
        // The turn is kept until the outcome is counted, so that the next in line sees it.
        let (fits, _turn) = checked.await.map_or((false, None), |(fits, turn)| (fits, Some(turn)));
        self.metrics.password_hashed();
        match user {
            Some(user) if fits && has_password && !user.config.disabled => {
                lockout.fits(&*self.store).await.map_err(store_page)?;
                Ok(Some(session(format!("user:{name}"), Some(user.credential.clone()))))
            }
            _ => {
                lockout.wrong(&*self.store).await.map_err(store_page)?;
                Ok(None)
            }
        }
    }

    /// What a password of `name` is checked against, and whether that is a user's.
    fn hash_for(&self, name: &str) -> (Option<&Phc>, bool) {
        let known = self.users.get(name).and_then(|user| user.phc.as_ref());
        let decoy = || self.decoys.pick(derive(&self.decoy_key, name.as_bytes()));
        (known.or_else(decoy), known.is_some())
    }

    async fn decide(&self, parts: &http::request::Parts, body: Body) -> Result<Response, Response> {
        let ip = self.caller(parts);
        let (params, id, pending, _, _) = self.form_of_step(parts, body, "consent").await?;
        let cleared = self.clear(&id, pending).await?;
        let Cleared { pending, scopes, .. } = &cleared;
        let (sub, client) = (Some(pending.grant.sub.as_str()), Some(pending.grant.client.as_str()));
        if params.get("decision") != Some("allow") {
            self.store.remove(&Key::secret("pending", &id)).await.map_err(store_page)?;
            self.tell("consent.denied", sub, client, Some(ip), None);
            return Ok(self.refuse(pending, "access_denied", "the user said no", StatusCode::SEE_OTHER));
        }
        if params.boxes.iter().any(|scope| !scopes.contains(scope)) {
            return Err(page(StatusCode::BAD_REQUEST, "Something was allowed that was not asked for."));
        }
        let allowed = scopes.only(&params.boxes);
        self.remember_consent(&cleared, &allowed).await.map_err(store_page)?;
        self.tell("consent.given", sub, client, Some(ip), None);
        self.finish(&id, cleared.only(&params.boxes), StatusCode::SEE_OTHER).await.map_err(store_page)
    }
}

impl IntoResponse for StoreError {
    fn into_response(self) -> Response {
        OAuthError::from(self).into_response()
    }
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, sync::Arc};

    use crate::{
        AuthorizationServer, Deployment, LogAudit, ServerParts, SystemEntropy, clock::SystemClock,
        password::Phc, store::MemoryStore,
    };

    #[tokio::test]
    async fn b15_a_name_nobody_has_and_a_user_without_a_password_cost_what_a_users_password_costs() {
        let hash = |cost: &str| {
            format!(
                "$argon2id$v=19${cost}$Z2F0ZXdyaWdodC1kZWNveQ$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
            )
        };
        let costs = ["m=65536,t=3,p=4", "m=32768,t=2,p=1"].map(hash);
        let config = serde_json::json!({"mode": "orchestrated", "local": {
            "passkeys": {"enabled": true},
            "users": [{"username": "ann", "passwordHash": costs[0]}, {"username": "bob", "passwordHash": costs[1]},
                      {"username": "carol"}],
        }});
        let clock = Arc::new(SystemClock);
        let parts = ServerParts {
            store: Arc::new(MemoryStore::new(clock.clone())),
            clock,
            entropy: Arc::new(SystemEntropy),
            audit: Arc::new(LogAudit),
        };
        let deployment = Deployment::new("https://mcp.example", "/mcp", "x");
        let config = serde_json::from_value(config).unwrap();
        let server = AuthorizationServer::with_parts(config, deployment, parts).await.unwrap();
        let users: BTreeSet<_> = costs.iter().map(|text| Phc::parse(text).unwrap().cost()).collect();
        let names = (0..100).map(|n| format!("nobody{n}")).chain(["carol".to_owned()]);
        let decoys: BTreeSet<_> = names
            .map(|name| {
                let (phc, is_users) = server.core().hash_for(&name);
                assert!(!is_users, "{name}");
                phc.unwrap().cost()
            })
            .collect();
        assert_eq!(decoys, users);
        assert_eq!(server.core().hash_for("ann").0.unwrap().cost().0, 65_536);
    }
}
