//! The connections of a [`PerCallerApp`](crate::PerCallerApp): one for each audience, as many as allowed, ended when nobody uses
//! them.

use std::{
    cmp::Reverse,
    collections::HashMap,
    fmt,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use gatewright_core::{
    App as _, AppEvent, AppHealth, Audience, Caller, Catalog, CatalogLink, Claimant, DownReason, NoShare,
    Portion, Share, Shares,
};
use tokio::{sync::broadcast, time::Instant};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{UpstreamApp, kept_lists::KeptLists};

/// Tools, resources, templates and prompts of all connections together; beyond it, those idle for longest are ended.
const MOST_ITEMS: usize = 100_000;

struct Connected {
    app: Arc<UpstreamApp>,
    /// Memory that its lists take.
    lists: KeptLists,
    /// Of the caller who began it, one of the places for connections.
    place: Share,
    subject: Arc<str>,
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

/// Why there is no place for another connection: those that would make room are in use.
#[derive(Debug)]
pub(crate) struct Full(NoShare);

impl fmt::Display for Full {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            NoShare::Room => "has `maxSessions` connections in use; try again when one has ended",
            NoShare::Share => {
                "has as many connections of yours, or of your network, in use as one caller may have; end sessions or subscriptions \
                 that are not needed, or try again later"
            }
        })
    }
}

/// The connections of one app.
pub(crate) struct Connections {
    all: Mutex<HashMap<Audience, Connected>>,
    places: Arc<Shares>,
    /// Connections that are ending: a process may take a while.
    ending: Arc<Shares>,
    most: usize,
    /// Since the last connection began, one was refused, and the log has it.
    refused: AtomicBool,
    idle: Duration,
    /// `true` if a server makes tasks for calls: one that does, does so for all callers.
    makes_tasks: AtomicBool,
    /// Tells of what the app offers.
    pub(crate) link: CatalogLink,
    pub(crate) stop: CancellationToken,
    pub(crate) tasks: TaskTracker,
}

