//! An external identity provider, and logins at it.

use std::{collections::BTreeMap, sync::Arc};

use gatewright_auth::{
    AuthConfig, Clock as _, Deployment, ManualClock, ResourceServer, Transparent,
    keys::{Algorithm, Jwk, SigningKey, sign},
    store::{MemoryStore, Store},
};
use gatewright_core::Endpoints;
use serde_json::{Value, json};

use super::{
    site::{Browser, Site, ask, form, merge},
    web::{Reply, Web},
};

pub(crate) struct Idp {
    pub(crate) web: Web,
    pub(crate) key: Jwk,
    pub(crate) clock: Arc<ManualClock>,
}

pub(crate) const AUDIENCE: &str = "https://mcp.example/mcp";

impl Idp {
    pub(crate) async fn start() -> Self {
        let web = Web::start().await;
        let idp = Self {
            key: Jwk::generate(Algorithm::ES256).unwrap(),
            clock: Arc::new(ManualClock::from_system()),
            web,
        };
        let at = |path: &str| idp.web.url(path);
        idp.web.on(
            "/.well-known/openid-configuration",
            Reply::json(json!({"issuer": at(""), "jwks_uri": at("/jwks"), "authorization_endpoint": at("/authorize"), "token_endpoint": at("/token"),
                "authorization_response_iss_parameter_supported": true})),
        );
        idp.publish(&[&idp.key]);
        idp
    }

    pub(crate) fn publish(&self, keys: &[&Jwk]) {
        let keys: Vec<Jwk> = keys.iter().map(|key| key.public()).collect();
        self.web.on("/jwks", Reply::json(json!({"keys": keys})));
    }

    pub(crate) fn token(&self, key: &Jwk, changes: Value) -> String {
        let now = self.clock.now_s();
        let mut claims = json!({"iss": self.web.url(""), "aud": AUDIENCE, "sub": "u1", "iat": now, "exp": now + 100_000, "scope": "read", "azp": "client-1"});
        merge(&mut claims, changes);
        claims.as_object_mut().unwrap().retain(|_, value| !value.is_null());
        sign(&SigningKey::from_jwk(key).unwrap(), "at+jwt", claims.as_object().unwrap())
    }

    pub(crate) fn guard(&self, over: Value) -> ResourceServer {
        self.guard_with(over, json!({}))
    }

    /// The same with endpoints beside the main one.
    pub(crate) fn guard_with(&self, over: Value, endpoints: Value) -> ResourceServer {
        let mut value = json!({"mode": "transparent", "expectedAudience": AUDIENCE, "provider": {"url": self.web.url(""), "allowPrivate": true}});
        merge(&mut value, over);
        let config: AuthConfig = serde_json::from_value(value).unwrap();
        let endpoints = Arc::new(Endpoints::new(&serde_json::from_value(endpoints).unwrap()));
        let deployment = Deployment::new("https://mcp.example", "/mcp", "Notes").with_endpoints(endpoints);
        ResourceServer::transparent(Transparent::new(config, &deployment, self.clock.clone()).unwrap())
    }
}

pub(crate) async fn remote(idp: &Idp) -> Site {
    remote_on(idp, Arc::new(MemoryStore::new(idp.clock.clone()))).await
}

pub(crate) async fn remote_on(idp: &Idp, store: Arc<dyn Store>) -> Site {
    let provider = json!({"type": "remote", "provider": {"url": idp.web.url(""), "clientId": "gw", "clientSecret": "idp-secret", "allowPrivate": true}});
    Site::on(provider, idp.clock.clone(), store).await
}

/// Begins a login and returns what the provider was asked.
pub(crate) async fn begin(browser: &Browser<'_>) -> BTreeMap<String, String> {
    let answer = browser.get(&ask(&[])).await;
    assert_eq!(answer.status, 302, "{}", answer.text);
    answer.location()
}

pub(crate) fn identity(idp: &Idp, key: &Jwk, asked: &BTreeMap<String, String>, changes: Value) -> String {
    let mut over =
        json!({"aud": "gw", "azp": null, "nonce": asked["nonce"], "name": "Una", "email": "una@example.com"});
    merge(&mut over, changes);
    let now = idp.clock.now_s();
    let mut claims = json!({"iss": idp.web.url(""), "sub": "u1", "iat": now, "exp": now + 300});
    merge(&mut claims, over);
    claims.as_object_mut().unwrap().retain(|_, value| !value.is_null());
    sign(&SigningKey::from_jwk(key).unwrap(), "JWT", claims.as_object().unwrap())
}

pub(crate) fn back(idp: &Idp, state: &str) -> String {
    format!("/oauth/callback?{}", form(&[("code", "idp-code"), ("state", state), ("iss", &idp.web.url(""))]))
}
