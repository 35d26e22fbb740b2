//! Waiting for apps that are making their first connection, so that a client that asks at once does not get an empty list.

use tokio::time::Instant;

use super::{Registry, entry::AppEntry};

impl Registry {
    /// Returns once no app is making its first connection any more, and at most 5 s after the last of them was added.
    pub async fn first_connections(&self) {
        self.first_connections_of(|_| true).await;
    }

    /// The same for the app that may own the tool `name`. Returns `true` if there was one to wait for.
    pub(crate) async fn first_connection_for(&self, name: &str) -> bool {
        self.first_connections_of(|entry| entry.may_own(name)).await
    }

    async fn first_connections_of(&self, concerns: impl Fn(&AppEntry) -> bool) -> bool {
        let mut rebuilt = self.rebuilt.subscribe();
        let mut waited = false;
        loop {
            let snapshot = self.snapshot.load_full();
            let now = Instant::now();
            let starting = snapshot.starting.iter().filter(|(app, until)| *until > now && concerns(app));
            let Some(until) = starting.map(|(_, until)| *until).max() else { return waited };
            waited = true;
            let stopped = self.stop.cancelled();
            tokio::select! {
                changed = tokio::time::timeout_at(until, rebuilt.changed()) => {
                    if !matches!(changed, Ok(Ok(()))) {
                        return waited;
                    }
                }
                () = stopped => return waited,
            }
        }
    }

    /// Counts changes of the tools: an index that is made after it was read has the tools of then.
    pub fn tools_version(&self) -> u64 {
        self.tools_version.load(std::sync::atomic::Ordering::SeqCst)
    }
}
