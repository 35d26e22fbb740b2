//! Redirect URIs: which ones a client may have, and which registered one a request means (RFC 6749 §3.1.2, RFC 8252 §7).

use std::net::Ipv4Addr;

use url::{Host, Url};

/// Returns whether the host is `localhost`, 127.0.0.1 or ::1: hosts that `http` redirect URIs may have.
pub(crate) fn is_loopback_host(url: &Url) -> bool {
    match url.host() {
        Some(Host::Ipv4(ip)) => ip == Ipv4Addr::LOCALHOST,
        Some(Host::Ipv6(ip)) => ip.is_loopback(),
        Some(Host::Domain(name)) => name == "localhost",
        None => false,
    }
}

fn authority(uri: &str) -> Option<&str> {
    uri.split_once("://").and_then(|(_, rest)| rest.split(['/', '?', '#']).next())
}

/// Returns whether `name` is a DNS name (RFC 1123 §2.1): labels of letters, digits and inner hyphens.
fn is_dns_name(name: &str) -> bool {
    let is_label = |label: &str| {
        let is_inner = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        (1..=63).contains(&label.len())
            && label.bytes().all(is_inner)
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    name.len() <= 253 && name.split('.').all(is_label)
}

/// Returns whether the authority in `uri`, which was read as `url`, is a host and at most a port, in a spelling that cannot be read
/// otherwise: in a policy of a page, for example, commas and semicolons separate, and not everybody reads `127.1` as an address.
pub(crate) fn has_plain_authority(uri: &str, url: &Url) -> bool {
    let Some(authority) = authority(uri).filter(|authority| !authority.is_empty()) else { return false };
    let after_host = authority.rfind(']').map_or(0, |at| at + 1);
    let (rest, port) = match authority[after_host..].split_once(':') {
        Some((rest, port)) => (rest, Some(port)),
        None => (&authority[after_host..], None),
    };
    let host = &authority[..after_host + rest.len()];
    let host_is_plain = match url.host() {
        // Written as the address is printed.
        Some(Host::Ipv4(_)) => url.host_str() == Some(host),
        // By the URL standard, or with the IPv4 part of a mapped address as RFC 5952 §5 has it.
        Some(Host::Ipv6(ip)) => url.host_str() == Some(host) || format!("[{ip}]") == host,
        Some(Host::Domain(name)) => {
            let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
            !name.is_empty() && name.bytes().all(is_plain)
        }
        None => false,
    };
    host_is_plain
        && !authority.contains(['@', '%'])
        && port.is_none_or(|port| {
            let is_number = port.bytes().all(|byte| byte.is_ascii_digit()) && !port.starts_with('0');
            is_number && port.parse::<u16>().is_ok()
        })
}

/// Parses a redirect URI: https, http on loopback, or a private-use scheme with a dot in it.
pub(crate) fn parse(uri: &str) -> Result<Url, &'static str> {
    if uri.len() > 2048 || uri.chars().any(|c| c.is_control() || c == ' ' || c == '\\') {
        return Err("is too long or holds characters an address cannot");
    }
    let url = Url::parse(uri).map_err(|_| "is not an absolute address")?;
    if url.fragment().is_some() || uri.contains('#') {
        return Err("must not have a fragment");
    }
    // Readers of addresses differ about what is left out: `https:host`, `https:///host`, `https://@host`.
    let authority = authority(uri);
    if authority.is_some_and(|authority| authority.contains('@')) || !url.username().is_empty() {
        return Err("must not hold a user name or password");
    }
    if matches!(url.scheme(), "https" | "http") && authority.is_none_or(str::is_empty) {
        return Err("must name its host after `://`");
    }
    if url.host_str().is_some_and(|host| host.contains('*')) {
        return Err("must name one host: wildcards match nothing");
    }
    // The host of a private-use scheme is no name of a machine.
    let is_name = match url.host() {
        Some(Host::Domain(name)) => !matches!(url.scheme(), "https" | "http") || is_dns_name(name),
        _ => true,
    };
    let has_authority = authority.is_some_and(|authority| !authority.is_empty());
    if has_authority && !(is_name && has_plain_authority(uri, &url)) {
        return Err(
            "must have a host that is a DNS name or an IP address in its usual form, and a port from 1 to 65535 or none",
        );
    }
    match url.scheme() {
        "https" if url.host().is_some() => Ok(url),
        "http" if is_loopback_host(&url) => Ok(url),
        "http" => Err("must be https unless it is on loopback"),
        scheme if scheme.contains('.') => Ok(url),
        _ => Err("must be https, http on loopback, or a reverse-domain scheme such as com.example.app"),
    }
}

