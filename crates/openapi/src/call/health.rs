//! Health of an API: its answer at a path, and its last calls.

use std::{
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

use ::http::{HeaderValue, Method, header::ACCEPT};
use tokio::sync::Notify;
use url::Url;

use super::{
    HttpApi,
    failure::CallError,
    http::{Outgoing, Retries},
};

/// Calls in a row that do not reach the API, after which its health is checked.
const FAILED_CALLS: u32 = 3;
/// Longest time of a check.
const LONGEST: Duration = Duration::from_secs(10);

/// Counts calls that did not reach the API.
#[derive(Debug, Default)]
pub(crate) struct LastCalls {
    failed: AtomicU32,
    doubtful: Notify,
}

impl LastCalls {
    /// Counts a call that was answered.
    pub(super) fn reached(&self) {
        self.failed.store(0, Ordering::Relaxed);
    }

    /// Counts a call that was not.
    pub(super) fn missed(&self) {
        if self.failed.fetch_add(1, Ordering::Relaxed) + 1 >= FAILED_CALLS {
            self.reached();
            self.doubtful.notify_one();
        }
    }

    /// Returns once too many calls in a row were not answered.
    pub(crate) async fn doubtful(&self) {
        self.doubtful.notified().await;
    }
}

impl HttpApi {
    /// Asks the API for `path` below its server, which has to succeed; without a path, for anything at all.
    ///
    /// # Errors
    /// The reason why it is not healthy.
    pub(crate) async fn check_health(&self, server: &Url, path: Option<&str>) -> Result<(), String> {
        let mut url = server.clone();
        if let Some(path) = path {
            url.set_path(&format!("{}{path}", server.path().trim_end_matches('/')));
        }
        let mut headers = self.headers.clone();
        headers.insert(ACCEPT, HeaderValue::from_static("*/*"));
        let method = Method::GET;
        let request = Outgoing { method, url, headers, body: None, shows_certificate: true, trail: None };
        let until = std::time::Instant::now() + LONGEST.min(self.config.connect_timeout);
        let retries = Retries { most: 0, is_idempotent: true, until };
        let answer = match tokio::time::timeout_at(until.into(), self.http.send(&request, retries)).await {
            Ok(answer) => answer,
            Err(_) => Err(CallError::Unreachable("no answer in time".to_owned())),
        };
        match answer {
            Ok(response) if path.is_none() || response.status().is_success() => Ok(()),
            Ok(response) => {
                Err(format!("its health check answered with HTTP {}", response.status().as_u16()))
            }
            // It answered.
            Err(CallError::BadAnswer(_)) if path.is_none() => Ok(()),
            Err(CallError::Unreachable(why)) => Err(format!("its API cannot be reached: {why}")),
            Err(error) => Err(format!("its health check failed: {error}")),
        }
    }
}
