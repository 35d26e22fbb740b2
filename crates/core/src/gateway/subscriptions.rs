//! Resources that clients subscribed to: each is followed once at its app, whatever the number of listeners.

use std::{
    collections::{HashMap, HashSet, VecDeque, hash_map::Entry},
    iter,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use futures::{StreamExt as _, stream};
use rmcp::ErrorData;
use tokio::runtime::Handle;

use crate::{
    Audience, Caller, Claimant, Permitted, Registry, ResourceUpdate, access::SubscribedItem,
    content::check_length, in_turns, registry::address_of,
};

/// A resource of one app as one audience sees it. The app is asked to follow it once.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Topic {
    app: Arc<str>,
    /// The app's own URI.
    uri: String,
    audience: Audience,
}

impl Topic {
    fn key(&self) -> (Arc<str>, Arc<str>) {
        (self.app.clone(), self.uri.as_str().into())
    }

    pub(super) fn of(item: &Permitted<SubscribedItem>) -> Self {
        Self { app: item.app_id().clone(), uri: item.local().to_owned(), audience: item.audience() }
    }
}

/// A followed resource: its listeners, and how it is reached.
#[derive(Debug)]
struct FollowedResource {
    listeners: usize,
    item: Permitted<SubscribedItem>,
    /// The app has been asked for it, and agreed.
    is_followed: bool,
    /// The app that took the place of the one that agreed is being asked.
    is_renewing: bool,
    /// The URI by which the first listener asked for it.
    public: String,
}

/// The resources that are followed.
#[derive(Debug, Default)]
pub(super) struct SubscriptionTable {
    /// A task watches for apps that are replaced.
    pub(super) is_watched: AtomicBool,
    followed: Mutex<HashMap<Topic, FollowedResource>>,
    /// Those that are not followed any more, of each app that is being told so. A stream that ends has up to a thousand.
    ended: Mutex<HashMap<Arc<str>, VecDeque<Permitted<SubscribedItem>>>>,
}

/// Requests by which an app is told at the same time that resources are not followed any more.
const TOLD_AT_ONCE: usize = 8;
/// Longest time that an app has for one of them. After that, it is not waited for until all of them are sent.
const LONGEST_TOLD: Duration = Duration::from_secs(5);

/// One listener of one resource. Dropped, it stops following.
#[derive(Debug)]
pub(super) struct Follow {
    table: Weak<SubscriptionTable>,
    topic: Topic,
}

impl SubscriptionTable {
    fn lock(&self) -> MutexGuard<'_, HashMap<Topic, FollowedResource>> {
        self.followed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts one more listener, until the [`Follow`] is dropped; `true` if the app has to be asked.
    pub(super) fn add(self: &Arc<Self>, item: &Permitted<SubscribedItem>, public: &str) -> (Follow, bool) {
        let topic = Topic::of(item);
        let new = || FollowedResource {
            listeners: 0,
            item: item.clone(),
            is_followed: false,
            is_renewing: false,
            public: public.to_owned(),
        };
        let mut table = self.lock();
        let followed = table.entry(topic.clone()).or_insert_with(new);
        followed.listeners += 1;
        let asks = !followed.is_followed;
        (Follow { table: Arc::downgrade(self), topic }, asks)
    }

    /// Notes that the app agreed to have `item` followed. Returns `false`, and notes nothing, if another app has its place by now, which nobody would
    /// ask.
    pub(super) fn agreed(&self, item: Permitted<SubscribedItem>, registry: &Registry) -> bool {
        let mut table = self.lock();
        if !registry.offers(item.app()) {
            return false;
        }
        if let Some(followed) = table.get_mut(&Topic::of(&item)) {
            (followed.item, followed.is_followed) = (item, true);
        }
        true
    }

    /// The resources whose apps were replaced since they agreed, those of each app together, of each caller in turn. Each is to be [settled](Self::settle).
    pub(super) fn moved(&self, registry: &Registry) -> impl Iterator<Item = Vec<Topic>> + use<> {
        let mut moved: HashMap<Arc<str>, Vec<(Claimant, Topic)>> = HashMap::new();
        for (topic, followed) in &mut *self.lock() {
            if followed.is_followed && !followed.is_renewing && !registry.offers(followed.item.app()) {
                followed.is_renewing = true;
                let claimant = followed.item.caller().claimant();
                moved.entry(topic.app.clone()).or_default().push((claimant, topic.clone()));
            }
        }
        moved.into_values().map(|all| in_turns(all.iter().map(|(claimant, topic)| (claimant, topic.clone()))))
    }

    /// The caller and the URI of the first listener of a resource, if it is still followed.
    pub(super) fn asked(&self, topic: &Topic) -> Option<(Caller, String)> {
        let table = self.lock();
        let followed = table.get(topic)?;
        Some((followed.item.caller().clone(), followed.public.clone()))
    }

