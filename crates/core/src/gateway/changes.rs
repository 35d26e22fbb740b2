//! Telling clients what changed: `list_changed` and resource updates, in both eras.

use std::sync::{Arc, PoisonError};

use rmcp::{
    ErrorData, RoleServer,
    model::{ErrorCode, ResourceUpdatedNotificationParam},
    service::{Peer, SubscriptionContext},
};
use tokio::sync::broadcast::{Receiver, error::RecvError};

use super::{
    Gateway,
    subscriptions::{Follow, Followed, Topic, wanted},
};
use crate::{
    Caller, Change, Notice, Registry, ResourceUpdate,
    content::{check_length, not_found, refused_or_busy},
};

impl Gateway {
    async fn follow(&self, uri: &str, caller: &Caller) -> Result<Follow, ErrorData> {
        check_length(uri)?;
        let registry = &self.shared.registry;
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
            let (follow, is_first) = self.shared.subscriptions.add(&item, uri);
            if !is_first {
                return Ok(follow);
            }
            match item.subscribe().await {
                Ok(()) => return Ok(follow),
                Err(error) => why = Some(error),
            }
        }
        Err(why.unwrap_or_else(|| not_found(uri)))
    }

    /// Asks the apps for every resource that somebody follows, for apps that came after the subscription.
    pub async fn follow_again(&self) {
        for (topic, caller, uri) in self.shared.subscriptions.all() {
            let Ok(items) = self.shared.registry.view(&caller).subscription(&uri) else { continue };
            for item in items.into_iter().filter(|item| Topic::of(item) == topic) {
                if item.subscribe().await.is_ok() {
                    self.shared.subscriptions.renew(&topic, item);
                }
            }
        }
    }

    /// `resources/subscribe` of the older era.
    pub(super) async fn follow_resource(&self, uri: String, caller: &Caller) -> Result<(), ErrorData> {
        let followed = || self.session.followed.lock().unwrap_or_else(PoisonError::into_inner);
        // Before an app is asked, and again for those that were added meanwhile.
        followed().check_room(&uri)?;
        let follow = self.follow(&uri, caller).await?;
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
        let registry = self.shared.registry.clone();
        let mut news = News::of(&registry);
        let (ended, followed) = (self.session.this.ended().clone(), Arc::downgrade(&self.session.followed));
        tokio::spawn(async move {
            loop {
                let told = tokio::select! {
                    told = news.next(&caller) => told,
                    () = ended.cancelled() => return,
                };
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
        let (mut followed, mut refused) = (Followed::default(), Vec::new());
        // All together, before any of them is looked up.
        for uri in wanted(context.accepted().resource_subscriptions.as_deref().unwrap_or_default())? {
            tokio::task::consume_budget().await;
            check_length(uri)?;
            match self.follow(uri, &caller).await {
                Ok(follow) => followed.insert(uri.to_owned(), follow),
                Err(error) if error.code == ErrorCode::INVALID_REQUEST => return Err(error),
                Err(error) => refused.push(error.message),
            }
        }
        if let Some(first) = refused.first() {
            tracing::info!(error = %first, number = refused.len(), "resources cannot be followed");
        }
        let sink = context.sink();
        loop {
            let told = tokio::select! {
                told = news.next(&caller) => told,
                () = context.cancelled() => return Ok(()),
                () = self.shared.stop.cancelled() => return Ok(()),
            };
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
