//! Telling clients what changed: `list_changed` and resource updates, in both eras.

use std::sync::Mutex;

use rmcp::{
    ErrorData, RoleServer,
    model::ResourceUpdatedNotificationParam,
    service::{Peer, SubscriptionContext},
};
use tokio::sync::{
    Notify,
    broadcast::{Receiver, error::RecvError},
};

use super::{
    Gateway,
    followed::lock,
    subscriptions::{Followed, wanted},
};
use crate::{Caller, Change, Notice, Registry, ResourceUpdate};

impl Gateway {
    /// Sends changes that concern `caller` to one session of the older era until it ends.
    pub(super) fn announce_changes(&self, peer: Peer<RoleServer>, caller: Caller) {
        let core = self.shared.clone();
        let mut news = News::of(&core.registry);
        let (ended, followed) = (self.session.this.ended().clone(), self.session.followed.clone());
        tokio::spawn(async move {
            let changed = Notify::new();
            let tell = async {
                while let Some(told) = news.next(&caller).await {
                    let sent = match told {
                        Told::Changed(change) => {
                            changed.notify_one();
                            match change {
                                Change::Tools => peer.notify_tool_list_changed().await,
                                Change::Resources => peer.notify_resource_list_changed().await,
                                Change::Prompts => peer.notify_prompt_list_changed().await,
                            }
                        }
                        Told::Updated(update) => {
                            let mut sent = Ok(());
                            for public in readable(&followed, update.as_ref(), &core.registry, &caller) {
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
            };
            tokio::select! {
                () = tell => {}
                _ = core.keep_following(&caller, &followed, &changed) => {}
                () = ended.cancelled() => {}
            }
        });
    }

    /// `subscriptions/listen` of the 2026-07-28 era: until the client closes the stream or the server stops.
    pub(super) async fn serve_subscription(
        &self,
        caller: Caller,
        context: SubscriptionContext,
    ) -> Result<(), ErrorData> {
        let core = &self.shared;
        let mut news = News::of(&core.registry);
        let asked = context.accepted().resource_subscriptions.as_deref().unwrap_or_default();
        let (followed, changed, sink) =
            (Mutex::new(Followed::waiting_for(&wanted(asked)?)), Notify::new(), context.sink());
        // What the client did not ask for is refused by the sink, which is right; a closed stream ends below.
        let tell = async {
            while let Some(told) = news.next(&caller).await {
                match told {
                    Told::Changed(change) => {
                        changed.notify_one();
                        let _ = match change {
                            Change::Tools => sink.notify_tool_list_changed().await,
                            Change::Resources => sink.notify_resource_list_changed().await,
                            Change::Prompts => sink.notify_prompt_list_changed().await,
                        };
                    }
                    Told::Updated(update) => {
                        for public in readable(&followed, update.as_ref(), &core.registry, &caller) {
                            let _ = sink.notify_resource_updated(public).await;
                        }
                    }
                }
            }
        };
        tokio::select! {
            () = tell => {}
            ended = core.keep_following(&caller, &followed, &changed) => return ended.map(|never| match never {}),
            () = context.cancelled() => {}
            () = core.stop.cancelled() => {}
        }
        Ok(())
    }
}

/// The URIs by which a listener asked for what `update` is of, or for anything without one, and that its caller may still read: scopes and policies of the
/// configuration may have changed since.
fn readable(
    followed: &Mutex<Followed>,
    update: Option<&ResourceUpdate>,
    registry: &Registry,
    caller: &Caller,
) -> Vec<String> {
    let mut heard = lock(followed).heard(update);
    if !heard.is_empty() {
        let view = registry.view(caller);
        heard.retain(|uri| view.may_read(uri));
    }
    heard
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
