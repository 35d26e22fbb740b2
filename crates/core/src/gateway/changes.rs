//! Telling clients what changed: `list_changed` and resource updates, in both eras.

use std::{
    collections::HashMap,
    sync::{Arc, PoisonError},
};

use rmcp::{
    ErrorData, RoleServer,
    model::{ErrorCode, ResourceUpdatedNotificationParam},
    service::{Peer, SubscriptionContext},
};
use tokio::sync::broadcast::error::RecvError;

use super::{
    Gateway,
    subscriptions::{Follow, Topic, check_room},
};
use crate::{
    Caller, Change, Notice, Registry,
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
        check_room(followed().keys().map(String::as_str), &uri)?;
        let follow = self.follow(&uri, caller).await?;
        let mut followed = followed();
        check_room(followed.keys().map(String::as_str), &uri)?;
        followed.insert(uri, follow);
        Ok(())
    }

    pub(super) fn session_unsubscribe(&self, uri: &str) {
        self.session.followed.lock().unwrap_or_else(PoisonError::into_inner).remove(uri);
    }

    /// Sends changes that concern `caller` to one session of the older era until it ends.
    pub(super) fn announce_changes(&self, peer: Peer<RoleServer>, caller: Caller) {
        let mut changes = self.shared.registry.changes();
        let registry = self.shared.registry.clone();
        let (ended, followed) = (self.session.this.ended().clone(), Arc::downgrade(&self.session.followed));
        tokio::spawn(async move {
            loop {
                let notice = tokio::select! {
                    notice = changes.recv() => notice,
                    () = ended.cancelled() => return,
                };
                let change = match notice {
                    Ok(Notice { audience, .. }) if !audience.includes(&caller) => continue,
                    Ok(Notice { change, .. }) => change,
                    Err(RecvError::Lagged(_)) => Change::Tools,
                    Err(RecvError::Closed) => return,
                };
                let sent = match change {
                    Change::Tools => peer.notify_tool_list_changed().await,
                    Change::Resources => peer.notify_resource_list_changed().await,
                    Change::Prompts => peer.notify_prompt_list_changed().await,
                    Change::ResourceUpdated { app, uri } => {
                        let Some(followed) = followed.upgrade() else { return };
                        let heard =
                            heard(&followed.lock().unwrap_or_else(PoisonError::into_inner), &app, &uri);
                        let Some(public) = heard.filter(|uri| may_still_read(&registry, &caller, uri)) else {
                            continue;
                        };
                        peer.notify_resource_updated(ResourceUpdatedNotificationParam::new(public)).await
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
        let mut changes = self.shared.registry.changes();
        let mut followed = HashMap::new();
        for uri in context.accepted().resource_subscriptions.iter().flatten() {
            check_room(followed.keys().map(String::as_str), uri)?;
            check_length(uri)?;
            match self.follow(uri, &caller).await {
                Ok(follow) => drop(followed.insert(uri.clone(), follow)),
                Err(error) if error.code == ErrorCode::INVALID_REQUEST => return Err(error),
                Err(error) => tracing::info!(error = %error.message, "a resource cannot be followed"),
            }
        }
        let sink = context.sink();
        loop {
            let notice = tokio::select! {
                notice = changes.recv() => notice,
                () = context.cancelled() => return Ok(()),
                () = self.shared.stop.cancelled() => return Ok(()),
            };
            let change = match notice {
                Ok(Notice { audience, .. }) if !audience.includes(&caller) => continue,
                Ok(Notice { change, .. }) => change,
                Err(RecvError::Lagged(_)) => Change::Tools,
                Err(RecvError::Closed) => return Ok(()),
            };
            // What the client did not ask for is refused by the sink, which is right; a closed stream ends above.
            let _ = match change {
                Change::Tools => sink.notify_tool_list_changed().await,
                Change::Resources => sink.notify_resource_list_changed().await,
                Change::Prompts => sink.notify_prompt_list_changed().await,
                Change::ResourceUpdated { app, uri } => {
                    let public = heard(&followed, &app, &uri);
                    match public.filter(|uri| may_still_read(&self.shared.registry, &caller, uri)) {
                        Some(public) => sink.notify_resource_updated(public).await,
                        None => Ok(()),
                    }
                }
            };
        }
    }
}

/// The URI by which a listener asked for what an app calls `uri`.
fn heard(followed: &HashMap<String, Follow>, app: &str, uri: &str) -> Option<String> {
    followed.iter().find(|(_, follow)| follow.hears(app, uri)).map(|(public, _)| public.clone())
}

/// Scopes and policies of the configuration may have changed since the resource was first followed.
fn may_still_read(registry: &Registry, caller: &Caller, uri: &str) -> bool {
    registry.view(caller).may_read(uri)
}
