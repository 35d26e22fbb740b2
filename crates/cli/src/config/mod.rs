//! The configuration: one file, every key checked, the crates' own sections put together.

mod app;
mod file;
mod interpolate;
mod production;
mod removed;
mod source;

use std::{
    collections::{HashMap, HashSet},
    net::SocketAddr,
    path::Path,
    sync::OnceLock,
};

use anyhow::Context as _;
pub use app::{AppConfig, AppKind, Builtin};
use gatewright_auth::{AuthConfig, Deployment, config::Mode};
use gatewright_codecall::CodeCallConfig;
use gatewright_core::{ToolNames, check_app_id};
pub use gatewright_findings::{Finding, Format};
use gatewright_findings::{Lines, Schema, escape, with_lines};
use gatewright_operator::{admin::AdminConfig, limits::RateLimitRule, telemetry::OtlpConfig};
use gatewright_server::HttpConfig;
use gatewright_upstream::UpstreamAuth;
use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
pub use source::Source;

use crate::{
    args::ConfigArgs, audit::AuditConfig, exit::BadConfig, instances, logging::LoggingConfig,
    operate::TelemetryConfig,
};

/// Configuration of Gatewright.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Config {
    /// Name and version that clients see.
    pub info: Info,
    /// The HTTP server.
    pub http: HttpConfig,
    /// Apps by id. Tools are called `<id>:<tool>`.
    pub apps: IndexMap<String, AppConfig>,
    /// Code mode.
    pub codecall: CodeCallConfig,
    /// How often each caller may call. Every rule that covers a tool counts.
    pub rate_limits: Vec<RateLimitRule>,
    /// The listener for operators: metrics and the console.
    #[serde(skip_serializing)]
    pub admin: Option<AdminConfig>,
    /// Where traces go.
    #[serde(skip_serializing)]
    pub telemetry: TelemetryConfig,
    /// What is logged.
    pub logging: LoggingConfig,
    /// The audit file.
    pub audit: AuditConfig,
    /// Who may call.
    #[serde(skip_serializing)]
    pub auth: AuthConfig,
    /// How tool names are listed: `colon` (`crm:users_list`, default) or `underscore` (`crm_users_list`).
    #[schemars(with = "ToolNamesName")]
    pub tool_names: ToolNames,
    /// Items on one page of a list: 1 to 10,000. Default 500.
    #[schemars(range(min = 1, max = 10_000))]
    pub page_size: Option<usize>,
}

/// The spellings, for the schema.
#[derive(JsonSchema)]
#[serde(rename_all = "snake_case")]
#[expect(dead_code, reason = "only its schema is used")]
enum ToolNamesName {
    Colon,
    Underscore,
}

/// Who the server says it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Info {
    /// Name. Default `gatewright`.
    pub name: String,
    /// Version. Default: Gatewright's own.
    pub version: String,
}

impl Default for Info {
    fn default() -> Self {
        Self { name: "gatewright".to_owned(), version: env!("CARGO_PKG_VERSION").to_owned() }
    }
}

/// The process environment: read once, here.
pub fn environment() -> HashMap<String, String> {
    std::env::vars_os()
        .filter_map(|(key, value)| Some((key.into_string().ok()?, value.into_string().ok()?)))
        .collect()
}

impl Config {
    /// Reads what the command line names; at least one of the two files.
    pub fn of(args: &ConfigArgs) -> anyhow::Result<Self> {
        Ok(Self::load(args)?.0)
    }

    /// The same, with what the file says as it is written.
    pub fn load(args: &ConfigArgs) -> anyhow::Result<(Self, Source)> {
        let (mut config, source) = match &args.config {
            Some(path) => Self::read(path)?,
            None if args.mcp_config.is_none() => {
                return Err(BadConfig(
                    "nothing to serve: name a configuration with --config FILE or an mcpServers file with --mcp-config \
                     FILE, or try `gatewright demo`"
                        .to_owned(),
                )
                .into());
            }
            None => (Self::default(), Source::default()),
        };
        if let Some(path) = &args.mcp_config {
            config.add_mcp_servers(path)?;
        }
        if config.apps.is_empty() {
            return Err(BadConfig("the configuration names no app; add one under `apps`".to_owned()).into());
        }
        Ok((config, source))
    }

    /// Reads and checks a file.
    fn read(path: &Path) -> anyhow::Result<(Self, Source)> {
        let (config, findings, source) = Self::examine(path)?;
        match config {
            Some(config) if findings.is_empty() => Ok((config, source)),
            _ => {
                let lines: Vec<String> = findings.iter().map(|finding| format!("  {finding}")).collect();
                let problems = if lines.len() == 1 { "problem" } else { "problems" };
                let head = format!("{} {problems} in {}:", lines.len(), path.display());
                Err(BadConfig(format!("{head}\n{}", lines.join("\n"))).into())
            }
        }
    }

