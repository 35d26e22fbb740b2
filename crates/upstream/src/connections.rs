//! The connections of a [`PerCallerApp`](crate::PerCallerApp): one for each audience, as many as allowed, ended when nobody uses
//! them.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use gatewright_core::{App as _, AppEvent, AppHealth, Audience, Catalog, CatalogLink};
use tokio::{sync::broadcast, time::Instant};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::UpstreamApp;

/// Tools, resources, templates and prompts of all connections together; beyond it, those idle for longest are ended.
const MOST_ITEMS: usize = 100_000;

struct Connected {
    app: Arc<UpstreamApp>,
    used: Instant,
    /// Cloned for each use.
    in_use: Arc<()>,
}

impl Connected {
    fn is_idle(&self) -> bool {
        Arc::strong_count(&self.in_use) == 1 && !self.app.is_followed()
    }
}

/// A connection in use. It is not ended for others meanwhile.
pub(crate) struct Lease {
    pub(crate) app: Arc<UpstreamApp>,
    _in_use: Arc<()>,
}

/// All places are taken by connections in use.
#[derive(Debug)]
pub(crate) struct Full;

/// The connections of one app.
pub(crate) struct Connections {
    all: Mutex<HashMap<Audience, Connected>>,
    most: usize,
    idle: Duration,
    /// `true` if a server makes tasks for calls: one that does, does so for all callers.
    makes_tasks: AtomicBool,
    /// Tells of what the app offers.
    pub(crate) link: CatalogLink,
    pub(crate) stop: CancellationToken,
    pub(crate) tasks: TaskTracker,
}

impl Connections {
    /// Room for `most` connections, each ended when nobody used it for `idle`.
    pub(crate) fn new(most: usize, idle: Duration) -> Arc<Self> {
        let connections = Arc::new(Self {
            all: Mutex::default(),
            most,
            idle,
            makes_tasks: AtomicBool::new(false),
            link: CatalogLink::default(),
            stop: CancellationToken::new(),
            tasks: TaskTracker::new(),
        });
        connections.tasks.spawn(sweep(Arc::downgrade(&connections), connections.stop.clone()));
        connections
    }

    /// The connection of `audience`, if there is one, for use.
    pub(crate) fn lease(&self, audience: &Audience) -> Option<Lease> {
        let mut all = self.lock();
        let connected = all.get_mut(audience)?;
        connected.used = Instant::now();
        Some(Lease { app: connected.app.clone(), _in_use: connected.in_use.clone() })
    }

    /// The catalog of the connection of `audience` while it is up.
    pub(crate) fn catalog(&self, audience: &Audience) -> Option<Arc<Catalog>> {
        let app = self.lock().get(audience)?.app.clone();
        (app.health() == AppHealth::Up).then(|| app.catalog())
    }

    /// The connection of `audience`, begun by `start` when there is none. It ends with `session`.
    pub(crate) fn lease_or(
        self: &Arc<Self>,
        audience: &Audience,
        session: Option<CancellationToken>,
        start: impl FnOnce() -> Arc<UpstreamApp>,
    ) -> Result<Lease, Full> {
        let mut all = self.lock();
        if !all.contains_key(audience) {
            if all.len() >= self.most {
                let oldest = oldest(&all, None).ok_or(Full)?;
                let gone = all.remove(&oldest);
                self.end(&oldest, gone);
            }
            let app = start();
            let follow = follow(
                Arc::downgrade(self),
                audience.clone(),
                Arc::downgrade(&app),
                app.events(),
                session,
                self.stop.clone(),
            );
            self.tasks.spawn(follow);
            let connected = Connected { app, used: Instant::now(), in_use: Arc::default() };
            all.insert(audience.clone(), connected);
        }
        drop(all);
        self.lease(audience).ok_or(Full)
    }

    /// Ends the connection of `audience`.
    pub(crate) fn let_go(&self, audience: &Audience) {
        let gone = self.lock().remove(audience);
        self.end(audience, gone);
    }

    pub(crate) fn make_tasks(&self) -> bool {
        self.makes_tasks.load(Ordering::Relaxed)
    }

    pub(crate) async fn shutdown(&self) {
        self.stop.cancel();
        let all: Vec<Connected> = self.lock().drain().map(|(_, connected)| connected).collect();
        futures::future::join_all(all.iter().map(|connected| connected.app.shutdown())).await;
        self.tasks.close();
        self.tasks.wait().await;
    }

    fn end(&self, audience: &Audience, gone: Option<Connected>) {
        let Some(gone) = gone else { return };
        self.tasks.spawn(async move { gone.app.shutdown().await });
        self.link.tell(AppEvent::Changed(audience.clone()));
    }

