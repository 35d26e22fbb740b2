//! Telling clients what changed: `list_changed` and resource updates, in both eras.

use std::{
    sync::{Arc, PoisonError},
    time::Duration,
};

use rmcp::{
    ErrorData, RoleServer,
    model::{ErrorCode, ResourceUpdatedNotificationParam},
    service::{Peer, SubscriptionContext},
};
use tokio::{
    sync::broadcast::{Receiver, error::RecvError},
    time::Instant,
};

use super::{
    Gateway, GatewayCore,
    subscriptions::{Follow, Followed, wanted},
};
use crate::{
    Caller, Change, Notice, Registry, ResourceUpdate,
    content::{check_length, not_found, refused_or_busy},
    names::clipped,
};

/// Times that a resource is looked up when its app was replaced while that was asked for it.
const MOST_REPLACED: usize = 3;
/// Resources of a stream that no app offers and that are looked up again when one comes up, at most.
const MOST_MISSING: usize = 100;
/// Shortest time between two attempts to follow what a stream asked for and no app offered.
const RETRIED_EVERY: Duration = Duration::from_secs(1);

impl GatewayCore {
    async fn follow(self: &Arc<Self>, uri: &str, caller: &Caller) -> Result<Follow, ErrorData> {
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
}

impl Gateway {
    /// `resources/subscribe` of the older era.
    pub(super) async fn follow_resource(&self, uri: String, caller: &Caller) -> Result<(), ErrorData> {
        let followed = || self.session.followed.lock().unwrap_or_else(PoisonError::into_inner);
        // Before an app is asked, and again for those that were added meanwhile.
        followed().check_room(&uri)?;
        let follow = self.shared.follow(&uri, caller).await?;
        let mut followed = followed();
        followed.check_room(&uri)?;
        followed.insert(uri, follow);
        Ok(())
    }

    pub(super) fn session_unsubscribe(&self, uri: &str) {
        self.session.followed.lock().unwrap_or_else(PoisonError::into_inner).remove(uri);
    }

    /// Sends changes that concern `caller` to one session of the older era until it ends.
    pub(super) fn announce_changes(&self, peer: Peer<RoleServer>, caller: Caller) {
        let (core, registry) = (self.shared.clone(), self.shared.registry.clone());
        let mut news = News::of(&registry);
        let (ended, followed) = (self.session.this.ended().clone(), Arc::downgrade(&self.session.followed));
        tokio::spawn(async move {
            loop {
                let told = tokio::select! {
                    told = news.next(&caller) => told,
                    () = ended.cancelled() => return,
                };
                if matches!(told, Some(Told::Changed(_))) {
                    let Some(followed) = followed.upgrade() else { return };
                    let lock = || followed.lock().unwrap_or_else(PoisonError::into_inner);
                    let moved = lock().elsewhere(&core.subscriptions);
                    for uri in moved {
                        if let Ok(follow) = core.follow(&uri, &caller).await {
                            lock().insert(uri, follow);
                        }
                    }
                }
                let sent = match told {
                    None => return,
                    Some(Told::Changed(Change::Tools)) => peer.notify_tool_list_changed().await,
                    Some(Told::Changed(Change::Resources)) => peer.notify_resource_list_changed().await,
                    Some(Told::Changed(Change::Prompts)) => peer.notify_prompt_list_changed().await,
                    Some(Told::Updated(update)) => {
                        let heard = followed.upgrade().map(|followed| {
                            followed.lock().unwrap_or_else(PoisonError::into_inner).heard(update.as_ref())
                        });
                        let Some(heard) = heard else { return };
                        let mut sent = Ok(());
                        for public in heard.into_iter().filter(|uri| may_still_read(&registry, &caller, uri))
                        {
                            let params = ResourceUpdatedNotificationParam::new(public);
                            sent = sent.and(peer.notify_resource_updated(params).await);
                        }
                        sent
                    }
                };
                if sent.is_err() {
                    return;
                }
            }
        });
    }

