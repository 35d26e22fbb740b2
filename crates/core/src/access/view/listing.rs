//! The lists of resources, templates and prompts of a caller.

use std::{
    borrow::Cow,
    collections::{HashMap, HashSet},
};

use rmcp::model::{Prompt, Resource, ResourceTemplate};

use super::View;
use crate::{Owned, Snapshot, registry::PublicKey};

/// An item as the caller lists it.
#[derive(Debug)]
pub struct Listed<'v, T: Clone> {
    /// Public name or URI.
    pub key: Cow<'v, str>,
    /// The item under that name.
    pub item: Cow<'v, T>,
}

impl View {
    /// The resources the caller may read, in the order of their URIs.
    pub fn resources(&self) -> Vec<Listed<'_, Resource>> {
        self.resources_after(None, usize::MAX)
    }

    /// The first `most` of them behind a URI. No others are decided on.
    pub(crate) fn resources_after(&self, after: Option<&str>, most: usize) -> Vec<Listed<'_, Resource>> {
        self.list(|items| &items.resources, after, most)
    }

    /// The resource templates the caller may use, in the order of their URIs.
    pub fn templates(&self) -> Vec<Listed<'_, ResourceTemplate>> {
        self.templates_after(None, usize::MAX)
    }

    /// The first `most` of them behind a URI template.
    pub(crate) fn templates_after(
        &self,
        after: Option<&str>,
        most: usize,
    ) -> Vec<Listed<'_, ResourceTemplate>> {
        self.list(|items| &items.templates, after, most)
    }

    /// The prompts the caller may use, in the order of their names.
    pub fn prompts(&self) -> Vec<Listed<'_, Prompt>> {
        self.prompts_after(None, usize::MAX)
    }

    /// The first `most` of them behind a name.
    pub(crate) fn prompts_after(&self, after: Option<&str>, most: usize) -> Vec<Listed<'_, Prompt>> {
        self.list(|items| &items.prompts, after, most)
    }

    /// The number of resources, templates and prompts that lists look at.
    pub(crate) fn listed_size(&self) -> usize {
        let size = |items: &Snapshot| items.resources.len() + items.templates.len() + items.prompts.len();
        size(&self.shared) + self.own.iter().map(|own| size(&own.items)).sum::<usize>()
    }

    /// The app of the configuration's first place keeps a key that several have; the others get their app in front of it.
    fn list<'v, T: PublicKey>(
        &'v self,
        items: impl Fn(&'v Snapshot) -> &'v Vec<Owned<T>>,
        after: Option<&str>,
        most: usize,
    ) -> Vec<Listed<'v, T>> {
        let shared = items(&self.shared).iter();
        let is_behind = |key: &str| after.is_none_or(|after| key > after);
        let plain =
            |item: &'v Owned<T>| Listed { key: item.key.as_str().into(), item: Cow::Borrowed(&item.item) };
        if self.own.is_empty() {
            let behind = shared.filter(|item| is_behind(&item.key));
            return behind.filter(|item| self.shows_item(item)).map(plain).take(most).collect();
        }
        let mut taken: HashSet<&str> = HashSet::new();
        let mut all: Vec<&'v Owned<T>> =
            shared.chain(self.own.iter().flat_map(|own| items(&own.items))).collect();
        let ranks: HashMap<&str, usize> =
            self.shared.apps.iter().enumerate().map(|(rank, app)| (&*app.id, rank)).collect();
        all.sort_by_key(|item| ranks.get(&*item.owner.id).copied().unwrap_or(usize::MAX));
        let keyed = all.into_iter().map(|item| match taken.insert(&item.key) {
            true => (Cow::Borrowed(item.key.as_str()), item),
            false => (Cow::Owned(format!("{}:{}", item.owner.id, item.key)), item),
        });
        let mut behind: Vec<(Cow<'v, str>, &'v Owned<T>)> = keyed.filter(|(key, _)| is_behind(key)).collect();
        behind.sort_by(|(a, _), (b, _)| a.cmp(b));
        let shown = behind.into_iter().filter(|(_, item)| self.shows_item(item)).take(most);
        let listed = shown.map(|(key, item)| match key {
            Cow::Borrowed(_) => plain(item),
            Cow::Owned(key) => {
                let mut renamed = item.item.clone();
                renamed.set_key(key.clone());
                Listed { key: key.into(), item: Cow::Owned(renamed) }
            }
        });
        listed.collect()
    }
}
