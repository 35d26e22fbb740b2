//! All apps as one catalog, made anew when an app changes; and every caller's [`View`] of it.
//!
//! Apps are in `entry`, snapshots in `snapshot`, items of single callers in `personal`, waiting for apps that start in
//! `first_connection`.

mod beginning;
mod current_rights;
mod entry;
mod first_connection;
mod offered;
mod personal;
mod prefixes;
mod public_key;
mod snapshot;

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use arc_swap::{ArcSwap, ArcSwapOption};
use tokio::sync::{broadcast, watch};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use current_rights::CurrentRights;
pub use entry::{AppEntry, AppOptions};
pub(crate) use personal::OwnItems;
use personal::Personal;
use prefixes::Prefixes;
pub(crate) use public_key::PublicKey;
use snapshot::build;
pub use snapshot::{Owned, SharedUri, Snapshot};

use crate::{
    App, AppEvent, AppHealth, Audience, Authenticator, Caller, Catalog, Denied, EndpointConfig, Endpoints,
    Pins, Policies, ToolEntry, ToolNames, Unavailable, UnavailableApp, View, pins::PinBook,
};

/// A change of the lists.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Change {
    /// The set of tools, or one of them.
    Tools,
    /// Resources or templates.
    Resources,
    /// Prompts.
    Prompts,
}

/// A change, and whom it concerns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// The change.
    pub change: Change,
    /// For whom. Nobody else is told.
    pub audience: Audience,
}

/// A change of the content of a resource, and whom it concerns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResourceUpdate {
    /// Id of the app.
    pub app: Arc<str>,
    /// The app's own URI.
    pub uri: Arc<str>,
    /// For whom. Nobody else is told.
    pub audience: Audience,
}

/// The apps, and what they offer.
pub struct Registry {
    names: ToolNames,
    apps: Mutex<Vec<AppEntry>>,
    snapshot: ArcSwap<Snapshot>,
    personal: Personal,
    policies: ArcSwapOption<Policies>,
    endpoints: Arc<Endpoints>,
    pins: PinBook,
    changes: broadcast::Sender<Notice>,
    /// Apart from changes of lists: whoever misses one of many updates has missed no change of a list.
    updates: broadcast::Sender<ResourceUpdate>,
    /// Told of each new snapshot.
    rebuilt: watch::Sender<()>,
    tools_version: AtomicU64,
    current_rights: CurrentRights,
    stop: CancellationToken,
    tasks: TaskTracker,
}

impl std::fmt::Debug for Registry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Registry").field("tools", &self.snapshot.load().tools.len()).finish_non_exhaustive()
    }
}

impl Registry {
    /// An empty registry that lists names in the given spelling.
    pub fn new(names: ToolNames) -> Arc<Self> {
        Arc::new(Self {
            names,
            apps: Mutex::default(),
            snapshot: ArcSwap::default(),
            personal: Personal::default(),
            policies: ArcSwapOption::empty(),
            endpoints: Arc::default(),
            pins: PinBook::default(),
            changes: broadcast::channel(256).0,
            updates: broadcast::channel(256).0,
            rebuilt: watch::channel(()).0,
            tools_version: AtomicU64::new(0),
            current_rights: CurrentRights::default(),
            stop: CancellationToken::new(),
            tasks: TaskTracker::new(),
        })
    }

    /// The current view of `caller`.
    pub fn view(&self, caller: &Caller) -> View {
        let shared = self.snapshot.load_full();
        let own = shared.personal.iter().filter_map(|entry| self.own(entry, caller)).collect();
        let reach = self.endpoints.reach(caller.principal());
        View::new(shared, own, caller.clone(), self.policies.load_full(), reach)
    }

    /// The apps that have connections for single callers, and none for `caller`.
    async fn unavailable(&self, caller: &Caller) -> Vec<UnavailableApp> {
        let shared = self.snapshot.load_full();
        let asked = shared.personal.iter().map(|entry| async move {
            let why = match entry.app.per_caller()?.unavailable(caller).await? {
                Unavailable::SignIn(tool) => Unavailable::SignIn(entry.public_name(&tool)),
                why => why,
            };
            Some(UnavailableApp { id: entry.id.clone(), why })
        });
        futures::future::join_all(asked).await.into_iter().flatten().collect()
    }

    /// The same, once the apps that have catalogs of single callers were asked for that of `caller`.
    pub async fn ready_view(&self, caller: &Caller) -> View {
        let shared = self.snapshot.load_full();
        let personal = shared.personal.iter().filter_map(|entry| entry.app.per_caller());
        futures::future::join_all(personal.map(|own| own.prepare(caller))).await;
        let unavailable = self.unavailable(caller).await;
        self.view(caller).with_unavailable(unavailable)
    }

