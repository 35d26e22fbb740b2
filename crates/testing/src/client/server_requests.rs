//! Requests of the server to the client.

use std::{sync::Mutex, time::Duration};

use tokio::sync::watch;

use super::kept::{Kept, bytes_of};
use crate::{
    base::lock,
    protocol::{ClientError, RpcRequest},
};

/// The requests that one client received, up to 32 MiB.
#[derive(Debug)]
pub(super) struct ServerRequests {
    all: Mutex<Kept<RpcRequest>>,
    count: watch::Sender<usize>,
}

impl Default for ServerRequests {
    fn default() -> Self {
        Self { all: Mutex::default(), count: watch::Sender::new(0) }
    }
}

impl ServerRequests {
    /// All requests, oldest first.
    pub(super) fn all(&self) -> Vec<RpcRequest> {
        lock(&self.all).to_vec()
    }

    pub(super) fn len(&self) -> usize {
        lock(&self.all).len()
    }

    pub(super) fn since(&self, start: usize) -> Vec<RpcRequest> {
        lock(&self.all).get(start..).map(<[_]>::to_vec).unwrap_or_default()
    }

    /// Returns `false` if there is no room for it.
    pub(super) fn push(&self, request: RpcRequest) -> bool {
        let bytes = bytes_of(&request.params) + request.method.len();
        let is_kept = lock(&self.all).push(request, bytes);
        self.count.send_modify(|count| *count += 1);
        is_kept
    }

    /// Removes all requests.
    #[cfg(feature = "suites")]
    pub(super) fn clear(&self) {
        lock(&self.all).clear();
    }

    /// Waits for `count` requests of `method`, counting earlier ones.
    pub(super) async fn wait_for(
        &self,
        method: &str,
        count: usize,
        timeout: Duration,
    ) -> Result<Vec<RpcRequest>, ClientError> {
        let mut changed = self.count.subscribe();
        let of_method = || {
            let all = lock(&self.all);
            all.iter().filter(|one| one.method == method).cloned().collect::<Vec<_>>()
        };
        let enough = async {
            loop {
                changed.borrow_and_update();
                let found = of_method();
                if found.len() >= count || changed.changed().await.is_err() {
                    return found;
                }
            }
        };
        tokio::time::timeout(timeout, enough).await.map_err(|_| {
            let mut seen: Vec<String> = self.all().into_iter().map(|one| one.method).collect();
            seen.dedup();
            let hint =
                format!("; {count} were wanted, {} came, the server asked for {seen:?}", of_method().len());
            ClientError::TimedOut { method: method.to_owned(), after: timeout, hint }
        })
    }
}
