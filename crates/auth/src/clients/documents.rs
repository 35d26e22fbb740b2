//! Client ID metadata documents: clients whose identifier is the address of a document about them.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use url::Url;

use crate::{
    config::CimdConfig,
    context::Context,
    error::OAuthError,
    fetch::Fetcher,
    net::ClientAddress,
    tuning::{DOCUMENT_FRESH_S, DOCUMENT_RETRY_S, DOCUMENT_STALE_S},
};

use super::{
    client::{AuthMethod, OAuthClient, Origin},
    metadata::{ClientMetadata, MAX_METADATA_BYTES, MetadataError},
};

const MAX_DOCUMENTS: usize = 1_000;
/// Part of a host's fetches that one network may use up, as a divisor.
const NETWORK_SHARE: u64 = 3;

/// A client document that was acceptable when it was fetched.
#[derive(Clone)]
struct Document {
    client: OAuthClient,
    fresh_until_s: u64,
    /// Time from which it may be fetched again.
    retry_from_s: u64,
}

/// The place of one document in the cache.
#[derive(Default)]
struct Slot {
    /// Locked while the document is fetched.
    document: tokio::sync::Mutex<Option<Document>>,
    /// Scopes of the last document that was acceptable. They are read without waiting for a fetch, and stay when a later document is not
    /// acceptable: a token that lost a scope does not get it back so.
    scopes: Mutex<Option<Arc<[String]>>>,
}

impl Slot {
    fn limit(&self, scopes: Option<&[String]>) {
        *self.scopes.lock().unwrap_or_else(PoisonError::into_inner) = scopes.map(Arc::from);
    }
}

/// A cache of client documents. Errors are not cached; one fetch serves all requests that wait for it.
pub(crate) struct Documents {
    fetcher: Fetcher,
    slots: Mutex<HashMap<String, Arc<Slot>>>,
}

/// Makes room for a document. Slots without a document go first, then stale documents, then all that no request waits for.
fn make_room(slots: &mut HashMap<String, Arc<Slot>>, now_s: u64) {
    let in_use = |slot: &Arc<Slot>| Arc::strong_count(slot) > 1;
    let keeps = |slot: &Slot, good: fn(&Document, u64) -> bool| {
        slot.document.try_lock().is_ok_and(|slot| slot.as_ref().is_some_and(|document| good(document, now_s)))
    };
    slots.retain(|_, slot| {
        in_use(slot) || keeps(slot, |document, now| now < document.fresh_until_s + DOCUMENT_STALE_S)
    });
    if slots.len() >= MAX_DOCUMENTS {
        slots.retain(|_, slot| in_use(slot) || keeps(slot, |document, now| now < document.fresh_until_s));
    }
    if slots.len() >= MAX_DOCUMENTS {
        slots.retain(|_, slot| in_use(slot));
    }
}

/// Returns whether an identifier is an address; [`check`] tells whether it is acceptable.
pub(crate) fn looks_like_document(id: &str, config: &CimdConfig) -> bool {
    id.starts_with("https://") || (config.allow_private && id.starts_with("http://"))
}

/// Parses the address of a document, which must have a path, no credentials, no fragment, and canonical form.
pub(crate) fn check(id: &str, config: &CimdConfig) -> Option<Url> {
    let url = Url::parse(id).ok()?;
    let raw_path = id.split_once("://")?.1.split_once('/')?.1;
    let dots = raw_path.split(['/', '?']).any(|part| {
        matches!(part.to_ascii_lowercase().as_str(), "." | ".." | "%2e" | "%2e%2e" | ".%2e" | "%2e.")
    });
    let plain = url.username().is_empty()
        && url.password().is_none()
        && url.fragment().is_none()
        && !id.contains('#');
    if raw_path.is_empty() || dots || !plain || url.path() == "/" || url.as_str() != id || id.len() > 2048 {
        return None;
    }
    let host = url.host_str()?;
    let matches = |pattern: &String| match pattern.strip_prefix("*.") {
        Some(parent) => host.strip_suffix(parent).is_some_and(|rest| rest.ends_with('.')),
        None => host == pattern,
    };
    let allowed = config.allow_hosts.is_empty() || config.allow_hosts.iter().any(matches);
    (allowed && !config.deny_hosts.iter().any(matches)).then_some(url)
}

