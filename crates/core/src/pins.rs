//! Pinned definitions of tools: what an operator approved, against servers that change a tool after it was trusted.
//!
//! The definition of a tool is all of it, `_meta` included: clients act on keys of it, such as those that name a page to show. A pinned
//! app whose tools were never pinned is pinned as it is at its first connection.

use std::{collections::BTreeMap, sync::Arc};

use rmcp::model::Tool;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::watch;

use crate::{AppOptions, Catalog};

/// Approved definitions, by app and the app's own name for each tool.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Pins(BTreeMap<String, AppPins>);

/// Approved definitions of one app.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct AppPins {
    /// The app was pinned as a whole: a tool that is not among these is new.
    #[serde(default)]
    whole: bool,
    tools: BTreeMap<String, Value>,
}

/// The state of a tool that is pinned.
#[derive(Debug, Clone, PartialEq)]
pub enum PinState {
    /// Its definition is the approved one.
    Approved,
    /// Its definition differs from the approved one, which is here.
    Changed(Box<Tool>),
    /// It was never approved.
    New,
}

/// A value that differs between two definitions.
#[derive(Debug, Clone, PartialEq)]
pub struct DefinitionChange {
    /// JSON pointer of the value.
    pub pointer: String,
    /// The approved value, if there was one.
    pub before: Option<Value>,
    /// The value now, if there is one.
    pub after: Option<Value>,
}

/// The values that differ between two definitions.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct DefinitionChanges {
    /// The first ones, [`DefinitionChanges::MOST`] at most.
    pub first: Vec<DefinitionChange>,
    /// The number of the others.
    pub more: usize,
}

impl DefinitionChanges {
    /// Most differences of one tool that are kept.
    pub const MOST: usize = 100;
}

/// The place of a value in a definition, from its own name to the outermost.
struct Place<'p> {
    name: &'p str,
    around: Option<&'p Self>,
}

impl Place<'_> {
    /// Returns the JSON pointer.
    fn pointer(&self) -> String {
        let names: Vec<&str> =
            std::iter::successors(Some(self), |place| place.around).map(|it| it.name).collect();
        let escaped = |name: &&str| format!("/{}", name.replace('~', "~0").replace('/', "~1"));
        names.iter().rev().map(escaped).collect()
    }
}

fn definition(tool: &Tool) -> Value {
    let mut tool = tool.clone();
    tool.meta = tool.meta.filter(|meta| !meta.0.is_empty());
    serde_json::to_value(tool).unwrap_or_default()
}

/// Returns `true` if the definition of the tool that the app calls `name` is pinned.
fn is_pinned(options: &AppOptions, name: &str) -> bool {
    options.tools.get(name).and_then(|over| over.pin).unwrap_or(options.pin)
}

impl Pins {
    /// The state of `tool`, a tool of `app`; `None` if it is not pinned.
    pub fn state(&self, app: &str, options: &AppOptions, tool: &Tool) -> Option<PinState> {
        if !is_pinned(options, &tool.name) {
            return None;
        }
        let Some(approved) = self.0.get(app).and_then(|app| app.tools.get(&*tool.name)) else {
            return Some(PinState::New);
        };
        if *approved == definition(tool) {
            return Some(PinState::Approved);
        }
        let approved = serde_json::from_value(approved.clone());
        Some(approved.map_or(PinState::New, |tool| PinState::Changed(Box::new(tool))))
    }

    /// The differences between the approved definition of `tool` and its present one.
    pub fn changes(&self, app: &str, tool: &Tool) -> DefinitionChanges {
        let approved = self.0.get(app).and_then(|app| app.tools.get(&*tool.name));
        let mut found = DefinitionChanges::default();
        compare(approved, Some(&definition(tool)), None, &mut found);
        found
    }

    /// Names of the approved tools of `app`.
    pub fn names(&self, app: &str) -> impl Iterator<Item = &str> {
        self.0.get(app).into_iter().flat_map(|app| app.tools.keys().map(String::as_str))
    }

    /// Approves the definition of `tool` as it is.
    pub fn approve(&mut self, app: &str, tool: &Tool) {
        self.0.entry(app.to_owned()).or_default().tools.insert(tool.name.to_string(), definition(tool));
    }

    /// Forgets the approval of the tool `name`. Returns `true` if there was one.
    pub fn forget(&mut self, app: &str, name: &str) -> bool {
        self.0.get_mut(app).is_some_and(|app| app.tools.remove(name).is_some())
    }

    /// Takes the approvals of every app in `other` in place of those here.
    #[must_use]
    pub fn with(mut self, other: &Self) -> Self {
        self.0.extend(other.0.iter().map(|(id, pins)| (id.clone(), pins.clone())));
        self
    }

