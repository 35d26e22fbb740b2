//! Endpoints of Redis: one server, a master behind sentinels, or a cluster; as fields or as an address.

use std::path::PathBuf;

use secrecy::SecretString;
use url::Url;

/// Layout of the servers.
#[derive(Debug, Clone, Default)]
pub enum RedisLayout {
    /// One server, at `host:port` of the endpoint.
    #[default]
    Single,
    /// A master whose current address the sentinels know.
    Sentinel {
        /// Name of the master at the sentinels.
        master: String,
        /// Host and port of each sentinel.
        sentinels: Vec<(String, u16)>,
        /// ACL user at the sentinels.
        username: Option<String>,
        /// Password at the sentinels.
        password: Option<SecretString>,
    },
    /// A cluster. The prefix of all keys must contain a hash tag.
    Cluster {
        /// Host and port of some of its nodes. The others are discovered.
        nodes: Vec<(String, u16)>,
    },
}

/// The address of Redis and the settings of its connections.
#[derive(Debug, Clone)]
pub struct RedisEndpoint {
    /// Host name or address of a single server.
    pub host: String,
    /// Its port; 6379 by default.
    pub port: u16,
    /// Layout of the servers; one by default.
    pub layout: RedisLayout,
    /// ACL user; the default user when absent.
    pub username: Option<String>,
    /// Password of the user.
    pub password: Option<SecretString>,
    /// Uses TLS, to sentinels as well. A server without it is then refused.
    pub tls: bool,
    /// PEM file of the authority that signed the server's certificate; the machine's authorities when absent.
    pub ca_file: Option<PathBuf>,
    /// Number of the database; a cluster has only 0.
    pub database: i64,
    /// Prefix of the names of all records.
    pub key_prefix: String,
}

impl RedisEndpoint {
    /// A server on `host:port` without TLS or password.
    pub fn new(host: impl Into<String>, port: u16) -> Self {
        Self {
            host: host.into(),
            port,
            layout: RedisLayout::Single,
            username: None,
            password: None,
            tls: false,
            ca_file: None,
            database: 0,
            key_prefix: String::new(),
        }
    }

    /// Parses an address: `redis://[user:password@]host[:port][/database]`, `redis+sentinel://[…@]host[:port],…/master[/database]` or
    /// `redis+cluster://[…@]host[:port],…`; each with `rediss` in place of `redis` for TLS. Ports left out are 6379, of sentinels 26379.
    ///
    /// # Errors
    /// The problem, without the address, which may contain a password.
    pub fn parse(address: &str) -> Result<Self, &'static str> {
        let (scheme, rest) = address.split_once("://").ok_or("has no scheme such as `redis://`")?;
        let (transport, layout) = scheme.split_once('+').unwrap_or((scheme, ""));
        let tls = match transport {
            "redis" => false,
            "rediss" => true,
            _ => {
                return Err(
                    "must begin with `redis://`, `redis+sentinel://` or `redis+cluster://` (`rediss` for TLS)",
                );
            }
        };
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        let (login, hosts) = match authority.rsplit_once('@') {
            Some((login, hosts)) => (Some(login), hosts),
            None => (None, authority),
        };
        // The parts are read by a parser of addresses each; only the list of hosts is ours.
        let plain = |login: &str, host: &str| Url::parse(&format!("redis://{login}{host}")).ok();
        let (mut username, mut password) = (None, None);
        if let Some(login) = login {
            let url = plain(&format!("{login}@"), "host")
                .ok_or("has a user or password that is not percent-encoded")?;
            let decode = |text: &str| {
                let pair = format!("x={}", text.replace('+', "%2B").replace('&', "%26"));
                url::form_urlencoded::parse(pair.as_bytes()).next().map(|(_, value)| value.into_owned())
            };
            username = Some(url.username()).filter(|name| !name.is_empty()).and_then(decode);
            password = url.password().and_then(decode).map(SecretString::from);
        }
        let default_port = if layout == "sentinel" { 26379 } else { 6379 };
        let hosts: Vec<(String, u16)> = hosts
            .split(',')
            .map(|host| {
                let url = plain("", host).filter(|url| url.path().is_empty() && url.query().is_none())?;
                let name = url.host_str()?.trim_matches(['[', ']']).to_owned();
                (!name.is_empty()).then(|| (name, url.port().unwrap_or(default_port)))
            })
            .collect::<Option<_>>()
            .ok_or("has a host or port that cannot be read")?;
        let database = |text: &str| match text {
            "" => Ok(0),
            text => text.parse::<i64>().map_err(|_| "has a database that is not a number"),
        };
        let (layout, database) = match layout {
            "" if hosts.len() > 1 => {
                return Err("names several hosts; say `redis+sentinel://` or `redis+cluster://`");
            }
            "" => (RedisLayout::Single, database(path)?),
            "sentinel" => {
                let (master, number) = path.split_once('/').unwrap_or((path, ""));
                if master.is_empty() {
                    return Err(
                        "must name the master after the sentinels: `redis+sentinel://host:26379/mymaster`",
                    );
                }
                let (master, sentinels) = (master.to_owned(), hosts.clone());
                (
                    RedisLayout::Sentinel { master, sentinels, username: None, password: None },
                    database(number)?,
                )
            }
            "cluster" if !path.is_empty() => return Err("a cluster has no numbered databases"),
            "cluster" => (RedisLayout::Cluster { nodes: hosts.clone() }, 0),
            _ => return Err("must be `redis`, `redis+sentinel` or `redis+cluster`"),
        };
        let (host, port) = hosts.into_iter().next().ok_or("names no host")?;
        Ok(Self { layout, username, password, tls, database, ..Self::new(host, port) })
    }
}

