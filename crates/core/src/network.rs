//! The address of a caller behind proxies.

use std::{
    fmt,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    time::Duration,
};

use ipnet::IpNet;

/// Longest wait for the body of a request. The server that accepted it sets this as an extension, for routes that read bodies
/// themselves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BodyTimeout(pub Duration);

/// A network such as `10.0.0.0/8`, or one address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Network(IpNet);

impl Network {
    /// Reads `10.0.0.0/8`, `2001:db8::/32` or an address.
    pub fn parse(text: &str) -> Option<Self> {
        if let Ok(ip) = text.parse::<IpAddr>() {
            return Some(Self(ip.to_canonical().into()));
        }
        let network: IpNet = text.parse().ok()?;
        IpNet::new(network.addr().to_canonical(), network.prefix_len()).ok().map(Self)
    }

    /// Returns `true` if `ip` is in it. IPv4 addresses written as IPv6 ones count as IPv4.
    pub fn contains(&self, ip: IpAddr) -> bool {
        self.0.contains(&ip.to_canonical())
    }
}

/// The address of a caller: the peer, or what trusted proxies say of it in `X-Forwarded-For`, or without that header in `for` of
/// `Forwarded` (RFC 7239), read from the right up to the first hop that is not trusted. What stands left of that hop is whatever the
/// caller wrote, and is not looked at.
pub fn caller_address(peer: IpAddr, headers: &http::HeaderMap, trusted: &[Network]) -> IpAddr {
    let is_trusted = |ip: IpAddr| trusted.iter().any(|network| network.contains(ip));
    if !is_trusted(peer) {
        return peer;
    }
    let listed = lines(headers, "x-forwarded-for").flat_map(|line| line.rsplit(',')).map(str::trim);
    let forwarded =
        || lines(headers, "forwarded").flat_map(|line| rsplit_unquoted(line, ',')).map(forwarded_for);
    let hops: Box<dyn Iterator<Item = Option<IpAddr>>> = match headers.contains_key("x-forwarded-for") {
        true => Box::new(listed.map(hop_address)),
        false => Box::new(forwarded()),
    };
    let mut last = peer;
    for hop in hops {
        let Some(ip) = hop else { break };
        last = ip;
        if !is_trusted(last) {
            break;
        }
    }
    last
}

/// Returns whether the caller's side of the outermost proxy was HTTPS, as a trusted peer says in `X-Forwarded-Proto` or in `proto` of
/// `Forwarded` (RFC 7239). Every hop that is named must say so; what a peer that is not trusted says counts for nothing, nor do elements of
/// `Forwarded` left of the first hop that is not trusted, which are the caller's.
pub fn proxied_over_https(peer: IpAddr, headers: &http::HeaderMap, trusted: &[Network]) -> bool {
    let is_trusted = |ip: IpAddr| trusted.iter().any(|network| network.contains(ip));
    if !is_trusted(peer) {
        return false;
    }
    let listed = lines(headers, "x-forwarded-proto").flat_map(|line| line.split(',')).map(str::trim);
    let mut is_of_proxy = true;
    let forwarded =
        lines(headers, "forwarded").flat_map(|line| rsplit_unquoted(line, ',')).take_while(|element| {
            let goes_on = forwarded_for(element).is_some_and(is_trusted);
            let is_taken = is_of_proxy;
            is_of_proxy &= goes_on;
            is_taken
        });
    let mut said = listed.chain(forwarded.filter_map(|element| parameter(element, "proto"))).peekable();
    said.peek().is_some() && said.all(|protocol| protocol.eq_ignore_ascii_case("https"))
}

/// The lines of a header, the last one first.
fn lines<'h>(headers: &'h http::HeaderMap, name: &str) -> impl Iterator<Item = &'h str> {
    let lines: Vec<_> = headers.get_all(name).iter().collect();
    lines.into_iter().rev().map(|value| value.to_str().unwrap_or("unreadable"))
}

