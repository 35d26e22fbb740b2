//! Endpoints: named selections of what a gateway offers, beside its main endpoint.
//!
//! A selection narrows the view of whoever calls through it, and gives no rights. The endpoints of a gateway are in `endpoints`.

use std::{collections::HashMap, sync::Arc};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::AccessMode;
use crate::{InvalidField, PolicyObject};

/// Name that stands for the main endpoint, so that no other one has it.
pub const MAIN_ENDPOINT: &str = "main";
/// Longest name of an endpoint.
const LONGEST_NAME: usize = 64;
/// Most entries of a list of one endpoint.
const MOST_ENTRIES: usize = 1_000;
/// Longest entry of a list.
const LONGEST_ENTRY: usize = 256;

/// Tokens that open an endpoint, by the resource that they were issued for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum EndpointAudience {
    /// Those for this endpoint alone. The default.
    #[default]
    Own,
    /// Those for the main endpoint, too.
    Shared,
}

/// An endpoint `<http.path>/<name>`: a selection of apps and tools over the connections, processes and stores of the gateway. It offers nothing that its
/// caller may not use at the main endpoint.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct EndpointConfig {
    /// Name that clients show people. Default: `info.name`.
    pub title: Option<String>,
    /// A sentence about it, for clients.
    pub description: Option<String>,
    /// Text for a model that connects, in front of what code mode adds.
    pub instructions: Option<String>,
    /// Ids of apps that it offers with all their tools, resources and prompts; `*` is every app.
    pub apps: Vec<String>,
    /// Further tools: `<app>:<tool>`, even if the app has `prefix: false`. `*` stands for any part of the tool's name, as in `crm:users_*`.
    pub tools: Vec<String>,
    /// Ids of further apps whose resources and resource templates it offers.
    pub resources: Vec<String>,
    /// Ids of further apps whose prompts it offers.
    pub prompts: Vec<String>,
    /// Tools that it does not offer, in the form of `tools`. They win over `apps` and `tools`.
    pub exclude: Vec<String>,
    /// `direct`: clients see the tools of apps. `code`: they see the meta-tools of code mode. It wins over `codecall.modes` and over the choice of
    /// the client. Default: as at the main endpoint.
    pub mode: Option<AccessMode>,
    /// Scopes a caller needs for anything here, all of them, besides those of apps and tools.
    pub scopes: Vec<String>,
    /// Tokens that open it: `own`, those issued for `<http.publicUrl><http.path>/<name>` (RFC 8707); or `shared`, those for the main endpoint, too.
    pub audience: EndpointAudience,
    /// Audience of its tokens where an external provider issues them (`auth.mode: transparent`). Default: its address.
    pub expected_audience: Option<String>,
}

impl EndpointConfig {
    /// Every field that cannot be used, of an endpoint of this name.
    pub fn problems(&self, name: &str) -> Vec<InvalidField> {
        let mut problems = Vec::new();
        let mut wrong =
            |path: String, problem: &str| problems.push(InvalidField::new(path, problem.to_owned()));
        if let Err(problem) = check_endpoint_name(name) {
            wrong(String::new(), problem);
        }
        let lists = [
            ("apps", &self.apps),
            ("tools", &self.tools),
            ("resources", &self.resources),
            ("prompts", &self.prompts),
            ("exclude", &self.exclude),
            ("scopes", &self.scopes),
        ];
        for (list, entries) in lists {
            if entries.len() > MOST_ENTRIES {
                wrong(list.to_owned(), "has more than 1000 entries; use `*` in names of tools");
            }
            for (at, entry) in entries.iter().enumerate() {
                if entry.is_empty() || entry.len() > LONGEST_ENTRY {
                    wrong(format!("{list}.{at}"), "must have 1 to 256 bytes");
                } else if ["tools", "exclude"].contains(&list) && parts_of(entry).is_none() {
                    let problem = "is not the name of a tool; write `<app>:<tool>`, such as `crm:users_*`";
                    wrong(format!("{list}.{at}"), problem);
                } else if ["apps", "resources", "prompts"].contains(&list)
                    && entry != ALL
                    && entry.contains('*')
                {
                    wrong(format!("{list}.{at}"), "must be the id of an app, or `*` alone for every app");
                } else if list == "scopes" && entry.contains([' ', '*', '"', '\\']) {
                    wrong(format!("{list}.{at}"), "must be one scope, without `*`");
                }
            }
        }
        if [&self.apps, &self.tools, &self.resources, &self.prompts].iter().all(|list| list.is_empty()) {
            wrong(
                String::new(),
                "offers nothing: name `apps` or `tools`, such as `apps: [crm]`; `apps: [\"*\"]` is every app",
            );
        }
        problems
    }
}

