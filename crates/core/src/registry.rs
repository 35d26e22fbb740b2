//! All apps as one catalog: an immutable snapshot, made anew when an app changes.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use arc_swap::ArcSwap;
use rmcp::model::{Prompt, Resource, ResourceTemplate};
use tokio::sync::broadcast;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    App, AppEvent, AppHealth, Catalog, InputSchema, SchemaMode, ToolEntry, ToolMeta, ToolNames, ToolOverride,
    names::{LONGEST_NAME, underscore},
    tool::listed,
};

/// How the gateway shows and calls one app.
#[derive(Debug, Clone, PartialEq)]
pub struct AppOptions {
    /// `false` lists tools under their own names. Default true: `<app>:<tool>`.
    pub prefix: bool,
    /// Longest time of one call. Default 60 s.
    pub timeout: Duration,
    /// Whether arguments are checked here. Default strict.
    pub schema_mode: SchemaMode,
    /// What the operator says about single tools, by the app's own name for them.
    pub tools: BTreeMap<String, ToolOverride>,
}

impl Default for AppOptions {
    fn default() -> Self {
        Self {
            prefix: true,
            timeout: Duration::from_secs(60),
            schema_mode: SchemaMode::Strict,
            tools: BTreeMap::new(),
        }
    }
}

/// One app of the registry.
#[derive(Clone)]
pub struct AppEntry {
    /// The app's id.
    pub id: Arc<str>,
    /// The app.
    pub app: Arc<dyn App>,
    /// How it is shown and called.
    pub options: Arc<AppOptions>,
    /// Requests it is working on.
    pub(crate) open: TaskTracker,
}

impl AppEntry {
    /// Ends the app once it has answered what it is working on, and at the latest when `now` is done. For an app that was
    /// taken out of the registry: nothing new reaches it.
    pub async fn retire(self, now: impl Future<Output = ()>) {
        self.open.close();
        tokio::select! {
            () = self.open.wait() => {}
            () = now => {}
        }
        self.app.shutdown().await;
    }
}

impl std::fmt::Debug for AppEntry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AppEntry")
            .field("id", &self.id)
            .field("health", &self.app.health())
            .finish_non_exhaustive()
    }
}

/// What changed for those who list.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Change {
    /// The set of tools, or one of them.
    Tools,
    /// Resources or templates.
    Resources,
    /// Prompts.
    Prompts,
    /// The content of a resource, by its public URI.
    ResourceUpdated(Arc<str>),
}

/// One item of an app under a public key.
#[derive(Debug, Clone)]
pub struct Owned<T> {
    /// Public name or URI.
    pub key: String,
    /// The app's own name or URI.
    pub local: String,
    /// The item as listed.
    pub item: T,
    /// The app.
    pub owner: AppEntry,
}

/// Everything the gateway offers at one moment.
#[derive(Debug, Default)]
pub struct Snapshot {
    /// Apps in the order of the configuration, those that are down included.
    pub apps: Vec<AppEntry>,
    /// Tools by public name.
    pub tools: Vec<Arc<ToolEntry>>,
    by_name: HashMap<String, Arc<ToolEntry>>,
    /// Resources by public URI.
    pub resources: Vec<Owned<Resource>>,
    /// Templates by public URI template.
    pub templates: Vec<Owned<ResourceTemplate>>,
    /// Prompts by public name.
    pub prompts: Vec<Owned<Prompt>>,
}

impl Snapshot {
    /// A tool by either spelling of its public name.
    pub fn tool(&self, name: &str) -> Option<&Arc<ToolEntry>> {
        self.by_name.get(name)
    }

