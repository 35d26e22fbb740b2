//! Room for sessions: a bound for all of them, and a share for each caller.

use std::sync::Arc;

use gatewright_core::{Claimant, NoShare, Portion, Share, Shares};

use crate::config::HttpConfig;

/// Bytes that a session takes.
const SESSION_BYTES: u64 = 128 << 10;

/// The place of one session; free again when dropped.
pub(crate) type SessionPlace = Share;

/// The places of a server, for the sessions of all its transports.
pub(crate) struct SessionRoom {
    most: usize,
    shares: Arc<Shares>,
}

impl SessionRoom {
    pub(crate) fn new(config: &HttpConfig) -> Arc<Self> {
        let most = config.max_sessions;
        let portion = config.max_sessions_per_caller.map_or(Portion::QuarterOfFree, Portion::Fixed);
        Arc::new(Self { most, shares: Shares::of_places(most, SESSION_BYTES, portion) })
    }

    /// A place for a session of `opener`.
    pub(crate) fn take(&self, opener: Claimant) -> Result<SessionPlace, NoShare> {
        let place = self.shares.take(opener, 1);
        if let Err(why) = &place {
            tracing::info!(
                sessions = self.most,
                ?why,
                "a session was refused: see http.maxSessions, or memory is short"
            );
        }
        place
    }
}

#[cfg(test)]
mod tests {
    use gatewright_core::Network;

    use super::*;

    fn room(config: &str) -> Arc<SessionRoom> {
        SessionRoom::new(&serde_json::from_str(config).unwrap())
    }

    fn opener(subject: Option<&str>, address: &str) -> Claimant {
        let proxies = [Network::parse("10.0.0.0/8").unwrap()];
        Claimant::new(subject.map(Into::into), Some(address.parse().unwrap()), &proxies)
    }

    fn taken(room: &SessionRoom, opener: impl Fn(usize) -> Claimant) -> (Vec<SessionPlace>, NoShare) {
        let mut places = Vec::new();
        loop {
            match room.take(opener(places.len())) {
                Ok(place) => places.push(place),
                Err(why) => return (places, why),
            }
        }
    }

    #[test]
    fn one_principal_takes_a_fifth_from_any_number_of_networks_and_one_network_with_any_number_of_names() {
        let room = room(r#"{"maxSessions": 100}"#);
        let (bob, why) = taken(&room, |n| opener(Some("bob"), &format!("192.0.2.{n}")));
        assert_eq!((bob.len(), why), (20, NoShare::Share));
        let (farm, why) = taken(&room, |n| opener(Some(&format!("user{n}")), &format!("2001:db8::{n:x}")));
        assert_eq!((farm.len(), why), (16, NoShare::Share));
        assert!(room.take(opener(Some("alice"), "198.51.100.1")).is_ok());
        drop(bob);
        assert!(room.take(opener(Some("bob"), "192.0.2.1")).is_ok());
    }

    #[test]
    fn the_share_is_what_the_configuration_says() {
        let room = room(r#"{"maxSessions": 100, "maxSessionsPerCaller": 3}"#);
        let (bob, why) = taken(&room, |_| opener(Some("bob"), "127.0.0.1"));
        assert_eq!((bob.len(), why), (3, NoShare::Share));
        let (network, why) = taken(&room, |_| opener(None, "192.0.2.1"));
        assert_eq!((network.len(), why), (3, NoShare::Share));
    }

    #[test]
    fn a_caller_of_a_whole_ipv6_48_cannot_open_every_session() {
        for (config, most) in [
            (r#"{"maxSessions": 100}"#, 50),
            (r#"{"maxSessions": 100, "maxSessionsPerCaller": 3}"#, 12),
            (r#"{"maxSessions": 100, "maxSessionsPerCaller": 20}"#, 50),
        ] {
            let room = room(config);
            let networks = (0..0xffff).map(|n| opener(None, &format!("2001:db8:1:{n:x}::1")));
            let held: Vec<_> = networks.filter_map(|network| room.take(network).ok()).collect();
            assert!(held.len() <= most, "{config}: {}", held.len());
            assert!(room.take(opener(None, "2001:db8:2::1")).is_ok());
            assert!(room.take(opener(None, "192.0.2.1")).is_ok());
        }
    }

    #[test]
    fn anonymous_callers_behind_loopback_or_a_proxy_are_bounded_by_the_whole() {
        let room = room(r#"{"maxSessions": 10}"#);
        let (proxied, why) = taken(&room, |n| opener(None, ["10.0.0.1", "::ffff:127.0.0.1"][n % 2]));
        assert_eq!((proxied.len(), why), (10, NoShare::Room));
    }
}
