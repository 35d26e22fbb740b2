//! Resources that are followed, at apps that were replaced: the one that has their place is asked for them again.

use std::sync::{Arc, atomic::Ordering};

use futures::{StreamExt as _, stream};

use super::{GatewayCore, subscriptions::Topic};
use crate::{Permitted, access::SubscribedItem};

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
        let item = items.into_iter().find(|item| Topic::of(item) == *topic);
        let agreed = match &item {
            Some(item) => item.subscribe().await.is_ok(),
            None => false,
        };
        let is_over = |item: Option<&Permitted<SubscribedItem>>| match item {
            Some(item) => registry.offers(item.app()),
            None => Arc::ptr_eq(&seen, &registry.operator_snapshot()),
        };
        if subscriptions.settle(topic, item.filter(|_| agreed), is_over) {
            return;
        }
    }
}
