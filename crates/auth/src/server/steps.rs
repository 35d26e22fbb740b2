//! The steps of a pending authorization: which comes next is decided by the stored record alone.

use std::time::Duration;

use axum::response::{IntoResponse, Response};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use url::Url;

use super::{Core, clearance::Cleared, form::OAuthError};
use crate::{
    ceiling::GrantedScopes,
    clients::Origin,
    crypto::{b64, derive, mint, sha256_hex},
    net,
    pages::{self, Offered, Page, Step, Wrong},
    records::{Consented, Grant, Pending, Session},
    store::{CodeLife, Digest, FamilyId, Key, StoreError},
};

pub(crate) const PENDING_LIFE: Duration = Duration::from_secs(600);
const CODE_LIFE: Duration = Duration::from_secs(60);

/// An answer for people.
pub(crate) fn page(status: StatusCode, text: &str) -> Response {
    pages::error(status, text).into_response()
}

/// An [`OAuthError`] for people.
pub(crate) fn error_page(error: OAuthError) -> Response {
    let text = match error.status {
        StatusCode::TOO_MANY_REQUESTS => "There were too many tries. Wait a little.",
        StatusCode::SERVICE_UNAVAILABLE => "The service is not available at the moment.",
        _ => &error.description,
    };
    let mut response = page(error.status, text);
    if let Some(seconds) = error.retry_after_s {
        response.headers_mut().insert(header::RETRY_AFTER, seconds.into());
    }
    response
}

pub(crate) fn store_page(error: StoreError) -> Response {
    error_page(error.into())
}

/// `target` with `pairs` added to its query.
pub(crate) fn with_query(target: &str, pairs: &[(&str, &str)]) -> String {
    let mut query = url::form_urlencoded::Serializer::new(String::new());
    query.extend_pairs(pairs);
    let joint = if target.contains('?') { '&' } else { '?' };
    format!("{target}{joint}{}", query.finish())
}

/// A redirect that nobody keeps: 302 after GET, 303 after POST.
pub(crate) fn redirect(status: StatusCode, target: &str) -> Response {
    let mut response = status.into_response();
    let headers = response.headers_mut();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    match HeaderValue::try_from(target) {
        Ok(target) => {
            headers.insert(header::LOCATION, target);
            response
        }
        Err(_) => page(StatusCode::BAD_REQUEST, "The address to go back to is not usable."),
    }
}

/// The value of a cookie.
pub(crate) fn cookie(headers: &HeaderMap, name: &str) -> Option<String> {
    let lines = headers.get_all(header::COOKIE).iter().filter_map(|line| line.to_str().ok());
    let mut pairs = lines.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.find(|(held, value)| *held == name && !value.is_empty()).map(|(_, value)| value.to_owned())
}

impl Core {
    pub(crate) fn cookie_name(&self, short: &str) -> String {
        if self.deployment.is_https() { format!("__Host-gw-{short}") } else { format!("gw-{short}") }
    }

    pub(crate) fn set_cookie(&self, short: &str, value: &str, seconds: u64) -> HeaderValue {
        let secure = if self.deployment.is_https() { "; Secure" } else { "" };
        let name = self.cookie_name(short);
        let text = format!("{name}={value}; Path=/; HttpOnly; SameSite=Lax; Max-Age={seconds}{secure}");
        HeaderValue::try_from(text).unwrap_or(HeaderValue::from_static(""))
    }

    /// The token that a form of this step must carry. It is bound to the browser's cookie and to the request, and made with a secret of the
    /// server: whoever plants a cookie in the browser cannot make it.
    pub(crate) fn csrf(&self, browser: &str, step: &str, pending: &str) -> String {
        let framed = [browser, step, pending].map(|part| format!("{}:{part}", part.len())).concat();
        b64(derive(&self.csrf_key, framed.as_bytes()))
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("{}{path}", self.deployment.public_url)
    }

    /// The session of the browser, when it is alive.
    pub(crate) async fn session(&self, headers: &HeaderMap) -> Result<Option<(String, Session)>, StoreError> {
        let Some(id) = cookie(headers, &self.cookie_name("session")) else { return Ok(None) };
        let key = Key::secret("session", &id);
        let Some(held) = self.store.get(&key).await? else { return Ok(None) };
        let mut session: Session = serde_json::from_slice(&held).map_err(|_| StoreError::Corrupt)?;
        let (now, settings) = (self.clock.now_ms(), &self.config.session);
        let over = session.started_ms + settings.absolute_ttl * 1000;
        if now >= over || now >= session.seen_ms + settings.idle_ttl * 1000 {
            return Ok(None);
        }
        let as_grant = Grant {
            sub: session.sub.clone(),
            issued_ms: session.started_ms,
            credential: session.credential.clone(),
            session: Some(sha256_hex(&id)),
            ..Default::default()
        };
        if !self.stands(&as_grant).await? {
            return Ok(None);
        }
        if now > session.seen_ms + 60_000 {
            session.seen_ms = now;
            let left = Duration::from_millis((over - now).min(settings.idle_ttl * 1000));
            self.store.put(&key, &serde_json::to_vec(&session).unwrap_or_default(), left).await?;
        }
        Ok(Some((id, session)))
    }

