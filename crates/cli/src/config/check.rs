//! Checks beyond the JSON Schema: ranges, and sections that must agree.

use std::{collections::HashSet, net::SocketAddr};

use gatewright::executions_are_stored;
use gatewright_auth::config::Mode;
use gatewright_core::check_app_id;
use gatewright_findings::{Finding, escape};
use gatewright_operator::{admin::AdminConfig, telemetry::OtlpConfig};
use gatewright_upstream::UpstreamAuth;

use super::{AppConfig, AppKind, Config, cluster};

/// A check, and the sections that it reads as a whole. It is skipped if one of them cannot be read, for its result would be wrong.
type Check = (&'static [&'static str], fn(&Config) -> Vec<Finding>);

const CHECKS: [Check; 13] = [
    (&[], apps),
    (&["http"], http),
    (&["http", "auth"], cluster::findings),
    (&["codecall"], codecall),
    (&["executions"], executions),
    (&["executions", "auth", "http"], executions_store),
    (&["codecall"], plans_without_code_mode),
    (&["auth", "http"], auth),
    (&["auth"], apps_of_users),
    (&["auth"], unreachable_scopes),
    (&["rateLimits", "apps"], rate_limits),
    (&["admin"], admin),
    (&["telemetry"], telemetry),
];

impl Config {
    /// Every problem that the schema cannot express. Sections that are `unreadable` are not looked at.
    pub(super) fn problems(&self, unreadable: &HashSet<&str>) -> Vec<Finding> {
        let readable = |(sections, _): &&Check| sections.iter().all(|section| !unreadable.contains(section));
        CHECKS.iter().filter(readable).flat_map(|(_, check)| check(self)).collect()
    }
}

fn pointer_of(app: &str) -> String {
    format!("/apps/{}", escape(app))
}

fn apps(config: &Config) -> Vec<Finding> {
    let mut found = Vec::new();
    for (id, app) in &config.apps {
        let pointer = pointer_of(id);
        if let Err(problem) = check_app_id(id) {
            found.push(Finding::new(&pointer, problem));
        }
        found.extend(app.problems(&pointer));
    }
    found
}

fn http(config: &Config) -> Vec<Finding> {
    let problems = config.http.problems().into_iter();
    problems.map(|wrong| Finding::at(&format!("http.{}", wrong.path), wrong.problem)).collect()
}

fn codecall(config: &Config) -> Vec<Finding> {
    let problems = config.codecall.problems().into_iter();
    problems.map(|wrong| Finding::at(&format!("codecall.{}", wrong.path), wrong.problem)).collect()
}

fn executions(config: &Config) -> Vec<Finding> {
    let problems = config.executions.problems().into_iter();
    problems.map(|wrong| Finding::at(&format!("executions.{}", wrong.path), wrong.problem)).collect()
}

fn executions_store(config: &Config) -> Vec<Finding> {
    let has_key = config.http.cluster.is_some() || config.auth.shared_secret().is_some();
    let stored = executions_are_stored(&config.executions, &config.auth, has_key);
    let problem = stored.err().map(|wrong| Finding::at(&format!("executions.{}", wrong.path), wrong.problem));
    problem.into_iter().collect()
}

fn plans_without_code_mode(config: &Config) -> Vec<Finding> {
    if config.codecall.enabled {
        return Vec::new();
    }
    let problem = "code mode runs saved plans, and `codecall.enabled` is false";
    let apps = config.apps.iter().filter(|(_, app)| app.plan_sources().is_some());
    apps.map(|(id, _)| Finding::new(&format!("{}/plans", pointer_of(id)), problem)).collect()
}

fn auth(config: &Config) -> Vec<Finding> {
    let address = SocketAddr::new(config.http.host, config.http.port);
    let problems = config.auth.validate(&config.deployment(address)).into_iter();
    let mut found: Vec<Finding> =
        problems.map(|problem| auth_finding(&problem.path, problem.message)).collect();
    let is_remote = config.http.public_url.is_none() && !config.http.host.is_loopback();
    if config.auth.mode != Mode::Public && is_remote {
        let problem = "is needed with `auth`: tokens and metadata name the address that clients use";
        found.push(Finding::new("/http/publicUrl", problem));
    }
    found
}

/// A finding of the `auth` section. The section names the public URL as its own, and it belongs to `http`.
pub(super) fn auth_finding(path: &str, problem: String) -> Finding {
    Finding::at(if path == "auth.publicUrl" { "http.publicUrl" } else { path }, problem)
}

fn apps_of_users(config: &Config) -> Vec<Finding> {
    if config.auth.mode == Mode::Orchestrated {
        return Vec::new();
    }
    let of_users = |app: &AppConfig| match &app.kind {
        AppKind::Upstream(upstream) => matches!(upstream.auth, Some(UpstreamAuth::Oauth(_))),
        AppKind::Builtin(_) | AppKind::Plans(_) => false,
    };
    let problem = "`oauth` obtains a token for each user who signed in to this server; it needs `auth.mode: orchestrated`";
    let apps = config.apps.iter().filter(|(_, app)| of_users(app));
    apps.map(|(id, _)| Finding::new(&format!("{}/auth/type", pointer_of(id)), problem)).collect()
}

/// Scopes that an app, or one of its objects, requires and no token can have.
fn unreachable_scopes(config: &Config) -> Vec<Finding> {
    if config.auth.mode != Mode::Orchestrated {
        return Vec::new();
    }
    let grantable = config.auth.grantable();
    let mut found = Vec::new();
    for (id, app) in &config.apps {
        let options = app.options();
        let place = |kind: &str, name: &str| format!("/{kind}/{}/scopes", escape(name));
        let mut all = vec![("/scopes".to_owned(), &options.scopes)];
        all.extend(options.tools.iter().map(|(name, over)| (place("tools", name), &over.scopes)));
        all.extend(options.resources.iter().map(|(name, rule)| (place("resources", name), &rule.scopes)));
        all.extend(options.prompts.iter().map(|(name, rule)| (place("prompts", name), &rule.scopes)));
        for (place, scopes) in all {
            for (at, _) in scopes.iter().enumerate().filter(|(_, scope)| !grantable.allows(scope)) {
                let problem = "is not one of `auth.scopes`, so no token can have it; add it there";
                found.push(Finding::new(&format!("{}{place}/{at}", pointer_of(id)), problem));
            }
        }
    }
    found
}

fn rate_limits(config: &Config) -> Vec<Finding> {
    let mut found = Vec::new();
    let prefixes = config.apps.values().all(AppConfig::has_prefix);
    for (at, rule) in config.rate_limits.iter().enumerate() {
        if let Some((field, problem)) = rule.problem() {
            found.push(Finding::new(&format!("/rateLimits/{at}/{field}"), problem));
        } else if rule.tool != "*" && !rule.tool.contains(':') && prefixes {
            let problem = format!(
                "`{}` is not the name of a tool; write `<app>:<tool>`, such as `crm:users_list` or `codecall:execute`, even if names are listed \
                 in another form",
                rule.tool
            );
            found.push(Finding::new(&format!("/rateLimits/{at}/tool"), problem));
        }
    }
    found
}

fn admin(config: &Config) -> Vec<Finding> {
    let problems = config.admin.iter().flat_map(AdminConfig::problems);
    problems.map(|(field, problem)| Finding::new(&format!("/admin/{field}"), problem)).collect()
}

fn telemetry(config: &Config) -> Vec<Finding> {
    let problems = config.telemetry.otlp.iter().flat_map(OtlpConfig::problems);
    problems.map(|(field, problem)| Finding::new(&format!("/telemetry/otlp/{field}"), problem)).collect()
}
