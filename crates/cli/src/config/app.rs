//! One app of the configuration: its connection or the name of a built-in one, and the options under which the gateway lists it.

use std::{borrow::Cow, collections::BTreeMap, path::Path, time::Duration};

use gatewright_codecall::PlanSources;
use gatewright_core::{
    AppOptions, Approval, InvalidField, SchemaMode, ScopeRule, ToolOverride, check_tool_name,
};
use gatewright_findings::{Finding, escape};
use gatewright_openapi::{ApiAuth, OpenapiConfig};
use gatewright_upstream::UpstreamConfig;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize, Serializer, de::DeserializeOwned};
use serde_json::{Map, Value, json};

use super::place::pointer;

/// An app that comes with Gatewright.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Builtin {
    /// Users and accounts of a sample CRM.
    Crm,
    /// Its products, orders and invoices.
    Billing,
    /// Its tickets.
    Support,
    /// Every feature of the protocol, to test clients with.
    Everything,
}

/// Connection of an app.
#[derive(Debug, Clone, PartialEq)]
pub enum AppKind {
    /// Part of this program.
    Builtin(Builtin),
    /// Saved plans: scripts in files.
    Plans(PlanSources),
    /// An HTTP API with an OpenAPI document.
    Openapi(Box<OpenapiConfig>),
    /// A server in another process or on another host.
    Upstream(Box<UpstreamConfig>),
}

/// Longest time of one call of a plan, which has the limits of scripts besides.
const PLAN_TIMEOUT: Duration = Duration::from_secs(900);

/// One app.
#[derive(Debug, Clone)]
pub struct AppConfig {
    /// Its connection.
    pub kind: AppKind,
    listing: Listing,
}

/// Options under which the gateway lists and calls the app: the keys besides those of the connection.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct Listing {
    /// An app that comes with Gatewright.
    builtin: Option<Builtin>,
    /// Saved plans as tools of the app: a file, a folder of `*.js` and `*.ts`, or a list of both, relative to the configuration.
    plans: Option<PlanSources>,
    /// `false` lists tools under their own names. Default true: `<app>:<tool>`. A tool is left out if its own name begins with the id of another
    /// app and `:` or `_`; of apps that offer the same name, the first keeps it.
    prefix: Option<bool>,
    /// `strict` (default) validates arguments against the tool's schema; `off` leaves that to the server.
    #[schemars(with = "Option<SchemaModeName>")]
    schema_validation: Option<SchemaMode>,
    /// Scopes that a caller needs for anything in the app. All of them are required.
    scopes: Vec<String>,
    /// Scopes of resources and templates, by pattern of the server's own URIs, in which `*` stands for any text. Every matching pattern
    /// applies.
    #[schemars(with = "BTreeMap<String, ScopeRuleShape>")]
    resources: BTreeMap<String, ScopeRule>,
    /// Scopes of prompts, by the server's own name for them.
    #[schemars(with = "BTreeMap<String, ScopeRuleShape>")]
    prompts: BTreeMap<String, ScopeRule>,
    /// `true` holds the definitions of the tools to those that were approved: a tool whose description, schema or annotations differ is listed as it was
    /// approved and not called, and a new one is held back, until `gatewright pins approve`. The first connection approves what it finds. Default false.
    pin: bool,
    /// Scopes, visibility, approvals and presentation of single tools, by the app's own name for them.
    #[schemars(with = "BTreeMap<String, ToolOverrideShape>")]
    tools: BTreeMap<String, ToolOverride>,
}

/// Spellings of [`SchemaMode`], for the schema.
#[derive(JsonSchema)]
#[serde(rename_all = "snake_case")]
#[expect(dead_code, reason = "only its schema is used")]
enum SchemaModeName {
    Strict,
    Off,
}

/// Options of one tool.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[derive(Default)]
struct ToolOverrideShape {
    /// Scopes that a caller needs besides those that the tool itself declares.
    scopes: Vec<String>,
    /// `false` keeps the tool out of code mode, `true` allows it there.
    enabled_in_code_call: Option<bool>,
    /// `false` hides the tool from `tools/list`, `true` lists it.
    visible_in_list_tools: Option<bool>,
    /// Approval of its calls. `ask`: unless one that was given for longer still stands; `always`: each call anew; `never`: none. Default: as
    /// `approvals` says.
    #[schemars(with = "Option<ApprovalName>")]
    approval: Option<Approval>,
    /// `true` removes the tool.
    disabled: bool,
    /// Name under which the tool is offered in place of its own. Lists, search, policies, rate limits and `modes` use the new name; the keys of `tools`
    /// are always the app's own names.
    #[serde(rename = "as")]
    name: Option<String>,
    /// Title in place of the tool's own.
    title: Option<String>,
    /// Description in place of the tool's own.
    description: Option<String>,
    /// Arguments that the gateway adds to calls that leave them out, by parameter. Policies and approvers see them.
    defaults: BTreeMap<String, Value>,
    /// Parameters that callers neither see nor send. One that the tool requires needs an entry in `defaults`.
    hide: Vec<String>,
    /// `true` or `false`: as `pin` of the app, for this tool.
    pin: Option<bool>,
}

