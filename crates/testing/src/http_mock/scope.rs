//! Mocks of one test on a proxy that several tests use, one after the other.

use std::sync::Arc;

use super::{
    expectation::{Expectation, HttpMockHandle, HttpMockOptions},
    mock::HttpMock,
};
use crate::base::lock;

/// Mocks that are tried before all others until this is dropped. Calls that no mock matches meanwhile fail.
#[must_use = "dropping it removes the mocks"]
pub(crate) struct HttpMockScope {
    mock: HttpMock,
    expectations: Vec<Arc<Expectation>>,
    passthrough: bool,
}

impl HttpMock {
    /// Adds mocks for as long as the scope lives.
    pub(crate) fn scope(&self, mocks: Vec<HttpMockOptions>) -> HttpMockScope {
        let expectations: Vec<_> =
            mocks.into_iter().map(|options| Arc::new(Expectation::new(options))).collect();
        let mut recorder = lock(self.recorder());
        recorder.expectations.splice(0..0, expectations.iter().cloned());
        let passthrough = std::mem::replace(&mut recorder.passthrough, false);
        drop(recorder);
        HttpMockScope { mock: self.clone(), expectations, passthrough }
    }
}

impl HttpMockScope {
    /// The mocks, in the order in which they were given.
    pub(crate) fn handles(&self) -> Vec<HttpMockHandle> {
        let handle = |one: &Arc<Expectation>| HttpMockHandle { expectation: one.clone() };
        self.expectations.iter().map(handle).collect()
    }
}

impl Drop for HttpMockScope {
    fn drop(&mut self) {
        let mut recorder = lock(self.mock.recorder());
        recorder.expectations.retain(|one| !self.expectations.iter().any(|own| Arc::ptr_eq(own, one)));
        recorder.passthrough = self.passthrough;
    }
}
