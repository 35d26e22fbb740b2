//! The `http.cluster` section: the Redis through which instances reach each other.

use gatewright::redis_endpoint;
use gatewright_auth::config::StorageKind;
use gatewright_findings::Finding;

use super::Config;

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
