//! From `tokenStorage.config` to the endpoint of a Redis store.

use secrecy::{ExposeSecret as _, SecretString};

use super::{Problem, StorageConfig};
use crate::store::{RedisEndpoint, RedisLayout, has_hash_tag};

const HERE: &str = "auth.tokenStorage.config";

fn problem(field: &str, message: impl Into<String>) -> Problem {
    Problem { path: format!("{HERE}.{field}"), message: message.into() }
}

/// Reads `host:port` by the rules of an address.
fn nodes(field: &str, scheme: &str, list: &[String], path: &str) -> Result<RedisEndpoint, Problem> {
    if list.is_empty() {
        return Err(problem(field, "names no server; write a list of `host:port`"));
    }
    let address = format!("redis+{scheme}://{}{path}", list.join(","));
    let unfit = list.iter().any(|node| node.contains(['@', '/', ',']));
    let read =
        if unfit { Err("holds more than `host:port` in an entry") } else { RedisEndpoint::parse(&address) };
    read.map_err(|why| problem(field, why))
}

impl StorageConfig {
    /// Returns whether Redis is reached over TLS.
    pub(super) fn uses_tls(&self) -> bool {
        self.tls || self.redis_endpoint().is_ok_and(|endpoint| endpoint.tls)
    }

    /// Returns the endpoint of Redis.
    ///
    /// # Errors
    /// Names the field that is missing, doubled or malformed.
    pub(crate) fn redis_endpoint(&self) -> Result<RedisEndpoint, Problem> {
        let ways = [
            ("url", self.url.is_some()),
            ("sentinel", self.sentinel.is_some()),
            ("cluster", !self.cluster.is_empty()),
            ("host", self.host.is_some()),
        ];
        let mut given = ways.iter().filter(|(_, given)| *given).map(|(name, _)| *name);
        // A host from the environment does not stand against the others, which are more exact.
        let first = given.next().ok_or_else(|| problem("host", "is needed for redis (or REDIS_HOST)"))?;
        if let Some(second) = given.find(|name| *name != "host") {
            return Err(problem(second, format!("and `{first}` both say where redis is; keep one")));
        }
        let mut endpoint = match first {
            "url" => {
                let address = self.url.as_ref().map(SecretString::expose_secret).unwrap_or_default();
                RedisEndpoint::parse(address).map_err(|why| problem("url", why))?
            }
            "sentinel" => {
                let given = self.sentinel.clone().unwrap_or_default();
                if given.master.is_empty() || given.master.contains('/') {
                    return Err(problem("sentinel.master", "must be the name the sentinels give the master"));
                }
                let path = format!("/{}", given.master);
                let mut endpoint = nodes("sentinel.nodes", "sentinel", &given.nodes, &path)?;
                if let RedisLayout::Sentinel { username, password, .. } = &mut endpoint.layout {
                    (*username, *password) = (given.username, given.password);
                }
                endpoint
            }
            "cluster" => nodes("cluster", "cluster", &self.cluster, "")?,
            _ => RedisEndpoint::new(self.host.clone().unwrap_or_default(), self.port.unwrap_or(6379)),
        };
        endpoint.username = self.username.clone().or(endpoint.username);
        endpoint.password = self.password.clone().or(endpoint.password);
        endpoint.tls |= self.tls;
        endpoint.ca_file.clone_from(&self.ca_file);
        if self.database != 0 {
            endpoint.database = self.database;
        }
        let is_cluster = matches!(endpoint.layout, RedisLayout::Cluster { .. });
        if is_cluster && endpoint.database != 0 {
            return Err(problem("database", "a cluster has only database 0"));
        }
        let default = if is_cluster { "{gw}:" } else { "gw:" };
        endpoint.key_prefix = self.key_prefix.clone().unwrap_or_else(|| default.to_owned());
        if is_cluster && !has_hash_tag(&endpoint.key_prefix) {
            let message =
                "must hold a hash tag such as `{gw}:` on a cluster, so that all records share a slot";
            return Err(problem("keyPrefix", message));
        }
        Ok(endpoint)
    }
}
