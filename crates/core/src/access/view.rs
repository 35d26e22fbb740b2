//! A caller's view of all apps: what it may list, find and use.

mod listing;

use std::{collections::HashSet, sync::Arc};

use rmcp::model::{Reference, Resource, ResourceTemplate};

pub use self::listing::Listed;
use super::{
    Caller, OpenTask, Reach,
    letters::Letters,
    permit::Permit,
    permitted::{
        Completion, Permitted, PermittedTool, PromptItem, ResourceItem, SubscribedItem, TaskItem, WholeApp,
    },
};
use crate::{
    AppEntry, AppHealth, Owned, Policies, Snapshot, ToolEntry, UnavailableApp,
    names::{LONGEST_URI, is_own_uri, qualified},
    registry::{OwnItems, PublicKey},
    template::{matches_template, names_scheme},
};

/// Why a caller may not use something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Denied {
    /// There is no such object, or none that the caller may know of.
    Unknown,
    /// These scopes are not granted.
    Scopes(Vec<String>),
    /// The policies never permit it.
    Policies,
    /// The caller's access has ended since its request began.
    Ended,
}

/// A caller's items at one moment: those of all apps, and those that apps keep for this caller alone. Of a caller at an endpoint, it has those that the
/// endpoint offers; nothing else exists for that caller.
#[derive(Debug)]
pub struct View {
    shared: Arc<Snapshot>,
    own: Vec<Arc<OwnItems>>,
    permit: Permit,
    /// Apps that have no connection for the caller, where they were asked.
    unavailable: Vec<UnavailableApp>,
}

impl View {
    pub(crate) fn new(
        shared: Arc<Snapshot>,
        own: Vec<Arc<OwnItems>>,
        caller: Caller,
        policies: Option<Arc<Policies>>,
        reach: Reach,
    ) -> Self {
        Self { shared, own, permit: Permit::new(caller, policies, reach), unavailable: Vec::new() }
    }

    /// The same, with the apps that have no connection for the caller.
    pub(crate) fn with_unavailable(self, unavailable: Vec<UnavailableApp>) -> Self {
        Self { unavailable, ..self }
    }

    /// Whose view it is.
    pub fn caller(&self) -> &Caller {
        self.permit.caller()
    }

    /// The tools the caller may call with some arguments, in the order of their names.
    pub fn tools(&self) -> Vec<&Arc<ToolEntry>> {
        let allowed = |tool: &&Arc<ToolEntry>| self.shows_tool(tool);
        if self.own.is_empty() {
            return self.shared.tools.iter().filter(allowed).collect();
        }
        let own = self.own.iter().flat_map(|own| &own.items.tools);
        let all = self.shared.tools.iter().chain(own);
        let mut tools: Vec<_> = all
            .filter(|tool| self.find_tool(&tool.name).is_some_and(|found| Arc::ptr_eq(found, tool)))
            .filter(allowed)
            .collect();
        tools.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        tools
    }

    /// A tool by either spelling of its public name. The policies decide on its calls.
    ///
    /// # Errors
    /// There is none for this caller, or the caller lacks scopes.
    pub fn tool(&self, name: &str) -> Result<PermittedTool, Denied> {
        let tool = self.find_tool(name).ok_or(Denied::Unknown)?;
        self.check(&tool.meta.scopes)?;
        Ok(PermittedTool::new(tool.clone(), self.permit.clone()))
    }

    /// A tool that the caller may call with some arguments, to look at.
    pub fn shows(&self, name: &str) -> Option<&Arc<ToolEntry>> {
        self.find_tool(name).filter(|tool| self.shows_tool(tool))
    }

    fn shows_tool(&self, tool: &ToolEntry) -> bool {
        self.allows(&tool.meta.scopes) && self.permit.may(&tool.policy_object())
    }

    fn shows_item<T: PublicKey>(&self, item: &Owned<T>) -> bool {
        self.allows(&item.scopes) && self.permit.may(&T::policy_object(&item.owner, &item.local))
    }

    /// A tool that exists for this caller, whether its scopes are granted or not. It cannot be called by this.
    pub(crate) fn known_tool(&self, name: &str) -> Option<&ToolEntry> {
        self.find_tool(name).map(|tool| &**tool)
    }