/// Returns whether all names with `prefix` share a slot of a cluster: it contains a hash tag that is not empty.
pub(crate) fn has_hash_tag(prefix: &str) -> bool {
    let tag = prefix.split_once('{').and_then(|(_, rest)| rest.split_once('}'));
    tag.is_some_and(|(tag, _)| !tag.is_empty())
}

#[cfg(test)]
mod tests {
    use secrecy::ExposeSecret as _;

    use super::*;

    #[test]
    fn addresses_say_layout_login_and_database() {
        let one = RedisEndpoint::parse("rediss://gw:p%40ss+w@db.example:7000/3").unwrap();
        assert!(matches!(one.layout, RedisLayout::Single) && one.tls);
        assert_eq!((one.host.as_str(), one.port, one.database), ("db.example", 7000, 3));
        assert_eq!((one.username.as_deref(), one.password.unwrap().expose_secret()), (Some("gw"), "p@ss+w"));

        let guarded = RedisEndpoint::parse("redis+sentinel://:pw@a.example,[::1]:26380/main/2").unwrap();
        let RedisLayout::Sentinel { master, sentinels, .. } = &guarded.layout else { panic!("{guarded:?}") };
        assert_eq!((master.as_str(), guarded.database, guarded.tls), ("main", 2, false));
        assert_eq!(*sentinels, [("a.example".to_owned(), 26379), ("::1".to_owned(), 26380)]);
        assert_eq!((guarded.username, guarded.password.unwrap().expose_secret()), (None, "pw"));

        let cluster = RedisEndpoint::parse("rediss+cluster://a:7001,b:7002").unwrap();
        let RedisLayout::Cluster { nodes } = &cluster.layout else { panic!("{cluster:?}") };
        assert_eq!(*nodes, [("a".to_owned(), 7001), ("b".to_owned(), 7002)]);
    }

    #[test]
    fn what_is_wrong_with_an_address_is_said_without_its_password() {
        for (address, says) in [
            ("db.example:6379", "no scheme"),
            ("http://:hunter2@x", "must begin with"),
            ("redis+x://:hunter2@x", "must be"),
            ("redis://:hunter2@a,b", "several hosts"),
            ("redis://:hunter2@a/x", "not a number"),
            ("redis://:hunter2@a:port", "host or port"),
            ("redis://", "host or port"),
            ("redis+sentinel://:hunter2@a", "name the master"),
            ("redis+cluster://:hunter2@a/1", "no numbered databases"),
        ] {
            let error = RedisEndpoint::parse(address).unwrap_err();
            assert!(error.contains(says) && !error.contains("hunter2"), "{address}: {error}");
        }
    }

    #[test]
    fn a_hash_tag_is_something_between_braces() {
        assert!(has_hash_tag("{gw}:") && has_hash_tag("a{b}c"));
        assert!(!has_hash_tag("gw:") && !has_hash_tag("{}gw:") && !has_hash_tag("}{gw:"));
    }
}
