//! Items that apps offer to single callers, kept while the app has their catalogs.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError, Weak},
};

use super::{
    entry::AppEntry,
    prefixes::Prefixes,
    snapshot::{Snapshot, build},
};
use crate::{Audience, Catalog, Pins, ToolEntry, ToolNames};

/// The items of one app for one audience.
#[derive(Debug)]
pub(crate) struct OwnItems {
    pub(crate) app_id: Arc<str>,
    pub(crate) items: Snapshot,
    catalog: Arc<Catalog>,
    owner: AppEntry,
    pins: Arc<Pins>,
}

/// The items of all audiences of all apps.
#[derive(Debug, Default)]
pub(super) struct Personal(Mutex<Table>);

#[derive(Debug, Default)]
struct Table {
    all: HashMap<(Arc<str>, Audience), Arc<OwnItems>>,
    /// Tools by name, whoever has them: audiences with the same tool share its entry.
    tools: HashMap<Arc<str>, Vec<Weak<ToolEntry>>>,
}

/// Kinds of items that are new for an audience: tools, resources, prompts.
pub(super) type Differences = [bool; 3];

impl Personal {
    /// The items of `audience` at `owner` that follow from `catalog`, and what differs from before. None without a catalog.
    pub(super) fn sync(
        &self,
        owner: &AppEntry,
        audience: &Audience,
        catalog: Option<Arc<Catalog>>,
        prefixes: &Arc<Prefixes>,
        names: ToolNames,
        pins: &Arc<Pins>,
    ) -> (Option<Arc<OwnItems>>, Differences) {
        let mut table = self.lock();
        let key = (owner.id.clone(), audience.clone());
        let Some(catalog) = catalog else {
            let before = table.all.remove(&key);
            let differs = before.map_or([false; 3], |before| before.items.differs(&Snapshot::default()));
            return (None, differs);
        };
        if let Some(same) = table.all.get(&key)
            && Arc::ptr_eq(&same.catalog, &catalog)
            && Arc::ptr_eq(&same.owner.options, &owner.options)
            && Arc::ptr_eq(&same.owner.app, &owner.app)
            && same.items.prefixes == *prefixes
            && Arc::ptr_eq(&same.pins, pins)
        {
            return (Some(same.clone()), [false; 3]);
        }
        let known = |name: &str| {
            let known = table.tools.get(name).map(Vec::as_slice).unwrap_or_default();
            known.iter().filter_map(Weak::upgrade).collect()
        };
        let mut items = build(&[(owner, catalog.clone())], prefixes, names, true, pins, &known);
        items.prefixes = prefixes.clone();
        for tool in &items.tools {
            let same_name = table.tools.entry(tool.name.clone()).or_default();
            same_name.retain(|known| known.strong_count() > 0);
            if !same_name.iter().any(|known| known.as_ptr() == Arc::as_ptr(tool)) {
                same_name.push(Arc::downgrade(tool));
            }
        }
        let own =
            OwnItems { app_id: owner.id.clone(), items, catalog, owner: owner.clone(), pins: pins.clone() };
        let own = Arc::new(own);
        let before = table.all.insert(key, own.clone());
        let differs = own.items.differs(before.as_ref().map_or(&Snapshot::default(), |before| &before.items));
        table.forget_unused();
        (Some(own), differs)
    }

    /// Audiences of an app that have items.
    pub(super) fn audiences(&self, app: &str) -> Vec<Audience> {
        let table = self.lock();
        table.all.keys().filter(|(id, _)| **id == *app).map(|(_, audience)| audience.clone()).collect()
    }

    /// Drops the items of apps that are gone.
    pub(super) fn keep(&self, apps: &[AppEntry]) {
        let mut table = self.lock();
        table.all.retain(|_, own| apps.iter().any(|app| Arc::ptr_eq(&app.app, &own.owner.app)));
        table.forget_unused();
    }

    /// Every tool of somebody, each once.
    pub(super) fn tools(&self) -> Vec<Arc<ToolEntry>> {
        let mut tools: Vec<_> = self.lock().tools.values().flatten().filter_map(Weak::upgrade).collect();
        tools.sort_unstable_by(|a, b| (&a.name, a.variant).cmp(&(&b.name, b.variant)));
        tools
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Table> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    fn forget_unused(&mut self) {
        self.tools.retain(|_, known| {
            known.retain(|tool| tool.strong_count() > 0);
            !known.is_empty()
        });
    }
}