    /// Reads a file and finds everything that is wrong with it. The configuration is there when it can be read at all.
    pub fn examine(path: &Path) -> anyhow::Result<(Option<Self>, Vec<Finding>, Source)> {
        let text = std::fs::read_to_string(path)
            .map_err(|error| BadConfig(format!("{} cannot be read: {error}", path.display())))?;
        let format = file::format_of(path)?;
        Ok(Self::parse(&text, format, &environment()))
    }

    /// Parses text; see [`Config::examine`].
    pub fn parse(
        text: &str,
        format: Format,
        environment: &HashMap<String, String>,
    ) -> (Option<Self>, Vec<Finding>, Source) {
        let lines = Lines::of(text, format);
        let mut value = match file::value(text, format) {
            Ok(value) => value,
            Err(finding) => return (None, with_lines(vec![finding], &lines), Source::default()),
        };
        let (filled, mut findings) = interpolate::apply(&mut value, environment);
        findings.extend(interpolate::typed(&mut value, &filled, by_schema));
        let source = Source::of(&value);
        let config = match serde_json::from_value::<Self>(value) {
            Ok(mut config) => {
                let problems = config.auth.fill_from(|name| environment.get(name).cloned());
                findings.extend(
                    problems
                        .into_iter()
                        .map(|problem| Finding::new(&pointer(&problem.path), problem.message)),
                );
                findings.extend(config.problems());
                config.share_proxies();
                Some(config)
            }
            Err(error) if findings.is_empty() => {
                findings.push(Finding::new("", error.to_string()));
                None
            }
            Err(_) => None,
        };
        let mut findings = with_lines(findings, &lines);
        interpolate::hide(&mut findings, text, environment);
        (config, findings, source)
    }

    /// What the schema cannot say.
    fn problems(&self) -> Vec<Finding> {
        let mut findings = Vec::new();
        for (id, app) in &self.apps {
            let pointer = format!("/apps/{}", escape(id));
            if let Err(problem) = check_app_id(id) {
                findings.push(Finding::new(&pointer, problem));
            }
            if let Err((field, problem)) = app.check() {
                findings.push(Finding::new(&format!("{pointer}{field}"), problem));
            }
        }
        if let Err(wrong) = self.http.validate() {
            let pointer = format!("/http/{}", wrong.field.replace('.', "/"));
            findings.push(Finding::new(&pointer, wrong.problem));
        }
        if let Some((field, problem)) = instances::problem(self) {
            let pointer = format!("/http/cluster/{field}");
            findings.push(Finding::new(pointer.trim_end_matches('/'), problem));
        }
        for problem in self.codecall.problems() {
            findings.push(Finding::new(
                &format!("/codecall/{}", problem.path.replace('.', "/")),
                problem.problem,
            ));
        }
        findings.extend(self.auth_problems());
        for (at, rule) in self.rate_limits.iter().enumerate() {
            if let Some((field, problem)) = rule.problem() {
                findings.push(Finding::new(&format!("/rateLimits/{at}/{field}"), problem));
            } else if rule.tool != "*"
                && !rule.tool.contains(':')
                && self.apps.values().all(AppConfig::has_prefix)
            {
                let problem = format!(
                    "`{}` is no tool's name; write `<app>:<tool>`, such as `crm:users_list` or `codecall:execute`, however names are listed",
                    rule.tool
                );
                findings.push(Finding::new(&format!("/rateLimits/{at}/tool"), problem));
            }
        }
        for (field, problem) in self.admin.iter().flat_map(AdminConfig::problems) {
            findings.push(Finding::new(&format!("/admin/{field}"), problem));
        }
        for (field, problem) in self.telemetry.otlp.iter().flat_map(OtlpConfig::problems) {
            findings.push(Finding::new(&format!("/telemetry/otlp/{field}"), problem));
        }
        if let Some(size) = self.page_size
            && !(1..=10_000).contains(&size)
        {
            findings.push(Finding::new("/pageSize", "must be 1 to 10000"));
        }
        findings
    }

    /// Both lists of trusted proxies hold for the whole server.
    fn share_proxies(&mut self) {
        let mut known: HashSet<String> = self.auth.trusted_proxies.iter().cloned().collect();
        let own = std::mem::take(&mut self.http.trusted_proxies).into_iter();
        self.auth.trusted_proxies.extend(own.filter(|proxy| known.insert(proxy.clone())));
        self.http.trusted_proxies.clone_from(&self.auth.trusted_proxies);
    }

