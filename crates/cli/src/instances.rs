//! Other instances: from `http.cluster` to the Redis that carries messages between them.

use std::sync::Arc;

use anyhow::Context as _;
use futures::{StreamExt as _, future::BoxFuture, stream::BoxStream};
use gatewright::server::{ClusterConfig, Delivery, FromPeers, NotDelivered, PeerChannel};
use gatewright_auth::{
    config::StorageKind,
    open_peers,
    store::{Heard, RedisEndpoint, RedisLayout, RedisPeers},
};

use crate::config::Config;

/// The channel to the other instances, where the configuration says that there are any.
///
/// # Errors
/// Redis cannot be reached.
pub async fn channel(config: &Config) -> anyhow::Result<Option<Arc<dyn PeerChannel>>> {
    let Some(cluster) = &config.http.cluster else { return Ok(None) };
    let (name, peers) = match own_redis(cluster).map_err(anyhow::Error::msg)? {
        Some(endpoint) => ("http.cluster.redis", RedisPeers::connect(&endpoint).await),
        None => ("auth.tokenStorage", open_peers(&config.auth).await),
    };
    let peers = peers.with_context(|| {
        format!("`http.cluster` connects instances through the Redis of `{name}`, which cannot be reached")
    })?;
    Ok(Some(Arc::new(Channel(peers))))
}

/// The problem with the `http.cluster` section, and the key it is in.
pub fn problem(config: &Config) -> Option<(&'static str, String)> {
    let cluster = config.http.cluster.as_ref()?;
    match own_redis(cluster) {
        Err(problem) => Some(("redis", problem)),
        Ok(None) if config.auth.token_storage.kind != StorageKind::Redis => {
            let problem = "needs a Redis that carries requests between the instances: set `auth.tokenStorage.type: redis`, or \
                           `http.cluster.redis` to an address such as `redis://host:6379/0`";
            Some(("", problem.to_owned()))
        }
        Ok(_) => None,
    }
}

/// The Redis of `http.cluster.redis`.
fn own_redis(cluster: &ClusterConfig) -> Result<Option<RedisEndpoint>, String> {
    let Some(address) = &cluster.redis else { return Ok(None) };
    let mut endpoint = RedisEndpoint::parse(address.expose())?;
    let is_cluster = matches!(endpoint.layout, RedisLayout::Cluster { .. });
    endpoint.key_prefix = if is_cluster { "{gw}:" } else { "gw:" }.to_owned();
    Ok(Some(endpoint))
}

struct Channel(RedisPeers);

impl PeerChannel for Channel {
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
            Heard::Listening => FromPeers::Listening,
            Heard::Message(message) => FromPeers::Message(message.into()),
            Heard::Lost => FromPeers::Lost,
        });
        heard.boxed()
    }
}