/// Checks the name of an endpoint: 1 to 64 of `a-z`, `0-9` and `-`.
///
/// # Errors
/// A sentence that says what to change.
pub fn check_endpoint_name(name: &str) -> Result<(), &'static str> {
    let is_good = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit() || c == b'-';
    match name {
        MAIN_ENDPOINT => Err("is the name of the main endpoint; choose another"),
        name if (1..=LONGEST_NAME).contains(&name.len()) && name.bytes().all(is_good) => Ok(()),
        _ => Err("has a name that is not 1 to 64 lower-case letters, digits and `-`"),
    }
}

const ALL: &str = "*";

/// App and tool of an entry `<app>:<tool>`, either of which may be `*`.
fn parts_of(entry: &str) -> Option<(&str, &str)> {
    let (app, tool) = entry.split_once(':')?;
    let is_app = !app.is_empty() && (app == ALL || !app.contains('*'));
    (is_app && !tool.is_empty()).then_some((app, tool))
}

/// Returns `true` if a name of a tool fits the text of an entry of `tools` after its app.
pub fn fits_tool(pattern: &str, name: &str) -> bool {
    let mut literals = pattern.split('*');
    let Some(mut rest) = name.strip_prefix(literals.next().unwrap_or_default()) else { return false };
    let Some(last) = literals.next_back() else { return rest.is_empty() };
    for literal in literals {
        let Some(at) = rest.find(literal) else { return false };
        rest = &rest[at + literal.len()..];
    }
    rest.ends_with(last)
}

/// Parts of one app that an endpoint offers.
#[derive(Debug, Default)]
struct AppPart {
    everything: bool,
    resources: bool,
    prompts: bool,
    tools: Vec<String>,
    excluded: Vec<String>,
}

impl AppPart {
    fn has_any(&self) -> bool {
        self.everything || self.resources || self.prompts || !self.tools.is_empty()
    }
}

/// An endpoint.
#[derive(Debug)]
pub struct Endpoint {
    /// Its name.
    pub name: Arc<str>,
    /// Its configuration.
    pub config: EndpointConfig,
    parts: HashMap<String, AppPart>,
}

impl Endpoint {
    /// The endpoint `name`.
    pub fn new(name: &str, config: EndpointConfig) -> Self {
        let mut parts: HashMap<String, AppPart> = HashMap::new();
        let mut part = |app: &str, change: &dyn Fn(&mut AppPart)| {
            change(parts.entry(app.to_owned()).or_default());
        };
        config.apps.iter().for_each(|app| part(app, &|part| part.everything = true));
        config.resources.iter().for_each(|app| part(app, &|part| part.resources = true));
        config.prompts.iter().for_each(|app| part(app, &|part| part.prompts = true));
        for (app, tool) in config.tools.iter().filter_map(|entry| parts_of(entry)) {
            part(app, &|part| part.tools.push(tool.to_owned()));
        }
        for (app, tool) in config.exclude.iter().filter_map(|entry| parts_of(entry)) {
            part(app, &|part| part.excluded.push(tool.to_owned()));
        }
        Self { name: name.into(), config, parts }
    }

    /// The parts that are about `app`.
    fn parts(&self, app: &str) -> impl Iterator<Item = &AppPart> {
        [self.parts.get(app), self.parts.get(ALL)].into_iter().flatten()
    }

    /// Returns `true` if it offers anything of `app`.
    pub fn has_app(&self, app: &str) -> bool {
        self.parts(app).any(AppPart::has_any)
    }

    /// Returns `true` if it offers the tool of `app` that is called `local`, without the app's name.
    pub fn has_tool(&self, app: &str, local: &str) -> bool {
        let fits = |patterns: &[String]| patterns.iter().any(|pattern| fits_tool(pattern, local));
        self.parts(app).any(|part| part.everything || fits(&part.tools))
            && !self.parts(app).any(|part| fits(&part.excluded))
    }

    /// Returns `true` if it offers `object`.
    pub fn has(&self, object: &PolicyObject<'_>) -> bool {
        match object {
            PolicyObject::Tool(tool) => self.has_tool(tool.app, tool.local),
            PolicyObject::Resource(resource) => self.has_resources(resource.app),
            PolicyObject::Template { app, .. } => self.has_resources(app),
            PolicyObject::Prompt { app, .. } => self.parts(app).any(|part| part.everything || part.prompts),
        }
    }

    fn has_resources(&self, app: &str) -> bool {
        self.parts(app).any(|part| part.everything || part.resources)
    }
}

/// The part of what a gateway offers that a caller reaches, before scopes and policies.
#[derive(Debug, Clone, Default)]
pub(crate) enum Reach {
    /// All of it: the main endpoint.
    #[default]
    Everything,
    /// The selection of an endpoint.
    Endpoint(Arc<Endpoint>),
    /// Nothing: the endpoint is not there any more.
    Nothing,
}