    /// The public name of a prompt that exists for this caller.
    pub(crate) fn known_prompt(&self, name: &str) -> Option<&str> {
        self.find(name, |items| &items.prompts).map(|prompt| prompt.key.as_str())
    }

    /// Ids of the apps that the caller may know of, in the order of the configuration.
    pub fn app_ids(&self) -> impl Iterator<Item = &Arc<str>> {
        self.known_apps().map(|app| &app.id)
    }

    /// The apps that the caller may know of and whose tools are not there, in the order of the configuration.
    pub fn unavailable(&self) -> Vec<UnavailableApp> {
        self.known_apps().filter_map(|app| self.unavailable_app(app)).collect()
    }

    /// The app that a tool of this name would belong to, if its tools are not there.
    pub fn unavailable_owner(&self, name: &str) -> Option<UnavailableApp> {
        let owners = self.known_apps().filter(|app| app.may_own(name));
        // Of `a` and `a_b`, the tool `a_b_c` is that of the longer one; without a prefix, whichever is not there.
        let (prefixed, bare): (Vec<_>, Vec<_>) = owners.partition(|app| app.options.prefix);
        match prefixed.into_iter().max_by_key(|app| app.id.len()) {
            Some(owner) => self.unavailable_app(owner),
            None => bare.into_iter().find_map(|app| self.unavailable_app(app)),
        }
    }

    fn known_apps(&self) -> impl Iterator<Item = &AppEntry> {
        let reach = self.permit.reach();
        self.shared.apps.iter().filter(|app| reach.has_app(&app.id) && self.allows(&app.options.scopes))
    }

    fn unavailable_app(&self, app: &AppEntry) -> Option<UnavailableApp> {
        let for_caller = || self.unavailable.iter().find(|one| one.id == app.id).cloned();
        let health = match app.app.health() {
            // It came up a moment ago.
            AppHealth::Up if !self.shared.was_up(&app.id) => AppHealth::Starting,
            health => health,
        };
        UnavailableApp::of(&app.id, health).or_else(for_caller)
    }

    /// Returns `true` if an app may have more for this caller than is known yet.
    pub(crate) fn may_grow(&self) -> bool {
        !self.shared.personal.is_empty()
    }

    /// The tool whose name is nearest to a misspelt one, among those the caller may call and `fits` accepts; none for a name of
    /// more than 128 bytes. The time grows with the length of the names: only the tools that share most letters are compared closely.
    pub fn nearest(&self, name: &str, fits: impl Fn(&ToolEntry) -> bool) -> Option<String> {
        const ENOUGH: f64 = 0.8;
        const LONGEST: usize = 128;
        const CLOSELY: usize = 16;
        if name.len() > LONGEST {
            return None;
        }
        let letters = Letters::of(name);
        let likeness = |tool: &Arc<ToolEntry>| {
            letters.shared(&Letters::of(&tool.name)).max(letters.shared(&Letters::of(&tool.local_name)))
        };
        let tools = self.tools().into_iter().filter(|tool| tool.name.len() <= 2 * LONGEST && fits(tool));
        let mut tools: Vec<_> = tools.map(|tool| (likeness(tool), tool)).collect();
        if tools.len() > CLOSELY {
            tools.select_nth_unstable_by(CLOSELY, |a, b| b.0.cmp(&a.0).then_with(|| a.1.name.cmp(&b.1.name)));
            tools.truncate(CLOSELY);
        }
        let near = |tool: &Arc<ToolEntry>| {
            let whole = strsim::jaro_winkler(name, &tool.name);
            let tail = strsim::jaro_winkler(name, &tool.local_name);
            whole.max(tail)
        };
        let best = tools.into_iter().map(|(_, tool)| (near(tool), tool));
        let best = best.max_by(|a, b| a.0.total_cmp(&b.0).then_with(|| b.1.name.cmp(&a.1.name)))?;
        (best.0 >= ENOUGH).then(|| best.1.name.to_string())
    }

    /// Returns `true` if the caller may read what `uri` names.
    pub(crate) fn may_read(&self, uri: &str) -> bool {
        self.resource(uri).is_ok_and(|items| items.iter().any(Permitted::may_be_read))
    }

