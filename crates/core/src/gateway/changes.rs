//! Telling clients what changed: `list_changed` and resource updates, in both eras.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use rmcp::{
    ErrorData, RoleServer,
    model::ResourceUpdatedNotificationParam,
    service::{Peer, RequestContext, SubscriptionContext},
};
use tokio::sync::broadcast::error::RecvError;

use super::{Gateway, content};
use crate::{Registry, registry::Change};

/// How many listeners follow each resource; apps are asked to follow it once.
#[derive(Debug)]
pub(super) struct SubscriptionTable {
    registry: Arc<Registry>,
    followers: Mutex<HashMap<String, usize>>,
}

/// One listener of one resource. Dropped, it stops following.
#[derive(Debug)]
pub(super) struct Follow {
    table: std::sync::Weak<super::Shared>,
    uri: String,
}

impl std::fmt::Debug for super::Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").finish_non_exhaustive()
    }
}

impl SubscriptionTable {
    pub(super) fn new(registry: Arc<Registry>) -> Self {
        Self { registry, followers: Mutex::default() }
    }

    /// Counts one more listener; `true` for the first.
    fn add(&self, uri: &str) -> bool {
        let mut followers = self.followers.lock().unwrap_or_else(PoisonError::into_inner);
        let count = followers.entry(uri.to_owned()).or_default();
        *count += 1;
        *count == 1
    }

    /// Counts one listener less; `true` for the last.
    fn remove(&self, uri: &str) -> bool {
        let mut followers = self.followers.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(count) = followers.get_mut(uri) else { return false };
        *count -= 1;
        let last = *count == 0;
        if last {
            followers.remove(uri);
        }
        last
    }
}

impl Drop for Follow {
    fn drop(&mut self) {
        let Some(shared) = self.table.upgrade() else { return };
        if !shared.subscriptions.remove(&self.uri) {
            return;
        }
        let uri = std::mem::take(&mut self.uri);
        // Without a runtime the process is ending, and the app's server with it.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                for route in content::routes(&shared.subscriptions.registry.snapshot(), &uri) {
                    let _ = route.owner.app.unsubscribe(route.uri).await;
                }
            });
        }
    }
}

impl Gateway {
    async fn follow(&self, uri: &str) -> Result<Follow, ErrorData> {
        let routes = content::routes(&self.shared.registry.snapshot(), uri);
        let follow = Follow { table: Arc::downgrade(&self.shared), uri: uri.to_owned() };
        if !self.shared.subscriptions.add(uri) {
            return Ok(follow);
        }
        let mut refused = content::not_found(uri);
        for route in routes {
            match route.owner.app.subscribe(route.uri).await {
                Ok(()) => return Ok(follow),
                Err(error) => refused = error,
            }
        }
        Err(refused)
    }

    /// Asks the apps for every resource that somebody follows, for apps that came after the wish.
    pub async fn follow_again(&self) {
        let uris: Vec<String> = {
            let followers =
                self.shared.subscriptions.followers.lock().unwrap_or_else(PoisonError::into_inner);
            followers.keys().cloned().collect()
        };
        for uri in uris {
            for route in content::routes(&self.shared.registry.snapshot(), &uri) {
                if route.owner.app.subscribe(route.uri).await.is_ok() {
                    break;
                }
            }
        }
    }

    /// `resources/subscribe` of the older era.
    pub(super) async fn follow_resource(
        &self,
        uri: String,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let follow = self.follow(&uri).await?;
        self.session.followed.lock().unwrap_or_else(PoisonError::into_inner).insert(uri, follow);
        Ok(())
    }

    pub(super) fn session_unsubscribe(&self, uri: &str) {
        self.session.followed.lock().unwrap_or_else(PoisonError::into_inner).remove(uri);
    }

    /// Sends changes to one session of the older era until it ends.
    pub(super) fn announce_changes(&self, peer: Peer<RoleServer>) {
        let mut changes = self.shared.registry.changes();
        let (ended, followed) = (self.session.ended.clone(), Arc::downgrade(&self.session.followed));
        tokio::spawn(async move {
            loop {
                let change = tokio::select! {
                    change = changes.recv() => change,
                    () = ended.cancelled() => return,
                };
                let sent = match change {
                    Ok(Change::Tools) => peer.notify_tool_list_changed().await,
                    Ok(Change::Resources) => peer.notify_resource_list_changed().await,
                    Ok(Change::Prompts) => peer.notify_prompt_list_changed().await,
                    Ok(Change::ResourceUpdated(uri)) => {
                        let Some(followed) = followed.upgrade() else { return };
                        let wanted =
                            followed.lock().unwrap_or_else(PoisonError::into_inner).contains_key(&*uri);
                        if !wanted {
                            continue;
                        }
                        peer.notify_resource_updated(ResourceUpdatedNotificationParam::new(&*uri)).await
                    }
                    Err(RecvError::Lagged(_)) => peer.notify_tool_list_changed().await,
                    Err(RecvError::Closed) => return,
                };
                if sent.is_err() {
                    return;
                }
            }
        });
    }

    /// `subscriptions/listen` of the 2026-07-28 era: until the client closes the stream or the server stops.
    pub(super) async fn serve_subscription(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let mut changes = self.shared.registry.changes();
        let mut followed = Vec::new();
        for uri in context.accepted().resource_subscriptions.iter().flatten() {
            match self.follow(uri).await {
                Ok(follow) => followed.push(follow),
                Err(error) => tracing::info!(error = %error.message, "a resource cannot be followed"),
            }
        }
        let sink = context.sink();
        loop {
            let change = tokio::select! {
                change = changes.recv() => change,
                () = context.cancelled() => return Ok(()),
                () = self.shared.stop.cancelled() => return Ok(()),
            };
            // What the client did not ask for is refused by the sink, which is right; a closed stream ends above.
            let _ = match change {
                Ok(Change::Tools) | Err(RecvError::Lagged(_)) => sink.notify_tool_list_changed().await,
                Ok(Change::Resources) => sink.notify_resource_list_changed().await,
                Ok(Change::Prompts) => sink.notify_prompt_list_changed().await,
                Ok(Change::ResourceUpdated(uri)) => sink.notify_resource_updated(&*uri).await,
                Err(RecvError::Closed) => return Ok(()),
            };
        }
    }
}

/// The resources a session follows.
pub(super) type Followed = Arc<Mutex<HashMap<String, Follow>>>;
