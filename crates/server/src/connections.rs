//! Room for connections: a bound for all of them, and a share for each network.

use std::{
    net::IpAddr,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use gatewright_core::{Claimant, FreeMemory, Network, Portion, Share, Shares};
use rustix::process::{Resource, getrlimit};
use tracing::Level;

/// Time between two log lines about refusals.
const LOG_EVERY: Duration = Duration::from_secs(10);

/// Number of connections that is enough for most deployments.
const ENOUGH: usize = 4_096;

/// Memory of the container or machine for each connection, in bytes. Of a container's, a quarter stays free ([`FreeMemory`]), which is enough for
/// every connection with a head that does not end.
const BYTES_PER_CONNECTION: u64 = 256 << 10;

/// Connections that the memory of the container or machine has room for.
fn fitting() -> usize {
    let total = FreeMemory::of_system().total().unwrap_or(u64::MAX);
    usize::try_from(total / BYTES_PER_CONNECTION).unwrap_or(usize::MAX)
}

/// A connection's place; free again when dropped.
pub(crate) type Place = Share;

/// The places of a listener.
pub(crate) struct Places {
    shares: Arc<Shares>,
    proxies: Vec<Network>,
    began: Instant,
    /// Milliseconds since `began` at which the next refusal is logged.
    log_at_ms: AtomicU64,
    refused: AtomicU64,
}

impl Places {
    /// Room for `most` connections, as far as the limit of open files allows.
    pub(crate) fn new(most: usize, proxies: Vec<Network>) -> Self {
        let files = getrlimit(Resource::Nofile).current.and_then(|files| usize::try_from(files).ok());
        let room = files.map_or(most, |files| most.min(files / 4 * 3).max(1));
        let message = || {
            format!(
                "the limit of open files leaves room for {room} connections; raise it (`ulimit -n`, LimitNOFILE) for `http.maxConnections`"
            )
        };
        match level(room, most) {
            Some(Level::WARN) => tracing::warn!(connections = room, "{}", message()),
            Some(_) => tracing::debug!(connections = room, "{}", message()),
            None => {}
        }
        Self {
            shares: Shares::new(room.min(fitting()), Portion::QuarterOfFree),
            proxies,
            began: Instant::now(),
            log_at_ms: AtomicU64::new(0),
            refused: AtomicU64::new(0),
        }
    }

    /// A place for a connection from `peer`; `None` when there is none for its network.
    pub(crate) fn take(&self, peer: IpAddr) -> Option<Place> {
        let place = self.shares.take(Claimant::new(None, Some(peer), &self.proxies), 1).ok();
        if place.is_none() {
            self.log(peer);
        }
        place
    }

    /// Connections that are open.
    pub(crate) fn open(&self) -> usize {
        self.shares.taken()
    }

    fn log(&self, peer: IpAddr) {
        let refused = self.refused.fetch_add(1, Ordering::Relaxed) + 1;
        let now = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        let due = self.log_at_ms.load(Ordering::Relaxed);
        let next = now.saturating_add(LOG_EVERY.as_millis() as u64);
        if now >= due
            && self.log_at_ms.compare_exchange(due, next, Ordering::Relaxed, Ordering::Relaxed).is_ok()
        {
            tracing::warn!(
                refused,
                open = self.open(),
                "connections are refused, the last from {peer}: too many are open (`http.maxConnections`), or too many from one network"
            );
        }
    }
}

/// Level at which room for fewer connections than `most` is logged.
fn level(room: usize, most: usize) -> Option<Level> {
    (room < most).then_some(if room < ENOUGH { Level::WARN } else { Level::DEBUG })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_of_open_files_that_leaves_enough_room_is_no_warning() {
        assert_eq!(level(15_000, 20_000), Some(Level::DEBUG));
        assert_eq!(level(768, 20_000), Some(Level::WARN));
        assert_eq!(level(100, 100), None);
    }

    fn taken(places: &Places, peers: impl IntoIterator<Item = String>) -> Vec<Place> {
        peers.into_iter().map_while(|peer| places.take(peer.parse().unwrap())).collect()
    }

    #[test]
    fn one_ipv6_network_cannot_take_every_connection() {
        let places = Places::new(100, Vec::new());
        let flood = taken(&places, (0..100).map(|n| format!("2001:db8:1:2::{n:x}")));
        assert_eq!(flood.len(), 20);
        assert!(places.take("2001:db8:1:3::1".parse().unwrap()).is_some());
        assert!(places.take("192.0.2.1".parse().unwrap()).is_some());
    }

    #[test]
    fn a_caller_of_many_ipv6_networks_cannot_take_every_connection() {
        let places = Places::new(100, Vec::new());
        let peers = (0..0xffff).map(|n| format!("2001:db8:1:{n:x}::1"));
        let held: Vec<_> = peers.filter_map(|peer| places.take(peer.parse().unwrap())).collect();
        assert!(held.len() <= 50, "{}", held.len());
        assert!(places.take("2001:db8:2::1".parse().unwrap()).is_some());
    }

    #[test]
    fn mapped_and_plain_ipv4_addresses_are_one_caller() {
        let places = Places::new(100, Vec::new());
        let plain = taken(&places, (0..100).map(|_| "192.0.2.1".to_owned()));
        assert_eq!(plain.len(), 20);
        assert!(places.take("::ffff:192.0.2.1".parse().unwrap()).is_none());
    }

    #[test]
    fn proxies_and_loopback_stand_for_many_and_are_bounded_by_the_whole() {
        let places = Places::new(100, vec![Network::parse("10.0.0.0/8").unwrap()]);
        let proxied = taken(&places, (0..60).map(|_| "10.0.0.1".to_owned()));
        let local = taken(&places, (0..100).map(|_| "::ffff:127.0.0.1".to_owned()));
        assert_eq!((proxied.len(), local.len(), places.open()), (60, 40, 100));
    }
}
