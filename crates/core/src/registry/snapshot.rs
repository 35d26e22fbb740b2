//! An immutable snapshot of all catalogs, under public names.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::{Arc, OnceLock},
};

use rmcp::model::{Prompt, Resource, ResourceTemplate};
use sha2::{Digest as _, Sha256};
use tokio::time::Instant;

use super::{
    beginning::{beginning_of, common_beginning},
    entry::AppEntry,
    offered::{Offered, offered},
    prefixes::Prefixes,
    public_key::PublicKey,
};
use crate::{
    AppHealth, Catalog, CatalogFinding, InputSchema, Pins, ToolEntry, ToolMeta, ToolNames,
    listable::{MOST_FINDINGS, note},
    names::underscore,
    tool_settings::listed,
};

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
    /// Scopes a caller needs, all of them.
    pub scopes: Vec<String>,
}

/// A URI, or a URI template, that two apps list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SharedUri {
    /// The URI without the id of an app.
    pub uri: String,
    /// The app that comes first in the configuration: whoever asks for the URI without the id of an app gets that of this one.
    pub first: Arc<str>,
    /// The other app.
    pub other: Arc<str>,
}

/// The items of all apps at one moment, for all callers.
#[derive(Debug, Default)]
pub struct Snapshot {
    /// Apps in the order of the configuration, those that are down included.
    pub apps: Vec<AppEntry>,
    /// Tools by public name.
    pub tools: Vec<Arc<ToolEntry>>,
    by_name: HashMap<String, Arc<ToolEntry>>,
    findings: Findings,
    shared_uris: Vec<SharedUri>,
    /// Resources by public URI.
    pub resources: Vec<Owned<Resource>>,
    /// Templates by public URI template.
    pub templates: Vec<Owned<ResourceTemplate>>,
    /// Prompts by public name.
    pub prompts: Vec<Owned<Prompt>>,
    /// Apps that have catalogs of single callers.
    pub(crate) personal: Vec<AppEntry>,
    pub(super) prefixes: Arc<Prefixes>,
    /// Apps that were making their first connection, and how long to wait for each.
    pub(super) starting: Vec<(AppEntry, Instant)>,
    /// The catalogs of apps that were up.
    pub(super) catalogs: HashMap<Arc<str>, Arc<Catalog>>,
}

/// Findings by the id of their app.
type Findings = HashMap<Arc<str>, Vec<CatalogFinding>>;

impl Snapshot {
    /// A tool by either spelling of its public name.
    pub fn tool(&self, name: &str) -> Option<&Arc<ToolEntry>> {
        self.by_name.get(name)
    }

    /// Items of an app that clients are not shown as it offers them, at most 100.
    pub fn findings(&self, app: &str) -> &[CatalogFinding] {
        self.findings.get(app).map(Vec::as_slice).unwrap_or_default()
    }

    /// URIs and URI templates that two apps list, at most 100.
    pub fn shared_uris(&self) -> &[SharedUri] {
        &self.shared_uris
    }

    /// An app by id.
    pub fn app(&self, id: &str) -> Option<&AppEntry> {
        self.apps.iter().find(|app| &*app.id == id)
    }

    /// Returns `true` if the app `id` was up when this was made, so that its items are here.
    pub(crate) fn was_up(&self, id: &str) -> bool {
        self.catalogs.contains_key(id)
    }

    /// Returns `true` if the app of `entry` is up with the catalog that this was made of.
    pub(super) fn has_current(&self, entry: &AppEntry) -> bool {
        let known = self.catalogs.get(&entry.id);
        entry.app.health() == AppHealth::Up
            && known.is_some_and(|known| Arc::ptr_eq(known, &entry.app.catalog()))
    }

