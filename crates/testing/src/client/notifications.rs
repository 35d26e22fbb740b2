//! Notifications of the server.

use std::{sync::Mutex, time::Duration};

use serde_json::Value;
use tokio::sync::watch;

use super::kept::{Kept, bytes_of};
use crate::{
    base::lock,
    protocol::{ClientError, Notification},
};

/// The notifications one client received, up to 32 MiB.
#[derive(Debug)]
pub struct Notifications {
    entries: Mutex<Kept<Notification>>,
    count: watch::Sender<usize>,
}

impl Default for Notifications {
    fn default() -> Self {
        Self { entries: Mutex::default(), count: watch::Sender::new(0) }
    }
}

impl Notifications {
    /// All notifications, oldest first.
    pub fn all(&self) -> Vec<Notification> {
        lock(&self.entries).to_vec()
    }

    /// Notifications of one method.
    pub fn of(&self, method: &str) -> Vec<Notification> {
        lock(&self.entries).iter().filter(|one| one.method == method).cloned().collect()
    }

    /// Progress notifications with this token.
    pub fn progress(&self, token: &Value) -> Vec<Notification> {
        let mut all = self.of("notifications/progress");
        all.retain(|one| &one.params["progressToken"] == token);
        all
    }

    /// Waits for `count` notifications of `method`, counting earlier ones.
    ///
    /// # Errors
    /// They did not arrive within `timeout`.
    pub async fn wait_for(
        &self,
        method: &str,
        count: usize,
        timeout: Duration,
    ) -> Result<Vec<Notification>, ClientError> {
        let mut changed = self.count.subscribe();
        let enough = async {
            loop {
                changed.borrow_and_update();
                let found = lock(&self.entries).iter().filter(|one| one.method == method).count();
                if found >= count || changed.changed().await.is_err() {
                    return self.of(method);
                }
            }
        };
        tokio::time::timeout(timeout, enough).await.map_err(|_| {
            let mut seen: Vec<String> = self.all().into_iter().map(|one| one.method).collect();
            seen.dedup();
            ClientError::TimedOut {
                method: method.to_owned(),
                after: timeout,
                hint: format!(
                    "; {count} were wanted, {} came, other notifications: {seen:?}",
                    self.of(method).len()
                ),
            }
        })
    }

    /// Waits for the first notification from index `start` on for which `wanted` returns true.
    pub(super) async fn wait_until(
        &self,
        mut start: usize,
        wanted: impl Fn(&Notification) -> bool,
    ) -> Notification {
        let mut changed = self.count.subscribe();
        loop {
            changed.borrow_and_update();
            let new = self.since(start);
            start += new.len();
            if let Some(one) = new.into_iter().find(|one| wanted(one)) {
                return one;
            }
            if changed.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }

    /// Removes all notifications.
    pub fn clear(&self) {
        lock(&self.entries).clear();
    }

    /// Returns `false` if there is no room for it.
    pub(super) fn push(&self, notification: Notification) -> bool {
        let bytes = bytes_of(&notification.params) + notification.method.len();
        let is_kept = lock(&self.entries).push(notification, bytes);
        self.count.send_modify(|count| *count += 1);
        is_kept
    }

    pub(super) fn len(&self) -> usize {
        lock(&self.entries).len()
    }

    pub(super) fn since(&self, start: usize) -> Vec<Notification> {
        lock(&self.entries).get(start..).map(<[_]>::to_vec).unwrap_or_default()
    }
}