    /// Ends connections that `who` picks among those that are idle.
    fn end_idle(&self, who: impl Fn(&Audience, &Connected) -> bool) {
        let gone: Vec<(Audience, Connected)> = {
            let mut all = self.lock();
            all.extract_if(|audience, connected| connected.is_idle() && who(audience, connected)).collect()
        };
        for (audience, connected) in gone {
            self.end(&audience, Some(connected));
        }
    }

    /// Makes room when all catalogs together are too large. The one of `audience`, which grew, stays.
    fn bound_items(&self, audience: &Audience) {
        loop {
            let mut all = self.lock();
            let items: usize = all.values().map(|connected| size(&connected.app.catalog())).sum();
            let oldest = oldest(&all, Some(audience)).filter(|_| items > MOST_ITEMS);
            let Some(oldest) = oldest else { return };
            let gone = all.remove(&oldest);
            drop(all);
            self.end(&oldest, gone);
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Audience, Connected>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn oldest(all: &HashMap<Audience, Connected>, but: Option<&Audience>) -> Option<Audience> {
    let idle = all.iter().filter(|(audience, connected)| connected.is_idle() && Some(*audience) != but);
    idle.min_by_key(|(_, connected)| connected.used).map(|(audience, _)| audience.clone())
}

fn size(catalog: &Catalog) -> usize {
    catalog.tools.len() + catalog.resources.len() + catalog.templates.len() + catalog.prompts.len()
}

/// Ends what was idle for long, now and then.
async fn sweep(connections: Weak<Connections>, stop: CancellationToken) {
    loop {
        let Some(idle) = connections.upgrade().map(|connections| connections.idle) else { return };
        tokio::select! {
            () = tokio::time::sleep(idle / 4) => {}
            () = stop.cancelled() => return,
        }
        let Some(connections) = connections.upgrade() else { return };
        connections.end_idle(|_, connected| connected.used.elapsed() >= idle);
    }
}

/// Tells the audience of a connection what is new at it, and ends it with its session.
async fn follow(
    connections: Weak<Connections>,
    audience: Audience,
    app: Weak<UpstreamApp>,
    mut events: broadcast::Receiver<AppEvent>,
    session: Option<CancellationToken>,
    stop: CancellationToken,
) {
    let session_ended = async {
        match &session {
            Some(session) => session.cancelled().await,
            None => std::future::pending().await,
        }
    };
    tokio::pin!(session_ended);
    loop {
        let event = tokio::select! {
            event = events.recv() => event,
            () = &mut session_ended => {
                if let Some(connections) = connections.upgrade() {
                    connections.let_go(&audience);
                }
                return;
            }
            () = stop.cancelled() => return,
        };
        let (Some(connections), Some(app)) = (connections.upgrade(), app.upgrade()) else { return };
        match event {
            Ok(AppEvent::ResourceUpdated(uri, _)) => {
                connections.link.tell(AppEvent::ResourceUpdated(uri, audience.clone()));
            }
            Ok(_) | Err(broadcast::error::RecvError::Lagged(_)) => {
                if let AppHealth::Down(why) = app.health() {
                    tracing::warn!(app.id = %app.id(), why, "a connection of one caller is down");
                }
                if app.catalog().capabilities.supports_tasks() {
                    connections.makes_tasks.store(true, Ordering::Relaxed);
                }
                connections.bound_items(&audience);
                connections.link.tell(AppEvent::Changed(audience.clone()));
            }
            Err(broadcast::error::RecvError::Closed) => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::UpstreamConfig;

    #[tokio::test(start_paused = true)]
    async fn a_connection_that_nobody_uses_for_long_ends_and_one_in_use_stays() {
        let connections = Connections::new(8, Duration::from_secs(60));
        // Nobody answers there.
        let start = || UpstreamApp::start("a", UpstreamConfig::url("http://127.0.0.1:9/mcp"), HashMap::new());
        let of = |subject: &str| Audience::Subject(subject.into());
        drop(connections.lease_or(&of("idle"), None, start).unwrap());
        let lease = connections.lease_or(&of("busy"), None, start).unwrap();
        tokio::time::sleep(Duration::from_secs(100)).await;
        assert!(connections.lease(&of("idle")).is_none());
        assert!(connections.lease(&of("busy")).is_some());
        drop(lease);
        connections.shutdown().await;
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_ends_with_its_session_and_tells_its_audience() {
        let connections = Connections::new(8, Duration::from_secs(60));
        let start = || UpstreamApp::start("a", UpstreamConfig::url("http://127.0.0.1:9/mcp"), HashMap::new());
        let (audience, session) = (Audience::Session(1), CancellationToken::new());
        let mut events = connections.link.events();
        drop(connections.lease_or(&audience, Some(session.clone()), start).unwrap());
        session.cancel();
        while connections.lease(&audience).is_some() {
            assert_eq!(events.recv().await.unwrap(), AppEvent::Changed(audience.clone()));
        }
        connections.shutdown().await;
    }
}