    /// Asks `authenticator` what callers may do whose requests go on while apps are added or replaced, or [rights change](Registry::renew_callers).
    /// Only the first one is kept.
    pub fn callers_of(&self, authenticator: &Arc<dyn Authenticator>) {
        self.current_rights.of(authenticator);
    }

    /// Has the rights of callers whose requests began before looked at again before they use anything else.
    pub fn renew_callers(&self) {
        self.current_rights.change();
    }

    /// A value that is another one after apps were added, replaced or taken out, or anything else of the [configuration](Self::configuration) changed.
    pub(crate) fn set_up(&self) -> (u64, Vec<usize>) {
        let apps = self.snapshot.load().apps.iter().map(|entry| address_of(&entry.app)).collect();
        (self.configuration(), apps)
    }

    /// A number that is another one after apps, their options, policies, endpoints or the rights of callers changed.
    pub(crate) fn configuration(&self) -> u64 {
        self.current_rights.count()
    }

    /// Asks the view of `caller`, and again once the apps that have catalogs of single callers know that of `caller` if it knew
    /// nothing of what was asked for. A caller whose request began before its rights may have changed has those of now.
    pub(crate) async fn decide<T>(
        &self,
        caller: &Caller,
        question: impl Fn(&View) -> Result<T, Denied>,
    ) -> Result<T, Denied> {
        let view = self.with_rights_of_now(self.view(caller)).await?;
        match question(&view) {
            Err(Denied::Unknown) if view.may_grow() => {
                let grown = self.ready_view(view.caller()).await;
                question(&self.with_rights_of_now(grown).await?)
            }
            answer => answer,
        }
    }

    /// The view, or that of its caller with the rights of now. It was made first: a change before an app came into it is seen.
    async fn with_rights_of_now(&self, view: View) -> Result<View, Denied> {
        let renewed = self.current_rights.of_caller(view.caller()).await?;
        Ok(renewed.map_or(view, |renewed| self.view(&renewed)))
    }

    /// The items of all apps for everybody, whatever scopes they need: for metrics, health and operators. Requests go through
    /// [`Registry::view`].
    pub fn operator_snapshot(&self) -> Arc<Snapshot> {
        self.snapshot.load_full()
    }

    /// Returns `true` if `app` is one of those that are offered: it was not replaced or taken out.
    pub(crate) fn offers(&self, app: &Arc<dyn App>) -> bool {
        self.snapshot.load().apps.iter().any(|entry| Arc::ptr_eq(&entry.app, app))
    }

    /// Every tool of every caller, for an index whose hits are filtered by [`View`].
    pub fn all_tools(&self) -> Vec<Arc<ToolEntry>> {
        let mut tools = self.snapshot.load().tools.clone();
        tools.extend(self.personal.tools());
        tools
    }

    /// Changes of lists from now on.
    pub fn changes(&self) -> broadcast::Receiver<Notice> {
        self.changes.subscribe()
    }

    /// Changes of resources that somebody follows from now on.
    pub fn updates(&self) -> broadcast::Receiver<ResourceUpdate> {
        self.updates.subscribe()
    }

    /// Tells of each new snapshot, whatever differs in it.
    pub fn rebuilds(&self) -> watch::Receiver<()> {
        self.rebuilt.subscribe()
    }

    /// Adds an app, or replaces the one with the same id, and follows its changes from now on.
    pub fn add(self: &Arc<Self>, id: &str, app: Arc<dyn App>, options: AppOptions) {
        let heard = Heard::of(&*app);
        let entry = AppEntry::new(id, app, options);
        {
            let mut apps = self.lock();
            self.current_rights.change();
            match apps.iter_mut().find(|app| *app.id == *id) {
                Some(same) => *same = entry.clone(),
                None => apps.push(entry.clone()),
            }
            self.rebuild(&apps);
        }
        self.tasks.spawn(self.clone().follow(entry, heard));
    }

    /// Takes an app out. The app itself is not shut down.
    pub fn remove(&self, id: &str) -> Option<AppEntry> {
        let mut apps = self.lock();
        let at = apps.iter().position(|app| &*app.id == id)?;
        let gone = apps.remove(at);
        self.rebuild(&apps);
        Some(gone)
    }

