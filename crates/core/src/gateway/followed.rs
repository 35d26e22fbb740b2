//! Resources that clients follow, in sessions of the older era and in streams.

use std::{
    convert::Infallible,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use rmcp::{ErrorData, model::ErrorCode};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, SemaphorePermit};

use super::{
    Gateway, GatewayCore,
    subscriptions::{Asked, Follow, Followed, Place},
};
use crate::{
    Caller, Claimant, OwnPlaces,
    access::Denied,
    codes,
    content::{check_length, not_found, refused_or_busy},
    names::clipped,
};

/// Times that a resource is looked up when its app was replaced while that was asked for it.
const MOST_REPLACED: usize = 3;
/// Shortest time between two looks of one listener for where its resources are offered.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Time for which a listener looks before others have their turn.
const TURN: Duration = Duration::from_millis(2);
/// Time that passes after a turn, in times of what it took: all listeners together take a quarter of a processor at most.
const REST: u32 = 3;
/// Longest such time.
const LONGEST_REST: Duration = Duration::from_secs(1);

/// Turns of listeners to look: one at a time, and each caller, or each network of callers without names, once in a round.
#[derive(Debug)]
pub(super) struct Looking {
    all: Semaphore,
    of_callers: OwnPlaces<Claimant>,
}

impl Default for Looking {
    fn default() -> Self {
        Self { all: Semaphore::new(1), of_callers: OwnPlaces::new(1) }
    }
}

impl Looking {
    /// Waits for the turn of `caller`, which lasts until the value is dropped.
    async fn turn(&self, caller: &Caller) -> (Vec<OwnedSemaphorePermit>, Option<SemaphorePermit<'_>>) {
        let mut own = Vec::new();
        for party in caller.claimant().lines() {
            // None of them is ever closed.
            own.extend(self.of_callers.of(party).acquire_owned().await.ok());
        }
        (own, self.all.acquire().await.ok())
    }
}

impl GatewayCore {
    /// Follows `uri` at the app that offers it, until the [`Follow`] is dropped.
    pub(super) async fn follow(self: &Arc<Self>, uri: &str, caller: &Caller) -> Result<Follow, ErrorData> {
        check_length(uri)?;
        self.watch_replaced_apps();
        for _ in 0..MOST_REPLACED {
            if let Some(follow) = self.follow_now(uri, caller).await? {
                return Ok(follow);
            }
        }
        let message = format!("the app of resource `{}` is being replaced; try again", clipped(uri));
        Err(ErrorData::internal_error(message, None))
    }

    /// Follows `uri` at the app that offers it now; none if that was replaced meanwhile.
    async fn follow_now(&self, uri: &str, caller: &Caller) -> Result<Option<Follow>, ErrorData> {
        let (registry, subscriptions) = (&self.registry, &self.subscriptions);
        let items = match registry.decide(caller, |view| view.subscription(uri)).await {
            Ok(items) => items,
            Err(denied) => {
                let about = ("resource", uri);
                return Err(refused_or_busy(registry, denied, about, caller, || not_found(uri)).await);
            }
        };
        let mut why = None;
        for item in items {
            // Counted already: dropped, it counts back.
            let (follow, asks) = subscriptions.add(&item, uri);
            if !asks {
                return Ok(Some(follow));
            }
            match item.subscribe().await {
                Ok(()) => return Ok(subscriptions.agreed(item, registry).then_some(follow)),
                Err(_) if !registry.offers(item.app()) => return Ok(None),
                Err(error) => why = Some(error),
            }
        }
        Err(why.unwrap_or_else(|| not_found(uri)))
    }

    /// Follows what a listener asked for wherever it is offered, and whenever, after each change of the apps or [notice](Notify). Until it is dropped.
    ///
    /// # Errors
    /// At first, the caller may not follow something, or there is no room for more.
    pub(super) async fn keep_following(
        self: &Arc<Self>,
        caller: &Caller,
        followed: &Mutex<Followed>,
        changed: &Notify,
    ) -> Result<Infallible, ErrorData> {
        self.watch_replaced_apps();
        let mut rebuilt = self.registry.rebuilds();
        let mut is_new = lock(followed).waits();
        let mut connected = None;
        loop {
            // Connections of callers who only listen are made once: they give way to others, and would be made again and again.
            let now = self.registry.set_up();
            let connects = connected.as_ref() != Some(&now);
            if self.follow_offered(caller, followed, is_new, connects).await? {
                connected = Some(now);
            }
            is_new = false;
            tokio::time::sleep(LOOK_EVERY).await;
            tokio::select! {
                () = changed.notified() => {}
                again = rebuilt.changed() => if again.is_err() {
                    std::future::pending::<()>().await;
                },
            }
        }
    }