    /// How the server is reached when it listens at `address`: `http.publicUrl`, else that address.
    pub fn deployment(&self, address: SocketAddr) -> Deployment {
        let public = match &self.http.public_url {
            Some(url) => url.to_string(),
            None => self.http.origin_at(address),
        };
        let deployment =
            Deployment::new(&public, &self.http.path, &self.info.name).listening_on(address.ip());
        Deployment { redact: self.logging.redact.clone(), ..deployment }
    }

    fn auth_problems(&self) -> Vec<Finding> {
        let address = SocketAddr::new(self.http.host, self.http.port);
        let mut found: Vec<Finding> = self
            .auth
            .validate(&self.deployment(address))
            .into_iter()
            .map(|problem| Finding::new(&pointer(&problem.path), problem.message))
            .collect();
        if self.auth.mode != Mode::Public && self.http.public_url.is_none() && !self.http.host.is_loopback() {
            let problem = "is needed with `auth`: tokens and metadata name the address that clients use";
            found.push(Finding::new("/http/publicUrl", problem));
        }
        let of_users = |app: &AppConfig| match &app.kind {
            AppKind::Upstream(upstream) => matches!(upstream.auth, Some(UpstreamAuth::Oauth(_))),
            AppKind::Builtin(_) => false,
        };
        for (id, _) in
            self.apps.iter().filter(|(_, app)| of_users(app) && self.auth.mode != Mode::Orchestrated)
        {
            let problem = "`oauth` obtains a token for each user who signed in to this server; it needs `auth.mode: orchestrated`";
            found.push(Finding::new(&format!("/apps/{id}/auth/type"), problem));
        }
        if self.auth.mode == Mode::Orchestrated {
            found.extend(self.scopes_nobody_has());
        }
        found
    }

    /// Scopes that an app, or one of its objects, asks for and no token can carry.
    fn scopes_nobody_has(&self) -> Vec<Finding> {
        let grantable = self.auth.grantable();
        let mut found = Vec::new();
        for (id, app) in &self.apps {
            let options = app.options();
            let place = |kind: &str, name: &str| format!("/{kind}/{}/scopes", escape(name));
            let mut all = vec![("/scopes".to_owned(), &options.scopes)];
            all.extend(options.tools.iter().map(|(name, over)| (place("tools", name), &over.scopes)));
            all.extend(options.resources.iter().map(|(name, rule)| (place("resources", name), &rule.scopes)));
            all.extend(options.prompts.iter().map(|(name, rule)| (place("prompts", name), &rule.scopes)));
            for (place, scopes) in all {
                for (at, _) in scopes.iter().enumerate().filter(|(_, scope)| !grantable.allows(scope)) {
                    let problem = "is not one of `auth.scopes`, so nobody can have it; add it there";
                    found.push(Finding::new(&format!("/apps/{}{place}/{at}", escape(id)), problem));
                }
            }
        }
        found
    }

    fn add_mcp_servers(&mut self, path: &Path) -> anyhow::Result<()> {
        let shown = path.display();
        let text = std::fs::read_to_string(path)
            .map_err(|error| BadConfig(format!("{shown} cannot be read: {error}")))?;
        let servers = gatewright_upstream::parse_mcp_servers(&text)
            .map_err(|error| BadConfig(format!("{shown}: {error}")))?;
        for (id, upstream) in servers {
            if self.apps.contains_key(&id) {
                return Err(BadConfig(format!(
                    "{shown}: app `{id}` is in the configuration already; rename one"
                ))
                .into());
            }
            self.apps.insert(id, AppConfig::upstream(upstream));
        }
        Ok(())
    }
}

/// `auth.clients[0].name` as a JSON pointer.
fn pointer(path: &str) -> String {
    let path = if path == "auth.publicUrl" { "http.publicUrl" } else { path };
    path.split(['.', '[']).map(|part| format!("/{}", part.trim_end_matches(']'))).collect()
}

/// The JSON Schema of the configuration, keys sorted.
pub fn schema() -> anyhow::Result<serde_json::Value> {
    let mut schema = serde_json::to_value(schemars::schema_for!(Config))
        .context("the schema cannot be written as JSON")?;
    schema.sort_all_objects();
    Ok(schema)
}

/// Everything in `value` that the schema refuses.
fn by_schema(value: &serde_json::Value) -> Vec<Finding> {
    static COMPILED: OnceLock<Option<Schema>> = OnceLock::new();
    match COMPILED.get_or_init(|| Schema::new(schema().ok()?).ok()) {
        Some(schema) => removed::explain(schema.findings(value), value),
        None => vec![Finding::new("", "internal error: the configuration's schema does not compile")],
    }
}
