//! Classes of requests that policies cannot tell apart before they see the context: each is evaluated once.
//!
//! A class has the caller's attributes that policies look at and those of the object, its annotations among them: it holds for any revision
//! of the catalog.

use std::{
    collections::HashMap,
    fmt::Write as _,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

use gatewright_core::{Forbidden, PolicyObject, Principal, Scopes};

use crate::{cedar::Entity, reads::Reads, values};

/// Memory of the classes that are kept. With more, all are forgotten.
const MOST_BYTES: usize = 64 << 20;
/// Memory of an entry besides its key and its policies, about.
const ENTRY: usize = 192;

/// The decision on a class, as far as it does not depend on the context.
#[derive(Debug)]
pub(crate) struct Class {
    /// Nothing of it passes.
    pub(crate) stop: Option<Forbidden>,
    /// Policies that permit all of it.
    pub(crate) permits: Vec<usize>,
    /// Policies that depend on the context, in their order.
    pub(crate) open: Vec<usize>,
}

impl Class {
    /// Returns `true` if some request of it may pass.
    pub(crate) fn may_pass(&self, permits: impl Fn(usize) -> bool) -> bool {
        self.stop.is_none() && (!self.permits.is_empty() || self.open.iter().any(|at| permits(*at)))
    }
}

/// Callers that policies cannot tell apart.
pub(crate) struct Callers {
    pub(crate) entity: Entity,
    objects: Mutex<HashMap<String, Arc<Class>>>,
}

/// The classes that were met.
#[derive(Default)]
pub(crate) struct Classes {
    callers: Mutex<HashMap<String, Arc<Callers>>>,
    bytes: AtomicUsize,
}

impl Classes {
    /// The callers like `principal`.
    pub(crate) fn callers(&self, principal: &Principal, reads: &Reads) -> Arc<Callers> {
        let key = caller_key(principal, reads);
        let mut callers = self.callers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = callers.get(&key) {
            return known.clone();
        }
        // Others share the class, and error messages repeat the name.
        let id = if reads.subject { &*principal.subject } else { "" };
        let entity = values::user(id, principal, reads);
        let new = Arc::new(Callers { entity, objects: Mutex::default() });
        if self.is_full(&key, 0) {
            callers.clear();
        }
        callers.insert(key, new.clone());
        new
    }

    /// Counts an entry. Returns `true` if all others have to go, and counts it as the first one then.
    fn is_full(&self, key: &str, policies: usize) -> bool {
        let bytes = ENTRY + key.len() + policies * size_of::<usize>();
        let is_full = self.bytes.fetch_add(bytes, Ordering::Relaxed) + bytes > MOST_BYTES;
        if is_full {
            self.bytes.store(bytes, Ordering::Relaxed);
        }
        is_full
    }

    /// The class of requests of `callers` for `object`, made by `evaluate` from the name of its entity.
    pub(crate) fn class(
        &self,
        callers: &Callers,
        object: &PolicyObject<'_>,
        reads: &Reads,
        evaluate: impl FnOnce(&str) -> Class,
    ) -> Arc<Class> {
        let (key, id, is_kept) = object_key(object, reads);
        if !is_kept {
            return Arc::new(evaluate(&id));
        }
        let lock = || callers.objects.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = lock().get(&key) {
            return known.clone();
        }
        let class = Arc::new(evaluate(&id));
        if self.is_full(&key, class.permits.len() + class.open.len()) {
            lock().clear();
            self.callers.lock().unwrap_or_else(PoisonError::into_inner).clear();
        }
        lock().insert(key, class.clone());
        class
    }
}

/// Names what policies see of `principal`. Texts come with their lengths, as strangers may choose what is in them.
fn caller_key(principal: &Principal, reads: &Reads) -> String {
    let mut key = String::new();
    let mut add = |kind: char, is_read: bool, text: &str| {
        if is_read {
            let _ = write!(key, "{kind}{}:{text}", text.len());
        }
    };
    add('s', reads.subject, &principal.subject);
    principal.client_id.iter().for_each(|client| add('c', reads.client, client));
    principal.endpoint.iter().for_each(|endpoint| add('e', reads.endpoint, endpoint));
    match &principal.scopes {
        Scopes::Granted(granted) => granted.iter().for_each(|scope| add('g', reads.scopes, scope)),
        Scopes::All => add('*', reads.scopes, ""),
    }
    principal.groups.names().for_each(|group| add('m', reads.groups, group));
    key
}

/// The key of a class, the name of its entity, and whether the class is kept.
fn object_key(object: &PolicyObject<'_>, reads: &Reads) -> (String, String, bool) {
    match object {
        PolicyObject::Tool(tool) => {
            let effects = tool.effects;
            let id = if reads.name || reads.tools.contains(tool.name) { tool.name } else { "" };
            let bits = [effects.read_only, effects.destructive, effects.idempotent, effects.open_world];
            let bits = bits.iter().fold(0_u8, |bits, bit| bits << 1 | u8::from(*bit));
            (format!("t{bits:x}\0{}\0{id}", tool.app), id.to_owned(), true)
        }
        PolicyObject::Prompt { app, name } => {
            let name = format!("{app}:{name}");
            let id = if reads.name || reads.prompts.contains(name.as_str()) { name } else { String::new() };
            (format!("p\0{app}\0{id}"), id, true)
        }
        PolicyObject::Template { app, .. } => (format!("u\0{app}"), String::new(), true),
        PolicyObject::Resource(resource) => {
            // Callers make any number of URIs.
            let is_named = reads.resources.contains(resource.uri);
            let id = if is_named { resource.uri.to_owned() } else { String::new() };
            let is_kept = !reads.uri && !is_named;
            (format!("r{}\0{}", u8::from(resource.is_plain), resource.app), id, is_kept)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Asks for the classes of prompts with these names; returns how many were evaluated.
    fn evaluated(classes: &Classes, callers: &Callers, names: impl Iterator<Item = String>) -> usize {
        let reads = Reads { name: true, ..Reads::default() };
        let mut evaluated = 0;
        for name in names {
            classes.class(callers, &PolicyObject::Prompt { app: "a", name: &name }, &reads, |_| {
                evaluated += 1;
                Class { stop: None, permits: Vec::new(), open: Vec::new() }
            });
        }
        evaluated
    }

    #[test]
    fn many_short_classes_are_kept_and_long_ones_forgotten() {
        let classes = Classes::default();
        let callers = classes.callers(&Principal::local(), &Reads::default());
        let short = || (0..60_000).map(|n| n.to_string());
        assert_eq!(evaluated(&classes, &callers, short()), 60_000);
        assert_eq!(evaluated(&classes, &callers, short()), 0);
        let long = (0..100).map(|n| format!("{n}{}", "x".repeat(1 << 20)));
        assert_eq!(evaluated(&classes, &callers, long), 100);
        assert!(callers.objects.lock().unwrap().len() < 64);
    }
}