    /// The visible tool whose name is nearest to a misspelt one; none for a name of more than 256 bytes, which costs too much to
    /// compare: time grows with the product of the lengths, for each tool.
    pub fn nearest(&self, name: &str, visible: impl Fn(&ToolEntry) -> bool) -> Option<String> {
        const ENOUGH: f64 = 0.8;
        if name.len() > LONGEST_NAME {
            return None;
        }
        let near = |tool: &Arc<ToolEntry>| {
            let whole = strsim::jaro_winkler(name, &tool.name);
            let tail = strsim::jaro_winkler(name, &tool.local_name);
            whole.max(tail)
        };
        let best = self.tools.iter().filter(|tool| visible(tool)).map(|tool| (near(tool), tool));
        let best = best.max_by(|a, b| a.0.total_cmp(&b.0).then_with(|| b.1.name.cmp(&a.1.name)))?;
        (best.0 >= ENOUGH).then(|| best.1.name.to_string())
    }

    /// A resource by public URI.
    pub fn resource(&self, uri: &str) -> Option<&Owned<Resource>> {
        find(&self.resources, uri)
    }

    /// A template by public URI template.
    pub fn template(&self, uri: &str) -> Option<&Owned<ResourceTemplate>> {
        find(&self.templates, uri)
    }

    /// A prompt by public name.
    pub fn prompt(&self, name: &str) -> Option<&Owned<Prompt>> {
        find(&self.prompts, name)
    }

    /// An app by id.
    pub fn app(&self, id: &str) -> Option<&AppEntry> {
        self.apps.iter().find(|app| &*app.id == id)
    }
}

fn find<'a, T>(items: &'a [Owned<T>], key: &str) -> Option<&'a Owned<T>> {
    items.binary_search_by(|item| item.key.as_str().cmp(key)).ok().map(|at| &items[at])
}

/// The apps, and the current [`Snapshot`] of what they offer.
pub struct Registry {
    names: ToolNames,
    apps: Mutex<Vec<AppEntry>>,
    snapshot: ArcSwap<Snapshot>,
    changes: broadcast::Sender<Change>,
    stop: CancellationToken,
    tasks: TaskTracker,
}

impl std::fmt::Debug for Registry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Registry").field("tools", &self.snapshot().tools.len()).finish_non_exhaustive()
    }
}

impl Registry {
    /// An empty registry that lists names in the given spelling.
    pub fn new(names: ToolNames) -> Arc<Self> {
        Arc::new(Self {
            names,
            apps: Mutex::default(),
            snapshot: ArcSwap::default(),
            changes: broadcast::channel(256).0,
            stop: CancellationToken::new(),
            tasks: TaskTracker::new(),
        })
    }

