//! Clients whose identifier is the address of a document about them.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use url::Url;

use crate::{
    client_metadata::{ClientMetadata, MetadataError},
    clients::{AuthMethod, OAuthClient, Origin},
    config::CimdConfig,
    fetch::FetchError,
    server::{Core, OAuthError},
};

const MOST_BYTES: usize = 16 * 1024;
const LEAST_AGE_S: u64 = 60;
const DEFAULT_AGE_S: u64 = 300;
const MOST_AGE_S: u64 = 86_400;
const MOST_HELD: usize = 1_000;
/// How long a document serves on after its time while its host cannot be asked.
const STALE_S: u64 = 86_400;
/// How long a host that could not be asked is left alone about a document that serves on.
const LEAVE_ALONE_S: u64 = 30;
/// The part of a host's fetches that one network may use up, as a divisor.
const SHARE: u64 = 3;

/// A document that was acceptable when it was fetched.
#[derive(Clone)]
struct Document {
    client: OAuthClient,
    fresh_until_s: u64,
    /// When it may be asked for again.
    ask_from_s: u64,
}

type Slot = Arc<tokio::sync::Mutex<Option<Document>>>;

/// Documents that were fetched. Errors are not kept; one fetch serves everyone who waits for it.
#[derive(Default)]
pub(crate) struct Documents {
    held: Mutex<HashMap<String, Slot>>,
}

/// Makes room for a document: first those go that there is nothing of, then those past their time, then all that nobody waits for.
fn make_room(held: &mut HashMap<String, Slot>, now_s: u64) {
    let in_use = |slot: &Slot| Arc::strong_count(slot) > 1;
    let keeps = |slot: &Slot, good: fn(&Document, u64) -> bool| {
        slot.try_lock().is_ok_and(|held| held.as_ref().is_some_and(|held| good(held, now_s)))
    };
    held.retain(|_, slot| {
        in_use(slot) || keeps(slot, |document, now| now < document.fresh_until_s + STALE_S)
    });
    if held.len() >= MOST_HELD {
        held.retain(|_, slot| in_use(slot) || keeps(slot, |document, now| now < document.fresh_until_s));
    }
    if held.len() >= MOST_HELD {
        held.retain(|_, slot| in_use(slot));
    }
}

/// Returns whether a failure says nothing about the document, only that its host cannot be asked now.
fn is_away(error: &FetchError) -> bool {
    match error {
        FetchError::Failed => true,
        FetchError::Status(status) | FetchError::Said(status, _) => *status == 429 || *status >= 500,
        FetchError::Refused | FetchError::TooLarge => false,
    }
}

/// Whether an identifier is an address; whether it is a good one is told later.
pub(crate) fn looks_like_document(id: &str, config: &CimdConfig) -> bool {
    id.starts_with("https://") || (config.allow_private && id.starts_with("http://"))
}

/// The rules for such an address: a path, nothing hidden, written in its one canonical form.
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
    let refused = |why: &'static str| Err(MetadataError::Field(why.into()));
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
    /// The client described at `id`. Fetches for `caller` are counted, for its network and for the host of the document.
    pub(crate) async fn client(
        &self,
        core: &Core,
        id: &str,
        caller: Option<String>,
    ) -> Result<OAuthClient, OAuthError> {
        let url = check(id, &core.config.cimd).ok_or_else(OAuthError::invalid_client)?;
        let slot = {
            let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
            if held.len() >= MOST_HELD && !held.contains_key(id) {
                make_room(&mut held, core.clock.now_s());
            }
            held.entry(id.to_owned()).or_default().clone()
        };
        let mut slot = slot.lock().await;
        let now = core.clock.now_s();
        if let Some(document) = &*slot
            && (now < document.fresh_until_s || now < document.ask_from_s)
        {
            return Ok(document.client.clone());
        }
        // What is held stays while it is asked for again: whoever asks may go away.
        let fetched = fetch(core, id, &url, caller.as_deref()).await;
        let before = slot.take().filter(|document| now < document.fresh_until_s + STALE_S);
        match (fetched, before) {
            (Ok(document), _) => Ok(slot.insert(document).client.clone()),
            (Err(Missed::Away(_)), Some(before)) => {
                let ask_from_s = (now + LEAVE_ALONE_S).min(before.fresh_until_s + STALE_S);
                Ok(slot.insert(Document { ask_from_s, ..before }).client.clone())
            }
            (Err(Missed::Away(error) | Missed::Bad(error)), _) => Err(error),
        }
    }
}

/// Why there is no document.
enum Missed {
    /// It could not be asked for.
    Away(OAuthError),
    /// It is gone, or not acceptable.
    Bad(OAuthError),
}

async fn fetch(core: &Core, id: &str, url: &Url, caller: Option<&str>) -> Result<Document, Missed> {
    let (most, host) = (core.config.limits.fetch, url.host_str().unwrap_or_default());
    if let Some(network) = caller {
        core.limit("fetch", &[network], most).await.map_err(Missed::Away)?;
        let share = most.div_ceil(SHARE);
        core.limit("fetch-share", &[host, network], share).await.map_err(Missed::Away)?;
    }
    core.limit("fetch-host", &[host], most).await.map_err(Missed::Away)?;
    let fetched = core.fetcher.get(id, MOST_BYTES).await.map_err(|error| {
        tracing::info!(client.id = id, %error, "a client document could not be fetched");
        let missed = if is_away(&error) { Missed::Away } else { Missed::Bad };
        missed(OAuthError::invalid_client())
    })?;
    let client = read(id, &fetched.body).map_err(|why| {
        tracing::info!(client.id = id, %why, "a client document is not acceptable");
        let description = format!("the client document cannot be accepted: {why}").into();
        Missed::Bad(OAuthError { description, ..OAuthError::invalid_client() })
    })?;
    let age = fetched.max_age_s.unwrap_or(DEFAULT_AGE_S).clamp(LEAST_AGE_S, MOST_AGE_S);
    let fresh_until_s = core.clock.now_s() + age;
    Ok(Document { client, fresh_until_s, ask_from_s: fresh_until_s })
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