    pub(crate) fn find<'s, T>(
        &'s self,
        items: &impl Fn(&'s Self) -> &'s Vec<Owned<T>>,
        key: &str,
    ) -> Option<&'s Owned<T>> {
        let items = items(self);
        items.binary_search_by(|item| item.key.as_str().cmp(key)).ok().map(|at| &items[at])
    }

    /// Kinds of items that differ from those of `other`: tools, resources, prompts.
    pub(super) fn differs(&self, other: &Self) -> [bool; 3] {
        [
            !same_by(&self.tools, &other.tools, Arc::ptr_eq),
            !same_items(&self.resources, &other.resources) || !same_items(&self.templates, &other.templates),
            !same_items(&self.prompts, &other.prompts),
        ]
    }
}

fn same_items<T: PartialEq>(a: &[Owned<T>], b: &[Owned<T>]) -> bool {
    same_by(a, b, |a, b| a.item == b.item && a.scopes == b.scopes && a.owner.id == b.owner.id)
}

fn same_by<T>(a: &[T], b: &[T], same: impl Fn(&T, &T) -> bool) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b))
}

/// Tool entries that may be used again, by public name: compiled schemas are kept then.
pub(super) type Known<'a> = &'a dyn Fn(&str) -> Vec<Arc<ToolEntry>>;

/// A snapshot of `catalogs`. `personal` says that it is one caller's own.
pub(super) fn build(
    catalogs: &[(&AppEntry, Arc<Catalog>)],
    prefixes: &Prefixes,
    names: ToolNames,
    personal: bool,
    pins: &Pins,
    known: Known<'_>,
) -> Snapshot {
    let mut snapshot = Snapshot::default();
    let mut tools: BTreeMap<String, (&AppEntry, Offered, usize)> = BTreeMap::new();
    let mut findings = Findings::new();
    for (entry, catalog) in catalogs {
        let found = findings.entry(entry.id.clone()).or_default();
        found.clone_from(&catalog.unread);
        let all = offered(entry, catalog, pins, found);
        let common = common_beginning(all.iter().map(|offered| description(&offered.tool))).to_owned();
        for offered in all {
            let tool = &offered.tool;
            if let Some(other) = prefixes.other_owner(entry, &tool.name) {
                let problem = format!(
                    "its name begins with the id of another app, `{other}`, and would pass for one of that app; set `prefix: true`"
                );
                note(found, CatalogFinding::left_out(&tool.name, problem));
                continue;
            }
            let name = if entry.options.prefix {
                format!("{}:{}", entry.id, tool.name)
            } else {
                tool.name.to_string()
            };
            if let Some((other, ..)) = tools.get(&name) {
                let problem = format!(
                    "the app `{}`, which comes first in the configuration, offers a tool of this name as well; set `prefix: true` for one of them",
                    other.id
                );
                note(found, CatalogFinding::left_out(&tool.name, problem));
                continue;
            }
            let common = beginning_of(description(tool), &common).unwrap_or(0);
            tools.insert(name, (entry, offered, common));
        }
    }
    let mut spellings: HashMap<String, Arc<ToolEntry>> = HashMap::with_capacity(tools.len() * 2);
    let plain: HashSet<String> = tools.keys().cloned().collect();
    for (name, (entry, offered, common)) in tools {
        let alias = free_spelling(&name, |candidate| {
            (candidate != name && plain.contains(candidate)) || spellings.contains_key(candidate)
        });
        let public = match names {
            ToolNames::Colon => name.clone(),
            ToolNames::Underscore => alias.clone(),
        };
        let tool = tool_entry((name.clone(), public), entry, (offered, common), personal, known);
        spellings.insert(alias, tool.clone());
        spellings.insert(name, tool.clone());
        snapshot.tools.push(tool);
    }
    snapshot.by_name = spellings;
    let mut kept = Kept { prefixes, names, findings, shared_uris: Vec::new() };
    snapshot.resources = owned(catalogs, |c| &c.resources, &mut kept);
    snapshot.templates = owned(catalogs, |c| &c.templates, &mut kept);
    snapshot.prompts = owned(catalogs, |c| &c.prompts, &mut kept);
    let Kept { mut findings, shared_uris, .. } = kept;
    findings.retain(|_, found| !found.is_empty());
    for (entry, _) in catalogs {
        entry.log_findings(findings.get(&entry.id).map(Vec::as_slice).unwrap_or_default());
        for shared in shared_uris.iter().filter(|shared| shared.other == entry.id) {
            entry.log_shared_uri(&shared.first, &shared.uri);
        }
    }
    (snapshot.findings, snapshot.shared_uris) = (findings, shared_uris);
    snapshot
}

