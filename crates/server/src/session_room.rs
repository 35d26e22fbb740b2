//! Room for sessions: a bound for all of them, and a share for each caller, by principal and by network.

use std::{net::IpAddr, sync::Arc};

use gatewright_core::{CallerAddress, Network, Principal, Share, Shares, counted_address};
use http::request::Parts;

use crate::config::HttpConfig;

/// Whoever opens a session, as far as sessions are counted.
#[derive(Debug, Clone, Default)]
pub(crate) struct Opener {
    /// `None` for anonymous callers, who are many.
    subject: Option<Arc<str>>,
    address: Option<IpAddr>,
}

impl Opener {
    /// The sender of a request that was admitted.
    pub(crate) fn of(parts: &Parts) -> Self {
        let principal = parts.extensions.get::<Principal>();
        let subject = principal.map(|principal| principal.subject.clone());
        Self {
            subject: subject.filter(|subject| *subject != Principal::local().subject),
            address: parts.extensions.get::<CallerAddress>().map(|caller| caller.0),
        }
    }
}

/// Why there is no room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoRoom {
    /// As many sessions are open as may be.
    All,
    /// The caller, or its network, has its share.
    Share,
}

/// The place of one session; free again when dropped.
pub(crate) struct SessionPlace {
    _of_network: Share<IpAddr>,
    _of_subject: Share<Arc<str>>,
}

/// The places of a server, for the sessions of all its transports.
pub(crate) struct SessionRoom {
    most: usize,
    by_network: Arc<Shares<IpAddr>>,
    by_subject: Arc<Shares<Arc<str>>>,
    proxies: Vec<Network>,
}

impl SessionRoom {
    pub(crate) fn new(config: &HttpConfig) -> Arc<Self> {
        let (most, of_one) = (config.max_sessions, config.max_sessions_per_caller);
        Arc::new(Self {
            most,
            by_network: Shares::with_most_of_one(most, of_one),
            by_subject: Shares::with_most_of_one(most, of_one),
            proxies: config.trusted_proxies.iter().filter_map(|text| Network::parse(text)).collect(),
        })
    }

    /// A place for a session of `opener`.
    pub(crate) fn take(&self, opener: &Opener) -> Result<SessionPlace, NoRoom> {
        // Loopback and proxies stand for many callers.
        let is_one = |address: &IpAddr| {
            !address.is_loopback() && !self.proxies.iter().any(|network| network.contains(*address))
        };
        let network =
            opener.address.map(|address| address.to_canonical()).filter(is_one).map(counted_address);
        let places = self.by_network.take(network, 1).and_then(|of_network| {
            let of_subject = self.by_subject.take(opener.subject.clone(), 1)?;
            Some(SessionPlace { _of_network: of_network, _of_subject: of_subject })
        });
        places.ok_or_else(|| {
            let why = if self.by_network.held() < self.most { NoRoom::Share } else { NoRoom::All };
            tracing::info!(sessions = self.most, ?why, "a session was refused: see http.maxSessions");
            why
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn room(config: &str) -> Arc<SessionRoom> {
        SessionRoom::new(&serde_json::from_str(config).unwrap())
    }

    fn opener(subject: Option<&str>, address: &str) -> Opener {
        Opener { subject: subject.map(Into::into), address: Some(address.parse().unwrap()) }
    }

    fn taken(room: &SessionRoom, opener: impl Fn(usize) -> Opener) -> (Vec<SessionPlace>, NoRoom) {
        let mut places = Vec::new();
        loop {
            match room.take(&opener(places.len())) {
                Ok(place) => places.push(place),
                Err(why) => return (places, why),
            }
        }
    }

    #[test]
    fn one_principal_takes_a_fifth_from_any_number_of_networks_and_one_network_with_any_number_of_names() {
        let room = room(r#"{"maxSessions": 100}"#);
        let (bob, why) = taken(&room, |n| opener(Some("bob"), &format!("192.0.2.{n}")));
        assert_eq!((bob.len(), why), (20, NoRoom::Share));
        let (farm, why) = taken(&room, |n| opener(Some(&format!("user{n}")), &format!("2001:db8::{n:x}")));
        assert_eq!((farm.len(), why), (16, NoRoom::Share));
        assert!(room.take(&opener(Some("alice"), "198.51.100.1")).is_ok());
        drop(bob);
        assert!(room.take(&opener(Some("bob"), "192.0.2.1")).is_ok());
    }

    #[test]
    fn the_share_is_what_the_configuration_says() {
        let room = room(r#"{"maxSessions": 100, "maxSessionsPerCaller": 3}"#);
        let (bob, why) = taken(&room, |_| opener(Some("bob"), "127.0.0.1"));
        assert_eq!((bob.len(), why), (3, NoRoom::Share));
        let (network, why) = taken(&room, |_| opener(None, "192.0.2.1"));
        assert_eq!((network.len(), why), (3, NoRoom::Share));
    }

    #[test]
    fn anonymous_callers_behind_loopback_or_a_proxy_are_bounded_by_the_whole() {
        let room = room(r#"{"maxSessions": 10, "trustedProxies": ["10.0.0.0/8"]}"#);
        let (proxied, why) = taken(&room, |n| opener(None, ["10.0.0.1", "::ffff:127.0.0.1"][n % 2]));
        assert_eq!((proxied.len(), why), (10, NoRoom::All));
    }
}