/// Returns whether `asked` matches `registered`: the same text, or the same loopback address with another port (RFC 8252 §7.3).
pub(crate) fn matches(registered: &str, asked: &str) -> bool {
    if registered == asked {
        return true;
    }
    match (without_loopback_port(registered), without_loopback_port(asked)) {
        (Some(registered), Some(asked)) => registered == asked,
        _ => false,
    }
}

/// Returns a redirect URI on loopback without its port; `None` for any other.
pub(crate) fn without_loopback_port(uri: &str) -> Option<String> {
    let url = parse(uri).ok().filter(|url| url.scheme() == "http")?;
    let host = url.host_str()?;
    let rest = uri.strip_prefix("http://")?.strip_prefix(host)?;
    let path = match rest.strip_prefix(':') {
        Some(rest) => rest.trim_start_matches(|c: char| c.is_ascii_digit()),
        None => rest,
    };
    Some(format!("http://{host}{path}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_redirect_has_one_plain_host_and_a_real_port_or_none() {
        for bad in [
            "http://127.0.0.1:/cb",
            "http://127.0.0.1:0/cb",
            "http://127.0.0.1:080/cb",
            "http://[::1]:/cb",
            "https://a.example,evil.example/cb",
            "https://a.example;x/cb",
            "https://a.example'x/cb",
            "https://a.example:/cb",
            "https://a.example:00443/cb",
            "com.example.app://a,b/cb",
            "https://x_y.example/cb",
            "https://-x.example/cb",
            "https://x-.example/cb",
            "https://x..example/cb",
            "https://x.example./cb",
            "https://ex%61mple.com/cb",
            "http://127.1/cb",
            "http://0x7f.0.0.1/cb",
            "http://2130706433/cb",
            "http://127.0.0.1./cb",
            "http://\u{ff11}27.0.0.1/cb",
            "http://[0:0:0:0:0:0:0:1]/cb",
            "https://8.8.2056/cb",
        ] {
            assert!(parse(bad).is_err(), "{bad}");
            assert!(!matches("http://127.0.0.1/cb", bad), "{bad}");
        }
        for good in [
            "http://127.0.0.1/cb",
            "http://127.0.0.1:80/cb",
            "http://[::1]:8080/cb",
            "https://a.example:8443/cb?x=1,2;3",
            "https://h\u{f6}st.example/cb",
            "https://xn--hst-sna.example/cb",
            "https://8.8.8.8/cb",
            "https://[2606:4700::1111]/cb",
            "https://[::ffff:127.0.0.1]/cb",
            "https://[::ffff:7f00:1]/cb",
            "https://A.Example/cb",
            "com.example.app://oauth_callback",
            "com.example.app:/cb",
            "com.example.app:///cb",
            "com.example.app://callback",
        ] {
            assert!(parse(good).is_ok(), "{good}: {:?}", parse(good));
        }
    }

    #[test]
    fn a02_loopback_redirects_match_on_any_port_and_nothing_else_does() {
        let registered = "http://127.0.0.1:1111/cb";
        for yes in ["http://127.0.0.1:1111/cb", "http://127.0.0.1:2222/cb", "http://127.0.0.1/cb"] {
            assert!(matches(registered, yes), "{yes}");
        }
        for no in [
            "http://127.0.0.1:2222/cbx",
            "http://127.0.0.2:1111/cb",
            "https://127.0.0.1:1111/cb",
            "http://127.0.0.1:2222/cb?x=1",
            "http://127.0.0.1:2222/cb#f",
            "http://localhost:1111/cb",
            "http://127.0.0.1:80@evil.example/cb",
            "http://127.0.0.1.evil.example/cb",
        ] {
            assert!(!matches(registered, no), "{no}");
        }
        assert!(matches("http://[::1]/cb", "http://[::1]:9/cb"));
        assert!(!matches("https://c.example/cb", "https://c.example:8443/cb"));
    }
}