    /// Begins a session under a new id and returns its cookie.
    pub(crate) async fn begin_session(
        &self,
        headers: &HeaderMap,
        session: &Session,
    ) -> Result<(String, HeaderValue), StoreError> {
        if let Some(old) = cookie(headers, &self.cookie_name("session")) {
            self.store.remove(&Key::secret("session", &old)).await?;
        }
        let id = mint::<32>(&*self.entropy);
        let settings = &self.config.session;
        let life = Duration::from_secs(settings.idle_ttl.min(settings.absolute_ttl));
        self.store
            .put(&Key::secret("session", &id), &serde_json::to_vec(session).unwrap_or_default(), life)
            .await?;
        Ok((id.clone(), self.set_cookie("session", &id, settings.absolute_ttl)))
    }

    /// The pending authorization `id` of this browser, with the bytes it is stored as.
    pub(crate) async fn pending(
        &self,
        headers: &HeaderMap,
        id: &str,
    ) -> Result<(Pending, Vec<u8>, String), Response> {
        let gone = || page(StatusCode::BAD_REQUEST, "This sign-in is over, or began in another browser.");
        let browser = cookie(headers, &self.cookie_name("browser")).ok_or_else(gone)?;
        let held = self.store.get(&Key::secret("pending", id)).await.map_err(store_page)?.ok_or_else(gone)?;
        let pending: Pending = serde_json::from_slice(&held).map_err(|_| gone())?;
        if pending.browser != sha256_hex(&browser) || self.clock.now_ms() >= pending.expires_ms {
            return Err(gone());
        }
        Ok((pending, held, browser))
    }

    pub(crate) async fn keep_pending(
        &self,
        id: &str,
        before: Option<&[u8]>,
        pending: &Pending,
    ) -> Result<bool, StoreError> {
        let left = Duration::from_millis(pending.expires_ms.saturating_sub(self.clock.now_ms()).max(1));
        let (key, value) = (Key::secret("pending", id), serde_json::to_vec(pending).unwrap_or_default());
        match before {
            Some(before) => self.store.replace(&key, before, &value, left).await,
            None => self.store.put_new(&key, &value, left).await,
        }
    }

    /// How long a token family lives.
    pub(super) fn family_life(&self, refreshes: bool) -> Duration {
        let refresh = &self.config.refresh;
        let access = Duration::from_secs(refresh.access_token_ttl + crate::keys::SKEW_S);
        if refreshes { Duration::from_secs(refresh.absolute_ttl).max(access) } else { access }
    }

    fn consent_key(&self, pending: &Pending) -> Key {
        let grant = &pending.grant;
        Key::named("consent", &[&grant.sub, &grant.client, &grant.redirect])
    }

    /// What the user allowed this client before, when that still counts; and the record as it is stored.
    async fn remembered(
        &self,
        cleared: &Cleared,
    ) -> Result<(Option<Consented>, Option<Vec<u8>>), StoreError> {
        let Cleared { pending, client, .. } = cleared;
        let stored = self.store.get(&self.consent_key(pending)).await?;
        let held = stored.as_deref().and_then(|bytes| serde_json::from_slice::<Consented>(bytes).ok());
        let held = held.filter(|held| held.client == client.fingerprint());
        let Some(held) = held else { return Ok((None, stored)) };
        // Every kill switch ends what was allowed before it, remembered consents included; a logout does not.
        let given = Grant { issued_ms: held.at_ms, session: None, ..pending.grant.clone() };
        Ok((self.stands(&given).await?.then_some(held), stored))
    }

