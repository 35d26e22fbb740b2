//! The resources of one server that clients follow, and the updates of them that it announced.
//!
//! Others are not passed on, and an update that is announced again before it is passed on counts once: a server says what it likes, as often
//! as it likes.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use gatewright_core::{Claimant, NoShare, Portion, Share, Shares, in_turns};
use rmcp::ErrorData;
use tokio::sync::Notify;

/// Most bytes of the URIs that are followed at all connections of an app, with [`AROUND`] for each: they are sent to the server again with
/// each change.
const MOST_BYTES: usize = 4 << 20;
/// Bytes that a URI counts for besides its own.
const AROUND: usize = 64;
/// Most updates that are passed on at once. Those who hear of them can wait for more.
const AT_ONCE: usize = 32;
/// Time between two such groups of updates.
const EVERY: Duration = Duration::from_millis(200);

/// Room for the URIs that are followed at all connections of an app, with a share for each caller.
#[derive(Debug, Clone)]
pub(crate) struct FollowedRoom(Arc<Shares>);

impl Default for FollowedRoom {
    fn default() -> Self {
        Self(Shares::of_memory(MOST_BYTES, Portion::QuarterOfFree))
    }
}

/// The resources that are followed; they are followed again after a reconnect.
#[derive(Debug)]
pub(crate) struct FollowedResources {
    room: FollowedRoom,
    table: Mutex<Table>,
    /// Told of each change of what is followed.
    pub(crate) changed: Notify,
    announced: Notify,
}

#[derive(Debug, Default)]
struct Table {
    followed: BTreeMap<String, Share>,
    /// Those that changed, and of which nobody was told yet.
    updated: BTreeSet<String>,
}

impl FollowedResources {
    pub(crate) fn new(room: FollowedRoom) -> Self {
        Self { room, table: Mutex::default(), changed: Notify::new(), announced: Notify::new() }
    }

    /// Takes room for `uri`, which `claimant` wants to follow.
    ///
    /// # Errors
    /// There is none, or the claimant has its share.
    pub(crate) fn reserve(&self, uri: &str, claimant: Claimant) -> Result<Share, ErrorData> {
        self.room.0.take(claimant, uri.len() + AROUND).map_err(|why| {
            let whose = match why {
                NoShare::Room => "of this app",
                NoShare::Share => "of this app, by you or your network,",
            };
            let message = format!(
                "too many resources {whose} are followed; end subscriptions that are not needed, or try again later"
            );
            ErrorData::invalid_request(message, None)
        })
    }

    /// Follows `uri` in the room of `share`.
    pub(crate) fn insert(&self, uri: String, share: Share) {
        self.lock().followed.insert(uri, share);
        self.changed.notify_one();
    }

    /// Returns `true` if `uri` was followed, which it is no more.
    pub(crate) fn remove(&self, uri: &str) -> bool {
        let mut table = self.lock();
        table.updated.remove(uri);
        let was_followed = table.followed.remove(uri).is_some();
        if was_followed {
            self.changed.notify_one();
        }
        was_followed
    }

    pub(crate) fn contains(&self, uri: &str) -> bool {
        self.lock().followed.contains_key(uri)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.lock().followed.is_empty()
    }

    /// Those of each caller in turn: one with many keeps nobody waiting.
    pub(crate) fn uris(&self) -> Vec<String> {
        let table = self.lock();
        in_turns(table.followed.iter().map(|(uri, share)| (share.claimant(), uri.clone())))
    }

    /// Notes that the server says `uri` has changed.
    pub(crate) fn announce(&self, uri: &str) {
        let mut table = self.lock();
        if table.followed.contains_key(uri) && !table.updated.contains(uri) {
            table.updated.insert(uri.to_owned());
            self.announced.notify_one();
        }
    }

    /// Hands each announced update to `tell`: the first at once, and those that come meanwhile a few times a second. Never ends.
    pub(crate) async fn pass_on(&self, tell: impl Fn(&str)) -> std::convert::Infallible {
        loop {
            self.announced.notified().await;
            let updated = std::mem::take(&mut self.lock().updated);
            let updated: Vec<String> = updated.into_iter().collect();
            for group in updated.chunks(AT_ONCE) {
                group.iter().for_each(|uri| tell(uri));
                tokio::time::sleep(EVERY).await;
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn subject(name: &str) -> Claimant {
        Claimant::new(Some(name.into()), None, &[])
    }

    #[tokio::test(start_paused = true)]
    async fn a_storm_of_updates_is_told_a_few_times_a_second_and_only_of_what_is_followed() {
        let resources = FollowedResources::new(FollowedRoom::default());
        for n in 0..100 {
            let uri = format!("x://{n:02}");
            let share = resources.reserve(&uri, subject("ada")).unwrap();
            resources.insert(uri, share);
        }
        let told = Mutex::new(Vec::new());
        let storm = async {
            for _ in 0..1_000 {
                (0..1_000).for_each(|n| resources.announce(&format!("x://{n:02}")));
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            tokio::time::sleep(Duration::from_secs(2)).await;
        };
        tokio::select! {
            never = resources.pass_on(|uri| told.lock().unwrap().push(uri.to_owned())) => match never {},
            () = storm => {}
        }
        let told = told.into_inner().unwrap();
        let each: BTreeSet<&String> = told.iter().collect();
        assert!(each.len() == 100 && told.len() <= 1_000, "{} of {}", each.len(), told.len());
    }

    #[test]
    fn resources_are_followed_again_for_each_caller_in_turn() {
        let resources = FollowedResources::new(FollowedRoom::default());
        for n in 0..100 {
            let who = if n == 99 { "bob" } else { "ada" };
            let uri = format!("x://{n:02}");
            let share = resources.reserve(&uri, subject(who)).unwrap();
            resources.insert(uri, share);
        }
        let uris = resources.uris();
        assert_eq!(uris.len(), 100);
        assert!(uris[..2].contains(&"x://99".to_owned()), "{:?}", &uris[..2]);
    }

    #[test]
    fn one_caller_follows_no_more_than_its_share_at_all_connections_and_leaves_room_to_others() {
        let room = FollowedRoom::default();
        let fill = |subject: Claimant| {
            let one = FollowedResources::new(room.clone());
            for n in 0.. {
                let uri = format!("x://{}{n}", "a".repeat(8_000));
                match one.reserve(&uri, subject.clone()) {
                    Ok(share) => one.insert(uri, share),
                    Err(error) => {
                        assert!(error.message.contains("too many resources"), "{error}");
                        break;
                    }
                }
            }
            one
        };
        let first = fill(subject("ada"));
        let bytes: usize = first.uris().iter().map(String::len).sum();
        assert!(bytes < MOST_BYTES / 4, "{bytes}");
        assert!(fill(subject("ada")).is_empty(), "the share is that of all connections");
        assert!(!fill(subject("bob")).is_empty());
        for uri in first.uris() {
            assert!(first.remove(&uri) && !first.remove(&uri));
        }
        assert!(!fill(subject("ada")).is_empty());
    }
}