fn read(id: &str, body: &[u8]) -> Result<OAuthClient, MetadataError> {
    let refused = |why: &'static str| Err(MetadataError::field(why));
    let metadata = ClientMetadata::parse(body)?;
    if metadata.client_id.as_deref() != Some(id) {
        return refused("client_id must be the address of the document");
    }
    if metadata.has_secret {
        return refused("client_secret must not be in a document that anyone can read");
    }
    let client = metadata.into_client(id.to_owned(), AuthMethod::None, Origin::Document)?;
    // A client that describes itself gets tokens only through a user.
    if client.may("client_credentials") {
        return refused("client_credentials is not open to clients that describe themselves");
    }
    if !matches!(client.method, AuthMethod::None | AuthMethod::PrivateKeyJwt) {
        return refused("token_endpoint_auth_method must be none or private_key_jwt");
    }
    Ok(client)
}

impl Documents {
    pub(crate) fn new(fetcher: Fetcher) -> Self {
        Self { fetcher, slots: Mutex::default() }
    }

    /// Returns the client described at `id`. Fetches are counted, for the network of the caller and for the host of the document.
    pub(crate) async fn client(
        &self,
        ctx: &Context,
        id: &str,
        caller: ClientAddress,
    ) -> Result<OAuthClient, OAuthError> {
        let url = check(id, &ctx.config.cimd).ok_or_else(OAuthError::invalid_client)?;
        let place = {
            let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
            if slots.len() >= MAX_DOCUMENTS && !slots.contains_key(id) {
                make_room(&mut slots, ctx.clock.now_s());
            }
            slots.entry(id.to_owned()).or_default().clone()
        };
        let mut slot = place.document.lock().await;
        let now = ctx.clock.now_s();
        if let Some(document) = &*slot
            && (now < document.fresh_until_s || now < document.retry_from_s)
        {
            return Ok(document.client.clone());
        }
        // The cached document stays while it is fetched again: the request that fetches may be dropped.
        let fetched = self.fetch(ctx, id, &url, caller).await;
        let before = slot.take().filter(|document| now < document.fresh_until_s + DOCUMENT_STALE_S);
        match (fetched, before) {
            (Ok(document), _) => {
                place.limit(document.client.scopes.as_deref());
                Ok(slot.insert(document).client.clone())
            }
            (Err(DocumentError::Unavailable(_)), Some(before)) => {
                let retry_from_s = (now + DOCUMENT_RETRY_S).min(before.fresh_until_s + DOCUMENT_STALE_S);
                Ok(slot.insert(Document { retry_from_s, ..before }).client.clone())
            }
            (Err(DocumentError::Unavailable(error) | DocumentError::Unacceptable(error)), _) => Err(error),
        }
    }

    /// Returns the client that the cached document at `id` describes, unless it is too old to be used while its host cannot be asked.
    pub(crate) async fn cached(&self, id: &str, now_s: u64) -> Option<OAuthClient> {
        let slot = self.slots.lock().unwrap_or_else(PoisonError::into_inner).get(id)?.clone();
        let document = slot.document.lock().await;
        let document = document.as_ref().filter(|known| now_s < known.fresh_until_s + DOCUMENT_STALE_S)?;
        Some(document.client.clone())
    }

