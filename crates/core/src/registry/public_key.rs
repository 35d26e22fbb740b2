//! Public keys of resources, templates and prompts: what is checked and cleaned of an item before it is offered under one.

use std::sync::Arc;

use rmcp::model::{Prompt, Resource, ResourceTemplate};

use super::{entry::AppEntry, prefixes::Prefixes};
use crate::{
    PolicyObject, PolicyResource, ToolNames,
    hidden_text::{clean_arguments, clean_words},
    listable::{check_argument, check_name, check_uri, mend_annotations},
    names::is_own_uri,
};

/// Items that are named by a public key.
pub(crate) trait PublicKey: Clone {
    /// The name or URI.
    fn key(&self) -> &str;
    /// Gives it another one.
    fn set_key(&mut self, key: String);
    /// Takes out of its words what people do not see.
    fn clean(&mut self);
    /// Returns `true` if the key is the gateway's own, so that no app can have it.
    fn is_reserved(&self) -> bool {
        false
    }
    /// `true` for items that are named by a URI.
    const HAS_URI: bool;
    /// Items of one app that are offered.
    const MOST_OF_APP: usize = usize::MAX;
    /// Checks its names.
    ///
    /// # Errors
    /// One of them hides something, or is too long: the problem.
    fn check(&self) -> Result<(), String>;
    /// Another app than `app` to which it would seem to belong, by its key.
    fn other_owner<'p>(
        &self,
        app: &'p AppEntry,
        prefixes: &'p Prefixes,
        names: ToolNames,
    ) -> Option<&'p Arc<str>>;
    /// Scopes for it at `owner`, whose own name for it is `local`.
    fn scopes(owner: &AppEntry, local: &str) -> Vec<String>;
    /// The object that policies see in the item of `owner` that it calls `local`.
    fn policy_object<'a>(owner: &'a AppEntry, local: &'a str) -> PolicyObject<'a>;
}

impl PublicKey for Resource {
    fn key(&self) -> &str {
        &self.uri
    }

    fn clean(&mut self) {
        clean_words(&mut self.title, &mut self.description);
        mend_annotations(&mut self.annotations);
    }

    fn set_key(&mut self, key: String) {
        self.uri = key;
    }

    fn is_reserved(&self) -> bool {
        is_own_uri(&self.uri)
    }

    const HAS_URI: bool = true;

    fn check(&self) -> Result<(), String> {
        check_uri(&self.uri, &self.name)
    }

    fn other_owner<'p>(
        &self,
        app: &'p AppEntry,
        prefixes: &'p Prefixes,
        _: ToolNames,
    ) -> Option<&'p Arc<str>> {
        prefixes.other_owner_of_uri(app, &self.uri)
    }

    fn scopes(owner: &AppEntry, local: &str) -> Vec<String> {
        owner.scopes_of_uri(local, true)
    }

    fn policy_object<'a>(owner: &'a AppEntry, local: &'a str) -> PolicyObject<'a> {
        PolicyObject::Resource(PolicyResource { app: &owner.id, uri: local, is_plain: true })
    }
}

impl PublicKey for ResourceTemplate {
    fn key(&self) -> &str {
        &self.uri_template
    }

    fn clean(&mut self) {
        clean_words(&mut self.title, &mut self.description);
        mend_annotations(&mut self.annotations);
    }

    fn set_key(&mut self, key: String) {
        self.uri_template = key;
    }

    fn is_reserved(&self) -> bool {
        is_own_uri(&self.uri_template)
    }

    const HAS_URI: bool = true;

    /// Each URI that is read, followed or completed is compared with all templates.
    const MOST_OF_APP: usize = 2_000;

    fn check(&self) -> Result<(), String> {
        check_uri(&self.uri_template, &self.name)
    }

    fn other_owner<'p>(
        &self,
        app: &'p AppEntry,
        prefixes: &'p Prefixes,
        _: ToolNames,
    ) -> Option<&'p Arc<str>> {
        prefixes.other_owner_of_template(app, &self.uri_template)
    }

    fn scopes(owner: &AppEntry, local: &str) -> Vec<String> {
        owner.scopes_of_uri(local, true)
    }

    fn policy_object<'a>(owner: &'a AppEntry, local: &'a str) -> PolicyObject<'a> {
        PolicyObject::Template { app: &owner.id, template: local }
    }
}

impl PublicKey for Prompt {
    fn key(&self) -> &str {
        &self.name
    }

    fn clean(&mut self) {
        clean_words(&mut self.title, &mut self.description);
        clean_arguments(self.arguments.as_deref_mut().unwrap_or_default());
    }

    fn set_key(&mut self, key: String) {
        self.name = key;
    }

    const HAS_URI: bool = false;

    fn check(&self) -> Result<(), String> {
        check_name(&self.name)?;
        self.arguments.iter().flatten().try_for_each(|argument| check_argument(&argument.name))
    }

    fn other_owner<'p>(
        &self,
        app: &'p AppEntry,
        prefixes: &'p Prefixes,
        names: ToolNames,
    ) -> Option<&'p Arc<str>> {
        prefixes.other_owner_of_prompt(app, &self.name, names)
    }

    fn scopes(owner: &AppEntry, local: &str) -> Vec<String> {
        let rule = owner.options.prompts.get(local);
        owner.options.scopes.iter().chain(rule.iter().flat_map(|rule| &rule.scopes)).cloned().collect()
    }

    fn policy_object<'a>(owner: &'a AppEntry, local: &'a str) -> PolicyObject<'a> {
        PolicyObject::Prompt { app: &owner.id, name: local }
    }
}