/// Splits at `separator` outside quotes, from the right: what a caller wrote at the left cannot change how the elements that proxies
/// added after it are read.
fn rsplit_unquoted(text: &str, separator: char) -> impl Iterator<Item = &str> {
    let mut is_quoted = false;
    text.rsplit(move |c| {
        is_quoted ^= c == '"';
        c == separator && !is_quoted
    })
}

/// A parameter of one element of `Forwarded`; `None` when it is missing or repeated.
fn parameter<'e>(element: &'e str, name: &str) -> Option<&'e str> {
    let pairs = rsplit_unquoted(element, ';').filter_map(|pair| pair.trim().split_once('='));
    let mut values = pairs.filter(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value);
    let value = values.next().filter(|_| values.next().is_none())?;
    Some(value.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(value))
}

/// The address in `for` of one element of `Forwarded`; `None` for `unknown` and obfuscated identifiers (RFC 7239 §6).
fn forwarded_for(element: &str) -> Option<IpAddr> {
    let node = parameter(element, "for")?;
    match node.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((ip, port)) if port.is_empty() || port.starts_with(':') => {
            ip.parse::<Ipv6Addr>().ok().map(|ip| IpAddr::from(ip).to_canonical())
        }
        Some(_) => None,
        // The port may be obfuscated, too.
        None => node.split(':').next()?.parse::<Ipv4Addr>().ok().map(IpAddr::from),
    }
}

/// A network whose callers are counted together: an IPv4 address, or an IPv6 prefix. An IPv4 address written as an IPv6 one counts as
/// what it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CountedNetwork {
    base: IpAddr,
    bits: u8,
}

/// Prefixes of IPv6 that callers are counted under, and for how many callers each counts. One subscriber has 64 bits at least, often 56
/// or 48 (RFC 6177 §2), and may take any address from them.
const PREFIXES: [(u8, usize); 3] = [(64, 1), (56, 2), (48, 4)];

impl CountedNetwork {
    fn new(address: Ipv6Addr, bits: u8) -> Self {
        let shift = 128 - bits;
        Self { base: IpAddr::from((u128::from(address) >> shift << shift).to_be_bytes()), bits }
    }

    /// The network of one caller: an IPv4 address, or 64 bits of IPv6.
    pub fn narrowest(address: IpAddr) -> Self {
        match address.to_canonical() {
            IpAddr::V4(v4) => Self { base: v4.into(), bits: 32 },
            IpAddr::V6(v6) => Self::new(v6, PREFIXES[0].0),
        }
    }

    /// The largest network that may be one caller's: an IPv4 address, or 48 bits of IPv6.
    pub fn widest(address: IpAddr) -> Self {
        match address.to_canonical() {
            IpAddr::V4(v4) => Self { base: v4.into(), bits: 32 },
            IpAddr::V6(v6) => Self::new(v6, PREFIXES[2].0),
        }
    }
}

/// The address of a network of one caller, or a prefix such as `2001:db8::/48`.
impl fmt::Display for CountedNetwork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.bits {
            32 | 64 => self.base.fmt(f),
            bits => write!(f, "{}/{bits}", self.base),
        }
    }
}

/// The networks that a caller is counted under, the narrowest first, each with the number of callers whose limits it has. A limit
/// that is counted in steps counts the next one only where the one before has room: else one caller could use up the limit of all.
pub fn counted_networks(address: IpAddr) -> impl Iterator<Item = (CountedNetwork, usize)> {
    let address = address.to_canonical();
    let prefixes = if address.is_ipv4() { &PREFIXES[..1] } else { &PREFIXES[..] };
    prefixes.iter().map(move |(bits, times)| match address {
        IpAddr::V4(_) => (CountedNetwork::narrowest(address), *times),
        IpAddr::V6(v6) => (CountedNetwork::new(v6, *bits), *times),
    })
}