    /// The resources that `uri` may name, likeliest first: servers need not list all they have. A URI of more than 8 KiB names none.
    ///
    /// # Errors
    /// There is none for this caller, or the caller lacks scopes for each of them.
    pub fn resource(&self, uri: &str) -> Result<Vec<Permitted<ResourceItem>>, Denied> {
        self.routes(uri)
    }

    /// The resources that `uri` may name and the caller may subscribe to: those that policies let it read.
    ///
    /// # Errors
    /// There is none for this caller, the caller lacks scopes for each of them, or policies refuse to read them.
    pub(crate) fn subscription(&self, uri: &str) -> Result<Vec<Permitted<SubscribedItem>>, Denied> {
        let items: Vec<_> = self.resource(uri)?.into_iter().filter_map(Permitted::into_followed).collect();
        if items.is_empty() { Err(Denied::Policies) } else { Ok(items) }
    }

    /// A prompt by public name.
    ///
    /// # Errors
    /// There is none for this caller, or the caller lacks scopes.
    pub fn prompt(&self, name: &str) -> Result<Permitted<PromptItem>, Denied> {
        let prompt = self.find(name, |items| &items.prompts).ok_or(Denied::Unknown)?;
        self.permitted(prompt)
    }

    /// The prompt, template or resource whose argument is completed.
    ///
    /// # Errors
    /// There is none for this caller, or the caller lacks scopes.
    pub fn completion(&self, reference: &Reference) -> Result<Permitted<Completion>, Denied> {
        match reference {
            Reference::Prompt(prompt) => {
                let prompt = self.find(&prompt.name, |items| &items.prompts).ok_or(Denied::Unknown)?;
                self.completed(prompt)
            }
            Reference::Resource(resource) => match self.find(&resource.uri, |items| &items.templates) {
                Some(template) => self.completed(template),
                None if !self.may_read(&resource.uri) => match self.resource(&resource.uri) {
                    Ok(_) => Err(Denied::Policies),
                    Err(denied) => Err(denied),
                },
                None => self.routes(&resource.uri)?.into_iter().next().ok_or(Denied::Unknown),
            },
            _ => Err(Denied::Unknown),
        }
    }

    /// A task that was opened for this caller: its scopes are those of the tool, then and now.
    pub(crate) fn task(&self, task: OpenTask) -> Result<Permitted<TaskItem>, Denied> {
        let owner = self.shared.app(&task.app).ok_or(Denied::Unknown)?;
        if !self.permit.reach().has_tool_named(&task.app, &task.tool) {
            return Err(Denied::Unknown);
        }
        self.check(&owner.options.scopes)?;
        self.check(&task.scopes)?;
        if let Some(tool) = self.find_tool(&task.tool) {
            self.check(&tool.meta.scopes)?;
            if !self.permit.may(&tool.policy_object()) {
                return Err(Denied::Policies);
            }
        }
        Ok(Permitted::new(owner.clone(), task.id, self.permit.clone()))
    }

    /// The apps whose own scopes the caller has.
    pub(crate) fn apps(&self) -> Vec<Permitted<WholeApp>> {
        self.known_apps().map(|app| Permitted::new(app.clone(), String::new(), self.permit.clone())).collect()
    }

    fn check(&self, scopes: &[String]) -> Result<(), Denied> {
        let principal = self.caller().principal();
        let mut missing = principal.missing(self.permit.reach().scopes());
        missing.extend(principal.missing(scopes));
        if missing.is_empty() {
            return Ok(());
        }
        // Several patterns may ask for the same one.
        let mut known = HashSet::new();
        missing.retain(|scope| known.insert(*scope));
        Err(Denied::Scopes(missing.into_iter().map(str::to_owned).collect()))
    }

    fn allows(&self, scopes: &[String]) -> bool {
        let granted = &self.caller().principal().scopes;
        self.permit.reach().scopes().iter().chain(scopes).all(|scope| granted.allows(scope))
    }

    fn permitted<T, K>(&self, item: &Owned<T>) -> Result<Permitted<K>, Denied> {
        self.check(&item.scopes)?;
        Ok(Permitted::new(item.owner.clone(), item.local.clone(), self.permit.clone()))
    }