    /// What is offered now.
    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.snapshot.load_full()
    }

    /// Changes from now on.
    pub fn changes(&self) -> broadcast::Receiver<Change> {
        self.changes.subscribe()
    }

    /// Adds an app, or replaces the one with the same id, and follows its changes from now on.
    pub fn add(self: &Arc<Self>, id: &str, app: Arc<dyn App>, options: AppOptions) {
        let events = app.events();
        let entry = AppEntry { id: id.into(), app, options: Arc::new(options), open: TaskTracker::new() };
        {
            let mut apps = self.lock();
            match apps.iter_mut().find(|app| *app.id == *id) {
                Some(same) => *same = entry.clone(),
                None => apps.push(entry.clone()),
            }
            self.rebuild(&apps);
        }
        self.tasks.spawn(self.clone().follow(entry, events));
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
                    Some(same) => AppEntry { options: Arc::new(options), ..same.clone() },
                    None => {
                        let events = app.events();
                        let entry = AppEntry {
                            id: id.into(),
                            app,
                            options: Arc::new(options),
                            open: TaskTracker::new(),
                        };
                        new.push((entry.clone(), events));
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
        for (entry, events) in new {
            self.tasks.spawn(self.clone().follow(entry, events));
        }
        gone
    }

    /// Tells everybody that what they list has changed, for a reason outside the apps.
    pub fn announce(&self, change: Change) {
        let _ = self.changes.send(change);
    }

    /// Stops following and ends every app.
    pub async fn shutdown(&self) {
        self.stop.cancel();
        self.tasks.close();
        let apps = std::mem::take(&mut *self.lock());
        futures::future::join_all(apps.iter().map(|app| app.app.shutdown())).await;
        self.tasks.wait().await;
    }

    async fn follow(self: Arc<Self>, entry: AppEntry, mut events: broadcast::Receiver<AppEvent>) {
        loop {
            let event = tokio::select! {
                event = events.recv() => event,
                () = self.stop.cancelled() => return,
            };
            let apps = self.lock();
            if !apps.iter().any(|app| Arc::ptr_eq(&app.app, &entry.app)) {
                return;
            }
            match event {
                Ok(AppEvent::ResourceUpdated(uri)) => {
                    let snapshot = self.snapshot();
                    let owner = |item: &&Owned<Resource>| item.local == *uri && item.owner.id == entry.id;
                    let public = snapshot
                        .resources
                        .iter()
                        .find(owner)
                        .map_or(uri.clone(), |item| item.key.as_str().into());
                    let _ = self.changes.send(Change::ResourceUpdated(public));
                }
                Ok(AppEvent::Changed) | Err(broadcast::error::RecvError::Lagged(_)) => {
                    match entry.app.health() {
                        AppHealth::Down(why) => {
                            tracing::warn!(app.id = %entry.id, why, "app is down; its tools are gone until it is back");
                        }
                        AppHealth::Up => {
                            let tools = entry.app.catalog().tools.len();
                            tracing::info!(app.id = %entry.id, tools, "app is up");
                        }
                        AppHealth::Starting => {}
                    }
                    self.rebuild(&apps);
                }
                Err(broadcast::error::RecvError::Closed) => return,
            }
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<AppEntry>> {
        self.apps.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Called with the lock of `apps` held, so that snapshots appear in order.
    fn rebuild(&self, apps: &[AppEntry]) {
        let old = self.snapshot();
        let new = build(apps, self.names, &old);
        let tools = !same_by(&old.tools, &new.tools, Arc::ptr_eq);
        let resources = !same_by(&old.resources, &new.resources, |a, b| a.item == b.item)
            || !same_by(&old.templates, &new.templates, |a, b| a.item == b.item);
        let prompts = !same_by(&old.prompts, &new.prompts, |a, b| a.item == b.item);
        self.snapshot.store(Arc::new(new));
        for (changed, change) in
            [(tools, Change::Tools), (resources, Change::Resources), (prompts, Change::Prompts)]
        {
            if changed {
                let _ = self.changes.send(change);
            }
        }
    }
}

fn same_by<T>(a: &[T], b: &[T], same: impl Fn(&T, &T) -> bool) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b))
}

fn build(apps: &[AppEntry], names: ToolNames, old: &Snapshot) -> Snapshot {
    let mut snapshot = Snapshot { apps: apps.to_vec(), ..Snapshot::default() };
    let up: Vec<(&AppEntry, Arc<Catalog>)> = apps
        .iter()
        .filter(|entry| entry.app.health() == AppHealth::Up)
        .map(|entry| (entry, entry.app.catalog()))
        .collect();

    let mut tools: BTreeMap<String, (&AppEntry, &rmcp::model::Tool)> = BTreeMap::new();
    for (entry, catalog) in &up {
        for tool in &catalog.tools {
            if entry.options.tools.get(&*tool.name).is_some_and(|over| over.disabled) {
                continue;
            }
            let name = if entry.options.prefix {
                format!("{}:{}", entry.id, tool.name)
            } else {
                tool.name.to_string()
            };
            if let Some((other, _)) = tools.get(&name) {
                tracing::warn!(tool.name = %name, app.id = %entry.id, other = %other.id,
                    "two apps offer a tool of this name; the first one keeps it. Set `prefix: true` for one of them");
                continue;
            }
            tools.insert(name, (entry, tool));
        }
    }
    let mut spellings: HashMap<String, Arc<ToolEntry>> = HashMap::with_capacity(tools.len() * 2);
    let plain: std::collections::HashSet<String> = tools.keys().cloned().collect();
    for (name, (entry, tool)) in tools {
        let alias = free_spelling(&name, |candidate| {
            (candidate != name && plain.contains(candidate)) || spellings.contains_key(candidate)
        });
        let public = match names {
            ToolNames::Colon => name.clone(),
            ToolNames::Underscore => alias.clone(),
        };
        let tool = tool_entry(name.clone(), public, entry, tool, old);
        spellings.insert(alias, tool.clone());
        spellings.insert(name, tool.clone());
        snapshot.tools.push(tool);
    }
    snapshot.by_name = spellings;

    snapshot.resources = owned(&up, |c| &c.resources, |r| r.uri.clone(), |r, uri| r.uri = uri);
    snapshot.templates =
        owned(&up, |c| &c.templates, |t| t.uri_template.clone(), |t, uri| t.uri_template = uri);
    snapshot.prompts = owned(&up, |c| &c.prompts, |p| p.name.clone(), |p, name| p.name = name);
    snapshot
}

