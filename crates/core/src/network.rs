//! Where a request comes from, when proxies stand between.

use std::net::{IpAddr, SocketAddr};

/// A network such as `10.0.0.0/8`, or one address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Network {
    base: u128,
    bits: u32,
    v4: bool,
}

fn number(ip: IpAddr) -> (u128, bool) {
    match ip.to_canonical() {
        IpAddr::V4(ip) => (u128::from(u32::from(ip)), true),
        IpAddr::V6(ip) => (u128::from(ip), false),
    }
}

impl Network {
    /// Reads `10.0.0.0/8`, `2001:db8::/32` or an address.
    pub fn parse(text: &str) -> Option<Self> {
        let (ip, bits) = match text.split_once('/') {
            Some((ip, bits)) => (ip.parse::<IpAddr>().ok()?, Some(bits.parse::<u32>().ok()?)),
            None => (text.parse().ok()?, None),
        };
        let (base, v4) = number(ip);
        let most = if v4 { 32 } else { 128 };
        let bits = bits.unwrap_or(most);
        (bits <= most).then_some(Self { base, bits, v4 })
    }

    /// Whether `ip` is in it. IPv4 addresses written as IPv6 ones count as what they are.
    pub fn contains(&self, ip: IpAddr) -> bool {
        let (ip, v4) = number(ip);
        let width = if self.v4 { 32 } else { 128 };
        let shift = width - self.bits;
        v4 == self.v4 && (shift == 128 || ip >> shift == self.base >> shift)
    }
}

/// The address of a caller: the peer, or what trusted proxies say of it in `X-Forwarded-For`, read from the right up to the first
/// hop that is not trusted. What stands left of that hop is whatever the caller wrote, and is not looked at.
pub fn caller_address(peer: IpAddr, headers: &http::HeaderMap, trusted: &[Network]) -> IpAddr {
    let is_trusted = |ip: IpAddr| trusted.iter().any(|network| network.contains(ip));
    if !is_trusted(peer) {
        return peer;
    }
    let lines = headers.get_all("x-forwarded-for").iter().map(|value| value.to_str().unwrap_or("unreadable"));
    let hops: Vec<&str> = lines.flat_map(|line| line.split(',')).map(str::trim).collect();
    let mut last = peer;
    for hop in hops.iter().rev() {
        let Some(ip) = hop_address(hop) else { break };
        last = ip;
        if !is_trusted(last) {
            break;
        }
    }
    last
}

/// An address, with a port or without.
fn hop_address(hop: &str) -> Option<IpAddr> {
    let bare = hop.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(hop);
    let with_port = || hop.parse::<SocketAddr>().ok().map(|address| address.ip());
    bare.parse::<IpAddr>().ok().or_else(with_port).map(|ip| ip.to_canonical())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    fn seen(peer: &str, lines: &[&str], trusted: &[&str]) -> IpAddr {
        let mut headers = http::HeaderMap::new();
        for line in lines {
            headers.append("x-forwarded-for", line.parse().unwrap());
        }
        let trusted: Vec<Network> = trusted.iter().map(|text| Network::parse(text).unwrap()).collect();
        caller_address(ip(peer), &headers, &trusted)
    }

    #[test]
    fn l03_only_trusted_hops_are_believed() {
        let line = ["198.51.100.9, 203.0.113.7, 10.0.0.2"];
        assert_eq!(seen("192.0.2.1", &line, &["10.0.0.0/8"]), ip("192.0.2.1"), "a stranger is itself");
        assert_eq!(seen("10.0.0.1", &line, &["10.0.0.0/8"]), ip("203.0.113.7"), "the first untrusted hop");
        assert_eq!(seen("10.0.0.1", &line, &[]), ip("10.0.0.1"));
        assert_eq!(seen("10.0.0.1", &[], &["10.0.0.0/8"]), ip("10.0.0.1"));
        assert_eq!(seen("::ffff:10.0.0.1", &line, &["10.0.0.0/8"]), ip("203.0.113.7"));
    }

    #[test]
    fn several_header_lines_are_one_list() {
        let lines = ["1.2.3.4", "203.0.113.7", "10.0.0.3"];
        assert_eq!(seen("10.0.0.1", &lines, &["10.0.0.0/8"]), ip("203.0.113.7"));
    }

    #[test]
    fn hops_may_have_ports_and_what_is_no_address_ends_the_list() {
        assert_eq!(seen("10.0.0.1", &["203.0.113.7:4711"], &["10.0.0.1"]), ip("203.0.113.7"));
        assert_eq!(seen("10.0.0.1", &["[2001:db8::7]:4711"], &["10.0.0.1"]), ip("2001:db8::7"));
        assert_eq!(seen("10.0.0.1", &["[2001:db8::7]"], &["10.0.0.1"]), ip("2001:db8::7"));
        for bad in ["203.0.113.7, unknown", "203.0.113.7, ", "203.0.113.7, _hidden"] {
            assert_eq!(seen("10.0.0.1", &[bad], &["10.0.0.1"]), ip("10.0.0.1"), "{bad}");
        }
    }

    #[test]
    fn a_network_holds_its_addresses_and_no_others() {
        let network = |text| Network::parse(text).unwrap();
        assert!(
            network("10.0.0.0/8").contains(ip("10.255.0.1"))
                && !network("10.0.0.0/8").contains(ip("11.0.0.1"))
        );
        assert!(
            network("2001:db8::/32").contains(ip("2001:db8::1")) && !network("::/0").contains(ip("10.0.0.1"))
        );
        assert!(network("0.0.0.0/0").contains(ip("8.8.8.8")));
        for bad in ["", "10.0.0.0/33", "10.0.0.0/", "proxy.example", "2001:db8::/129"] {
            assert_eq!(Network::parse(bad), None, "{bad}");
        }
    }
}