    /// An item whose argument is completed, which policies decide on here.
    fn completed<T: PublicKey>(&self, item: &Owned<T>) -> Result<Permitted<Completion>, Denied> {
        let permitted = self.permitted(item)?;
        if self.shows_item(item) { Ok(permitted) } else { Err(Denied::Policies) }
    }

    /// A tool of a caller's own stands before the shared one of the same app, and behind that of another app.
    fn find_tool(&self, name: &str) -> Option<&Arc<ToolEntry>> {
        let shared = self.shared.tool(name);
        let mut own = self.own.iter().filter_map(|own| own.items.tool(name));
        let found = own.find(|tool| shared.is_none_or(|shared| shared.app_id == tool.app_id)).or(shared);
        found.filter(|tool| self.permit.reach().has(&tool.policy_object()))
    }

    fn find<'v, T: PublicKey>(
        &'v self,
        key: &str,
        items: impl Fn(&'v Snapshot) -> &'v Vec<Owned<T>>,
    ) -> Option<&'v Owned<T>> {
        let shared = self.shared.find(&items, key);
        let own = self.own.iter().filter_map(|own| own.items.find(&items, key));
        let found = shared.into_iter().chain(own).min_by_key(|item| self.rank(&item.owner));
        let prefixed = || {
            let (app, key) = key.split_once(':')?;
            let is_of_app = |item: &&Owned<T>| *item.owner.id == *app;
            let own = || self.own.iter().find(|own| *own.app_id == *app)?.items.find(&items, key);
            self.shared.find(&items, key).filter(is_of_app).or_else(own)
        };
        let found = found.or_else(prefixed);
        found.filter(|item| self.permit.reach().has(&T::policy_object(&item.owner, &item.local)))
    }

    /// The place of an app in the configuration.
    fn rank(&self, app: &AppEntry) -> usize {
        let apps = &self.shared.apps;
        apps.iter().position(|one| one.id == app.id).unwrap_or(apps.len())
    }

    /// The items that everybody has and, if `owner` has some for this caller alone, those.
    fn snapshots_of<'v>(&'v self, owner: &AppEntry) -> impl Iterator<Item = &'v Snapshot> {
        let id = owner.id.clone();
        let own = self.own.iter().filter(move |own| own.app_id == id).map(|own| &own.items);
        std::iter::once(&*self.shared).chain(own)
    }

    /// The resource that `owner` lists as `local` for this caller, in these words.
    fn listed_by(&self, owner: &AppEntry, local: &str) -> Option<&Owned<Resource>> {
        let prefixed = format!("{}:{local}", owner.id);
        let is_it = |item: &&Owned<Resource>| item.owner.id == owner.id && item.local == local;
        let found = self.snapshots_of(owner).find_map(|items| {
            let keys = [local, &prefixed].into_iter();
            keys.filter_map(|key| items.find(&resources_of, key)).find(is_it)
        })?;
        let object = Resource::policy_object(&found.owner, &found.local);
        self.permit.reach().has(&object).then_some(found)
    }

    /// Returns `true` if `owner` lists the resource `local` for this caller, in these words.
    fn lists(&self, owner: &AppEntry, local: &str) -> bool {
        self.listed_by(owner, local).is_some()
    }

    /// Ids of the apps that have an item for this caller that `fits`.
    fn owners<'v, T: 'v>(
        &'v self,
        items: impl Fn(&'v Snapshot) -> &'v Vec<Owned<T>>,
        fits: impl Fn(&Owned<T>) -> bool,
    ) -> HashSet<&'v str> {
        let snapshots = std::iter::once(&*self.shared).chain(self.own.iter().map(|own| &own.items));
        let mut owners = HashSet::new();
        for item in snapshots.flat_map(items) {
            if !owners.contains(&*item.owner.id) && fits(item) {
                owners.insert(&*item.owner.id);
            }
        }
        owners
    }

    /// The apps that may own `uri`, likeliest first. Of `<app>:<URI>`, it is that app alone. Of another one, it is the first app of the
    /// configuration that lists it, after those before it that have a template of the same scheme; else the apps of matching templates, then any
    /// app with resources of that scheme, each time in the order of the configuration. None for a URI of the gateway's own scheme.
    fn routes<K>(&self, uri: &str) -> Result<Vec<Permitted<K>>, Denied> {
        if uri.len() > LONGEST_URI {
            return Err(Denied::Unknown);
        }
        let mut routes = Routes::new(self);
        let apps = &self.shared.apps;
        let with_template = || self.owners(|items| &items.templates, |one| matches_template(&one.local, uri));
        let wanted = scheme(uri);
        let with_scheme = || self.owners(resources_of, |one| scheme(&one.local) == wanted);
        if let Some((owner, own)) = qualified(uri).and_then(|(id, own)| Some((self.shared.app(id)?, own))) {
            if let Some(known) = self.listed_by(owner, uri).or_else(|| self.listed_by(owner, own)) {
                return Ok(vec![self.permitted(known)?]);
            }
            if with_template().contains(&*owner.id) {
                routes.add(owner, uri);
            }
            routes.add(owner, own);
            if with_scheme().contains(&*owner.id) {
                routes.add(owner, uri);
            }
            return routes.found();
        }
        let known = apps.iter().enumerate().find_map(|(rank, app)| Some((rank, self.listed_by(app, uri)?)));
        if let Some((rank, known)) = known {
            let fits =
                |one: &Owned<ResourceTemplate>| names_scheme(&one.local) && matches_template(&one.local, uri);
            if rank > 0 {
                let before = self.owners(|items| &items.templates, fits);
                for app in apps[..rank].iter().filter(|app| before.contains(&*app.id)) {
                    routes.add(app, uri);
                }
            }
            let known = self.permitted(known);
            return match routes.found() {
                Ok(mut before) => {
                    before.extend(known.ok());
                    Ok(before)
                }
                Err(_) => Ok(vec![known?]),
            };
        }
        let owners = with_template();
        for app in apps.iter().filter(|app| owners.contains(&*app.id)) {
            routes.add(app, uri);
        }
        for app in apps {
            let own = uri.strip_prefix(&*app.id).and_then(|rest| rest.strip_prefix(':'));
            if let Some(own) = own.filter(|own| own.contains(':')) {
                routes.add(app, own);
            }
        }
        let owners = with_scheme();
        for app in apps.iter().filter(|app| owners.contains(&*app.id)) {
            routes.add(app, uri);
        }
        routes.found()
    }
}

