//! Tokens: obtained with a code, kept encrypted, refreshed by one instance at a time.

use std::time::Duration;

use gatewright_core::BearerToken;
use serde::{Deserialize, Serialize};

use super::{
    Provider,
    client::{Identity, IssuerTag},
    discovery::Server,
};
use crate::{
    fetch::FetchError,
    server::Core,
    store::{Key, StoreError},
};

const MOST: usize = 256 * 1024;
/// How long an instance may take to refresh before another one tries: more than a request can last.
const LOCK: Duration = Duration::from_secs(15);
/// How often one that waits looks, and how often at most.
const LOOK: (Duration, usize) = (Duration::from_millis(50), 200);

/// What the vault holds for a user and a server.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Vaulted {
    access_token: String,
    refresh_token: Option<String>,
    /// Seconds since the epoch; 0: not known.
    expires_s: u64,
    /// Who we were when it was issued.
    identity: Identity,
    issuer: String,
    token_endpoint: String,
}

#[derive(Deserialize)]
struct Answer {
    access_token: String,
    token_type: Option<String>,
    refresh_token: Option<String>,
    expires_in: Option<u64>,
}

/// Why a refresh gave no token.
enum NotRefreshed {
    /// The authorization server does not accept the refresh token any more.
    Over,
    Failed(String),
}

fn store(error: StoreError) -> String {
    error.to_string()
}

impl Vaulted {
    fn from_answer(
        body: &[u8],
        now_s: u64,
        identity: Identity,
        server: (&str, &str),
    ) -> Result<Self, String> {
        let answer: Answer =
            serde_json::from_slice(body).map_err(|_| "the token answer cannot be read".to_owned())?;
        if !answer.token_type.as_deref().unwrap_or("bearer").eq_ignore_ascii_case("bearer") {
            return Err("the token is of a type the gateway cannot use".to_owned());
        }
        let visible = |c: u8| (0x21..=0x7e).contains(&c);
        if answer.access_token.is_empty() || !answer.access_token.bytes().all(visible) {
            return Err("the token cannot be sent".to_owned());
        }
        Ok(Self {
            access_token: answer.access_token,
            refresh_token: answer.refresh_token,
            expires_s: answer.expires_in.map_or(0, |seconds| now_s.saturating_add(seconds)),
            identity,
            issuer: server.0.to_owned(),
            token_endpoint: server.1.to_owned(),
        })
    }

    fn is_due(&self, now_s: u64, skew_s: u64) -> bool {
        self.expires_s != 0 && now_s.saturating_add(skew_s) >= self.expires_s
    }

    fn bearer(&self) -> BearerToken {
        BearerToken::new(self.access_token.as_str())
    }
}

impl Provider {
    /// The record of a user. The server's address is part of it: a token never goes to another one.
    fn key(&self, sub: &str) -> Key {
        let (app, resource) = (&self.settings.app, &self.settings.resource);
        Key::secret("vault", &format!("{}:{app}{}:{resource}{sub}", app.len(), resource.len()))
    }

    async fn read(&self, core: &Core, key: &Key) -> Result<Option<Vaulted>, String> {
        let held = core.store.get(key).await.map_err(store)?;
        // What cannot be opened was given up with its key: the user authorizes again.
        let plain = held.and_then(|sealed| core.sealer.open(key.as_str(), &sealed));
        Ok(plain.and_then(|plain| serde_json::from_slice(&plain).ok()))
    }

    async fn write(&self, core: &Core, key: &Key, vaulted: &Vaulted) -> Result<(), String> {
        let plain = serde_json::to_vec(vaulted).unwrap_or_default();
        let sealed = core.sealer.seal(&*core.entropy, key.as_str(), &plain);
        let life = Duration::from_secs(core.config.refresh.absolute_ttl);
        core.store.put(key, &sealed, life).await.map_err(store)
    }

    async fn ask(
        &self,
        identity: &Identity,
        token_endpoint: &str,
        mut pairs: Vec<(&str, &str)>,
    ) -> Result<Vec<u8>, FetchError> {
        let basic = identity.secret.as_deref().filter(|_| !identity.in_form);
        if basic.is_none() {
            pairs.push(("client_id", &identity.id));
        }
        if let (Some(secret), true) = (&identity.secret, identity.in_form) {
            pairs.push(("client_secret", secret));
        }
        let basic = basic.map(|secret| (identity.id.as_str(), secret));
        Ok(self.fetcher.post_form(token_endpoint, &pairs, basic, MOST).await?.body)
    }

