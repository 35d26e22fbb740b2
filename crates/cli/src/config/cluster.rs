//! The `http.cluster` section: the Redis through which instances reach each other.

use gatewright_auth::{
    config::StorageKind,
    store::{RedisEndpoint, RedisLayout},
};
use gatewright_findings::Finding;
use gatewright_server::ClusterConfig;

use super::Config;

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

/// Problems with the section, which needs a Redis.
pub(super) fn findings(config: &Config) -> Vec<Finding> {
    let Some(cluster) = &config.http.cluster else { return Vec::new() };
    match redis_endpoint(cluster) {
        Err(problem) => vec![Finding::new("/http/cluster/redis", problem)],
        Ok(None) if config.auth.token_storage.kind != StorageKind::Redis => {
            let problem = "needs a Redis that carries requests between the instances: set `auth.tokenStorage.type: redis`, or \
                           `http.cluster.redis` to an address such as `redis://host:6379/0`";
            vec![Finding::new("/http/cluster", problem)]
        }
        Ok(_) => Vec::new(),
    }
}
