//! Names that begin with the id of an app belong to that app alone.

use std::sync::Arc;

use super::entry::AppEntry;
use crate::names::underscore;

/// The ids of the apps that list their tools under their ids, whether they are up or not.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Prefixes(Vec<(Arc<str>, String)>);

impl Prefixes {
    pub(super) fn of(apps: &[AppEntry]) -> Arc<Self> {
        let prefixed = apps.iter().filter(|app| app.options.prefix);
        Arc::new(Self(prefixed.map(|app| (app.id.clone(), underscore(&app.id))).collect()))
    }

    /// The app to which the tool `name` of `app`, listed under its own name, would seem to belong in either spelling.
    pub(super) fn other_owner(&self, app: &AppEntry, name: &str) -> Option<&Arc<str>> {
        if app.options.prefix {
            return None;
        }
        let name = underscore(name);
        let begins = |spelt: &String| name.strip_prefix(spelt).is_some_and(|rest| rest.starts_with('_'));
        let owner = self.0.iter().find(|(id, spelt)| *id != app.id && begins(spelt))?;
        Some(&owner.0)
    }
}
