//! Messages between the instances of a cluster, through Redis.

use std::sync::Arc;

use anyhow::Context as _;
use futures::{StreamExt as _, future::BoxFuture, stream::BoxStream};
use gatewright::server::{Delivery, FromPeers, NotDelivered, PeerChannel};
use gatewright_auth::{
    open_peers,
    store::{PeerEvent, RedisPeers},
};

use crate::config::{Config, cluster};

/// The channel to the other instances; `None` without `http.cluster`.
///
/// # Errors
/// Redis cannot be reached.
pub async fn channel(config: &Config) -> anyhow::Result<Option<Arc<dyn PeerChannel>>> {
    let Some(section) = &config.http.cluster else { return Ok(None) };
    let (name, peers) = match cluster::redis_endpoint(section).map_err(anyhow::Error::msg)? {
        Some(endpoint) => ("http.cluster.redis", RedisPeers::connect(&endpoint).await),
        None => ("auth.tokenStorage", open_peers(&config.auth).await),
    };
    let peers = peers.with_context(|| {
        format!("`http.cluster` connects instances through the Redis of `{name}`, which cannot be reached")
    })?;
    Ok(Some(Arc::new(RedisChannel(peers))))
}

struct RedisChannel(RedisPeers);

impl PeerChannel for RedisChannel {
    fn send<'a>(&'a self, to: &'a str, message: &'a [u8]) -> BoxFuture<'a, Result<Delivery, NotDelivered>> {
        Box::pin(async move {
            match self.0.send(to, message).await {
                Ok(true) => Ok(Delivery::Sent),
                Ok(false) => Ok(Delivery::Nobody),
                Err(error) if error.perhaps => Err(NotDelivered::Perhaps(error.into())),
                Err(error) => Err(NotDelivered::Certainly(error.into())),
            }
        })
    }

    fn listen(&self, own: &str) -> BoxStream<'static, FromPeers> {
        let heard = self.0.listen(own).map(|heard| match heard {
            PeerEvent::Listening => FromPeers::Listening,
            PeerEvent::Message(message) => FromPeers::Message(message.into()),
            PeerEvent::Lost => FromPeers::Lost,
        });
        heard.boxed()
    }
}
