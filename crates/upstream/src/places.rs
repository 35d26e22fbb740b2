//! Places for calls at one server. One caller leaves a quarter of them to others, at all connections of an app together.
//!
//! Whoever waits is served in turn. A caller with many calls waits for places of its own first, so that its line is not in the way of
//! others.

use std::sync::Arc;

use gatewright_core::{Caller, Claimant, OwnPlaces};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The places of a connection.
#[derive(Debug)]
pub(crate) struct Places {
    all: Arc<Semaphore>,
    own: Arc<CallerPlaces>,
}

/// The places that each caller may take, at all connections of an app together.
pub(crate) type CallerPlaces = OwnPlaces<Claimant>;

/// Three quarters of `most` calls for each caller, rounded down, and at least one.
pub(crate) fn caller_places(most: usize) -> Arc<CallerPlaces> {
    Arc::new(OwnPlaces::new((most - most.div_ceil(4)).max(1)))
}

/// The place of one call; free again when dropped.
#[derive(Debug)]
pub(crate) struct Place {
    _own: Vec<OwnedSemaphorePermit>,
    _any: Option<OwnedSemaphorePermit>,
}

impl Place {
    /// The same without its part of those that all callers have: it counts for its caller only.
    pub(crate) fn of_caller_alone(self) -> Self {
        Self { _any: None, ..self }
    }
}

impl Places {
    /// Places for `most` calls, of which callers take those of `own`.
    pub(crate) fn new(most: usize, own: Arc<CallerPlaces>) -> Self {
        Self { all: Arc::new(Semaphore::new(most.clamp(1, Semaphore::MAX_PERMITS))), own }
    }

    /// Waits for a place for a call of `caller`. Anonymous callers count by their networks.
    pub(crate) async fn take(&self, caller: &Caller) -> Place {
        let mut own = Vec::new();
        for party in caller.claimant().lines() {
            // The semaphores are never closed.
            own.extend(self.own.of(party).acquire_owned().await.ok());
        }
        Place { _own: own, _any: self.all.clone().acquire_owned().await.ok() }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;
    use gatewright_core::{Principal, Scopes};

    use super::*;

    fn places(most: usize) -> Places {
        Places::new(most, caller_places(most))
    }

    fn caller(subject: &str) -> Caller {
        Caller::new(Arc::new(Principal {
            subject: subject.into(),
            client_id: None,
            scopes: Scopes::All,
            ..Principal::local()
        }))
    }

    fn anonymous(address: &str) -> Caller {
        let at = Claimant::new(None, Some(address.parse().unwrap()), &[]);
        Caller::new(Arc::new(Principal::local())).claiming(Some(Arc::new(at)))
    }

    #[tokio::test]
    async fn a_caller_whose_calls_wait_leaves_places_to_others() {
        let places = places(8);
        let bob = caller("bob");
        let mut calls: Vec<_> = (0..100).map(|_| Box::pin(places.take(&bob))).collect();
        let mut held: Vec<_> = calls.iter_mut().filter_map(FutureExt::now_or_never).collect();
        assert_eq!(held.len(), 6);
        assert!(places.take(&caller("alice")).now_or_never().is_some());
        held.pop();
        let next = calls[6].as_mut().now_or_never();
        assert!(next.is_some(), "the next of its own line");
    }

    #[tokio::test]
    async fn of_few_places_a_caller_leaves_one_to_others() {
        for (most, own) in [(1, 1), (2, 1), (3, 2), (4, 3), (5, 3), (6, 4), (7, 5), (9, 6)] {
            let places = places(most);
            let bob = caller("bob");
            let held: Vec<_> = (0..9).filter_map(|_| places.take(&bob).now_or_never()).collect();
            assert_eq!(held.len(), own, "of {most}");
        }
    }

    #[tokio::test]
    async fn a_caller_has_three_quarters_at_all_connections_together() {
        let own = caller_places(8);
        let connections: Vec<Places> = (0..8).map(|_| Places::new(8, own.clone())).collect();
        let bob = caller("bob");
        let calls = connections.iter().flat_map(|places| [places.take(&bob), places.take(&bob)]);
        assert_eq!(calls.filter_map(FutureExt::now_or_never).collect::<Vec<_>>().len(), 6);
    }

    #[tokio::test]
    async fn anonymous_callers_leave_a_quarter_to_other_networks_and_to_callers_with_names() {
        for (most, own, others) in
            [(8, "198.51.100.7", "203.0.113.9"), (8, "2001:db8:1:1::1", "2001:db8:2:1::1")]
        {
            let places = places(most);
            let nobody = anonymous(own);
            let mut calls: Vec<_> = (0..100).map(|_| Box::pin(places.take(&nobody))).collect();
            let held: Vec<_> = calls.iter_mut().filter_map(FutureExt::now_or_never).collect();
            assert_eq!(held.len(), 6, "{own}");
            assert!(places.take(&caller("alice")).now_or_never().is_some());
            assert!(places.take(&anonymous(others)).now_or_never().is_some());
        }
    }

    #[tokio::test]
    async fn networks_of_one_site_leave_a_quarter_to_others_together() {
        let places = places(8);
        let site: Vec<_> = (0..100).map(|n| anonymous(&format!("2001:db8:1:{n:x}::1"))).collect();
        let mut calls: Vec<_> = site.iter().map(|caller| Box::pin(places.take(caller))).collect();
        let held: Vec<_> = calls.iter_mut().filter_map(FutureExt::now_or_never).collect();
        assert_eq!(held.len(), 6);
    }

    #[tokio::test]
    async fn callers_on_this_machine_without_names_may_take_every_place_and_one_place_is_one() {
        let (places, single) = (places(4), places(1));
        let nobody = Caller::new(Arc::new(Principal::local()));
        let held: Vec<_> = (0..9).filter_map(|_| places.take(&nobody).now_or_never()).collect();
        assert_eq!(held.len(), 4);
        assert!(single.take(&caller("bob")).now_or_never().is_some());
        assert!(single.take(&anonymous("198.51.100.7")).now_or_never().is_some());
    }
}
