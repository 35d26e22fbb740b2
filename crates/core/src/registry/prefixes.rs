//! Names and URIs that begin with the id of an app belong to that app alone.

use std::sync::Arc;

use super::entry::AppEntry;
use crate::{
    ToolNames,
    names::{qualified, underscore},
};

/// The id of an app, whether it is up or not.
#[derive(Debug, PartialEq, Eq)]
struct Prefix {
    id: Arc<str>,
    /// The id as it is spelt without `:`.
    spelt: String,
    /// The app lists its tools under its id.
    is_of_tools: bool,
}

impl Prefix {
    /// Returns `true` if `name`, which is spelt without `:`, begins with the id.
    fn begins(&self, name: &str) -> bool {
        name.strip_prefix(&self.spelt).is_some_and(|rest| rest.starts_with('_'))
    }
}

/// The ids of all apps.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Prefixes(Vec<Prefix>);

impl Prefixes {
    pub(super) fn of(apps: &[AppEntry]) -> Arc<Self> {
        let prefix = |app: &AppEntry| Prefix {
            id: app.id.clone(),
            spelt: underscore(&app.id),
            is_of_tools: app.options.prefix,
        };
        Arc::new(Self(apps.iter().map(prefix).collect()))
    }

    fn others<'s>(&'s self, app: &'s AppEntry) -> impl Iterator<Item = &'s Prefix> {
        self.0.iter().filter(move |prefix| prefix.id != app.id)
    }

    /// The app to which the tool `name` of `app`, listed under its own name, would seem to belong in either spelling.
    pub(super) fn other_owner<'s>(&'s self, app: &'s AppEntry, name: &str) -> Option<&'s Arc<str>> {
        if app.options.prefix {
            return None;
        }
        let name = underscore(name);
        let owner = self.others(app).find(|prefix| prefix.is_of_tools && prefix.begins(&name))?;
        Some(&owner.id)
    }

    /// The app to which the prompt `name` of `app` would seem to belong, where names are spelt like `names`. Of `a` and `a_b`, the prompt `a_b_c`
    /// would be that of the longer one.
    pub(super) fn other_owner_of_prompt<'s>(
        &'s self,
        app: &'s AppEntry,
        name: &str,
        names: ToolNames,
    ) -> Option<&'s Arc<str>> {
        let id = name.split_once(':').map(|(id, _)| id);
        let spelt = underscore(name);
        let own = self.0.iter().find(|prefix| prefix.id == app.id && prefix.begins(&spelt));
        let own = own.map_or(0, |own| own.spelt.len());
        let seems = |prefix: &&Prefix| {
            let is_spelt = || prefix.spelt.len() > own && prefix.begins(&spelt);
            id == Some(&*prefix.id) || (names == ToolNames::Underscore && is_spelt())
        };
        Some(&self.others(app).find(seems)?.id)
    }

    /// The app to which the resource `uri` of `app` would seem to belong: its URI is of the form `<other app>:<URI>`.
    pub(super) fn other_owner_of_uri<'s>(&'s self, app: &'s AppEntry, uri: &str) -> Option<&'s Arc<str>> {
        self.with_id(app, qualified(uri)?.0)
    }

    /// The same for a URI template, which may have an expression that stands for any URI.
    pub(super) fn other_owner_of_template<'s>(
        &'s self,
        app: &'s AppEntry,
        template: &str,
    ) -> Option<&'s Arc<str>> {
        let (id, own) = template.split_once(':')?;
        let is_qualified = qualified(template).is_some() || own.starts_with("{+");
        self.with_id(app, id).filter(|_| is_qualified)
    }

    /// Another app than `app` whose id is `id`. Letters of either case are the same in the scheme of a URI.
    fn with_id<'s>(&'s self, app: &'s AppEntry, id: &str) -> Option<&'s Arc<str>> {
        if *id == *app.id {
            return None;
        }
        Some(&self.others(app).find(|prefix| prefix.id.eq_ignore_ascii_case(id))?.id)
    }
}
