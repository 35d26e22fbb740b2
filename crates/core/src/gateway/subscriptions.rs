//! Resources that clients subscribed to: each is followed once at its app, whatever the number of listeners.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};

use rmcp::ErrorData;

use crate::{Audience, Caller, Permitted, access::SubscribedItem};

/// A resource of one app as one audience sees it. The app is asked to follow it once.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Topic {
    app: Arc<str>,
    /// The app's own URI.
    uri: String,
    audience: Audience,
}

impl Topic {
    pub(super) fn of(item: &Permitted<SubscribedItem>) -> Self {
        Self { app: item.app_id().clone(), uri: item.local().to_owned(), audience: item.audience() }
    }
}

/// A followed resource: its listeners, and how it is reached.
#[derive(Debug)]
struct FollowedResource {
    listeners: usize,
    item: Permitted<SubscribedItem>,
    /// The URI by which the first listener asked for it.
    public: String,
}

/// The resources that are followed.
#[derive(Debug, Default)]
pub(super) struct SubscriptionTable(Mutex<HashMap<Topic, FollowedResource>>);

/// One listener of one resource. Dropped, it stops following.
#[derive(Debug)]
pub(super) struct Follow {
    table: Weak<SubscriptionTable>,
    topic: Topic,
}

impl Follow {
    /// Returns `true` if this follows what `app` calls `uri`.
    pub(super) fn hears(&self, app: &str, uri: &str) -> bool {
        *self.topic.app == *app && self.topic.uri == uri
    }
}

impl SubscriptionTable {
    fn lock(&self) -> MutexGuard<'_, HashMap<Topic, FollowedResource>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts one more listener, until the [`Follow`] is dropped; `true` for the first.
    pub(super) fn add(self: &Arc<Self>, item: &Permitted<SubscribedItem>, public: &str) -> (Follow, bool) {
        let topic = Topic::of(item);
        let new = || FollowedResource { listeners: 0, item: item.clone(), public: public.to_owned() };
        let mut table = self.lock();
        let followed = table.entry(topic.clone()).or_insert_with(new);
        followed.listeners += 1;
        let is_first = followed.listeners == 1;
        (Follow { table: Arc::downgrade(self), topic }, is_first)
    }

    /// Each resource with the caller and the URI of its first listener.
    pub(super) fn all(&self) -> Vec<(Topic, Caller, String)> {
        let listed = |(topic, followed): (&Topic, &FollowedResource)| {
            (topic.clone(), followed.item.caller().clone(), followed.public.clone())
        };
        self.lock().iter().map(listed).collect()
    }

    /// Replaces how a resource is reached, if it is still followed.
    pub(super) fn renew(&self, topic: &Topic, item: Permitted<SubscribedItem>) {
        if let Some(followed) = self.lock().get_mut(topic) {
            followed.item = item;
        }
    }

    /// Counts one listener less; gives the resource when it was the last.
    fn remove(&self, topic: &Topic) -> Option<Permitted<SubscribedItem>> {
        let mut table = self.lock();
        let followed = table.get_mut(topic)?;
        followed.listeners -= 1;
        if followed.listeners > 0 {
            return None;
        }
        table.remove(topic).map(|followed| followed.item)
    }
}

impl Drop for Follow {
    fn drop(&mut self) {
        let Some(table) = self.table.upgrade() else { return };
        let Some(item) = table.remove(&self.topic) else { return };
        // Without a runtime the process is ending, and the app's server with it.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                let _ = item.unsubscribe().await;
            });
        }
    }
}

/// The resources a session follows, by the URI it asked for.
pub(super) type Followed = Arc<Mutex<HashMap<String, Follow>>>;

/// Most resources that one session or stream follows.
pub(super) const MOST_FOLLOWED: usize = 1_000;
/// Most bytes of their URIs, each of which is kept several times.
const MOST_FOLLOWED_BYTES: usize = 256 * 1024;

/// Refuses to follow `uri` besides those that are followed.
pub(super) fn check_room<'u>(
    mut followed: impl Iterator<Item = &'u str>,
    uri: &str,
) -> Result<(), ErrorData> {
    let sum = |(count, bytes), followed: &str| {
        // One that is followed already takes no more room.
        (followed != uri).then(|| (count + 1, bytes + followed.len()))
    };
    match followed.try_fold((1, uri.len()), sum) {
        Some((count, bytes)) if count > MOST_FOLLOWED || bytes > MOST_FOLLOWED_BYTES => {
            let message = format!(
                "too many resources are followed: {MOST_FOLLOWED}, or {MOST_FOLLOWED_BYTES} bytes of URIs, are the limit of one \
                 session or stream; end subscriptions that are not needed"
            );
            Err(ErrorData::invalid_request(message, None))
        }
        _ => Ok(()),
    }
}