/// An address, with a port or without.
fn hop_address(hop: &str) -> Option<IpAddr> {
    let bare = hop.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(hop);
    let with_port = || hop.parse::<SocketAddr>().ok().map(|address| address.ip());
    bare.parse::<IpAddr>().ok().or_else(with_port).map(|ip| ip.to_canonical())
}

/// Header fields of one connection, which are not passed on (RFC 9110 §7.6.1), and the length, which is computed anew.
pub const HOP_BY_HOP: [&str; 8] = [
    "connection",
    "content-length",
    "keep-alive",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

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
    fn a_network_holds_the_addresses_below_its_prefix_in_either_spelling_of_ipv4() {
        let holds = |network: &str, address: &str| Network::parse(network).unwrap().contains(ip(address));
        for (network, address) in [
            ("10.0.0.0/8", "10.255.0.1"),
            ("10.1.2.3/8", "10.255.0.1"),
            ("10.0.0.0/8", "::ffff:10.0.0.1"),
            ("::ffff:192.0.2.1", "192.0.2.1"),
            ("0.0.0.0/0", "203.0.113.7"),
            ("2001:db8::/32", "2001:db8:ffff::1"),
            ("::/0", "2001:db8::1"),
        ] {
            assert!(holds(network, address), "{network} {address}");
        }
        for (network, address) in [
            ("10.0.0.0/8", "11.0.0.1"),
            ("192.0.2.1", "192.0.2.2"),
            ("0.0.0.0/0", "2001:db8::1"),
            ("::/0", "203.0.113.7"),
        ] {
            assert!(!holds(network, address), "{network} {address}");
        }
        for text in
            ["", "10.0.0.0/33", "10.0.0.0/", "10.0.0/8", "2001:db8::/129", "::ffff:10.0.0.0/104", "host"]
        {
            assert_eq!(Network::parse(text), None, "{text}");
        }
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
    fn forwarded_names_the_caller_where_no_x_forwarded_for_does() {
        let trusted = [Network::parse("10.0.0.0/8").unwrap(), Network::parse("2001:db8:ffff::/48").unwrap()];
        let from = |peer: &str, headers: &[(&'static str, &str)]| {
            let mut all = http::HeaderMap::new();
            for (name, value) in headers {
                all.append(*name, value.parse().unwrap());
            }
            caller_address(ip(peer), &all, &trusted)
        };
        let forwarded = |value: &str| from("10.0.0.1", &[("forwarded", value)]);
        for (value, expected) in [
            ("for=203.0.113.7", "203.0.113.7"),
            ("For=\"203.0.113.7:4711\";proto=https;by=10.0.0.1", "203.0.113.7"),
            ("for=\"203.0.113.7:_port\"", "203.0.113.7"),
            ("for=\"[2001:db8::7]:4711\"", "2001:db8::7"),
            ("proto=https; for=\"[2001:db8::7]\"", "2001:db8::7"),
            ("for=\"[::ffff:203.0.113.7]\"", "203.0.113.7"),
            ("for=198.51.100.9, for=203.0.113.7, for=10.0.0.2;host=\"a,b\"", "203.0.113.7"),
            ("for=198.51.100.9, for=\"[2001:db8:ffff::2]\"", "198.51.100.9"),
            ("for=\"198.51.100.9, for=203.0.113.7", "203.0.113.7"),
            ("for=unknown, for=203.0.113.7", "203.0.113.7"),
            ("for=203.0.113.7, for=unknown", "10.0.0.1"),
            ("for=203.0.113.7, for=_hidden, for=10.0.0.2", "10.0.0.2"),
            ("for=203.0.113.7, proto=https", "10.0.0.1"),
            ("for=203.0.113.7;for=198.51.100.9", "10.0.0.1"),
            ("for=2001:db8::7", "10.0.0.1"),
            ("for=\"[203.0.113.7]\"", "10.0.0.1"),
            ("", "10.0.0.1"),
        ] {
            assert_eq!(forwarded(value), ip(expected), "{value}");
        }
        assert_eq!(from("192.0.2.1", &[("forwarded", "for=203.0.113.7")]), ip("192.0.2.1"), "a stranger");
        let lines = [
            ("forwarded", "for=198.51.100.9"),
            ("forwarded", "for=203.0.113.7"),
            ("forwarded", "for=10.0.0.3"),
        ];
        assert_eq!(from("10.0.0.1", &lines), ip("203.0.113.7"), "several lines are one list");
        let both = [("forwarded", "for=198.51.100.9"), ("x-forwarded-for", "203.0.113.7")];
        assert_eq!(from("10.0.0.1", &both), ip("203.0.113.7"), "X-Forwarded-For comes first");
    }

    #[test]
    fn a_trusted_proxy_is_believed_about_https_and_only_when_every_hop_says_so() {
        let over_https = |peer: &str, headers: &[(&'static str, &str)]| {
            let mut all = http::HeaderMap::new();
            for (name, value) in headers {
                all.append(*name, value.parse().unwrap());
            }
            proxied_over_https(ip(peer), &all, &[Network::parse("10.0.0.0/8").unwrap()])
        };
        let proto = "x-forwarded-proto";
        assert!(
            over_https("10.0.0.1", &[(proto, "https")]) && over_https("::ffff:10.0.0.1", &[(proto, "HTTPS")])
        );
        assert!(over_https("10.0.0.1", &[("forwarded", "for=192.0.2.1;proto=https")]));
        assert!(over_https(
            "10.0.0.1",
            &[("forwarded", "for=192.0.2.1; Proto=\"https\", for=10.0.0.2;proto=https")]
        ));
        assert!(over_https("10.0.0.1", &[("forwarded", "for=192.0.2.1;proto=https, for=10.0.0.2")]));
        assert!(over_https("10.0.0.1", &[("forwarded", "proto=http, for=192.0.2.1;proto=https")]));
        assert!(!over_https("192.0.2.1", &[(proto, "https")]), "a stranger says what it likes");
        for plain in [
            &[][..],
            &[(proto, "http")],
            &[(proto, "https, http")],
            &[(proto, "https"), (proto, "http")],
            &[(proto, "https"), ("forwarded", "proto=http")],
            &[(proto, "")],
            &[("forwarded", "for=192.0.2.1")],
            &[("forwarded", "proto=https, for=192.0.2.1")],
            &[("forwarded", "proto=https"), ("forwarded", "for=192.0.2.1")],
            &[("forwarded", "for=192.0.2.9;proto=https, for=192.0.2.1")],
        ] {
            assert!(!over_https("10.0.0.1", plain), "{plain:?}");
        }
    }

    #[test]
    fn ipv6_callers_are_counted_by_their_networks_and_mapped_addresses_as_ipv4() {
        let counted = |text: &str| {
            let networks = counted_networks(ip(text)).map(|(network, times)| format!("{network} {times}"));
            networks.collect::<Vec<_>>().join(", ")
        };
        assert_eq!(
            counted("2001:db8:1:234:ffff::1"),
            "2001:db8:1:234:: 1, 2001:db8:1:200::/56 2, 2001:db8:1::/48 4"
        );
        assert_eq!(counted("::ffff:192.0.2.7"), "192.0.2.7 1");
        for (a, b, is_one) in [
            ("2001:db8:1:2::1", "2001:db8:1:2:ffff:ffff:ffff:ffff", true),
            ("2001:db8:1:2::1", "2001:db8:1:3::1", false),
            ("::ffff:192.0.2.7", "192.0.2.7", true),
            ("192.0.2.7", "192.0.2.8", false),
        ] {
            let narrowest = |text: &str| CountedNetwork::narrowest(ip(text));
            assert_eq!(narrowest(a) == narrowest(b), is_one, "{a} {b}");
        }
        assert_eq!(CountedNetwork::widest(ip("2001:db8:1:2::1")).to_string(), "2001:db8:1::/48");
        assert_eq!(CountedNetwork::widest(ip("192.0.2.7")).to_string(), "192.0.2.7");
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