    /// Remembers the answer to what was offered. What was not offered this time stays as it was answered before.
    pub(crate) async fn remember_consent(
        &self,
        cleared: &Cleared,
        allowed: &GrantedScopes,
    ) -> Result<(), StoreError> {
        const LIFE: Duration = Duration::from_secs(365 * 86_400);
        let key = self.consent_key(&cleared.pending);
        loop {
            let (before, stored) = self.remembered(cleared).await?;
            let (mut seen, mut all) =
                before.map_or_else(Default::default, |before| (before.seen, before.allowed));
            all.retain(|scope| !cleared.scopes.contains(scope));
            all.extend(allowed.names().iter().cloned());
            seen.retain(|scope| !cleared.scopes.contains(scope));
            seen.extend(cleared.scopes.names().iter().cloned());
            let record = Consented {
                at_ms: cleared.at_ms,
                seen,
                allowed: all,
                client: cleared.client.fingerprint(),
                sub: Some(cleared.pending.grant.sub.clone()),
                client_id: Some(cleared.client.id.clone()),
            };
            let value = serde_json::to_vec(&record).unwrap_or_default();
            let kept = match &stored {
                Some(stored) => self.store.replace(&key, stored, &value, LIFE).await?,
                None => self.store.put_new(&key, &value, LIFE).await?,
            };
            // Another answer of the user came between: both count.
            if kept {
                return Ok(());
            }
        }
    }

    /// Does the next step of a pending authorization: login, consent, or the code. `silent` (`prompt=none`) shows nothing.
    pub(crate) async fn advance(
        &self,
        id: &str,
        pending: Pending,
        browser: &str,
        silent: bool,
        status: StatusCode,
    ) -> Response {
        match self.try_advance(id, pending, browser, silent, status).await {
            Ok(response) => response,
            Err(error) => store_page(error),
        }
    }

    async fn try_advance(
        &self,
        id: &str,
        pending: Pending,
        browser: &str,
        silent: bool,
        status: StatusCode,
    ) -> Result<Response, StoreError> {
        if !pending.logged_in {
            if silent {
                self.store.remove(&Key::secret("pending", id)).await?;
                return Ok(self.refuse(&pending, "login_required", "a login is needed", status));
            }
            return match &self.provider {
                Some(provider) => provider.begin(self, id, pending, status).await,
                None => Ok(self.login_page(id, &pending, browser, None)),
            };
        }
        if let Some(back) = &pending.back {
            self.store.remove(&Key::secret("pending", id)).await?;
            return Ok(redirect(status, &self.url(back)));
        }
        let cleared = match self.clear(id, pending).await {
            Ok(cleared) => cleared,
            Err(response) => return Ok(response),
        };
        let Pending { wish, grant, .. } = &cleared.pending;
        if wish.subject.as_ref().is_some_and(|sub| *sub != grant.sub) {
            self.store.remove(&Key::secret("pending", id)).await?;
            let text = "another user signed in than the one id_token_hint names";
            return Ok(self.refuse(&cleared.pending, "login_required", text, status));
        }
        let could_be_another = cleared.client.could_be_another(&cleared.pending.grant.redirect);
        if silent && could_be_another {
            self.store.remove(&Key::secret("pending", id)).await?;
            let text = "a public client on this machine gets nothing without the user";
            return Ok(self.refuse(&cleared.pending, "interaction_required", text, status));
        }
        // Only a client that the operator configured can be trusted without asking.
        let trusted = !self.config.consent.enabled && cleared.client.origin == Origin::Static;
        if trusted || cleared.scopes.is_empty() {
            return self.finish(id, cleared, status).await;
        }
        let (remembered, _) = self.remembered(&cleared).await?;
        // A consent was given to whoever was at that address then: on the user's machine that may be another program now (RFC 8252 §8.6).
        if !cleared.pending.ask_again
            && !could_be_another
            && let Some(held) = &remembered
            && cleared.scopes.names().iter().all(|scope| held.allowed.contains(scope))
        {
            return self.finish(id, cleared, status).await;
        }
        if silent {
            self.store.remove(&Key::secret("pending", id)).await?;
            return Ok(self.refuse(&cleared.pending, "consent_required", "consent is needed", status));
        }
        Ok(self.consent_page(id, &cleared, browser, remembered.as_ref()))
    }

    /// A refusal that goes to the client.
    pub(crate) fn refuse(&self, pending: &Pending, code: &str, text: &str, status: StatusCode) -> Response {
        if pending.back.is_some() {
            return page(StatusCode::BAD_REQUEST, "The sign-in was not completed.");
        }
        let pairs = [
            ("error", code),
            ("error_description", text),
            ("state", &pending.state),
            ("iss", &self.deployment.public_url),
        ];
        redirect(status, &with_query(&pending.grant.redirect, &pairs))
    }

