//! Mocks of one test, on an HTTP mock that several tests share.

use super::{
    call::HttpCall,
    expectation::{HttpMockHandle, HttpMockOptions},
    mock::HttpMock,
};

/// Mocks that are tried before the others and removed when the scope is dropped. Made by [`HttpMock::scope`].
#[derive(Debug)]
#[must_use = "dropping it removes the mocks"]
pub struct HttpMockScope {
    http: HttpMock,
    id: u64,
    /// Number of calls and of unmatched calls before the scope.
    before: (usize, usize),
    handles: Vec<HttpMockHandle>,
}

impl HttpMock {
    /// Adds mocks for as long as the scope lives. Calls that no mock matches meanwhile fail, even if they were passed on before. While
    /// several scopes are open, the mocks of the latest are tried first: a server that tests share cannot tell which test a call
    /// belongs to.
    pub fn scope(&self, mocks: impl IntoIterator<Item = HttpMockOptions>) -> HttpMockScope {
        let (id, before) = self.open_scope();
        let handles = mocks.into_iter().map(|options| self.add(options, Some(id))).collect();
        HttpMockScope { http: self.clone(), id, before, handles }
    }
}

impl HttpMockScope {
    /// Adds a mock to the scope.
    pub fn mock(&self, options: HttpMockOptions) -> HttpMockHandle {
        self.http.add(options, Some(self.id))
    }

    /// The mocks with which the scope was made, in their order.
    pub fn handles(&self) -> Vec<HttpMockHandle> {
        self.handles.clone()
    }

    /// Requests since the scope was opened, matched or not.
    pub fn calls(&self) -> Vec<HttpCall> {
        self.http.calls().into_iter().skip(self.before.0).collect()
    }

    /// Descriptions of the requests since the scope was opened that no mock matched, each with the nearest mock.
    pub fn unmatched(&self) -> Vec<String> {
        self.http.unmatched_with_nearest().into_iter().skip(self.before.1).collect()
    }
}

impl Drop for HttpMockScope {
    fn drop(&mut self) {
        self.http.close_scope(self.id);
    }
}
