//! Names in the configuration of things that do not exist: apps, tools, parameters, resources, prompts, clients and scopes; and tools that are not
//! offered as their servers define them, because they contradict the configuration, were not approved, or hide text.
//!
//! Such a name has no effect, which nobody would notice: a misspelt tool is not protected. What can be known without the apps is looked
//! at from the start, and what an app offers as soon as its lists are known. Names that `auth` has of its own scopes are errors
//! (`config::check`).

mod lists;
mod redefined;
mod watch;

use std::collections::{BTreeMap, HashSet};

use gatewright::Registry;
use gatewright_auth::config::Mode;
use gatewright_codecall::META_TOOLS;
use gatewright_core::{
    AppHealth, HiddenText, MAIN_ENDPOINT, PinState, UriPattern, contradictions, fits_tool, hidden_in,
    show_hidden,
};
use gatewright_findings::{Finding, escape, nearest, printable};
use gatewright_policy::{CallerName, CallerNameKind};

use crate::config::Config;
use lists::{Lists, Shared};
pub use watch::watch;

/// Names listed for want of a near one, at most.
const MOST_SHOWN: usize = 10;
/// Longest name of a tool in a finding, in characters.
const LONGEST_SHOWN: usize = 80;

/// Every name of something that does not exist. Without a registry only those that can be known without the apps.
pub fn unknown(config: &Config, registry: Option<&Registry>) -> Vec<Finding> {
    let mut names = Names { config, lists: Vec::new(), found: Vec::new() };
    if let Some(registry) = registry {
        names.lists = lists::known(registry);
    }
    names.apps();
    if let Some(registry) = registry {
        names.definitions(registry);
        names.needed_scopes(registry);
    }
    names.rate_limits();
    names.modes();
    names.scopes();
    names.endpoints();
    names.api_keys();
    names.policies();
    names.found
}

struct Names<'c> {
    config: &'c Config,
    lists: Vec<Lists>,
    found: Vec<Finding>,
}