    /// Uses the pending authorization up and sends its code to the client.
    pub(super) async fn finish(
        &self,
        id: &str,
        cleared: Cleared,
        status: StatusCode,
    ) -> Result<Response, StoreError> {
        let Cleared { pending, scopes, at_ms, .. } = cleared;
        if self.store.take(&Key::secret("pending", id)).await?.is_none() {
            return Ok(page(StatusCode::BAD_REQUEST, "This sign-in is over."));
        }
        if scopes.is_empty() {
            return Ok(self.refuse(&pending, "access_denied", "nothing was allowed", status));
        }
        let mut grant = pending.grant.clone();
        grant.scopes = scopes.record();
        grant.issued_ms = at_ms;
        grant.code_expires_ms = self.clock.now_ms() + CODE_LIFE.as_millis() as u64;
        let refresh = Duration::from_secs(self.config.refresh.refresh_token_ttl);
        let life = CodeLife {
            code: CODE_LIFE,
            family: self.family_life(grant.refreshes),
            refresh: grant.refreshes.then_some(refresh),
        };
        let family = FamilyId::mint(&*self.entropy);
        let code = format!("{}.{}", family.as_str(), mint::<32>(&*self.entropy));
        self.store
            .put_code(
                &Digest::of(&code),
                &serde_json::to_vec(&grant).unwrap_or_default(),
                life,
                &Self::cutoffs(&grant),
            )
            .await?;
        let pairs =
            [("code", code.as_str()), ("state", &pending.state), ("iss", &self.deployment.public_url)];
        Ok(redirect(status, &with_query(&grant.redirect, &pairs)))
    }

    pub(crate) fn login_page(
        &self,
        id: &str,
        pending: &Pending,
        browser: &str,
        wrong: Option<Wrong>,
    ) -> Response {
        let csrf = self.csrf(browser, "login", id);
        let step = Step { action: &self.url("/oauth/login"), pending: id, csrf: &csrf };
        let demo = self.config.local.login == crate::config::Login::Demo;
        let hint = pending.wish.hint.as_deref();
        let passkey = self.passkey_login(id, browser);
        let name = &self.deployment.name;
        let page = pages::login(name, &pending.client_name, &step, hint, wrong, demo, passkey.as_ref());
        let account = self.account_link().filter(|_| pending.back.is_none());
        Page { form_target: form_target(&pending.grant.redirect), account, ..page }.into_response()
    }

    fn consent_page(
        &self,
        id: &str,
        cleared: &Cleared,
        browser: &str,
        before: Option<&Consented>,
    ) -> Response {
        let Cleared { pending, client, scopes, .. } = cleared;
        let csrf = self.csrf(browser, "consent", id);
        let step = Step { action: &self.url("/oauth/consent"), pending: id, csrf: &csrf };
        let offered: Vec<Offered<'_>> = scopes
            .names()
            .iter()
            .map(|scope| Offered {
                scope,
                words: self.words(scope),
                new: before.is_some_and(|held| !held.seen.contains(scope)),
                ticked: before.is_none_or(|held| !held.seen.contains(scope) || held.allowed.contains(scope)),
            })
            .collect();
        let redirect = Url::parse(&pending.grant.redirect).ok();
        let host = |url: &Url| url.host_str().map_or_else(|| format!("{}:", url.scheme()), str::to_owned);
        let client_host = Url::parse(&client.id).ok().filter(|url| url.host().is_some());
        let loopback =
            redirect.as_ref().is_some_and(|url| url.scheme() == "http" && net::is_loopback_host(url));
        let user = pending.grant.sub.split_once(':').map_or(pending.grant.sub.as_str(), |(_, name)| name);
        let covered = self.covered(scopes.names());
        let ask = pages::Consent {
            server: &self.deployment.name,
            user: &pages::plain(user, 80),
            client: &pages::plain(&client.name, 80),
            client_host: &client_host.as_ref().map_or_else(|| pages::plain(&client.id, 80), host),
            redirect_host: &redirect.as_ref().map_or_else(String::new, host),
            loopback,
            resource: &pending.grant.resources.join(" "),
            offered: &offered,
            covered: covered.as_deref(),
            words: &|scope| self.words(scope).to_owned(),
        };
        let (form_target, account) = (form_target(&pending.grant.redirect), self.account_link());
        Page { form_target, account, ..pages::consent(&ask, &step) }.into_response()
    }

    /// What a scope means in words.
    fn words<'a>(&'a self, scope: &'a str) -> &'a str {
        match (self.config.scopes.get(scope).map(String::as_str), scope) {
            (Some(words), _) if !words.is_empty() => words,
            (_, "offline_access") => "Keep access while you are away",
            (_, "openid") => "Know who you are",
            (_, "profile") => "See your name",
            (_, "email") => "See your mail address",
            (_, other) => other,
        }
    }
}

/// The source that a form's answer may lead to, for `form-action`.
pub(crate) fn form_target(redirect: &str) -> Option<String> {
    let url = Url::parse(redirect).ok()?;
    match url.origin() {
        url::Origin::Tuple(..) => Some(url.origin().ascii_serialization()),
        url::Origin::Opaque(_) => Some(format!("{}:", url.scheme())),
    }
}