    /// The tools that were never looked at: all that are not approved of an app that is pinned as a whole now, and pinned ones of other apps.
    /// `None` if the app was looked at.
    fn first<'t>(&self, app: &str, options: &AppOptions, tools: &'t [Tool]) -> Option<Vec<&'t Tool>> {
        let known = self.0.get(app);
        // Tools that are listed a moment after the connection would all be new.
        if known.is_some_and(|known| known.whole) || tools.is_empty() || !options.pins() {
            return None;
        }
        let is_first = |tool: &&Tool| {
            is_pinned(options, &tool.name) && known.is_none_or(|known| !known.tools.contains_key(&*tool.name))
        };
        let first: Vec<&Tool> = tools.iter().filter(is_first).collect();
        (!first.is_empty() || options.pin).then_some(first)
    }

    /// Pins the tools of an app that were never looked at. Returns `true` if the app was not looked at before.
    pub fn pin_first(&mut self, app: &str, options: &AppOptions, tools: &[Tool]) -> bool {
        let Some(first) = self.first(app, options, tools) else { return false };
        first.into_iter().for_each(|tool| self.approve(app, tool));
        self.0.entry(app.to_owned()).or_default().whole |= options.pin;
        true
    }
}

/// Notes what differs, in time that grows with the length of both.
fn compare(
    before: Option<&Value>,
    after: Option<&Value>,
    place: Option<&Place<'_>>,
    found: &mut DefinitionChanges,
) {
    if before == after {
        return;
    }
    if let (Some(Value::Object(old)), Some(Value::Object(new))) = (before, after) {
        let added = new.keys().filter(|key| !old.contains_key(*key));
        for key in old.keys().chain(added) {
            let below = Place { name: key, around: place };
            compare(old.get(key), new.get(key), Some(&below), found);
        }
        return;
    }
    if found.first.len() == DefinitionChanges::MOST {
        found.more += 1;
        return;
    }
    // Written here alone: servers choose the names, and all differences below one share it.
    let pointer = place.map(Place::pointer).unwrap_or_default();
    found.first.push(DefinitionChange { pointer, before: before.cloned(), after: after.cloned() });
}

/// The pins of a registry, and those who hear of new ones.
#[derive(Debug)]
pub(crate) struct PinBook(watch::Sender<Arc<Pins>>);

impl Default for PinBook {
    fn default() -> Self {
        Self(watch::Sender::new(Arc::default()))
    }
}

impl PinBook {
    pub(crate) fn current(&self) -> Arc<Pins> {
        self.0.borrow().clone()
    }

    pub(crate) fn subscribe(&self) -> watch::Receiver<Arc<Pins>> {
        self.0.subscribe()
    }

    /// Takes over approvals. Apps that are not among them keep theirs: nobody took them back.
    pub(crate) fn adopt(&self, pins: &Pins) {
        self.0.send_modify(|now| *now = Arc::new(Pins::clone(now).with(pins)));
    }