    /// Makes `apps` the apps that are offered, in this order and in one step. An app that is there already goes on as it is,
    /// shown as its options now say. Gives the apps that are taken out; they still run: see [`AppEntry::retire`].
    pub fn set(self: &Arc<Self>, apps: Vec<(String, Arc<dyn App>, AppOptions)>) -> Vec<AppEntry> {
        let mut new = Vec::new();
        let gone = {
            let mut current = self.lock();
            let entries = apps.into_iter().map(|(id, app, options)| {
                let same = current.iter().find(|same| *same.id == *id && Arc::ptr_eq(&same.app, &app));
                match same {
                    Some(same) if *same.options == options => same.clone(),
                    Some(same) => {
                        self.current_rights.change();
                        same.with_options(options)
                    }
                    None => {
                        self.current_rights.change();
                        let heard = Heard::of(&*app);
                        let entry = AppEntry::new(&id, app, options);
                        new.push((entry.clone(), heard));
                        entry
                    }
                }
            });
            let entries: Vec<AppEntry> = entries.collect();
            let before = std::mem::replace(&mut *current, entries);
            self.rebuild(&current);
            let stays = |entry: &AppEntry| current.iter().any(|now| Arc::ptr_eq(&now.app, &entry.app));
            before.into_iter().filter(|entry| !stays(entry)).collect()
        };
        for (entry, heard) in new {
            self.tasks.spawn(self.clone().follow(entry, heard));
        }
        gone
    }

    /// Decides on all requests by `policies` from now on; `None` permits what scopes allow. Everybody hears that lists may have changed.
    pub fn set_policies(&self, policies: Option<Policies>) {
        self.current_rights.change();
        let before = self.policies.swap(policies.map(Arc::new));
        if before.is_some() || self.policies.load().is_some() {
            for change in [Change::Tools, Change::Resources, Change::Prompts] {
                self.announce(change);
            }
        }
    }

    /// Serves these endpoints beside the main one from now on. Everybody hears that lists may have changed.
    pub fn set_endpoints(&self, endpoints: &BTreeMap<String, EndpointConfig>) {
        self.current_rights.change();
        self.endpoints.replace(endpoints);
        for change in [Change::Tools, Change::Resources, Change::Prompts] {
            self.announce(change);
        }
    }

    /// The endpoints beside the main one.
    pub fn endpoints(&self) -> &Arc<Endpoints> {
        &self.endpoints
    }

    /// The policies in force.
    pub fn policies(&self) -> Option<Arc<Policies>> {
        self.policies.load_full()
    }

    /// Takes over approvals of definitions. Those of apps that are not among them stay.
    pub fn adopt_pins(&self, pins: &Pins) {
        let apps = self.lock();
        self.pins.adopt(pins);
        self.rebuild(&apps);
        for entry in self.snapshot.load_full().personal.iter() {
            for audience in self.personal.audiences(&entry.id) {
                self.sync(entry, &audience);
            }
        }
    }

    /// The approved definitions of pinned tools, now and whenever a tool is pinned for the first time or approved.
    pub fn pins(&self) -> watch::Receiver<Arc<Pins>> {
        self.pins.subscribe()
    }

    /// Tells everybody that what they list has changed, for a reason outside the apps.
    pub fn announce(&self, change: Change) {
        let _ = self.changes.send(Notice { change, audience: Audience::Everyone });
    }

    /// Stops following and ends every app.
    pub async fn shutdown(&self) {
        self.stop.cancel();
        self.tasks.close();
        let apps = std::mem::take(&mut *self.lock());
        futures::future::join_all(apps.iter().map(AppEntry::shut_down)).await;
        self.tasks.wait().await;
    }

    async fn follow(self: Arc<Self>, entry: AppEntry, mut heard: Heard) {
        // It may have failed before anybody followed it. One that was taken out already ends on purpose.
        if self.lock().iter().any(|app| Arc::ptr_eq(&app.app, &entry.app)) {
            heard.log_health(&entry);
        }
        loop {
            let event = tokio::select! {
                event = heard.events.recv() => event,
                () = self.stop.cancelled() => return,
            };
            if let Ok(AppEvent::ResourceUpdated(uri, audience)) = event {
                if !self.offers(&entry.app) {
                    return;
                }
                let _ = self.updates.send(ResourceUpdate { app: entry.id.clone(), uri, audience });
                continue;
            }
            // The lists of an upstream may be long, and those of another may be worked on: no thread that serves requests waits.
            let (registry, app) = (self.clone(), entry.app.clone());
            let taken_over = tokio::task::spawn_blocking(move || {
                registry.take_over(&app, event, &mut heard).then_some(heard)
            });
            let Ok(Some(back)) = taken_over.await else { return };
            heard = back;
        }
    }