/// Spellings of [`Approval`], for the schema.
#[derive(JsonSchema)]
#[serde(rename_all = "lowercase")]
#[expect(dead_code, reason = "only its schema is used")]
pub(super) enum ApprovalName {
    /// A call needs an approval, unless one that was given for longer still stands.
    Ask,
    /// Each call needs an approval of its own.
    Always,
    /// No call needs one.
    Never,
}

/// Scopes of a resource, a template or a prompt.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[derive(Default)]
struct ScopeRuleShape {
    /// Scopes that a caller needs besides those of the app. All of them are required.
    scopes: Vec<String>,
}

/// Meaning of `auth`, whose values depend on the kind of the app.
const AUTH: &str = "Credentials of the gateway at the server. Of an app with `openapi`: one for all operations that need one, or one for each \
    security scheme of the document, by its name.";

const LISTING_KEYS: [&str; 9] =
    ["builtin", "plans", "prefix", "schemaValidation", "scopes", "resources", "prompts", "pin", "tools"];

impl AppConfig {
    /// An upstream app with the default options.
    pub fn upstream(upstream: UpstreamConfig) -> Self {
        Self { kind: AppKind::Upstream(Box::new(upstream)), listing: Listing::default() }
    }

    /// A built-in app with the default options.
    pub fn builtin(builtin: Builtin) -> Self {
        Self {
            kind: AppKind::Builtin(builtin),
            listing: Listing { builtin: Some(builtin), ..Listing::default() },
        }
    }

    /// An app of saved plans with the default options.
    pub fn plans(sources: PlanSources) -> Self {
        let listing = Listing { plans: Some(sources.clone()), ..Listing::default() };
        Self { kind: AppKind::Plans(sources), listing }
    }

    /// Takes relative paths as relative to `folder`.
    pub(super) fn relative_to(&mut self, folder: &Path) {
        match &mut self.kind {
            AppKind::Plans(sources) => sources.relative_to(folder),
            AppKind::Openapi(openapi) => openapi.relative_to(folder),
            AppKind::Builtin(_) | AppKind::Upstream(_) => {}
        }
    }

    /// Files and folders of its plans, if it has some.
    pub fn plan_sources(&self) -> Option<&PlanSources> {
        match &self.kind {
            AppKind::Plans(sources) => Some(sources),
            AppKind::Builtin(_) | AppKind::Openapi(_) | AppKind::Upstream(_) => None,
        }
    }

    /// Returns true if its tools are called `<app>:<tool>`.
    pub fn has_prefix(&self) -> bool {
        self.options().prefix
    }

    /// Returns true if anything in it requires scopes: by configuration, or by the declaration of a built-in app.
    pub fn has_scopes(&self) -> bool {
        let listing = &self.listing;
        let rules = listing.resources.values().chain(listing.prompts.values()).map(|rule| &rule.scopes);
        let mut all = rules.chain(listing.tools.values().map(|over| &over.scopes)).chain([&listing.scopes]);
        let by_itself =
            matches!(self.kind, AppKind::Builtin(Builtin::Crm | Builtin::Billing | Builtin::Support));
        by_itself || all.any(|scopes| !scopes.is_empty())
    }

    /// Options for the registry.
    pub fn options(&self) -> AppOptions {
        let defaults = AppOptions::default();
        AppOptions {
            prefix: self.listing.prefix.unwrap_or(defaults.prefix),
            timeout: match &self.kind {
                AppKind::Builtin(_) => defaults.timeout,
                AppKind::Plans(_) => PLAN_TIMEOUT,
                AppKind::Openapi(openapi) => openapi.timeout,
                AppKind::Upstream(upstream) => upstream.timeout,
            },
            question_timeout: match &self.kind {
                AppKind::Builtin(_) | AppKind::Plans(_) | AppKind::Openapi(_) => defaults.question_timeout,
                AppKind::Upstream(upstream) => upstream.question_timeout,
            },
            schema_mode: self.listing.schema_validation.unwrap_or(defaults.schema_mode),
            pin: self.listing.pin,
            scopes: self.listing.scopes.clone(),
            tools: self.listing.tools.clone(),
            resources: self.listing.resources.clone(),
            prompts: self.listing.prompts.clone(),
        }
    }

    /// Checks keys before they are written. Variables in them are taken as they are.
    ///
    /// # Errors
    /// The first problem.
    pub fn check(keys: &Map<String, Value>) -> Result<(), String> {
        let app = Self::read(Value::Object(keys.clone())).map_err(|(_, problem)| problem)?;
        let is_variable = |finding: &Finding| {
            let value = keys.get(finding.pointer.trim_start_matches('/')).and_then(Value::as_str);
            value.is_some_and(|text| text.contains("${"))
        };
        let found = app.problems("").into_iter().find(|finding| !is_variable(finding));
        found.map_or(Ok(()), |finding| Err(finding.problem))
    }

