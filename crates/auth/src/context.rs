//! The parts that all services of the authorization server share.

use std::{net::IpAddr, sync::Arc, time::Duration};

use axum::extract::ConnectInfo;
use http::{HeaderValue, request::Parts};
use serde::de::DeserializeOwned;

use crate::{
    audit::{AuditEvent, AuditSink},
    clock::{Clock, Entropy},
    config::{AuthConfig, Deployment},
    crypto::{Sealer, mint},
    error::OAuthError,
    metrics::Metrics,
    net::{ClientAddress, Network},
    quota::Quota,
    store::{Key, Store, StoreError},
    tuning::RATE_WINDOW,
};

/// Configuration, store, clock, randomness, encryption, metrics and audit.
pub(crate) struct Context {
    pub(crate) config: AuthConfig,
    pub(crate) deployment: Deployment,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) entropy: Arc<dyn Entropy>,
    pub(crate) sealer: Arc<Sealer>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) audit: Arc<dyn AuditSink>,
    pub(crate) trusted_proxies: Vec<Network>,
    /// Quota of DPoP proofs that are remembered.
    pub(crate) proofs: Quota,
}

/// Time for which a record that ended keeps its name.
const ENDED: Duration = Duration::from_secs(1);

/// A sealed record as it was read. It is replaced only while it is the same.
pub(crate) struct SealedRecord<T> {
    pub(crate) value: T,
    sealed: Vec<u8>,
}