    /// Pins what was never looked at, and returns all pins.
    pub(crate) fn pin_first<'c>(
        &self,
        catalogs: impl Iterator<Item = (&'c str, &'c AppOptions, &'c Catalog)>,
    ) -> Arc<Pins> {
        let mut changed: Option<Pins> = None;
        for (app, options, catalog) in catalogs {
            if self.current().first(app, options, &catalog.tools).is_some() {
                let pins = changed.get_or_insert_with(|| Pins::clone(&self.0.borrow()));
                pins.pin_first(app, options, &catalog.tools);
                tracing::info!(
                    app.id = app,
                    tools = pins.names(app).count(),
                    "the tools of the app are pinned as they are"
                );
            }
        }
        if let Some(pins) = changed {
            self.0.send_replace(Arc::new(pins));
        }
        self.current()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::ToolOverride;

    fn tool(name: &str, description: &str) -> Tool {
        let schema = json!({"type": "object", "properties": {"id": {"type": "string"}}});
        Tool::new(name.to_owned(), description.to_owned(), Arc::new(schema.as_object().unwrap().clone()))
    }

    fn whole() -> AppOptions {
        AppOptions { pin: true, ..AppOptions::default() }
    }

    #[test]
    fn the_first_connection_pins_and_what_differs_later_is_changed_or_new() {
        let (mut pins, options) = (Pins::default(), whole());
        assert!(!pins.pin_first("crm", &options, &[]), "an empty list is no first look");
        assert!(pins.pin_first("crm", &options, &[tool("a", "A"), tool("b", "B")]));
        assert!(
            !pins.pin_first("crm", &options, &[tool("a", "other"), tool("c", "C")]),
            "it is not the first any more"
        );
        let state = |tool: &Tool| pins.state("crm", &options, tool).unwrap();
        assert_eq!(state(&tool("a", "A")), PinState::Approved);
        assert_eq!(state(&tool("a", "other")), PinState::Changed(Box::new(tool("a", "A"))));
        assert_eq!(state(&tool("c", "C")), PinState::New);
        let again: Pins = serde_json::from_str(&serde_json::to_string(&pins).unwrap()).unwrap();
        assert_eq!(again, pins);
    }

    #[test]
    fn single_tools_are_pinned_or_left_free() {
        let over = |pin| ToolOverride { pin: Some(pin), ..ToolOverride::default() };
        let single = AppOptions { tools: [("a".to_owned(), over(true))].into(), ..AppOptions::default() };
        let mut pins = Pins::default();
        assert!(pins.pin_first("crm", &single, &[tool("a", "A"), tool("b", "B")]));
        assert_eq!(pins.names("crm").collect::<Vec<_>>(), ["a"]);
        assert_eq!(pins.state("crm", &single, &tool("b", "x")), None);
        // Later as a whole: what was approved stays, and the rest is pinned as it is then.
        let whole = AppOptions { tools: [("c".to_owned(), over(false))].into(), ..whole() };
        assert!(pins.pin_first("crm", &whole, &[tool("a", "other"), tool("b", "B"), tool("c", "C")]));
        assert!(matches!(pins.state("crm", &whole, &tool("a", "other")), Some(PinState::Changed(_))));
        assert_eq!(pins.state("crm", &whole, &tool("b", "B")), Some(PinState::Approved));
        assert_eq!(pins.state("crm", &whole, &tool("c", "x")), None);
    }

    #[test]
    fn changes_name_each_value() {
        let mut pins = Pins::default();
        pins.approve("crm", &tool("a", "A"));
        let mut now = tool("a", "A");
        now.meta = Some(Default::default());
        assert_eq!(pins.changes("crm", &now), DefinitionChanges::default());
        now.meta = serde_json::from_value(json!({"gatewright": {"scopes": []}})).unwrap();
        now.input_schema = Arc::new(
            json!({"type": "object", "properties": {"id": {"type": "integer"}}}).as_object().unwrap().clone(),
        );
        let pointers: Vec<String> =
            pins.changes("crm", &now).first.into_iter().map(|change| change.pointer).collect();
        assert_eq!(pointers, ["/inputSchema/properties/id/type", "/_meta"]);
    }

    #[test]
    fn the_first_differences_are_written_and_the_others_counted() {
        let with = |name: &str, value: u32| {
            let members: serde_json::Map<_, _> = (0..20_000).map(|n| (n.to_string(), json!(value))).collect();
            let mut tool = tool("a", "A");
            tool.meta = serde_json::from_value(json!({name: members})).unwrap();
            tool
        };
        let (name, mut pins) = (format!("a/b~{}", "k".repeat(10_000)), Pins::default());
        pins.approve("crm", &with(&name, 1));
        let found = pins.changes("crm", &with(&name, 2));
        assert_eq!((found.first.len(), found.more), (100, 19_900));
        let written: usize = found.first.iter().map(|change| change.pointer.len()).sum();
        assert!(written < 110 * 10_000, "{written}");
        assert!(
            found.first[0].pointer.starts_with("/_meta/a~1b~0k") && found.first[0].pointer.ends_with("k/0")
        );
    }

    #[test]
    fn metadata_that_changes_or_was_never_approved_is_a_change() {
        let with_page = |page: &str| {
            let mut tool = tool("a", "A");
            tool.meta = serde_json::from_value(json!({"ui": {"resourceUri": page}})).unwrap();
            tool
        };
        let (options, mut pins) = (whole(), Pins::default());
        let changed = |pins: &Pins, tool: &Tool| match pins.state("crm", &options, tool) {
            Some(PinState::Approved) => None,
            Some(PinState::Changed(_)) => {
                Some(pins.changes("crm", tool).first.into_iter().map(|change| change.pointer).collect())
            }
            other => panic!("{other:?}"),
        };
        // As files of earlier versions have it: without the metadata of the server.
        pins.approve("crm", &tool("a", "A"));
        assert_eq!(changed(&pins, &tool("a", "A")), None);
        assert_eq!(changed(&pins, &with_page("ui://a")), Some(vec!["/_meta".to_owned()]));
        pins.approve("crm", &with_page("ui://a"));
        assert_eq!(changed(&pins, &with_page("ui://a")), None);
        let pointer = "/_meta/ui/resourceUri".to_owned();
        assert_eq!(changed(&pins, &with_page("https://evil.example")), Some(vec![pointer]));
    }

    #[test]
    fn pins_of_a_file_do_not_take_back_those_of_other_apps() {
        let book = PinBook::default();
        let catalog = Catalog { tools: vec![tool("a", "A")], ..Catalog::default() };
        let options = whole();
        book.pin_first([("crm", &options, &catalog)].into_iter());
        let mut file = Pins::default();
        file.approve("other", &tool("b", "B"));
        book.adopt(&file);
        assert_eq!(book.current().names("crm").count() + book.current().names("other").count(), 2);
    }
}