    /// Returns the scopes that the cached document at `id` limits its client to; `None` when it names none, or is not in the cache. Fetches
    /// nothing, and does not wait for a fetch.
    pub(crate) fn cached_scopes(&self, id: &str) -> Option<Arc<[String]>> {
        let slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        slots.get(id)?.scopes.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    async fn fetch(
        &self,
        ctx: &Context,
        id: &str,
        url: &Url,
        caller: ClientAddress,
    ) -> Result<Document, DocumentError> {
        let (limit, host) = (ctx.config.limits.fetch, url.host_str().unwrap_or_default());
        let unavailable = DocumentError::Unavailable;
        ctx.limit_caller("fetch", &[], caller, limit).await.map_err(unavailable)?;
        let share = limit.div_ceil(NETWORK_SHARE);
        for (network, times) in caller.networks() {
            // No network has all of it, however large.
            let share = share.saturating_mul(times).min(limit.saturating_sub(share).max(share));
            ctx.limit("fetch-share", &[host, &network.to_string()], share).await.map_err(unavailable)?;
        }
        if let Err(error) = ctx.limit("fetch-host", &[host], limit).await {
            // As many more, one for each network, however few took the rest.
            ctx.limit_caller("fetch-first", &[host], caller, 1).await.map_err(|_| unavailable(error))?;
            ctx.limit("fetch-host-first", &[host], limit).await.map_err(unavailable)?;
        }
        let fetched = self.fetcher.get(id, MAX_METADATA_BYTES).await.map_err(|error| {
            tracing::info!(client.id = id, %error, "a client document could not be fetched");
            let invalid = OAuthError::invalid_client();
            if error.is_temporary() {
                DocumentError::Unavailable(invalid)
            } else {
                DocumentError::Unacceptable(invalid)
            }
        })?;
        let described = match fetched.is_json {
            true => read(id, &fetched.body),
            false => Err(MetadataError::field("it is not served as application/json")),
        };
        let client = described.map_err(|why| {
            tracing::info!(client.id = id, %why, "a client document is not acceptable");
            let description = format!("the client document cannot be accepted: {why}").into();
            DocumentError::Unacceptable(OAuthError { description, ..OAuthError::invalid_client() })
        })?;
        let (shortest, default, longest) = DOCUMENT_FRESH_S;
        let fresh_s = fetched.max_age_s.unwrap_or(default).clamp(shortest, longest);
        let fresh_until_s = ctx.clock.now_s() + fresh_s;
        Ok(Document { client, fresh_until_s, retry_from_s: fresh_until_s })
    }
}

/// Reasons why there is no document.
enum DocumentError {
    /// It could not be fetched now.
    Unavailable(OAuthError),
    /// It does not exist, or is not acceptable.
    Unacceptable(OAuthError),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn h11_addresses_must_be_canonical_https_with_a_path() {
        let config = CimdConfig::default();
        assert!(check("https://c.example/client.json", &config).is_some());
        for bad in [
            "https://c.example",
            "https://c.example/",
            "https://c.example/a/../b",
            "https://c.example/%2e%2e/b",
            "https://c.example/./b",
            "https://u@c.example/b",
            "https://u:p@c.example/b",
            "https://c.example/b#f",
            "https://C.example/b",
            "https://c.example:443/b",
            "https:/c.example/b",
        ] {
            assert!(check(bad, &config).is_none(), "{bad}");
        }
    }

    #[test]
    fn h12_and_h13_documents_name_themselves_and_hold_no_secret() {
        let id = "https://c.example/c";
        let document = |extra: &str| {
            format!(
                r#"{{"client_id":"{id}","client_name":"C","redirect_uris":["https://c.example/cb"]{extra}}}"#
            )
        };
        assert!(read(id, document("").as_bytes()).is_ok());
        assert!(read("https://c.example/other", document("").as_bytes()).is_err(), "another address");
        for bad in [
            r#","client_secret":"s""#,
            r#","token_endpoint_auth_method":"client_secret_basic""#,
            r#","token_endpoint_auth_method":"private_key_jwt","jwks":{"keys":[{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo","d":"nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A"}]}"#,
            r#","jwks":{"keys":[{"kty":"oct","k":"AAAA"}]}"#,
            r#","token_endpoint_auth_method":"private_key_jwt","grant_types":["client_credentials"],"jwks":{"keys":[{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]}"#,
        ] {
            assert!(read(id, document(bad).as_bytes()).is_err(), "{bad}");
        }
        assert!(read(id, b"[]").is_err() && read(id, b"\xff").is_err() && read(id, b"{}").is_err());
    }

    #[test]
    fn h20_hosts_can_be_allowed_and_denied() {
        let list = |text: &str| vec![text.to_owned()];
        let only = CimdConfig { allow_hosts: list("*.good.example"), ..CimdConfig::default() };
        assert!(check("https://a.good.example/c", &only).is_some());
        assert!(
            check("https://good.example/c", &only).is_none()
                && check("https://evilgood.example/c", &only).is_none()
        );
        let not = CimdConfig { deny_hosts: list("bad.example"), ..CimdConfig::default() };
        assert!(check("https://bad.example/c", &not).is_none());
    }
}