/// The rules for which items are kept, and what was found of the others.
struct Kept<'p> {
    prefixes: &'p Prefixes,
    names: ToolNames,
    findings: Findings,
    shared_uris: Vec<SharedUri>,
}

impl Kept<'_> {
    /// Returns `true` if `item` of `entry` is offered, and notes why if not.
    fn keeps<T: PublicKey>(&mut self, entry: &AppEntry, item: &T) -> bool {
        if item.is_reserved() {
            entry.log_own_uri(item.key());
            return false;
        }
        let other = || item.other_owner(entry, self.prefixes, self.names);
        let problem = item.check().err().or_else(|| {
            let kind = if T::HAS_URI { "URI" } else { "name" };
            let other = other()?;
            Some(format!(
                "its {kind} begins with the id of another app, `{other}`, and would pass for one of that app"
            ))
        });
        let Some(problem) = problem else { return true };
        let found = self.findings.entry(entry.id.clone()).or_default();
        note(found, CatalogFinding::left_out(item.key(), problem));
        false
    }

    /// Notes that `item` of `entry`, and those behind it, are not offered.
    fn ends_at<T: PublicKey>(&mut self, entry: &AppEntry, item: &T) {
        let problem =
            format!("it and those behind it are left out: {} of one app are the limit", T::MOST_OF_APP);
        let found = self.findings.entry(entry.id.clone()).or_default();
        note(found, CatalogFinding::left_out(item.key(), problem));
    }
}

fn description(tool: &rmcp::model::Tool) -> &str {
    tool.description.as_deref().unwrap_or_default()
}

/// The underscore spelling of `name`: at most 64 characters, and no other tool's. One that is taken ends with digits of a hash of the name, which
/// are the same in each snapshot and instance, and are found at once however many tools share a beginning.
fn free_spelling(name: &str, taken: impl Fn(&str) -> bool) -> String {
    const LONGEST: usize = 64;
    const DIGITS: usize = 8;
    let mut base = underscore(name);
    base.truncate(LONGEST);
    if !taken(&base) {
        return base;
    }
    base.truncate(LONGEST - DIGITS - 1);
    let mut hash = Sha256::digest(name);
    loop {
        let digits =
            hash.iter().take(DIGITS / 2).fold(0_u32, |digits, byte| (digits << 8) | u32::from(*byte));
        let candidate = format!("{base}_{digits:0DIGITS$x}");
        if !taken(&candidate) {
            return candidate;
        }
        hash = Sha256::digest(hash);
    }
}

/// A known entry when nothing about the tool differs.
fn tool_entry(
    (name, public): (String, String),
    entry: &AppEntry,
    (offered, common): (Offered, usize),
    personal: bool,
    known: Known<'_>,
) -> Arc<ToolEntry> {
    let Offered { tool, upstream_name, schema, arguments, meta, is_changed } = offered;
    let over = entry.options.tools.get(&*upstream_name).cloned().unwrap_or_default();
    let mut meta = meta.with(&over);
    meta.scopes.extend(entry.options.scopes.iter().cloned());
    let local_name: Arc<str> = tool.name.as_ref().into();
    let wire = listed(tool, public);
    let same = |same: &Arc<ToolEntry>| {
        Arc::ptr_eq(&same.owner.app, &entry.app)
            && same.tool == wire
            && same.upstream_name == upstream_name
            && same.schema.source() == &schema
            && same.arguments == arguments
            && same.is_changed == is_changed
            && same.meta == meta
            && same.common == common
            && same.approval == over.approval
            && same.owner.options.timeout == entry.options.timeout
            && same.owner.options.schema_mode == entry.options.schema_mode
    };
    if let Some(same) = known(&name).into_iter().find(same) {
        return same;
    }
    let name: Arc<str> = name.into();
    Arc::new(ToolEntry {
        name: name.clone(),
        local_name,
        upstream_name,
        arguments,
        is_changed,
        app_id: entry.id.clone(),
        variant: personal.then(|| variant(&wire, &meta)),
        schema: InputSchema::new(schema).of_tool(name),
        tool: wire,
        meta,
        approval: over.approval,
        common,
        owner: entry.clone(),
        version: OnceLock::new(),
        read_schemas: OnceLock::new(),
    })
}