    /// Takes over what an app told. False if the app is gone.
    fn take_over(
        &self,
        app: &Arc<dyn App>,
        event: Result<AppEvent, broadcast::error::RecvError>,
        heard: &mut Heard,
    ) -> bool {
        let apps = self.lock();
        // Its options may have changed since.
        let Some(entry) = apps.iter().find(|entry| Arc::ptr_eq(&entry.app, app)) else { return false };
        match event {
            Ok(AppEvent::ResourceUpdated(..)) => {}
            Ok(AppEvent::Changed(Audience::Everyone)) => {
                heard.log_health(entry);
                self.rebuild(&apps);
            }
            Ok(AppEvent::Changed(audience)) => {
                self.sync(entry, &audience);
            }
            Err(broadcast::error::RecvError::Lagged(_)) => {
                heard.log_health(entry);
                // What was missed may have been updates of resources only.
                if !self.snapshot.load().has_current(entry) {
                    self.rebuild(&apps);
                }
                for audience in self.personal.audiences(&entry.id) {
                    self.sync(entry, &audience);
                }
            }
            Err(broadcast::error::RecvError::Closed) => return false,
        }
        true
    }

    /// The items of `entry` for `caller` alone.
    fn own(&self, entry: &AppEntry, caller: &Caller) -> Option<Arc<OwnItems>> {
        let audience = entry.app.per_caller()?.audience(caller);
        self.sync(entry, &audience)
    }

    /// Takes over the catalog of an audience, and tells it what is new.
    fn sync(&self, entry: &AppEntry, audience: &Audience) -> Option<Arc<OwnItems>> {
        let catalog = entry.app.per_caller().and_then(|own| own.catalog(audience));
        let prefixes = self.snapshot.load().prefixes.clone();
        let (own, differs) =
            self.personal.sync(entry, audience, catalog, &prefixes, self.names, &self.pins.current());
        self.tell(differs, audience);
        own
    }

    fn tell(&self, differs: [bool; 3], audience: &Audience) {
        if differs[0] {
            self.tools_version.fetch_add(1, Ordering::SeqCst);
        }
        for (differs, change) in differs.into_iter().zip([Change::Tools, Change::Resources, Change::Prompts])
        {
            if differs {
                let _ = self.changes.send(Notice { change, audience: audience.clone() });
            }
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<AppEntry>> {
        self.apps.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Called with the lock of `apps` held, so that snapshots appear in order.
    fn rebuild(&self, apps: &[AppEntry]) {
        let old = self.snapshot.load_full();
        // First: an app that comes up meanwhile has no tools here, and is waited for until the next snapshot.
        let starting = apps.iter().filter_map(|app| Some((app.clone(), app.starting_until()?))).collect();
        let up = apps.iter().filter(|entry| entry.app.health() == AppHealth::Up);
        let catalogs: Vec<(&AppEntry, Arc<Catalog>)> = up.map(|entry| (entry, entry.app.catalog())).collect();
        let known = |name: &str| old.tool(name).cloned().into_iter().collect();
        let prefixes = Prefixes::of(apps);
        let each = catalogs.iter().map(|(entry, catalog)| (&*entry.id, &*entry.options, &**catalog));
        let pins = self.pins.pin_first(each);
        let mut new = build(&catalogs, &prefixes, self.names, false, &pins, &known);
        new.prefixes = prefixes;
        new.apps = apps.to_vec();
        new.starting = starting;
        new.catalogs = catalogs.into_iter().map(|(entry, catalog)| (entry.id.clone(), catalog)).collect();
        new.personal = apps.iter().filter(|app| app.app.per_caller().is_some()).cloned().collect();
        let differs = new.differs(&old);
        self.snapshot.store(Arc::new(new));
        self.personal.keep(apps);
        self.tell(differs, &Audience::Everyone);
        self.rebuilt.send_replace(());
    }
}

/// The address of an app, which tells it from others as long as it is there.
pub(crate) fn address_of(app: &Arc<dyn App>) -> usize {
    Arc::as_ptr(app).cast::<()>().addr()
}

/// Events of an app, and its health as it was logged last.
struct Heard {
    events: broadcast::Receiver<AppEvent>,
    logged: AppHealth,
}

impl Heard {
    /// The events of `app` from now on. An app that is down already is logged with the first of them.
    fn of(app: &dyn App) -> Self {
        let logged = match app.health() {
            AppHealth::Down(_) => AppHealth::Starting,
            other => other,
        };
        Self { events: app.events(), logged }
    }

    /// Logs the health of the app if it is another one than before.
    fn log_health(&mut self, entry: &AppEntry) {
        let health = entry.app.health();
        if health == self.logged {
            return;
        }
        match &health {
            AppHealth::Down(why) => {
                let why = why.in_full();
                tracing::warn!(app.id = %entry.id, why, "app is down; its tools are gone until it is back");
            }
            AppHealth::Up => {
                let tools = entry.app.catalog().tools.len();
                tracing::info!(app.id = %entry.id, tools, "app is up");
            }
            AppHealth::Starting => {}
        }
        self.logged = health;
    }
}