    /// Exchanges a code and keeps what comes of it.
    pub(super) async fn redeem(
        &self,
        core: &Core,
        sub: &str,
        server: &Server,
        identity: Identity,
        (code, verifier): (&str, &str),
    ) -> Result<(), String> {
        let callback = IssuerTag::of(&server.issuer).callback(core);
        let pairs = vec![
            ("grant_type", "authorization_code"),
            ("code", code),
            ("redirect_uri", callback.as_str()),
            ("code_verifier", verifier),
            ("resource", &self.settings.resource),
        ];
        let body = self
            .ask(&identity, &server.token_endpoint, pairs)
            .await
            .map_err(|error| format!("the code could not be exchanged: {error}"))?;
        let places = (server.issuer.as_str(), server.token_endpoint.as_str());
        let vaulted = Vaulted::from_answer(&body, core.clock.now_s(), identity, places)?;
        self.write(core, &self.key(sub), &vaulted).await
    }

    /// The user's token, refreshed when it is about to expire.
    pub(super) async fn bearer(&self, core: &Core, sub: &str) -> Result<Option<BearerToken>, String> {
        let key = self.key(sub);
        let Some(held) = self.read(core, &key).await? else { return Ok(None) };
        if !held.is_due(core.clock.now_s(), core.config.refresh.skew_seconds) {
            return Ok(Some(held.bearer()));
        }
        match self.renew(core, sub, &key, &held).await {
            // Still good for a moment.
            Err(error) if !held.is_due(core.clock.now_s(), 0) => {
                tracing::warn!(app.id = self.settings.app, error, "a token of a user could not be refreshed");
                Ok(Some(held.bearer()))
            }
            renewed => renewed,
        }
    }

    /// The server refused `token`: another one, or none, and then the user must authorize again.
    pub(super) async fn refused(
        &self,
        core: &Core,
        sub: &str,
        token: &BearerToken,
    ) -> Result<Option<BearerToken>, String> {
        let key = self.key(sub);
        match self.read(core, &key).await? {
            None => Ok(None),
            Some(held) if held.bearer() != *token => Ok(Some(held.bearer())),
            Some(held) => self.renew(core, sub, &key, &held).await,
        }
    }

    /// Puts another token in the place of `held`: this instance asks for it, or waits for the one that does.
    async fn renew(
        &self,
        core: &Core,
        sub: &str,
        key: &Key,
        held: &Vaulted,
    ) -> Result<Option<BearerToken>, String> {
        let lock = Key::named("vaultlock", &[key.as_str()]);
        for _ in 0..LOOK.1 {
            let mine = core.store.put_new(&lock, b"1", LOCK).await.map_err(store)?;
            // Whoever held the lock before may have done it already.
            let outcome = match self.read(core, key).await? {
                None => Some(Ok(None)),
                Some(other) if other.access_token != held.access_token => Some(Ok(Some(other.bearer()))),
                Some(held) if mine => Some(self.refresh(core, sub, key, &held).await),
                Some(_) => None,
            };
            if mine {
                core.store.remove(&lock).await.map_err(store)?;
            }
            if let Some(outcome) = outcome {
                return outcome;
            }
            tokio::time::sleep(LOOK.0).await;
        }
        Err("its token is being refreshed; try again".to_owned())
    }

    async fn refresh(
        &self,
        core: &Core,
        sub: &str,
        key: &Key,
        held: &Vaulted,
    ) -> Result<Option<BearerToken>, String> {
        let app = Some(self.settings.app.as_str());
        match self.refreshed(core, held).await {
            Ok(new) => {
                self.write(core, key, &new).await?;
                core.tell("upstream.refreshed", Some(sub), app, None, None);
                Ok(Some(new.bearer()))
            }
            Err(NotRefreshed::Over) => {
                core.store.remove(key).await.map_err(store)?;
                core.tell("upstream.lost", Some(sub), app, None, None);
                Ok(None)
            }
            Err(NotRefreshed::Failed(why)) => Err(why),
        }
    }

    async fn refreshed(&self, core: &Core, held: &Vaulted) -> Result<Vaulted, NotRefreshed> {
        let token = held.refresh_token.as_deref().ok_or(NotRefreshed::Over)?;
        let pairs = vec![
            ("grant_type", "refresh_token"),
            ("refresh_token", token),
            ("resource", &self.settings.resource),
        ];
        let body = match self.ask(&held.identity, &held.token_endpoint, pairs).await {
            Ok(body) => body,
            Err(error) if error.ends_grant() => return Err(NotRefreshed::Over),
            Err(error) => {
                return Err(NotRefreshed::Failed(format!("its token could not be refreshed: {error}")));
            }
        };
        let places = (held.issuer.as_str(), held.token_endpoint.as_str());
        let mut new = Vaulted::from_answer(&body, core.clock.now_s(), held.identity.clone(), places)
            .map_err(NotRefreshed::Failed)?;
        // A server that does not rotate leaves the field out (RFC 6749 §6).
        new.refresh_token = new.refresh_token.or_else(|| held.refresh_token.clone());
        Ok(new)
    }
}