    /// `subscriptions/listen` of the 2026-07-28 era: until the client closes the stream or the server stops.
    pub(super) async fn serve_subscription(
        &self,
        caller: Caller,
        context: SubscriptionContext,
    ) -> Result<(), ErrorData> {
        let mut news = News::of(&self.shared.registry);
        let mut followed = Followed::default();
        // All together, before any of them is looked up.
        let wanted = wanted(context.accepted().resource_subscriptions.as_deref().unwrap_or_default())?;
        let all = wanted.clone();
        let registry = &self.shared.registry;
        let mut arrivals = registry.arrivals();
        let mut missing = self.follow_each(wanted, &caller, &mut followed).await?;
        if !missing.is_empty() {
            tracing::info!(
                number = missing.len(),
                "resources of a stream are followed once an app offers them: {MOST_MISSING} at most"
            );
            missing.truncate(MOST_MISSING);
        }
        let sink = context.sink();
        let (mut tried, mut is_due) = (Instant::now(), false);
        loop {
            let told = tokio::select! {
                told = news.next(&caller) => told,
                () = tokio::time::sleep_until(tried + RETRIED_EVERY), if is_due => {
                    arrivals = registry.arrivals();
                    let tried_again = tokio::select! {
                        still = self.follow_offered(missing, &caller, &mut followed) => still,
                        () = context.cancelled() => return Ok(()),
                    };
                    missing = tried_again.unwrap_or_else(|error| {
                        tracing::info!(error = %error.message, "resources of a stream are not followed");
                        Vec::new()
                    });
                    (tried, is_due) = (Instant::now(), false);
                    continue;
                }
                () = context.cancelled() => return Ok(()),
                () = self.shared.stop.cancelled() => return Ok(()),
            };
            if matches!(told, Some(Told::Changed(_))) {
                let moved = followed.elsewhere(&self.shared.subscriptions);
                is_due |= !moved.is_empty();
                for uri in all.iter().filter(|uri| moved.iter().any(|one| one == *uri)) {
                    if !missing.contains(uri) {
                        missing.push(uri);
                    }
                }
            }
            // An app that was down, or was not there, may offer it now.
            is_due |= !missing.is_empty()
                && matches!(told, Some(Told::Changed(_)))
                && arrivals != registry.arrivals();
            // What the client did not ask for is refused by the sink, which is right; a closed stream ends above.
            let _ = match told {
                None => return Ok(()),
                Some(Told::Changed(Change::Tools)) => sink.notify_tool_list_changed().await,
                Some(Told::Changed(Change::Resources)) => sink.notify_resource_list_changed().await,
                Some(Told::Changed(Change::Prompts)) => sink.notify_prompt_list_changed().await,
                Some(Told::Updated(update)) => {
                    let heard = followed.heard(update.as_ref()).into_iter();
                    for public in heard.filter(|uri| may_still_read(&self.shared.registry, &caller, uri)) {
                        let _ = sink.notify_resource_updated(public).await;
                    }
                    Ok(())
                }
            };
        }
    }
}

impl Gateway {
    /// Follows what the apps offer by now of `missing`, and returns the rest. One stream at a time looks that up.
    ///
    /// # Errors
    /// There is no room for more.
    async fn follow_offered<'u>(
        &self,
        missing: Vec<&'u str>,
        caller: &Caller,
        followed: &mut Followed,
    ) -> Result<Vec<&'u str>, ErrorData> {
        let (now, later): (Vec<_>, Vec<_>) = {
            // Never closed.
            let _turn = self.shared.looking.acquire().await.ok();
            // What others do comes in between.
            tokio::task::yield_now().await;
            let view = self.shared.registry.view(caller);
            missing.into_iter().partition(|uri| view.subscription(uri).is_ok())
        };
        let mut missing = self.follow_each(now, caller, followed).await?;
        missing.extend(later);
        Ok(missing)
    }

    /// Follows what the apps offer of `uris`, and returns the rest.
    ///
    /// # Errors
    /// There is no room for more.
    async fn follow_each<'u>(
        &self,
        uris: Vec<&'u str>,
        caller: &Caller,
        followed: &mut Followed,
    ) -> Result<Vec<&'u str>, ErrorData> {
        let mut missing = Vec::new();
        for uri in uris {
            tokio::task::consume_budget().await;
            check_length(uri)?;
            match self.shared.follow(uri, caller).await {
                Ok(follow) => followed.insert(uri.to_owned(), follow),
                Err(error) if error.code == ErrorCode::INVALID_REQUEST => return Err(error),
                Err(error) => {
                    tracing::debug!(error = %error.message, "a resource cannot be followed");
                    missing.push(uri);
                }
            }
        }
        Ok(missing)
    }
}

/// A change that concerns a caller.
enum Told {
    Changed(Change),
    /// The content of a resource; `None` if updates were missed, which may be of any.
    Updated(Option<ResourceUpdate>),
}

/// All changes, as one listener hears them.
struct News {
    changes: Receiver<Notice>,
    updates: Receiver<ResourceUpdate>,
}

impl News {
    fn of(registry: &Registry) -> Self {
        Self { changes: registry.changes(), updates: registry.updates() }
    }

    /// Waits for the next change that concerns `caller`; `None` when there will be none.
    async fn next(&mut self, caller: &Caller) -> Option<Told> {
        loop {
            tokio::select! {
                notice = self.changes.recv() => match notice {
                    Ok(Notice { change, audience }) if audience.includes(caller) => {
                        return Some(Told::Changed(change));
                    }
                    Ok(_) => {}
                    Err(RecvError::Lagged(_)) => return Some(Told::Changed(Change::Tools)),
                    Err(RecvError::Closed) => return None,
                },
                update = self.updates.recv() => match update {
                    Ok(update) if update.audience.includes(caller) => return Some(Told::Updated(Some(update))),
                    Ok(_) => {}
                    Err(RecvError::Lagged(_)) => return Some(Told::Updated(None)),
                    Err(RecvError::Closed) => return None,
                },
            }
        }
    }
}

/// Scopes and policies of the configuration may have changed since the resource was first followed.
fn may_still_read(registry: &Registry, caller: &Caller, uri: &str) -> bool {
    registry.view(caller).may_read(uri)
}
