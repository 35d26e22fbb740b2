//! Resources that are followed, at apps that were replaced: the one that has their place is asked for them again.

use std::sync::{Arc, atomic::Ordering};

use futures::{StreamExt as _, stream};

use super::{GatewayCore, subscriptions::Topic};
use crate::{Audience, Change, Permitted, access::SubscribedItem};

/// Resources for which one app is asked at the same time.
const ASKED_AT_ONCE: usize = 8;

impl GatewayCore {
    /// Watches for apps that are replaced, come up or are offered again, from the first call on and as long as the gateway is there.
    pub(super) fn watch_replaced_apps(self: &Arc<Self>) {
        if self.subscriptions.is_watched.swap(true, Ordering::Relaxed) {
            return;
        }
        let (core, mut rebuilt) = (Arc::downgrade(self), self.registry.rebuilds());
        tokio::spawn(async move {
            while rebuilt.changed().await.is_ok() {
                let Some(core) = core.upgrade() else { return };
                // An app that does not answer keeps no other one waiting.
                for topics in core.subscriptions.moved(&core.registry) {
                    tokio::spawn(renew_all(core.clone(), topics));
                }
            }
        });
    }
}

async fn renew_all(core: Arc<GatewayCore>, topics: Vec<Topic>) {
    let one = |topic| {
        let core = core.clone();
        async move { renew(&core, &topic).await }
    };
    let all = stream::iter(topics).for_each_concurrent(ASKED_AT_ONCE, one);
    core.stop.run_until_cancelled(all).await;
}

/// Asks the app that has the place of another one for a resource that is followed. One that is down, or refuses, is asked when the apps change again.
async fn renew(core: &GatewayCore, topic: &Topic) {
    let (registry, subscriptions) = (&core.registry, &core.subscriptions);
    while let Some((caller, uri)) = subscriptions.asked(topic) {
        let seen = registry.operator_snapshot();
        let items = registry.view(&caller).subscription(&uri).unwrap_or_default();
        let others_have_it = !items.is_empty();
        let item = items.into_iter().find(|item| Topic::of(item) == *topic);
        let agreed = match &item {
            Some(item) => item.subscribe().await.is_ok(),
            None => false,
        };
        let is_over = |item: Option<&Permitted<SubscribedItem>>| match item {
            Some(item) => registry.offers(item.app()),
            None => Arc::ptr_eq(&seen, &registry.operator_snapshot()),
        };
        // An app whose connections belong to callers now, or to others, has it for each of them. Another app may have what one had that was taken out.
        let is_for_others = |own: Audience| !topic.is_for(&own);
        let is_lost = item.is_none()
            && match seen.app(topic.app()).map(|entry| entry.app.per_caller()) {
                Some(Some(own)) => is_for_others(own.audience(&caller)),
                Some(None) => is_for_others(Audience::Everyone),
                None => others_have_it,
            };
        if subscriptions.settle(topic, item.filter(|_| agreed), is_over) {
            if is_lost && subscriptions.note_elsewhere(topic) {
                // Their listeners hear of it.
                registry.announce(Change::Resources);
            }
            return;
        }
    }
}