/// Tells tools of one name apart by what they are.
fn variant(tool: &rmcp::model::Tool, meta: &ToolMeta) -> [u8; 16] {
    let text = serde_json::to_vec(&(tool, meta)).unwrap_or_default();
    let mut variant = [0; 16];
    variant.copy_from_slice(&Sha256::digest(text)[..16]);
    variant
}

/// Items of all apps, without those whose key is the gateway's own or would pass for that of another app: the key as it is when unique, with
/// `<app>:` in front when two apps share it. An item whose own key is one of the latter is left out.
fn owned<T: PublicKey>(
    apps: &[(&AppEntry, Arc<Catalog>)],
    items: impl Fn(&Catalog) -> &Vec<T>,
    kept: &mut Kept<'_>,
) -> Vec<Owned<T>> {
    let mut offered: Vec<(&AppEntry, &T)> = Vec::new();
    // The apps of each key, in the order of the configuration.
    let mut owners: HashMap<&str, Vec<&Arc<str>>> = HashMap::new();
    for (entry, catalog) in apps {
        let entry: &AppEntry = entry;
        let most = offered.len().saturating_add(T::MOST_OF_APP);
        for item in items(catalog) {
            if !kept.keeps(entry, item) {
                continue;
            }
            if offered.len() == most {
                kept.ends_at(entry, item);
                break;
            }
            offered.push((entry, item));
            let owners = owners.entry(item.key()).or_default();
            if owners.contains(&&entry.id) {
                continue;
            }
            if T::HAS_URI
                && let Some(first) = owners.first()
                && kept.shared_uris.len() < MOST_FINDINGS
            {
                let (first, other) = ((*first).clone(), entry.id.clone());
                kept.shared_uris.push(SharedUri { uri: item.key().to_owned(), first, other });
            }
            owners.push(&entry.id);
        }
    }
    let mut all = BTreeMap::new();
    // Keys with the id of an app first: nothing of another app takes their place.
    for shared in [true, false] {
        for &(entry, item) in &offered {
            if owners.get(item.key()).is_some_and(|owners| owners.len() > 1) != shared {
                continue;
            }
            let local = item.key().to_owned();
            let key = if shared { format!("{}:{local}", entry.id) } else { local.clone() };
            let mut item = item.clone();
            item.clean();
            item.set_key(key.clone());
            let scopes = T::scopes(entry, &local);
            let owner = entry.clone();
            all.entry(key.clone()).or_insert(Owned { key, local, item, owner, scopes });
        }
    }
    all.into_values().collect()
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn tools_of_one_beginning_get_a_spelling_each_after_two_looks_at_most_and_keep_it() {
        let looks = Cell::new(0);
        let spell = |names: &[String]| {
            let mut taken: HashSet<String> = HashSet::new();
            for name in names {
                let spelling = free_spelling(name, |candidate| {
                    looks.set(looks.get() + 1);
                    taken.contains(candidate)
                });
                assert!(spelling.len() <= 64 && taken.insert(spelling), "{name}");
            }
            taken
        };
        let mut names: Vec<String> = (0..3_000).map(|n| format!("x:{}{n}", "a".repeat(70))).collect();
        let all = spell(&names);
        assert!(all.len() == 3_000 && looks.get() <= 6_000, "{}", looks.get());
        // Without a tool in the middle, and in another instance, the others are spelt as before.
        names.remove(1_500);
        assert_eq!(spell(&names).difference(&all).count(), 0);
        assert_eq!(free_spelling("x:a.b", |_| false), "x_a_b");
    }
}
