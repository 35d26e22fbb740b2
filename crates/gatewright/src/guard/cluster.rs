//! Messages between the instances of a cluster, through Redis.

use std::sync::Arc;

use futures::{StreamExt as _, future::BoxFuture, stream::BoxStream};
use gatewright_auth::{
    open_peers,
    store::{PeerEvent, RedisEndpoint, RedisLayout, RedisPeers},
};
use gatewright_server::{ClusterConfig, Delivery, FromPeers, NotDelivered, PeerChannel};

use super::{GuardConfig, GuardError};

/// The endpoint of `http.cluster.redis`; `None` when instances share the Redis of the token store.
///
/// # Errors
/// The address does not parse.
pub fn redis_endpoint(cluster: &ClusterConfig) -> Result<Option<RedisEndpoint>, String> {
    let Some(address) = &cluster.redis else { return Ok(None) };
    let mut endpoint = RedisEndpoint::parse(address.expose())?;
    let is_cluster = matches!(endpoint.layout, RedisLayout::Cluster { .. });
    endpoint.key_prefix = if is_cluster { "{gw}:" } else { "gw:" }.to_owned();
    Ok(Some(endpoint))
}

/// The channel to the other instances; `None` without `http.cluster`.
///
/// # Errors
/// Redis cannot be reached.
pub(super) async fn channel(config: &GuardConfig) -> Result<Option<Arc<dyn PeerChannel>>, GuardError> {
    let Some(cluster) = &config.http.cluster else { return Ok(None) };
    let bad_address = |problem| GuardError::Config(format!("`http.cluster.redis` {problem}"));
    let (section, peers) = match redis_endpoint(cluster).map_err(bad_address)? {
        Some(endpoint) => ("http.cluster.redis", RedisPeers::connect(&endpoint).await),
        None => ("auth.tokenStorage", open_peers(&config.auth).await),
    };
    let peers = peers.map_err(|source| GuardError::Cluster { section, source })?;
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
