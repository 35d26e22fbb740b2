//! Checks beyond the JSON Schema: ranges, and sections that must agree.

use std::{collections::HashSet, net::SocketAddr};

use gatewright::executions_are_stored;
use gatewright_auth::config::Mode;
use gatewright_core::{AccessMode, check_app_id};
use gatewright_findings::{Finding, escape, nearest};
use gatewright_openapi::ApiAuth;
use gatewright_operator::{admin::AdminConfig, telemetry::OtlpConfig};
use gatewright_upstream::UpstreamAuth;

use super::{AppConfig, AppKind, Config, cluster};

/// A check, and what it reads: whole sections, and keys that decide its result. It is skipped if one of them cannot be read, for its
/// result would be wrong.
struct Check {
    sections: &'static [&'static str],
    decisive: &'static [&'static str],
    run: fn(&Config) -> Vec<Finding>,
}

const fn check(
    sections: &'static [&'static str],
    decisive: &'static [&'static str],
    run: fn(&Config) -> Vec<Finding>,
) -> Check {
    Check { sections, decisive, run }
}

const AUTH: &[&str] = &[
    "/auth/mode",
    "/auth/type",
    "/auth/allowDefaultPublic",
    "/auth/clients",
    "/auth/local",
    "/auth/provider",
    "/auth/refresh",
    "/auth/scopes",
    "/auth/tokenStorage",
    "/http/host",
    "/http/path",
    "/http/publicUrl",
    "/http/tls",
];

const CHECKS: [Check; 18] = [
    check(&[], &[], apps),
    check(&["http"], &[], http),
    check(&["http", "auth"], &["/http/cluster", "/auth/tokenStorage"], cluster::findings),
    check(&["endpoints"], &[], endpoints),
    check(&["endpoints"], &["/codecall/enabled"], endpoints_without_code_mode),
    check(&["endpoints", "auth"], &["/auth/mode", "/auth/scopes"], endpoint_scopes),
    check(&["codecall"], &[], codecall),
    check(&["executions"], &["/executions/maxBytes"], executions),
    check(&["approvals"], &[], approvals),
    check(
        &["executions", "auth", "http"],
        &["/executions/store", "/auth", "/http/cluster"],
        executions_store,
    ),
    check(&["codecall"], &["/codecall/enabled"], plans_without_code_mode),
    check(&["auth", "http"], AUTH, auth),
    check(&["auth"], &["/auth/mode"], apps_of_users),
    check(&["auth"], &["/auth/mode", "/auth/scopes"], unreachable_scopes),
    check(&["rateLimits", "apps"], &[], rate_limits),
    check(&["admin"], &[], admin),
    check(&["admin", "http"], &[], ports),
    check(&["telemetry"], &[], telemetry),
];

impl Config {
    /// Every problem that the schema cannot express. Sections that are `unreadable` are not looked at, and the places `bad` have their
    /// defaults.
    pub(super) fn problems(&self, unreadable: &HashSet<&str>, bad: &[String]) -> Vec<Finding> {
        let is_bad = |key: &&str| bad.iter().any(|bad| is_within(bad, key) || is_within(key, bad));
        let readable = |check: &&Check| {
            check.sections.iter().all(|section| !unreadable.contains(section))
                && !check.decisive.iter().any(is_bad)
        };
        CHECKS.iter().filter(readable).flat_map(|check| (check.run)(self)).collect()
    }
}

/// Returns true if the JSON pointer `place` is `around`, or below it.
fn is_within(place: &str, around: &str) -> bool {
    place.strip_prefix(around).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
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

fn endpoint_pointer(name: &str) -> String {
    format!("/endpoints/{}", escape(name))
}

fn endpoints(config: &Config) -> Vec<Finding> {
    let mut found = Vec::new();
    for (name, endpoint) in &config.endpoints {
        for wrong in endpoint.problems(name) {
            let below = if wrong.path.is_empty() { String::new() } else { format!("/{}", wrong.path) };
            let pointer = format!("{}{}", endpoint_pointer(name), below.replace('.', "/"));
            found.push(Finding::new(&pointer, wrong.problem));
        }
    }
    found
}

fn endpoints_without_code_mode(config: &Config) -> Vec<Finding> {
    let is_code = |mode: &Option<AccessMode>| *mode == Some(AccessMode::Code) && !config.codecall.enabled;
    let wrong = config.endpoints.iter().filter(|(_, endpoint)| is_code(&endpoint.mode));
    let problem =
        "`code` needs code mode, and `codecall.enabled` is false; set it to true, or remove this key";
    wrong.map(|(name, _)| Finding::new(&format!("{}/mode", endpoint_pointer(name)), problem)).collect()
}

/// Scopes that an endpoint requires and no token can have; and audiences where nobody looks at them.
fn endpoint_scopes(config: &Config) -> Vec<Finding> {
    let (mut found, grantable) = (Vec::new(), config.auth.grantable());
    for (name, endpoint) in &config.endpoints {
        let pointer = endpoint_pointer(name);
        if endpoint.expected_audience.is_some() && config.auth.mode != Mode::Transparent {
            let problem = "counts in `auth.mode: transparent` only: tokens of this server are issued for the address of the endpoint; remove this key";
            found.push(Finding::new(&format!("{pointer}/expectedAudience"), problem));
        }
        if config.auth.mode == Mode::Orchestrated {
            let unreachable = endpoint.scopes.iter().enumerate();
            found.extend(
                unreachable
                    .filter(|(_, scope)| !grantable.allows(scope))
                    .map(|(at, scope)| unreachable_scope(config, &format!("{pointer}/scopes/{at}"), scope)),
            );
        }
    }
    found
}

fn unreachable_scope(config: &Config, pointer: &str, scope: &str) -> Finding {
    let nearest = nearest(scope, config.auth.scopes.keys().map(String::as_str));
    let meant = nearest.map_or_else(String::new, |scope| format!(", or did you mean `{scope}`?"));
    Finding::new(
        pointer,
        format!("is not one of `auth.scopes`, so no token can have it; add it there{meant}"),
    )
}

fn codecall(config: &Config) -> Vec<Finding> {
    let problems = config.codecall.problems().into_iter();
    problems.map(|wrong| Finding::at(&format!("codecall.{}", wrong.path), wrong.problem)).collect()
}

fn approvals(config: &Config) -> Vec<Finding> {
    let problems = config.approvals.problems().into_iter();
    problems.map(|wrong| Finding::at(&format!("approvals.{}", wrong.path), wrong.problem)).collect()
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
        AppKind::Openapi(openapi) => openapi.auth.as_ref().is_some_and(ApiAuth::is_of_users),
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
                let pointer = format!("{}{place}/{at}", pointer_of(id));
                found.push(unreachable_scope(config, &pointer, &scopes[at]));
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

/// The two listeners have ports of their own.
fn ports(config: &Config) -> Vec<Finding> {
    let http = &config.http;
    let is_taken = |admin: &&AdminConfig| {
        let is_shared = admin.host == http.host || admin.host.is_unspecified() || http.host.is_unspecified();
        admin.port != 0 && admin.port == http.port && is_shared
    };
    let taken = config.admin.iter().filter(is_taken).map(|admin| {
        let problem =
            format!("{} is the port of `http.port`; the two listeners need ports of their own", admin.port);
        Finding::new("/admin/port", problem)
    });
    taken.collect()
}

fn telemetry(config: &Config) -> Vec<Finding> {
    let problems = config.telemetry.otlp.iter().flat_map(OtlpConfig::problems);
    problems.map(|(field, problem)| Finding::new(&format!("/telemetry/otlp/{field}"), problem)).collect()
}
