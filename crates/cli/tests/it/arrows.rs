//! The dependency arrows of `docs/ARCHITECTURE.md`.

use std::{collections::BTreeMap, process::Command};

use serde_json::Value;

/// Crate, and the crates of the workspace it may depend on.
const ALLOWED: &[(&str, &[&str])] = &[
    ("gatewright-agentscript", &[]),
    ("gatewright-findings", &[]),
    ("gatewright-search", &[]),
    ("gatewright-demo", &[]),
    ("gatewright-core", &[]),
    ("gatewright-server", &["core"]),
    ("gatewright-admin", &["core"]),
    ("gatewright-audit", &[]),
    ("gatewright-auth", &["audit", "core"]),
    ("gatewright-limits", &["core"]),
    ("gatewright-telemetry", &["core"]),
    ("gatewright-testing-macros", &[]),
    ("gatewright-testing", &["core", "findings", "testing-macros"]),
    ("gatewright-embedding", &["search"]),
    ("gatewright-upstream", &["core"]),
    ("gatewright-codecall", &["agentscript", "core", "embedding", "search"]),
    ("gatewright-console", &["codecall", "core", "search"]),
    ("gatewright", &["agentscript", "codecall", "core", "server", "upstream"]),
];

/// What only one crate may name.
const OWNED: &[(&str, &[&str])] = &[
    ("gatewright-agentscript", &["oxc", "rquickjs", "seccompiler", "landlock"]),
    ("gatewright-cli", &["anyhow", "clap"]),
    ("gatewright-server", &["axum"]),
];

fn dependencies() -> BTreeMap<String, Vec<String>> {
    let cargo = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--no-deps"])
        .output()
        .unwrap();
    let metadata: Value = serde_json::from_slice(&cargo.stdout).unwrap();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let normal = |package: &Value| {
        let all = package["dependencies"].as_array().unwrap().iter();
        all.filter(|dependency| dependency["kind"].is_null())
            .map(|dependency| text(&dependency["name"]))
            .collect()
    };
    metadata["packages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|package| (text(&package["name"]), normal(package)))
        .collect()
}

#[test]
fn crates_point_only_downwards() {
    let found = dependencies();
    for (name, allowed) in ALLOWED {
        let own = found.get(*name).unwrap_or_else(|| panic!("{name} is a crate of the workspace"));
        for dependency in own.iter().filter(|dependency| dependency.starts_with("gatewright")) {
            let short = dependency.trim_start_matches("gatewright-");
            assert!(allowed.contains(&short), "{name} must not depend on {dependency}");
        }
    }
}

#[test]
fn what_belongs_to_one_crate_is_named_by_it_alone() {
    // The authorization server and the test kit have HTTP endpoints of their own.
    const SERVE_HTTP: &[&str] =
        &["gatewright-admin", "gatewright-auth", "gatewright-console", "gatewright-testing"];
    for (name, dependencies) in dependencies() {
        for (owner, owned) in OWNED.iter().filter(|(owner, _)| *owner != name) {
            for dependency in dependencies.iter().filter(|dependency| owned.contains(&dependency.as_str())) {
                let excused = dependency == "axum" && SERVE_HTTP.contains(&name.as_str());
                assert!(excused, "{name} names {dependency}, which belongs to {owner}");
            }
        }
    }
}