impl Connections {
    /// Room for `most` connections, half of them for one caller, each ended when nobody used it for `idle`.
    pub(crate) fn new(most: usize, idle: Duration) -> Arc<Self> {
        let connections = Arc::new(Self {
            all: Mutex::default(),
            places: Shares::new(most, Portion::AsMuchAsFree),
            ending: Shares::new(most, Portion::AsMuchAsFree),
            most,
            refused: AtomicBool::new(false),
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

    /// The health of the connection of `audience`, if there is one.
    pub(crate) fn health(&self, audience: &Audience) -> Option<AppHealth> {
        let app = self.lock().get(audience)?.app.clone();
        Some(app.health())
    }

    /// The connection of `audience`, begun for `caller` by `start` when there is none. It ends with the session of its audience.
    pub(crate) fn lease_or(
        self: &Arc<Self>,
        audience: &Audience,
        caller: &Caller,
        start: impl FnOnce() -> Arc<UpstreamApp>,
    ) -> Result<Lease, Full> {
        let mut all = self.lock();
        if !all.contains_key(audience) {
            let place = self.place(&mut all, caller)?;
            let session = match audience {
                Audience::Session(_) => caller.session().map(|session| session.ended().clone()),
                _ => None,
            };
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
            let (subject, used) = (caller.principal().subject.clone(), Instant::now());
            let connected = Connected {
                app,
                lists: KeptLists::of_caller(),
                place,
                subject,
                used,
                in_use: Arc::default(),
            };
            all.insert(audience.clone(), connected);
        }
        drop(all);
        self.lease(audience).ok_or(Full(NoShare::Room))
    }

    /// A place for one more connection of `caller`. Idle ones make room: those of the caller, or of its network, if it has its share or
    /// has one already while there is no room; else those of the subject that has most.
    fn place(&self, all: &mut HashMap<Audience, Connected>, caller: &Caller) -> Result<Share, Full> {
        let claimant = caller.claimant();
        if self.ending.taken() >= self.most {
            return Err(Full(NoShare::Room));
        }
        if self.ending.over(&claimant, 1).is_some() {
            return Err(Full(NoShare::Share));
        }
        loop {
            let why = match self.places.take(claimant.clone(), 1) {
                Ok(place) => {
                    self.refused.store(false, Ordering::Relaxed);
                    return Ok(place);
                }
                Err(why) => why,
            };
            let over = self.places.over(&claimant, 1);
            // A subject that has none yet may take the place of anybody where there is no room, whoever is at its network.
            let is_new = |over: &Claimant| why == NoShare::Room && claimant.is_named() && !over.is_named();
            let over = over.filter(|over| !is_new(over));
            let is_fit = |connected: &Connected| {
                over.as_ref().is_none_or(|over| connected.place.claimant().meets(over))
            };
            let Some(gone) = idle_of_most(all, is_fit) else {
                if !self.refused.swap(true, Ordering::Relaxed) {
                    tracing::warn!(
                        connections = all.len(),
                        ?why,
                        "a connection of one caller to an app was refused: see its `maxSessions`"
                    );
                }
                return Err(Full(why));
            };
            let connected = all.remove(&gone);
            self.end(&gone, connected);
        }
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
        // It ends in any case: whoever has too many of them begins no other.
        let ending = self.ending.take(gone.place.claimant().clone(), 1).ok();
        self.tasks.spawn(async move {
            gone.app.shutdown().await;
            drop(ending);
        });
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

    /// Makes room when the catalogs are too large together. The one of `audience`, which grew, stays if connections of the app that are idle can
    /// make enough of it.
    fn bound_items(&self, audience: &Audience) {
        loop {
            let mut all = self.lock();
            let items: usize = all.values().map(|connected| items(&connected.app.catalog())).sum();
            let Some(grown) = all.get_mut(audience) else { return };
            let counted = grown.lists.count(grown.app.id(), &grown.app.catalog());
            if counted.is_ok() && items <= MOST_ITEMS {
                return;
            }
            let Some(oldest) = oldest(&all, Some(audience)) else {
                if let Some(grown) = all.get(audience) {
                    grown.app.refuse_catalog();
                }
                return;
            };
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

/// The connection to end for another one: among those that are idle and `fit`, of the subject with most connections, the one that
/// was idle for longest.
fn idle_of_most(all: &HashMap<Audience, Connected>, fit: impl Fn(&Connected) -> bool) -> Option<Audience> {
    let mut held: HashMap<&str, usize> = HashMap::new();
    for connected in all.values() {
        *held.entry(&connected.subject).or_default() += 1;
    }
    let idle = all.iter().filter(|(_, connected)| connected.is_idle() && fit(connected));
    idle.max_by_key(|(_, connected)| (held.get(&*connected.subject), Reverse(connected.used)))
        .map(|(audience, _)| audience.clone())
}

fn items(catalog: &Catalog) -> usize {
    let Catalog { tools, resources, templates, prompts, .. } = catalog;
    tools.len() + resources.len() + templates.len() + prompts.len()
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

/// Logs why a connection is down, unless that was `logged` last.
fn log_failure(app: &UpstreamApp, logged: &mut Option<DownReason>) {
    let why = match app.health() {
        AppHealth::Down(why) => Some(why),
        AppHealth::Starting | AppHealth::Up => None,
    };
    if let Some(why) = why.as_ref().filter(|why| Some(*why) != logged.as_ref()) {
        let why = why.in_full();
        tracing::warn!(app.id = %app.id(), why, "a connection of one caller is down");
    }
    *logged = why;
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
    let mut logged = None;
    // It may have failed before anybody followed it.
    app.upgrade().inspect(|app| log_failure(app, &mut logged));
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
                log_failure(&app, &mut logged);
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
    use gatewright_core::{Principal, Scopes, SessionRef};

    use super::*;
    use crate::UpstreamConfig;

    fn caller(subject: &str) -> Caller {
        Caller::new(Principal {
            subject: subject.into(),
            client_id: None,
            scopes: Scopes::All,
            ..Principal::local()
        })
    }

    /// Nobody answers there.
    fn start() -> Arc<UpstreamApp> {
        UpstreamApp::start("a", UpstreamConfig::url("http://127.0.0.1:9/mcp"), HashMap::new())
    }

    fn lease(connections: &Arc<Connections>, subject: &str, session: u64) -> Result<Lease, Full> {
        connections.lease_or(&Audience::Session(session), &caller(subject), start)
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_that_nobody_uses_for_long_ends_and_one_in_use_stays() {
        let connections = Connections::new(8, Duration::from_secs(60));
        let of = |subject: &str| Audience::Subject(subject.into());
        drop(connections.lease_or(&of("idle"), &caller("idle"), start).unwrap());
        let lease = connections.lease_or(&of("busy"), &caller("busy"), start).unwrap();
        tokio::time::sleep(Duration::from_secs(100)).await;
        assert!(connections.lease(&of("idle")).is_none());
        assert!(connections.lease(&of("busy")).is_some());
        drop(lease);
        connections.shutdown().await;
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_ends_with_its_session_and_tells_its_audience() {
        let connections = Connections::new(8, Duration::from_secs(60));
        let session = CancellationToken::new();
        let caller = caller("ada").in_session(SessionRef::new(session.clone()));
        let audience = Audience::session(&caller);
        let mut events = connections.link.events();
        drop(connections.lease_or(&audience, &caller, start).unwrap());
        session.cancel();
        while connections.lease(&audience).is_some() {
            assert_eq!(events.recv().await.unwrap(), AppEvent::Changed(audience.clone()));
        }
        connections.shutdown().await;
    }

    #[tokio::test]
    async fn a_catalog_beyond_the_room_of_all_is_refused_when_no_connection_is_idle() {
        let connections = Connections::new(8, Duration::from_secs(60));
        // It never connects: a configuration without command and URL.
        let start = || UpstreamApp::start("a", UpstreamConfig::default(), HashMap::new());
        let begin = |n: u64| {
            let audience = Audience::Session(n);
            let lease = connections.lease_or(&audience, &caller(&n.to_string()), start).unwrap();
            lease.app.link().up(Catalog { bytes: 60 << 20, ..Catalog::default() });
            connections.bound_items(&audience);
            lease
        };
        let mut in_use = vec![begin(1), begin(2)];
        let refused = begin(3);
        let AppHealth::Down(why) = refused.app.health() else { panic!("it is up") };
        assert!(why.to_string().contains("768 MiB"), "{why}");
        assert_eq!(*refused.app.catalog(), Catalog::default());
        assert!(in_use.iter().all(|lease| lease.app.health() == AppHealth::Up));
        // An idle one makes room.
        drop(in_use.pop());
        assert_eq!(begin(4).app.health(), AppHealth::Up);
        assert!(connections.lease(&Audience::Session(2)).is_none());
        connections.shutdown().await;
    }

    #[tokio::test(start_paused = true)]
    async fn one_caller_with_connections_in_use_leaves_half_of_them_to_others() {
        let connections = Connections::new(8, Duration::from_secs(60));
        let held: Vec<_> = (0..20).filter_map(|n| lease(&connections, "ada", n).ok()).collect();
        assert_eq!(held.len(), 4);
        let refused = lease(&connections, "ada", 99).err().unwrap().to_string();
        assert!(refused.contains("as one caller may have"), "{refused}");
        let others: Vec<_> = (20..24).map(|n| lease(&connections, &n.to_string(), n).unwrap()).collect();
        let refused = lease(&connections, "eve", 98).err().unwrap().to_string();
        assert!(refused.contains("`maxSessions`"), "{refused}");
        drop((held, others));
        connections.shutdown().await;
    }

    #[tokio::test(start_paused = true)]
    async fn idle_connections_of_whoever_has_most_make_room_and_nobody_ends_those_of_others_for_more_of_its_own()
     {
        let connections = Connections::new(6, Duration::from_secs(600));
        drop(lease(&connections, "bob", 0).unwrap());
        for n in 1..50 {
            tokio::time::sleep(Duration::from_millis(10)).await;
            drop(lease(&connections, "ada", n).unwrap());
        }
        let is_there = |n| connections.lock().contains_key(&Audience::Session(n));
        assert!(is_there(0), "that of bob stays, though it is idle for longest");
        assert_eq!((1..50).filter(|n| is_there(*n)).collect::<Vec<_>>(), [48, 49]);
        for n in 50..54 {
            drop(lease(&connections, &format!("user{n}"), n).unwrap());
        }
        assert!(is_there(0) && !is_there(48) && is_there(49), "the older one of ada makes room");
        connections.shutdown().await;
    }
}
