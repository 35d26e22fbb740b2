//! Callers' addresses and networks.
//!
//! Public addresses are told from others in core's `address_filter`.

use std::net::IpAddr;

use gatewright_core::{CountedNetwork, counted_networks};
pub(crate) use gatewright_core::{Network, is_public_address as is_public, is_this_machine};

/// A caller's address, in full for the audit. Its text is the network of one caller, so that no limit applies to single IPv6 addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ClientAddress(pub(crate) IpAddr);

impl ClientAddress {
    /// Returns the networks that the caller's requests are counted for, with the number of callers whose limits they have.
    pub(crate) fn networks(self) -> impl Iterator<Item = (CountedNetwork, u64)> {
        counted_networks(self.0).map(|(network, times)| (network, times as u64))
    }

    /// Returns the largest network that may be this caller's.
    pub(crate) fn widest_network(self) -> CountedNetwork {
        CountedNetwork::widest(self.0)
    }
}

impl std::fmt::Display for ClientAddress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        CountedNetwork::narrowest(self.0).fmt(f)
    }
}
