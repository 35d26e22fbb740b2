//! Lists of what users have here, for their account page: applications that they allowed, and browsers that they signed in with.
//!
//! One record for each user has both. The lists only name them: grants and sessions decide whether one is alive.

use std::sync::Arc;

use http::{HeaderMap, header};
use serde::{Deserialize, Serialize};

use crate::{
    context::Context,
    crypto::sha256_hex,
    store::{Key, StoreError},
    tuning::CONSENT_LIFETIME,
};

/// Applications and sessions in a list. The oldest make room.
const MAX_LISTED: usize = 50;
/// Tries to write a record that changes at the same time.
const MAX_TRIES: usize = 10;

/// An application that a user allowed.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct AccountApplication {
    pub(crate) client: String,
    pub(crate) name: String,
    pub(crate) scopes: Vec<String>,
    /// Time at which it was allowed last.
    pub(crate) at_ms: u64,
}

/// A session of a user, as the account page shows it.
#[derive(Debug, Clone)]
pub(crate) struct AccountSession {
    /// Name of the session in forms, which is no secret.
    pub(crate) handle: String,
    /// The browser: `Firefox on Linux`.
    pub(crate) agent: String,
    pub(crate) started_ms: u64,
    pub(crate) seen_ms: u64,
    /// It is the session of the browser that asks.
    pub(crate) is_current: bool,
}

/// A session in a user's list.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct ListedSession {
    /// Digest of the identifier.
    pub(crate) digest: String,
    pub(crate) agent: String,
}

impl ListedSession {
    /// Returns its name in forms.
    pub(crate) fn handle(&self) -> &str {
        self.digest.get(..16).unwrap_or_default()
    }
}

/// Lists of one user.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Account {
    pub(crate) applications: Vec<AccountApplication>,
    pub(crate) sessions: Vec<ListedSession>,
}

/// The accounts.
pub(crate) struct Accounts {
    ctx: Arc<Context>,
}

impl Accounts {
    pub(crate) fn new(ctx: Arc<Context>) -> Self {
        Self { ctx }
    }

    fn key(sub: &str) -> Key {
        Key::named("account", &[sub])
    }

    /// Returns the lists of a user.
    pub(crate) async fn of(&self, sub: &str) -> Result<Account, StoreError> {
        let record = self.ctx.store.get(&Self::key(sub)).await?;
        Ok(record.and_then(|record| serde_json::from_slice(&record).ok()).unwrap_or_default())
    }

    /// Adds an application that a user allowed, or renews its entry.
    pub(crate) async fn add_application(
        &self,
        sub: &str,
        application: AccountApplication,
    ) -> Result<(), StoreError> {
        let add = |account: &mut Account| {
            account.applications.retain(|listed| listed.client != application.client);
            make_room(&mut account.applications);
            account.applications.push(application.clone());
        };
        self.change(sub, add).await
    }

    /// Adds the session `id`, which the browser with these headers began.
    pub(crate) async fn add_session(
        &self,
        sub: &str,
        id: &str,
        headers: &HeaderMap,
    ) -> Result<(), StoreError> {
        let session = ListedSession { digest: sha256_hex(id), agent: agent(headers) };
        let add = |account: &mut Account| {
            make_room(&mut account.sessions);
            account.sessions.push(session.clone());
        };
        self.change(sub, add).await
    }

    /// Changes the lists of a user. Gives up when others change them all the time: what is missing then is not shown, but lives.
    async fn change(&self, sub: &str, change: impl Fn(&mut Account)) -> Result<(), StoreError> {
        let (store, key) = (&self.ctx.store, Self::key(sub));
        for _ in 0..MAX_TRIES {
            let before = store.get(&key).await?;
            let listed = before.as_deref().and_then(|record| serde_json::from_slice::<Account>(record).ok());
            let mut account = listed.unwrap_or_default();
            change(&mut account);
            let after = serde_json::to_vec(&account).unwrap_or_default();
            let is_saved = match &before {
                Some(before) => store.replace(&key, before, &after, CONSENT_LIFETIME).await?,
                None => store.put_new(&key, &after, CONSENT_LIFETIME).await?,
            };
            if is_saved {
                return Ok(());
            }
        }
        Ok(())
    }
}

fn make_room<T>(list: &mut Vec<T>) {
    let excess = (list.len() + 1).saturating_sub(MAX_LISTED);
    list.drain(..excess);
}

/// Returns the browser and its system from `User-Agent`, in words that users know.
fn agent(headers: &HeaderMap) -> String {
    const BROWSERS: [(&str, &str); 5] = [
        ("Edg/", "Edge"),
        ("OPR/", "Opera"),
        ("Firefox/", "Firefox"),
        ("Chrome/", "Chrome"),
        ("Safari/", "Safari"),
    ];
    const SYSTEMS: [(&str, &str); 7] = [
        ("Android", "Android"),
        ("iPhone", "iPhone"),
        ("iPad", "iPad"),
        ("Windows", "Windows"),
        ("Mac OS X", "macOS"),
        ("CrOS", "ChromeOS"),
        ("Linux", "Linux"),
    ];
    let text = headers.get(header::USER_AGENT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let text = text.get(..512).unwrap_or(text);
    let named = |names: &[(&str, &'static str)]| {
        names.iter().find(|(mark, _)| text.contains(mark)).map(|(_, name)| *name)
    };
    match (named(&BROWSERS), named(&SYSTEMS)) {
        (Some(browser), Some(system)) => format!("{browser} on {system}"),
        (Some(name), None) | (None, Some(name)) => name.to_owned(),
        (None, None) => "A browser".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn browsers_are_named_in_words_of_their_users() {
        for (header, name) in [
            (
                "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0 Safari/537.36",
                "Chrome on Linux",
            ),
            (
                "Mozilla/5.0 (iPhone; CPU iPhone OS 19_0 like Mac OS X) AppleWebKit/605.1 Version/19 Safari/604.1",
                "Safari on iPhone",
            ),
            ("Mozilla/5.0 (Windows NT 10.0; rv:140.0) Gecko/20100101 Firefox/140.0", "Firefox on Windows"),
            ("<script>", "A browser"),
            ("", "A browser"),
        ] {
            let headers = HeaderMap::from_iter([(header::USER_AGENT, header.parse().unwrap())]);
            assert_eq!(agent(&headers), name, "{header}");
        }
    }
}
