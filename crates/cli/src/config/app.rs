//! One app of the configuration: built in, or behind a connection; and how the gateway shows it.

use std::{borrow::Cow, collections::BTreeMap, time::Duration};

use gatewright_core::{AppOptions, SchemaMode, ScopeRule, ToolOverride};
use gatewright_upstream::UpstreamConfig;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use serde_json::Value;

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
    /// Every feature of the protocol, for testing clients.
    Everything,
}

/// What is behind an app.
#[derive(Debug, Clone, PartialEq)]
pub enum AppKind {
    /// Part of this program.
    Builtin(Builtin),
    /// A server in another process or on another host.
    Upstream(Box<UpstreamConfig>),
}

/// One app.
#[derive(Debug, Clone)]
pub struct AppConfig {
    /// What is behind it.
    pub kind: AppKind,
    shown: Shown,
}

/// How the gateway shows and calls the app: the keys beside those of the connection.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct Shown {
    /// An app that comes with Gatewright.
    builtin: Option<Builtin>,
    /// `false` lists tools under their own names. Default true: `<app>:<tool>`.
    prefix: Option<bool>,
    /// `strict` (default) checks arguments against the tool's schema; `off` leaves that to the server.
    #[schemars(with = "Option<SchemaModeName>")]
    schema_validation: Option<SchemaMode>,
    /// Scopes a caller needs for anything of the app, all of them.
    scopes: Vec<String>,
    /// Scopes of resources and templates, by pattern of the server's own URIs, in which `*` stands for any text. All patterns that match
    /// count.
    #[schemars(with = "BTreeMap<String, ScopeRuleShape>")]
    resources: BTreeMap<String, ScopeRule>,
    /// Scopes of prompts, by the server's own name for them.
    #[schemars(with = "BTreeMap<String, ScopeRuleShape>")]
    prompts: BTreeMap<String, ScopeRule>,
    /// Scopes and visibility of single tools, by the app's own name for them.
    #[schemars(with = "BTreeMap<String, ToolOverrideShape>")]
    tools: BTreeMap<String, ToolOverride>,
}

/// The modes, for the schema.
#[derive(JsonSchema)]
#[serde(rename_all = "snake_case")]
#[expect(dead_code, reason = "only its schema is used")]
enum SchemaModeName {
    Strict,
    Off,
}

/// [`ToolOverride`], for the schema.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[derive(Default)]
struct ToolOverrideShape {
    /// Scopes a caller needs besides the author's.
    scopes: Vec<String>,
    /// Whether code mode reaches the tool.
    enabled_in_code_call: Option<bool>,
    /// Whether `tools/list` shows the tool.
    visible_in_list_tools: Option<bool>,
    /// `true` removes the tool.
    disabled: bool,
}

/// [`ScopeRule`], for the schema.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[derive(Default)]
struct ScopeRuleShape {
    /// Scopes a caller needs, all of them, besides those of the app.
    scopes: Vec<String>,
}

const SHOWN: [&str; 7] = ["builtin", "prefix", "schemaValidation", "scopes", "resources", "prompts", "tools"];

impl AppConfig {
    /// An app behind a connection, shown with the defaults.
    pub fn upstream(upstream: UpstreamConfig) -> Self {
        Self { kind: AppKind::Upstream(Box::new(upstream)), shown: Shown::default() }
    }

    /// A built-in app, shown with the defaults.
    pub fn builtin(builtin: Builtin) -> Self {
        Self { kind: AppKind::Builtin(builtin), shown: Shown { builtin: Some(builtin), ..Shown::default() } }
    }

    /// Whether its tools are called `<app>:<tool>`.
    pub fn has_prefix(&self) -> bool {
        self.options().prefix
    }

    /// Whether some of it takes scopes: by configuration, or by the word of a built-in app.
    pub fn has_scopes(&self) -> bool {
        let shown = &self.shown;
        let rules = shown.resources.values().chain(shown.prompts.values()).map(|rule| &rule.scopes);
        let mut all = rules.chain(shown.tools.values().map(|over| &over.scopes)).chain([&shown.scopes]);
        let by_itself =
            matches!(self.kind, AppKind::Builtin(Builtin::Crm | Builtin::Billing | Builtin::Support));
        by_itself || all.any(|scopes| !scopes.is_empty())
    }

    /// How the registry shows and calls it.
    pub fn options(&self) -> AppOptions {
        let defaults = AppOptions::default();
        AppOptions {
            prefix: self.shown.prefix.unwrap_or(defaults.prefix),
            timeout: match &self.kind {
                AppKind::Builtin(_) => defaults.timeout,
                AppKind::Upstream(upstream) => upstream.timeout,
            },
            schema_mode: self.shown.schema_validation.unwrap_or(defaults.schema_mode),
            scopes: self.shown.scopes.clone(),
            tools: self.shown.tools.clone(),
            resources: self.shown.resources.clone(),
            prompts: self.shown.prompts.clone(),
        }
    }

    /// What the schema cannot say: the field below the app, and the problem.
    pub(super) fn check(&self) -> Result<(), (String, String)> {
        let options = self.options();
        if options.timeout < Duration::from_millis(1) {
            return Err(("/timeout".to_owned(), "must be at least 1 ms".to_owned()));
        }
        match &self.kind {
            AppKind::Builtin(_) => Ok(()),
            AppKind::Upstream(upstream) => {
                upstream.check().map_err(|problem| (String::new(), problem.to_string()))
            }
        }
    }
}

impl<'de> Deserialize<'de> for AppConfig {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let fields = serde_json::Map::deserialize(deserializer)?;
        let (shown, rest): (serde_json::Map<_, _>, serde_json::Map<_, _>) =
            fields.into_iter().partition(|(key, _)| SHOWN.contains(&key.as_str()));
        let shown: Shown = serde_json::from_value(Value::Object(shown)).map_err(D::Error::custom)?;
        let kind = match shown.builtin {
            Some(builtin) if rest.is_empty() => AppKind::Builtin(builtin),
            Some(_) => {
                let keys: Vec<&str> = rest.keys().map(String::as_str).collect();
                return Err(D::Error::custom(format!("a built-in app takes no {}", keys.join(", "))));
            }
            None => AppKind::Upstream(Box::new(
                serde_json::from_value(Value::Object(rest)).map_err(D::Error::custom)?,
            )),
        };
        Ok(Self { kind, shown })
    }
}

impl Serialize for AppConfig {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.shown.serialize(serializer)
    }
}

impl JsonSchema for AppConfig {
    fn schema_name() -> Cow<'static, str> {
        "App".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut schema = Shown::json_schema(generator);
        let upstream = UpstreamConfig::json_schema(generator);
        let more = upstream.get("properties").and_then(Value::as_object).cloned().unwrap_or_default();
        if let Some(Value::Object(properties)) = schema.get_mut("properties") {
            properties.extend(more);
        }
        schema.insert("description".to_owned(), "An app: one of `builtin`, `command` or `url`.".into());
        schema
    }
}