impl Context {
    /// Returns the address of `path` on this server.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("{}{path}", self.deployment.public_url)
    }

    /// Returns a new secret of 32 random bytes, as base64url.
    pub(crate) fn new_secret(&self) -> String {
        mint::<32>(&*self.entropy)
    }

    /// Returns the caller's address, as trusted proxies report it.
    pub(crate) fn caller(&self, parts: &Parts) -> ClientAddress {
        let peer = parts.extensions.get::<ConnectInfo<std::net::SocketAddr>>().map(|info| info.0.ip());
        let peer = peer.unwrap_or(IpAddr::V4(std::net::Ipv4Addr::UNSPECIFIED)).to_canonical();
        // A request may come by way of another instance, which knows the address.
        let known = parts.extensions.get::<gatewright_core::CallerAddress>().map_or(peer, |caller| caller.0);
        ClientAddress(gatewright_core::caller_address(known, &parts.headers, &self.trusted_proxies))
    }

    /// Returns the counter for requests to `endpoint`, by the parts of `by`.
    fn rate_counter(endpoint: &'static str, by: &[&str]) -> Key {
        Key::named("rate", &[&[endpoint], by].concat())
    }

    /// Counts a request to `endpoint`, by the parts of `by`, and refuses it when there were more than `limit` in the last minute.
    pub(crate) async fn limit(
        &self,
        endpoint: &'static str,
        by: &[&str],
        limit: u64,
    ) -> Result<(), OAuthError> {
        self.count(&Self::rate_counter(endpoint, by), limit).await
    }

    /// The counters for requests of `caller` to `endpoint`, by the parts of `by` and each of its networks, with the limits of those where one
    /// caller has `limit`.
    pub(crate) fn caller_counters(
        endpoint: &'static str,
        by: &[&str],
        caller: ClientAddress,
        limit: u64,
    ) -> impl Iterator<Item = (Key, u64)> {
        caller.networks().map(move |(network, times)| {
            let network = network.to_string();
            let by = [by, &[network.as_str()]].concat();
            (Self::rate_counter(endpoint, &by), limit.saturating_mul(times))
        })
    }

    /// Counts a request of `caller` to `endpoint`, by the parts of `by` and each of its networks. Refuses it when there were more than
    /// `limit` in the last minute, or more from larger networks than so many callers may send.
    pub(crate) async fn limit_caller(
        &self,
        endpoint: &'static str,
        by: &[&str],
        caller: ClientAddress,
        limit: u64,
    ) -> Result<(), OAuthError> {
        // In this order: what a network is refused does not count for the larger ones around it.
        for (key, limit) in Self::caller_counters(endpoint, by, caller, limit) {
            self.count(&key, limit).await?;
        }
        Ok(())
    }

    async fn count(&self, key: &Key, limit: u64) -> Result<(), OAuthError> {
        let hit = self.store.hit(key, RATE_WINDOW).await?;
        if hit.count > limit { Err(OAuthError::too_many(hit.resets_in)) } else { Ok(()) }
    }

    /// Counts an event and writes it to the audit.
    pub(crate) fn record_event(
        &self,
        event: &'static str,
        actor: Option<&str>,
        client: Option<&str>,
        ip: Option<ClientAddress>,
        jti: Option<&str>,
    ) {
        self.metrics.count_event(event);
        self.audit.record(&AuditEvent {
            at_ms: self.clock.now_ms(),
            event,
            actor: actor.map(str::to_owned),
            client: client.map(str::to_owned),
            ip: ip.map(|ip| ip.0.to_string()),
            jti: jti.map(str::to_owned),
        });
    }

    /// Returns the lifetime of a token family.
    pub(crate) fn family_lifetime(&self, refreshes: bool) -> Duration {
        let refresh = &self.config.refresh;
        let access = Duration::from_secs(refresh.access_token_ttl + crate::keys::SKEW_S);
        if refreshes { Duration::from_secs(refresh.absolute_ttl).max(access) } else { access }
    }

    /// Encrypts a record for the store.
    pub(crate) async fn put_sealed(
        &self,
        key: &Key,
        plain: &[u8],
        lifetime: Duration,
    ) -> Result<(), StoreError> {
        let sealed = self.sealer.seal(&*self.entropy, key.as_str(), plain);
        self.store.put(key, &sealed, lifetime).await
    }

    /// Reads a record that was sealed. One that cannot be opened was given up with its key.
    pub(crate) async fn read_sealed<T: DeserializeOwned>(
        &self,
        key: &Key,
    ) -> Result<Option<SealedRecord<T>>, StoreError> {
        let Some(sealed) = self.store.get(key).await? else { return Ok(None) };
        let plain = self.sealer.open(key.as_str(), &sealed);
        let value = plain.and_then(|plain| serde_json::from_slice(&plain).ok());
        Ok(value.map(|value| SealedRecord { value, sealed }))
    }

    /// Writes `plain` in the place of `before`; `false` if that was removed or replaced since it was read, which stays so.
    pub(crate) async fn replace_sealed<T>(
        &self,
        key: &Key,
        before: &SealedRecord<T>,
        plain: &[u8],
        lifetime: Duration,
    ) -> Result<bool, StoreError> {
        let sealed = self.sealer.seal(&*self.entropy, key.as_str(), plain);
        self.store.replace(key, &before.sealed, &sealed, lifetime).await
    }

    /// Ends the record `before`, unless it was replaced since it was read.
    pub(crate) async fn end_sealed<T>(&self, key: &Key, before: &SealedRecord<T>) -> Result<(), StoreError> {
        // It cannot be opened, which is as if it was not there.
        self.store.replace(key, &before.sealed, b"", ENDED).await.map(drop)
    }

    /// Returns the name of one of our cookies. Over https it has the `__Host-` prefix, so that no other host can set it.
    pub(crate) fn cookie_name(&self, short: &str) -> String {
        if self.deployment.is_https() { format!("__Host-gw-{short}") } else { format!("gw-{short}") }
    }

    /// Returns the `Set-Cookie` header of one of our cookies.
    pub(crate) fn set_cookie(&self, short: &str, value: &str, seconds: u64) -> HeaderValue {
        let secure = if self.deployment.is_https() { "; Secure" } else { "" };
        let name = self.cookie_name(short);
        let text = format!("{name}={value}; Path=/; HttpOnly; SameSite=Lax; Max-Age={seconds}{secure}");
        HeaderValue::try_from(text).unwrap_or(HeaderValue::from_static(""))
    }
}