impl Reach {
    pub(crate) fn has(&self, object: &PolicyObject<'_>) -> bool {
        match self {
            Self::Everything => true,
            Self::Endpoint(endpoint) => endpoint.has(object),
            Self::Nothing => false,
        }
    }

    pub(crate) fn has_app(&self, app: &str) -> bool {
        match self {
            Self::Everything => true,
            Self::Endpoint(endpoint) => endpoint.has_app(app),
            Self::Nothing => false,
        }
    }

    pub(crate) fn has_resources(&self, app: &str) -> bool {
        match self {
            Self::Everything => true,
            Self::Endpoint(endpoint) => endpoint.has_resources(app),
            Self::Nothing => false,
        }
    }

    /// The same for a tool by its public name, which need not exist any more.
    pub(crate) fn has_tool_named(&self, app: &str, name: &str) -> bool {
        let local = name.strip_prefix(app).and_then(|rest| rest.strip_prefix(':')).unwrap_or(name);
        match self {
            Self::Everything => true,
            Self::Endpoint(endpoint) => endpoint.has_tool(app, local),
            Self::Nothing => false,
        }
    }

    /// Scopes that a caller needs for anything.
    pub(crate) fn scopes(&self) -> &[String] {
        match self {
            Self::Endpoint(endpoint) => &endpoint.config.scopes,
            Self::Everything | Self::Nothing => &[],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn endpoint(json: &str) -> Endpoint {
        Endpoint::new("support", serde_json::from_str(json).unwrap())
    }

    #[test]
    fn a_selection_has_the_apps_and_tools_that_it_names_without_those_that_it_excludes() {
        let one = endpoint(
            r#"{"apps": ["crm"], "tools": ["billing:invoice_*", "*:ping"], "exclude": ["crm:users_delete", "*:admin_*"],
                "resources": ["wiki"]}"#,
        );
        for (app, tool, expected) in [
            ("crm", "users_list", true),
            ("crm", "users_delete", false),
            ("crm", "admin_reset", false),
            ("billing", "invoice_get", true),
            ("billing", "invoices", false),
            ("billing", "ping", true),
            ("wiki", "page", false),
            ("shop", "ping", true),
            ("shop", "admin_ping", false),
        ] {
            assert_eq!(one.has_tool(app, tool), expected, "{app}:{tool}");
        }
        let resource = |app| PolicyObject::Template { app, template: "x:{y}" };
        let prompt = |app| PolicyObject::Prompt { app, name: "p" };
        assert!(one.has(&resource("crm")) && one.has(&resource("wiki")) && !one.has(&resource("billing")));
        assert!(one.has(&prompt("crm")) && !one.has(&prompt("wiki")) && !one.has(&prompt("billing")));
        assert!(one.has_app("wiki") && one.has_app("billing"));
        assert!(!endpoint(r#"{"apps": ["crm"], "exclude": ["shop:*"]}"#).has_app("shop"));
    }

    #[test]
    fn a_star_stands_for_any_part_of_the_name_of_a_tool() {
        for (pattern, name, expected) in [
            ("*", "users_list", true),
            ("users_*", "users_list", true),
            ("users_*", "user", false),
            ("*_list", "users_list", true),
            ("a*b*c", "a1b2c", true),
            ("a*b*c", "a1c2b", false),
            ("a*a", "a", false),
            ("users", "users_list", false),
        ] {
            assert_eq!(fits_tool(pattern, name), expected, "{pattern} {name}");
        }
    }

    #[test]
    fn names_and_entries_that_cannot_be_used_are_found() {
        let problems = |name: &str, json: &str| {
            let config: EndpointConfig = serde_json::from_str(json).unwrap();
            config.problems(name).into_iter().map(|found| found.path.into_owned()).collect::<Vec<_>>()
        };
        assert_eq!(problems("support-2", r#"{"apps": ["crm", "*"], "tools": ["a:b*"]}"#), [""; 0]);
        for name in ["", "main", "Support", "a/b", "..", "a_b", &"x".repeat(65)] {
            assert_eq!(problems(name, r#"{"apps": ["crm"]}"#), [""], "{name}");
        }
        assert_eq!(problems("a", "{}"), [""]);
        assert_eq!(problems("a", r#"{"exclude": ["crm:x"]}"#), [""]);
        let bad = r#"{"apps": ["crm*", ""], "tools": ["users", ":x", "crm:"], "exclude": ["c*:x"], "scopes": ["a b"]}"#;
        let expected = ["apps.0", "apps.1", "tools.0", "tools.1", "tools.2", "exclude.0", "scopes.0"];
        assert_eq!(problems("a", bad), expected);
        assert!(serde_json::from_str::<EndpointConfig>(r#"{"app": []}"#).is_err());
    }
}