impl Names<'_> {
    fn of(&self, app: &str) -> Option<&Lists> {
        self.lists.iter().find(|lists| *lists.id == *app)
    }

    fn apps(&mut self) {
        let mut found = Vec::new();
        for (id, app) in &self.config.apps {
            let Some(lists) = self.of(id) else { continue };
            let options = app.options();
            let place = |kind: &str, name: &str| format!("/apps/{}/{kind}/{}", escape(id), escape(name));
            if let Some(tools) = &lists.tools {
                let known = || tools.iter().map(|name| &**name);
                let missing = missing(options.tools.keys(), known());
                found.extend(
                    missing.map(|name| Finding::new(&place("tools", name), no("tool", name, id, known()))),
                );
            }
            let Some(Shared { prompts, resources, templates }) = &lists.shared else { continue };
            let known = || prompts.iter().map(String::as_str);
            let missing = missing(options.prompts.keys(), known());
            found.extend(
                missing.map(|name| Finding::new(&place("prompts", name), no("prompt", name, id, known()))),
            );
            for name in options.resources.keys() {
                let pattern = UriPattern::new(name);
                let listed = resources.iter().chain(templates);
                let known = listed.clone().map(String::as_str);
                if !listed.clone().any(|uri| pattern.matches(uri))
                    && !templates.iter().any(|uri| may_meet(name, uri))
                {
                    let meant = did_you_mean(name, known);
                    let problem = format!(
                        "matches no resource and no template of app `{id}`, so this has no effect{meant}"
                    );
                    found.push(Finding::new(&place("resources", name), problem));
                }
            }
        }
        self.found.append(&mut found);
    }

    /// Tools of apps that are up and not offered as their servers define them.
    fn definitions(&mut self, registry: &Registry) {
        let (snapshot, pins) = (registry.operator_snapshot(), registry.pins().borrow().clone());
        for entry in snapshot.apps.iter().filter(|entry| entry.app.health() == AppHealth::Up) {
            for tool in &entry.app.catalog().tools {
                let over = entry.options.tools.get(&*tool.name);
                if over.is_some_and(|over| over.disabled) {
                    continue;
                }
                let app = format!("/apps/{}", escape(&entry.id));
                let place = format!("{app}/tools/{}", escape(&tool.name));
                for found in over.iter().flat_map(|over| contradictions(tool, over)) {
                    let [key, below] = found.place.map(|part| escape(&part));
                    self.found.push(Finding::new(&format!("{place}/{key}/{below}"), found.problem));
                }
                let problem = match pins.state(&entry.id, &entry.options, tool) {
                    None | Some(PinState::Approved) => None,
                    Some(PinState::Changed(_)) => {
                        Some("differs from its approved definition, so calls are refused")
                    }
                    Some(PinState::New) => Some("was never approved, so it is held back"),
                };
                let name = show_hidden(&printable(&tool.name, LONGEST_SHOWN));
                self.found.extend(problem.map(|problem| {
                    let problem = format!(
                        "tool `{name}` {problem}; see `gatewright pins diff`, and approve it with `gatewright pins approve {}:{name}`",
                        entry.id
                    );
                    Finding::new(&format!("{app}/pin"), problem)
                }));
                let hidden: Vec<&str> = hidden_in(tool).into_iter().map(HiddenText::name).collect();
                if !hidden.is_empty() {
                    let problem = format!(
                        "the words of tool `{name}` hide text from people ({}), as instructions for models do; it is taken out. Ask the author why it is \
                         there, and set `pin: true`",
                        hidden.join(", ")
                    );
                    self.found.push(Finding::new(&app, problem));
                }
            }
        }
    }

    fn rate_limits(&mut self) {
        let mut found = Vec::new();
        let apps = || self.config.apps.keys().map(String::as_str).chain(["codecall"]);
        for (at, rule) in self.config.rate_limits.iter().enumerate() {
            let problem = match rule.tool.split_once(':') {
                None if rule.tool == "*" => None,
                None => self.unprefixed(&rule.tool),
                Some((app, _)) if !apps().any(|known| known == app) => {
                    let meant = did_you_mean(app, apps());
                    Some(format!("there is no app `{app}`, so this limits nothing{meant}"))
                }
                Some((_, "*")) => None,
                Some(("codecall", _)) if META_TOOLS.contains(&&*rule.tool) => None,
                Some(("codecall", tool)) => {
                    let known = META_TOOLS.iter().filter_map(|name| name.split(':').nth(1));
                    Some(no("tool", tool, "codecall", known))
                }
                Some((app, tool)) => {
                    let tools = self.of(app).filter(|lists| lists.tools.is_some()).map(|lists| &lists.shown);
                    let known = tools.map(|tools| tools.iter().map(|name| &**name));
                    known
                        .filter(|known| !known.clone().any(|name| name == tool))
                        .map(|known| no("tool", tool, app, known))
                }
            };
            let place = format!("/rateLimits/{at}/tool");
            found.extend(problem.map(|problem| Finding::new(&place, problem)));
        }
        self.found.append(&mut found);
    }

    /// The problem with a tool of an app without a prefix, once the lists of all such apps are known.
    fn unprefixed(&self, tool: &str) -> Option<String> {
        let ids = self.config.apps.iter().filter(|(_, app)| !app.has_prefix()).map(|(id, _)| id);
        let mut known = Vec::new();
        for id in ids {
            known.extend(self.of(id).filter(|lists| lists.tools.is_some())?.shown.iter().map(|name| &**name));
        }
        let meant = did_you_mean(tool, known.iter().copied());
        (!known.contains(&tool)).then(|| {
            format!("`{tool}` is no tool of the apps with `prefix: false`, so this limits nothing{meant}")
        })
    }

    fn modes(&mut self) {
        let auth = &self.config.auth;
        let built_in = auth.mode == Mode::Orchestrated;
        let public = "authentication is off (`auth.mode: public`), so no caller has one";
        for (at, rule) in self.config.codecall.modes.iter().enumerate() {
            let place = |key: &str| format!("/codecall/modes/{at}/{key}");
            for key in [("client", &rule.client), ("scope", &rule.scope)] {
                if let (key, Some(_)) = key
                    && auth.mode == Mode::Public
                {
                    self.found.push(Finding::new(&place(key), public));
                }
            }
            if let Some(client) = rule.client.as_deref().filter(|_| built_in && !auth.dcr_enabled) {
                let ids = || auth.clients.iter().map(|client| client.client_id.as_str());
                let is_document = auth.cimd.enabled && client.starts_with("http");
                if !is_document && !ids().any(|id| id == client) {
                    let meant = did_you_mean(client, ids());
                    let problem =
                        format!("`{client}` is no client of `auth.clients`, so this rule fits nobody{meant}");
                    self.found.push(Finding::new(&place("client"), problem));
                }
            }
            if let Some(scope) =
                rule.scope.as_deref().filter(|scope| built_in && !auth.grantable().allows(scope))
            {
                let meant = did_you_mean(scope, auth.scopes.keys().map(String::as_str));
                let problem =
                    format!("`{scope}` is not one of `auth.scopes`, so this rule fits nobody{meant}");
                self.found.push(Finding::new(&place("scope"), problem));
            }
        }
    }

    /// Apps and tools that endpoints name and leave out.
    fn endpoints(&mut self) {
        let mut found = Vec::new();
        let apps = || self.config.apps.keys().map(String::as_str);
        let no_app = |app: &str| {
            let meant = did_you_mean(app, apps());
            (app != "*" && !apps().any(|known| known == app))
                .then(|| format!("there is no app `{app}`, so this has no effect{meant}"))
        };
        for (name, endpoint) in &self.config.endpoints {
            let place = |list: &str, at: usize| format!("/endpoints/{}/{list}/{at}", escape(name));
            for (list, ids) in
                [("apps", &endpoint.apps), ("resources", &endpoint.resources), ("prompts", &endpoint.prompts)]
            {
                let wrong = ids.iter().enumerate().filter_map(|(at, app)| Some((at, no_app(app)?)));
                found.extend(wrong.map(|(at, problem)| Finding::new(&place(list, at), problem)));
            }
            for (list, tools) in [("tools", &endpoint.tools), ("exclude", &endpoint.exclude)] {
                for (at, entry) in tools.iter().enumerate() {
                    let Some((app, tool)) = entry.split_once(':') else { continue };
                    let problem = no_app(app).or_else(|| self.no_tool(app, tool));
                    found.extend(problem.map(|problem| Finding::new(&place(list, at), problem)));
                }
            }
        }
        self.found.append(&mut found);
    }

    /// The problem with an entry that fits no tool of `app`, once its lists are known.
    fn no_tool(&self, app: &str, pattern: &str) -> Option<String> {
        let shown = &self.of(app).filter(|lists| lists.tools.is_some())?.shown;
        let known = shown.iter().map(|name| &**name);
        (!known.clone().any(|name| fits_tool(pattern, name))).then(|| no("tool", pattern, app, known))
    }

    /// Endpoints that API keys name.
    fn api_keys(&mut self) {
        let known = || self.config.endpoints.keys().map(String::as_str).chain([MAIN_ENDPOINT]);
        let mut found = Vec::new();
        for (at, key) in self.config.auth.api_keys.iter().enumerate() {
            let wrong = key.endpoints.iter().enumerate();
            let wrong = wrong.filter(|(_, name)| !known().any(|known| known == name.as_str()));
            found.extend(wrong.map(|(n, name)| {
                let meant = did_you_mean(name, known());
                let problem = format!("there is no endpoint `{name}`, so this opens nothing{meant}");
                Finding::new(&format!("/auth/apiKeys/{at}/endpoints/{n}"), problem)
            }));
        }
        self.found.append(&mut found);
    }

    /// Scopes that nobody can have, or anonymous callers alone: they are allowed, and more often misspelt.
    fn scopes(&mut self) {
        let auth = &self.config.auth;
        if auth.mode != Mode::Orchestrated || auth.scopes.is_empty() {
            return;
        }
        let known = || auth.scopes.keys().map(String::as_str);
        let is_unknown = |scope: &str| !auth.scopes.contains_key(scope);
        let mut found = Vec::new();
        for (at, scope) in auth.anonymous_scopes.iter().enumerate().filter(|(_, scope)| is_unknown(scope)) {
            if let Some(near) = nearest(scope, known()) {
                let problem = format!("`{scope}` is not one of `auth.scopes`; did you mean `{near}`?");
                found.push(Finding::new(&format!("/auth/anonymousScopes/{at}"), problem));
            }
        }
        if let Some(scope) = self.config.approvals.approvers.as_deref().filter(|scope| is_unknown(scope)) {
            let meant = did_you_mean(scope, known());
            let problem = format!(
                "`{scope}` is not one of `auth.scopes`, so nobody but an operator can approve{meant}"
            );
            found.push(Finding::new("/approvals/approvers", problem));
        }
        self.found.append(&mut found);
    }

    /// Scopes, clients and endpoints that policies name: a rule about none of them never matches.
    fn policies(&mut self) {
        let Some(engine) = &self.config.policy_files.engine else { return };
        let (auth, endpoints) = (&self.config.auth, &self.config.endpoints);
        let grantable = (auth.mode == Mode::Orchestrated).then(|| auth.grantable());
        for CallerName { file, line, kind, name } in engine.caller_names() {
            let problem = match kind {
                CallerNameKind::Scope if grantable.as_ref().is_some_and(|known| !known.allows(&name)) => {
                    let meant = did_you_mean(&name, auth.scopes.keys().map(String::as_str));
                    format!("`{name}` is not one of `auth.scopes`, so no token can have it{meant}")
                }
                CallerNameKind::Endpoint if name == MAIN_ENDPOINT => {
                    "callers of the main endpoint have none: write `!(principal has endpoint)`".to_owned()
                }
                CallerNameKind::Endpoint if !endpoints.contains_key(&name) => {
                    let meant = did_you_mean(&name, endpoints.keys().map(String::as_str));
                    format!("there is no endpoint `{name}`{meant}")
                }
                // Others may register.
                CallerNameKind::Client if auth.clients.iter().all(|known| known.client_id != name) => {
                    let Some(near) =
                        nearest(&name, auth.clients.iter().map(|known| known.client_id.as_str()))
                    else {
                        continue;
                    };
                    format!("there is no client `{name}` in `auth.clients`; did you mean `{near}`?")
                }
                CallerNameKind::Scope | CallerNameKind::Endpoint | CallerNameKind::Client => continue,
            };
            self.found.push(Finding::new("/policies", format!("{file}:{line}: {problem}")));
        }
    }

    /// Tools that nobody can call, because they need scopes that the server does not know.
    fn needed_scopes(&mut self, registry: &Registry) {
        let auth = &self.config.auth;
        if auth.mode != Mode::Orchestrated {
            return;
        }
        let mut needed: BTreeMap<(String, String), Vec<String>> = BTreeMap::new();
        for tool in registry.all_tools() {
            for scope in tool.meta.scopes.iter().filter(|scope| !auth.scopes.contains_key(*scope)) {
                let tools = needed.entry((tool.app_id.to_string(), scope.clone())).or_default();
                tools.push(show_hidden(&printable(&tool.local_name, LONGEST_SHOWN)));
            }
        }
        for ((app, scope), tools) in needed {
            let scope = show_hidden(&printable(&scope, LONGEST_SHOWN));
            let meant = nearest(&scope, auth.scopes.keys().map(String::as_str));
            let meant = meant.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
            let first = &tools[0];
            let (need, them) = match tools.len() {
                1 => (format!("its tool `{first}` needs"), "it"),
                number => (format!("{number} of its tools, such as `{first}`, need"), "them"),
            };
            let problem = format!(
                "{need} the scope `{scope}`, which is not one of `auth.scopes`: no user can call {them}{meant}"
            );
            self.found.push(Finding::new(&format!("/apps/{}", escape(&app)), problem));
        }
    }
}