fn resources_of(items: &Snapshot) -> &Vec<Owned<Resource>> {
    &items.resources
}

/// The apps that may own a URI, as they are found.
struct Routes<'v, K> {
    view: &'v View,
    found: Vec<Permitted<K>>,
    denied: Denied,
    /// Apps and lengths of their own URIs, each of which is an ending of the URI that was asked for: its length names it.
    seen: HashSet<(Arc<str>, usize)>,
}

impl<'v, K> Routes<'v, K> {
    fn new(view: &'v View) -> Self {
        Self { view, found: Vec::new(), denied: Denied::Unknown, seen: HashSet::new() }
    }

    /// Adds what `owner` calls `local`, if the caller has the scopes for it.
    fn add(&mut self, owner: &AppEntry, local: &str) {
        let view = self.view;
        if !view.permit.reach().has_resources(&owner.id)
            || is_own_uri(local)
            || !self.seen.insert((owner.id.clone(), local.len()))
        {
            return;
        }
        let is_listed = view.lists(owner, local);
        match view.check(&owner.scopes_of_uri(local, is_listed)) {
            Ok(()) => {
                let route = Permitted::new(owner.clone(), local.to_owned(), view.permit.clone());
                self.found.push(route.listed(is_listed));
            }
            Err(why) if self.denied == Denied::Unknown => self.denied = why,
            Err(_) => {}
        }
    }

    /// The routes.
    ///
    /// # Errors
    /// There is none, or the caller lacks scopes for each of them.
    fn found(self) -> Result<Vec<Permitted<K>>, Denied> {
        if self.found.is_empty() { Err(self.denied) } else { Ok(self.found) }
    }
}

fn scheme(uri: &str) -> Option<&str> {
    uri.split_once(':').map(|(scheme, _)| scheme)
}