/// The underscore spelling of `name`: at most 64 characters, and no other tool's.
fn free_spelling(name: &str, taken: impl Fn(&str) -> bool) -> String {
    const LONGEST: usize = 64;
    let mut base = underscore(name);
    base.truncate(LONGEST);
    let mut candidate = base.clone();
    let mut number = 2;
    while taken(&candidate) {
        let suffix = format!("_{number}");
        candidate = format!("{}{suffix}", &base[..base.len().min(LONGEST - suffix.len())]);
        number += 1;
    }
    candidate
}

/// The entry of the last snapshot when nothing about the tool changed, so that compiled schemas are kept.
fn tool_entry(
    name: String,
    public: String,
    entry: &AppEntry,
    tool: &rmcp::model::Tool,
    old: &Snapshot,
) -> Arc<ToolEntry> {
    let over = entry.options.tools.get(&*tool.name).cloned().unwrap_or_default();
    let meta = ToolMeta::of(tool).with(&over);
    let wire = listed(tool.clone(), public);
    if let Some(same) = old.by_name.get(&name)
        && Arc::ptr_eq(&same.app, &entry.app)
        && same.tool == wire
        && same.meta == meta
        && same.timeout == entry.options.timeout
        && same.schema_mode == entry.options.schema_mode
    {
        return same.clone();
    }
    Arc::new(ToolEntry {
        name: name.into(),
        local_name: tool.name.as_ref().into(),
        app_id: entry.id.clone(),
        schema: InputSchema::new(wire.input_schema.clone()),
        tool: wire,
        meta,
        schema_mode: entry.options.schema_mode,
        timeout: entry.options.timeout,
        app: entry.app.clone(),
        open: entry.open.clone(),
    })
}

/// Items of all apps: the key as it is when unique, with `<app>:` in front when two apps share it.
fn owned<T: Clone>(
    apps: &[(&AppEntry, Arc<Catalog>)],
    items: impl Fn(&Catalog) -> &Vec<T>,
    key: impl Fn(&T) -> String,
    set_key: impl Fn(&mut T, String),
) -> Vec<Owned<T>> {
    let mut owners: HashMap<String, Vec<&str>> = HashMap::new();
    for (entry, catalog) in apps {
        for item in items(catalog) {
            let owners = owners.entry(key(item)).or_default();
            if !owners.contains(&&*entry.id) {
                owners.push(&entry.id);
            }
        }
    }
    let mut all = BTreeMap::new();
    for (entry, catalog) in apps {
        for item in items(catalog) {
            let local = key(item);
            let shared = owners.get(&local).is_some_and(|owners| owners.len() > 1);
            let public = if shared { format!("{}:{local}", entry.id) } else { local.clone() };
            let mut item = item.clone();
            set_key(&mut item, public.clone());
            all.entry(public.clone()).or_insert(Owned { key: public, local, item, owner: (*entry).clone() });
        }
    }
    all.into_values().collect()
}