/// Returns true if a pattern and a template begin alike, so that some URI could be of both.
fn may_meet(pattern: &str, template: &str) -> bool {
    let begin = |text: &str, end: char| text.split(end).next().unwrap_or_default().to_ascii_lowercase();
    let (pattern, template) = (begin(pattern, '*'), begin(template, '{'));
    pattern.starts_with(&template) || template.starts_with(&pattern)
}

fn missing<'n>(
    names: impl Iterator<Item = &'n String>,
    known: impl Iterator<Item = &'n str>,
) -> impl Iterator<Item = &'n String> {
    let known: HashSet<&str> = known.collect();
    names.filter(move |name| !known.contains(name.as_str()))
}

/// The problem with a name that an app does not have.
fn no<'k>(kind: &str, name: &str, app: &str, known: impl Iterator<Item = &'k str> + Clone) -> String {
    format!("`{name}` is no {kind} of app `{app}`, so this has no effect{}", did_you_mean(name, known))
}

/// The nearest name, or the first of all, as the end of a sentence.
fn did_you_mean<'k>(name: &str, known: impl Iterator<Item = &'k str> + Clone) -> String {
    if let Some(near) = nearest(name, known.clone()) {
        return format!("; did you mean `{near}`?");
    }
    let shown: Vec<&str> = known.clone().take(MOST_SHOWN).collect();
    match (shown.is_empty(), known.count() > MOST_SHOWN) {
        (true, _) => "; there is none".to_owned(),
        (false, more) => format!("; known here: {}{}", shown.join(", "), if more { ", …" } else { "" }),
    }
}