    /// Problems that the schema cannot express, at `pointer`.
    pub(super) fn problems(&self, pointer: &str) -> Vec<Finding> {
        let mut found = match &self.kind {
            AppKind::Builtin(_) | AppKind::Plans(_) => Vec::new(),
            AppKind::Openapi(openapi) => openapi.problems(),
            AppKind::Upstream(upstream) => upstream.problems(),
        };
        if self.options().timeout < Duration::from_millis(1) {
            found.retain(|field| field.path != "timeout");
            found.push(InvalidField::new("timeout", "must be at least 1 ms"));
        }
        if self.options().pins() && matches!(&self.kind, AppKind::Upstream(upstream) if !upstream.is_shared())
        {
            let problem = "needs one list of tools for everybody, and each caller has a server of their own (`auth.type: oauth`, or `sessions` other than `shared`)";
            found.push(InvalidField::new("pin", problem));
        }
        let finding = |field: InvalidField| {
            let place = format!("{pointer}/{}", field.path.replace('.', "/"));
            Finding::new(place.trim_end_matches('/'), field.problem)
        };
        let presented = self.presentation_problems(pointer);
        found.into_iter().map(finding).chain(presented).collect()
    }

    /// Problems with the names that tools are given.
    fn presentation_problems(&self, pointer: &str) -> Vec<Finding> {
        let mut found = Vec::new();
        let mut names: BTreeMap<&str, &str> = BTreeMap::new();
        for (tool, over) in &self.listing.tools {
            let Some(name) = over.name.as_deref() else { continue };
            let place = format!("{pointer}/tools/{}/as", escape(tool));
            if let Err(problem) = check_tool_name(name) {
                found.push(Finding::new(&place, problem));
            } else if let Some(other) = names.insert(name, tool) {
                found.push(Finding::new(
                    &place,
                    format!("is the name of `{other}`, too; give each tool its own"),
                ));
            }
        }
        found
    }
}

impl AppConfig {
    /// Reads one app. Both parts of its keys refuse unknown ones, so they are told apart first: `serde(flatten)` accepts any key.
    ///
    /// # Errors
    /// The place below the app, as a JSON pointer, and the problem.
    pub(super) fn read(value: Value) -> Result<Self, (String, String)> {
        let Value::Object(fields) = value else {
            return Err((
                String::new(),
                "must be an object with one of `builtin`, `plans`, `openapi`, `command` or `url`".to_owned(),
            ));
        };
        let (listing, connection): (Map<_, _>, Map<_, _>) =
            fields.into_iter().partition(|(key, _)| LISTING_KEYS.contains(&key.as_str()));
        let listing: Listing = part(listing)?;
        let kind = match (listing.builtin, &listing.plans) {
            (None, None) if connection.contains_key("openapi") => {
                AppKind::Openapi(Box::new(part(connection)?))
            }
            (None, None) => AppKind::Upstream(Box::new(part(connection)?)),
            (Some(_), Some(_)) => {
                return Err((String::new(), "has one of `builtin` and `plans`, not both".to_owned()));
            }
            (builtin, _) if !connection.is_empty() => {
                let what = if builtin.is_some() { "a built-in app" } else { "an app of saved plans" };
                let keys: Vec<&str> = connection.keys().map(String::as_str).collect();
                return Err((String::new(), format!("{what} takes no {}", keys.join(", "))));
            }
            (Some(builtin), None) => AppKind::Builtin(builtin),
            (None, Some(sources)) => AppKind::Plans(sources.clone()),
        };
        Ok(Self { kind, listing })
    }
}

fn part<T: DeserializeOwned>(fields: Map<String, Value>) -> Result<T, (String, String)> {
    serde_path_to_error::deserialize(Value::Object(fields))
        .map_err(|error| (pointer(error.path()), error.into_inner().to_string()))
}

impl Serialize for AppConfig {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.listing.serialize(serializer)
    }
}

impl JsonSchema for AppConfig {
    fn schema_name() -> Cow<'static, str> {
        "App".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut schema = Listing::json_schema(generator);
        let upstream = UpstreamConfig::json_schema(generator);
        let openapi = OpenapiConfig::json_schema(generator);
        let auth = generator.subschema_for::<Option<ApiAuth>>();
        let properties_of = |schema: &Schema| {
            schema.get("properties").and_then(Value::as_object).cloned().unwrap_or_default()
        };
        let mut more = properties_of(&upstream);
        // Keys that both have mean the same, apart from `auth`.
        let upstream_auth = more.insert("auth".to_owned(), json!({"description": AUTH}));
        for (key, property) in properties_of(&openapi) {
            more.entry(key).or_insert(property);
        }
        if let Some(Value::Object(properties)) = schema.get_mut("properties") {
            properties.extend(more);
        }
        schema.insert("if".to_owned(), json!({"required": ["openapi"]}));
        schema.insert("then".to_owned(), json!({"properties": {"auth": auth}}));
        schema.insert("else".to_owned(), json!({"properties": {"auth": upstream_auth}}));
        schema.insert(
            "description".to_owned(),
            "An app: one of `builtin`, `plans`, `openapi`, `command` or `url`.".into(),
        );
        schema
    }
}