    /// Follows what is offered elsewhere than where it is followed, or was not offered before, if need be at connections of the caller that are made for it. Returns
    /// `true` if they were.
    ///
    /// # Errors
    /// The listener `is_new`, and its caller may not follow something, or there is no room for more.
    async fn follow_offered(
        self: &Arc<Self>,
        caller: &Caller,
        followed: &Mutex<Followed>,
        is_new: bool,
        connects: bool,
    ) -> Result<bool, ErrorData> {
        let mut has_connected = false;
        loop {
            let asked = lock(followed).asked();
            if asked.is_empty() {
                break;
            }
            let (offered, may_be_offered) = self.look(asked, caller, is_new).await;
            for (uri, place) in offered {
                match self.follow(&uri, caller).await {
                    Ok(follow) => lock(followed).follow(uri.clone(), follow),
                    Err(error) if is_new && error.code == ErrorCode::INVALID_REQUEST => return Err(error),
                    Err(error) => {
                        tracing::debug!(error = %error.message, "a resource cannot be followed");
                        if is_away(&error) {
                            continue;
                        }
                    }
                }
                place.into_iter().for_each(|place| lock(followed).note_refused(&uri, place));
            }
            if has_connected || !(may_be_offered && connects) {
                break;
            }
            has_connected = true;
            // Connections that belong to this caller alone, which nothing else may make.
            self.registry.ready_view(caller).await;
        }
        Ok(has_connected)
    }

    /// The URIs of what is offered elsewhere than where it is followed, and by whom first; and `true` if more may be once the caller has connections of its own: of what was
    /// offered before, or of all if the listener `is_new`. One listener at a time looks, for a while.
    async fn look(
        &self,
        asked: Vec<Asked>,
        caller: &Caller,
        is_new: bool,
    ) -> (Vec<(String, Option<Place>)>, bool) {
        let (mut offered, mut may_be_offered) = (Vec::new(), false);
        let mut asked = asked.into_iter();
        while asked.len() > 0 {
            let _turn = self.looking.turn(caller).await;
            let begun = Instant::now();
            let view = self.registry.view(caller);
            let may_grow = view.may_grow();
            // One at least, however long the view took.
            for one in asked.by_ref() {
                match view.subscription(&one.uri) {
                    Ok(items) => {
                        let place = items.first().map(Place::of).filter(|place| one.is_due(place));
                        offered.extend(place.map(|place| (one.uri, Some(place))));
                    }
                    Err(Denied::Unknown) => may_be_offered |= may_grow && (is_new || one.is_followed()),
                    // Following it says why not.
                    Err(_) if is_new && !one.is_followed() => offered.push((one.uri, None)),
                    Err(_) => {}
                }
                if begun.elapsed() >= TURN {
                    break;
                }
            }
            drop(view);
            tokio::time::sleep((begun.elapsed() * REST).min(LONGEST_REST)).await;
        }
        (offered, may_be_offered)
    }
}

/// Returns `true` if the app was not there to refuse anything: it is asked again once it is up.
fn is_away(error: &ErrorData) -> bool {
    let code = error.data.as_ref().and_then(|data| data.get("code")?.as_str());
    code.is_some_and(|code| [codes::UPSTREAM_DOWN, codes::UPSTREAM_STARTING].contains(&code))
}

pub(super) fn lock(followed: &Mutex<Followed>) -> MutexGuard<'_, Followed> {
    followed.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Gateway {
    /// `resources/subscribe` of the older era.
    pub(super) async fn follow_resource(&self, uri: String, caller: &Caller) -> Result<(), ErrorData> {
        let followed = &self.session.followed;
        // Before an app is asked, and again for those that were added meanwhile.
        lock(followed).check_room(&uri)?;
        let follow = self.shared.follow(&uri, caller).await?;
        let mut followed = lock(followed);
        followed.check_room(&uri)?;
        followed.insert(uri, follow);
        Ok(())
    }

    pub(super) fn session_unsubscribe(&self, uri: &str) {
        lock(&self.session.followed).remove(uri);
    }
}