    /// Ends the renewal of a resource, with the item by which it is followed again, if `is_over` with the table locked.
    pub(super) fn settle(
        &self,
        topic: &Topic,
        item: Option<Permitted<SubscribedItem>>,
        is_over: impl FnOnce(Option<&Permitted<SubscribedItem>>) -> bool,
    ) -> bool {
        let mut table = self.lock();
        let Some(followed) = table.get_mut(topic) else { return true };
        if !is_over(item.as_ref()) {
            return false;
        }
        followed.is_renewing = false;
        if let Some(item) = item {
            followed.item = item;
        }
        true
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

    fn ended(&self) -> MutexGuard<'_, HashMap<Arc<str>, VecDeque<Permitted<SubscribedItem>>>> {
        self.ended.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has the app told, in its turn, that nobody follows `item` any more.
    fn end(self: &Arc<Self>, item: Permitted<SubscribedItem>) {
        // Without a runtime the process is ending, and the app's server with it.
        let Ok(runtime) = Handle::try_current() else { return };
        match self.ended().entry(item.app_id().clone()) {
            Entry::Occupied(mut waiting) => waiting.get_mut().push_back(item),
            Entry::Vacant(none) => {
                let (table, app) = (self.clone(), none.key().clone());
                none.insert(VecDeque::from([item]));
                runtime.spawn(async move { table.tell_ended(&app).await });
            }
        }
    }

    /// Tells `app` of what is not followed any more, until nothing is left. What somebody follows again meanwhile stays.
    async fn tell_ended(&self, app: &str) {
        let next = || {
            let mut ended = self.ended();
            let item = ended.get_mut(app)?.pop_front();
            if item.is_none() {
                ended.remove(app);
            }
            item
        };
        let hangs = AtomicBool::new(false);
        let tell = async |item: Permitted<SubscribedItem>| {
            let is_followed = || self.lock().contains_key(&Topic::of(&item));
            if is_followed() {
                return;
            }
            // What is kept for it is given back at the first poll, also of an app that does not answer.
            let wait = if hangs.load(Ordering::Relaxed) { Duration::ZERO } else { LONGEST_TOLD };
            if tokio::time::timeout(wait, item.unsubscribe()).await.is_err() {
                hangs.store(true, Ordering::Relaxed);
            }
            // Whoever follows it since may have been served by the app before this was.
            if is_followed() {
                let _ = item.subscribe().await;
            }
        };
        stream::iter(iter::from_fn(next)).for_each_concurrent(TOLD_AT_ONCE, tell).await;
    }
}

impl Drop for Follow {
    fn drop(&mut self) {
        let Some(table) = self.table.upgrade() else { return };
        if let Some(item) = table.remove(&self.topic) {
            table.end(item);
        }
    }
}

/// Most resources that one session or stream follows.
const MOST_FOLLOWED: usize = 1_000;
/// Most bytes of their URIs, each of which is kept several times.
const MOST_FOLLOWED_BYTES: usize = 256 * 1024;

/// The resources that one session or stream follows, by the URI it asked for.
#[derive(Debug, Default)]
pub(super) struct Followed {
    follows: HashMap<String, Follow>,
    /// The same URIs, by app and the app's own URI.
    asked: HashMap<(Arc<str>, Arc<str>), Vec<String>>,
    bytes: usize,
    /// Those that are not followed yet.
    waiting: HashSet<String>,
    /// Those that the first app to be asked refused, and when.
    refused: HashMap<String, (Place, Instant)>,
}

/// Time after which an app is asked again for what it refused, with the next change.
const REFUSED_FOR: Duration = Duration::from_secs(60);

/// An app that is asked for a resource first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    topic: Topic,
    app: usize,
}

impl Place {
    pub(super) fn of(item: &Permitted<SubscribedItem>) -> Self {
        Self { topic: Topic::of(item), app: address_of(item.app()) }
    }
}

/// A URI that a listener asked for, and where it is followed, if it is.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) uri: String,
    at: Option<Topic>,
    refused: Option<Place>,
}

impl Asked {
    /// Returns `true` if it is followed.
    pub(super) fn is_followed(&self) -> bool {
        self.at.is_some()
    }

    /// Returns `true` if it is to be followed at `place`: it is not yet, and was not refused there a short time ago.
    pub(super) fn is_due(&self, place: &Place) -> bool {
        self.at.as_ref() != Some(&place.topic) && self.refused.as_ref() != Some(place)
    }
}

impl Followed {
    /// The resources that one stream asks for, to be followed once it is offered.
    pub(super) fn waiting_for(uris: &[&str]) -> Self {
        Self { waiting: uris.iter().map(|uri| (*uri).to_owned()).collect(), ..Self::default() }
    }

    /// Checks that there is room for `uri` besides those that are followed. One that is followed already takes no more room.
    pub(super) fn check_room(&self, uri: &str) -> Result<(), ErrorData> {
        match self.follows.contains_key(uri) {
            true => Ok(()),
            false => check_sums(self.follows.len() + 1, self.bytes + uri.len()),
        }
    }

