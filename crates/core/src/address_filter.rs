//! Filter for outgoing requests to addresses that strangers choose.
//!
//! Names are resolved by the filter, which hands the connector allowed addresses only: a name that resolves to something else a moment
//! later gets the same check. Literal addresses do not pass a resolver and are checked in the URL. HTTP clients live in other crates.

use std::{
    fmt, io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use futures::future::BoxFuture;
use url::{Host, Url};

use crate::lookups::Lookups;

/// Longest time to look up a name before a request.
const LOOKUP: Duration = Duration::from_secs(5);

/// Turns a host name into addresses.
pub type Lookup = Arc<dyn Fn(String) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> + Send + Sync>;

/// Why no request is sent to an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    /// The address is private or on this machine, which is not allowed, or it is public and not https.
    #[error("the address is not a public https address")]
    Refused,
    /// The name has no address.
    #[error("the host name cannot be resolved")]
    Unknown,
}

/// Allows requests to public https addresses, and, where its owner says so, to private and loopback ones.
#[derive(Clone)]
pub struct AddressFilter {
    lookup: Lookup,
    allow_private: bool,
}

impl fmt::Debug for AddressFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AddressFilter").field("allow_private", &self.allow_private).finish_non_exhaustive()
    }
}

impl AddressFilter {
    /// A filter that asks the resolver of the system. With `allow_private`, private and loopback addresses are allowed, and plain HTTP
    /// there.
    pub fn new(allow_private: bool) -> Self {
        let lookups = Arc::new(Lookups::default());
        let lookup = move |name: String| -> BoxFuture<'static, _> {
            let lookups = lookups.clone();
            Box::pin(async move { lookups.look_up(name).await })
        };
        Self::with_lookup(allow_private, Arc::new(lookup))
    }

    /// The same with another resolver.
    pub fn with_lookup(allow_private: bool, lookup: Lookup) -> Self {
        Self { lookup, allow_private }
    }

    /// The addresses of a name to which a connection may be made; their port is 0.
    ///
    /// # Errors
    /// The name has none.
    pub async fn resolve(&self, name: &str) -> io::Result<Vec<SocketAddr>> {
        let found = (self.lookup)(name.to_owned()).await?;
        let is_allowed = |ip: &IpAddr| self.allow_private || is_public_address(*ip);
        let good: Vec<SocketAddr> = found.into_iter().filter(is_allowed).map(|ip| (ip, 0).into()).collect();
        match good.is_empty() {
            true => Err(io::Error::other("the name has no public address")),
            false => Ok(good),
        }
    }

    /// Checks that a request may be sent to `url`, as far as the URL itself tells: public and https, or, where private addresses are
    /// allowed, a private one.
    ///
    /// # Errors
    /// It may not, or its name cannot be looked up where the result depends on that.
    pub async fn check(&self, url: &Url) -> Result<(), AddressError> {
        let is_public = match url.host() {
            Some(Host::Ipv4(ip)) => is_public_address(ip.into()),
            Some(Host::Ipv6(ip)) => is_public_address(ip.into()),
            Some(Host::Domain(_)) => !is_this_machine(url),
            None => return Err(AddressError::Refused),
        };
        let is_allowed = match (url.scheme(), url.host()) {
            ("https", _) => is_public || self.allow_private,
            ("http", Some(Host::Domain(name))) if self.allow_private && is_public => {
                self.is_private_name(name).await?
            }
            ("http", _) => self.allow_private && !is_public,
            _ => false,
        };
        if is_allowed { Ok(()) } else { Err(AddressError::Refused) }
    }

    /// Returns whether a name has private and loopback addresses only.
    async fn is_private_name(&self, name: &str) -> Result<bool, AddressError> {
        match tokio::time::timeout(LOOKUP, (self.lookup)(name.to_owned())).await {
            Ok(Ok(found)) if !found.is_empty() => Ok(!found.into_iter().any(is_public_address)),
            Ok(_) | Err(_) => Err(AddressError::Unknown),
        }
    }
}

/// Returns whether `ip` is a public address: not private, loopback, link-local, shared, reserved, or a tunnel to one of those.
pub fn is_public_address(ip: IpAddr) -> bool {
    match ip.to_canonical() {
        IpAddr::V4(ip) => is_public_v4(ip),
        IpAddr::V6(ip) => is_public_v6(ip),
    }
}

fn is_public_v4(ip: Ipv4Addr) -> bool {
    let [a, b, c, _] = ip.octets();
    !(a == 0
        || a == 10
        || a == 127
        || a >= 224
        || (a == 100 && (64..128).contains(&b))
        || (a == 169 && b == 254)
        || (a == 172 && (16..32).contains(&b))
        || (a == 192 && b == 168)
        || (a == 192 && b == 0 && (c == 0 || c == 2))
        || (a == 192 && b == 88 && c == 99)
        || (a == 198 && (b == 18 || b == 19))
        || (a == 198 && b == 51 && c == 100)
        || (a == 203 && b == 0 && c == 113))
}

fn is_public_v6(ip: Ipv6Addr) -> bool {
    let [a, b, ..] = ip.segments();
    // Only global unicast, without documentation, Teredo, 6to4 and other special blocks in it.
    (a & 0xe000) == 0x2000 && a != 0x2002 && !(a == 0x2001 && (b < 0x0200 || b == 0x0db8)) && a != 0x3fff
}

/// Returns whether the host names this machine in any way: an address of the loopback network, `localhost` or a name below it
/// (RFC 6761 §6.3).
pub fn is_this_machine(url: &Url) -> bool {
    match url.host() {
        Some(Host::Ipv4(ip)) => ip.is_loopback(),
        Some(Host::Ipv6(ip)) => ip.to_canonical().is_loopback(),
        Some(Host::Domain(name)) => {
            let name = name.trim_end_matches('.');
            name == "localhost" || name.ends_with(".localhost")
        }
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn h15_every_address_that_is_not_public_is_refused() {
        let refused = "0.0.0.0 0.1.2.3 10.0.0.1 100.64.0.1 127.0.0.1 127.1.2.3 169.254.169.254 172.16.0.1 192.0.0.1 192.168.1.1 \
            198.18.0.1 198.19.255.255 224.0.0.1 240.0.0.1 255.255.255.255 :: ::1 fc00::1 fd12::1 fe80::1 ff02::1 \
            ::ffff:127.0.0.1 ::ffff:7f00:1 ::ffff:a9fe:a9fe 64:ff9b::7f00:1 2002:7f00:1:: 2001:db8::1 2001::1 ::127.0.0.1";
        for ip in refused.split_whitespace() {
            assert!(!is_public_address(ip.parse().unwrap()), "{ip}");
        }
        for ip in "1.1.1.1 8.8.8.8 100.128.0.1 172.32.0.1 2606:4700::1111 2a00:1450::1".split_whitespace() {
            assert!(is_public_address(ip.parse().unwrap()), "{ip}");
        }
    }
}