    /// Adds a resource that was asked for as `uri`, in place of another one of this URI.
    pub(super) fn insert(&mut self, uri: String, follow: Follow) {
        // Dropped at the end: a resource that both follow is followed all the time.
        let _before = self.remove(&uri);
        self.refused.remove(&uri);
        self.bytes += uri.len();
        self.asked.entry(follow.topic.key()).or_default().push(uri.clone());
        self.follows.insert(uri, follow);
    }

    /// Takes out the resource that was asked for as `uri`.
    pub(super) fn remove(&mut self, uri: &str) -> Option<Follow> {
        self.refused.remove(uri);
        let follow = self.follows.remove(uri)?;
        self.bytes -= uri.len();
        if let Entry::Occupied(mut asked) = self.asked.entry(follow.topic.key()) {
            asked.get_mut().retain(|asked| asked != uri);
            if asked.get().is_empty() {
                asked.remove();
            }
        }
        Some(follow)
    }

    /// Each URI that was asked for, and where it is followed.
    pub(super) fn asked(&self) -> Vec<Asked> {
        let refused = |uri: &str| {
            let (place, at) = self.refused.get(uri)?;
            (at.elapsed() < REFUSED_FOR).then(|| place.clone())
        };
        let waiting =
            self.waiting.iter().map(|uri| Asked { uri: uri.clone(), at: None, refused: refused(uri) });
        let follows = self.follows.iter();
        follows
            .map(|(uri, follow)| Asked {
                uri: uri.clone(),
                at: Some(follow.topic.clone()),
                refused: refused(uri),
            })
            .chain(waiting)
            .collect()
    }

    /// Notes that `uri` is not followed at the place that was asked first.
    pub(super) fn note_refused(&mut self, uri: &str, place: Place) {
        if self.waiting.contains(uri)
            || self.follows.get(uri).is_some_and(|follow| follow.topic != place.topic)
        {
            self.refused.insert(uri.to_owned(), (place, Instant::now()));
        }
    }

    /// Returns `true` if some are not followed yet.
    pub(super) fn waits(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Notes where `uri` is followed now, if it is still asked for.
    pub(super) fn follow(&mut self, uri: String, follow: Follow) {
        if self.follows.contains_key(&uri) || self.waiting.remove(&uri) {
            self.insert(uri, follow);
        }
    }

    /// The URIs by which the resource of `update` was asked for; without one, all of them.
    pub(super) fn heard(&self, update: Option<&ResourceUpdate>) -> Vec<String> {
        match update {
            Some(update) => {
                self.asked.get(&(update.app.clone(), update.uri.clone())).cloned().unwrap_or_default()
            }
            None => self.follows.keys().cloned().collect(),
        }
    }
}

/// Returns each of the URIs that a client asks for in one request once, in their order.
///
/// # Errors
/// They are more than one stream may follow, or one is too long.
pub(super) fn wanted(uris: &[String]) -> Result<Vec<&str>, ErrorData> {
    let (mut known, mut bytes) = (HashSet::new(), 0);
    let mut wanted = Vec::new();
    for uri in uris.iter().map(String::as_str).filter(|uri| known.insert(*uri)) {
        check_length(uri)?;
        bytes += uri.len();
        wanted.push(uri);
        check_sums(wanted.len(), bytes)?;
    }
    Ok(wanted)
}

fn check_sums(count: usize, bytes: usize) -> Result<(), ErrorData> {
    if count <= MOST_FOLLOWED && bytes <= MOST_FOLLOWED_BYTES {
        return Ok(());
    }
    let message = format!(
        "too many resources are followed: {MOST_FOLLOWED}, or {MOST_FOLLOWED_BYTES} bytes of URIs, are the limit of one session or stream; \
         end subscriptions that are not needed"
    );
    Err(ErrorData::invalid_request(message, None))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_update_is_heard_under_each_uri_that_was_asked_for_until_it_is_not_followed_any_more() {
        let follow = |app: &str, uri: &str| Follow {
            table: Weak::new(),
            topic: Topic { app: app.into(), uri: uri.into(), audience: Audience::Everyone },
        };
        let update = |app: &str, uri: &str| ResourceUpdate {
            app: app.into(),
            uri: uri.into(),
            audience: Audience::Everyone,
        };
        let mut followed = Followed::default();
        for (asked, app, uri) in [
            ("x://1", "a", "x://1"),
            ("a:x://1", "a", "x://1"),
            ("x://2", "a", "x://2"),
            ("x://1", "a", "x://1"),
        ] {
            followed.insert(asked.to_owned(), follow(app, uri));
        }
        let one = update("a", "x://1");
        let mut heard = followed.heard(Some(&one));
        heard.sort_unstable();
        assert_eq!((heard, followed.heard(None).len()), (vec!["a:x://1".to_owned(), "x://1".to_owned()], 3));
        assert!(followed.heard(Some(&update("b", "x://1"))).is_empty());
        assert!(followed.remove("x://1").is_some() && followed.remove("x://1").is_none());
        assert_eq!(followed.heard(Some(&one)), ["a:x://1"]);
        assert!(followed.remove("a:x://1").is_some() && followed.remove("x://2").is_some());
        assert_eq!((followed.bytes, followed.asked.len()), (0, 0));
    }
}
