//! The dependency arrows of `docs/ARCHITECTURE.md`.

use std::{
    collections::{BTreeMap, BTreeSet},
    process::Command,
};

use serde_json::Value;

/// The picture in `docs/ARCHITECTURE.md`: each crate from the top down, with the crates of the workspace it depends on.
fn picture() -> Vec<(String, BTreeSet<String>)> {
    let page = include_str!("../../../../docs/ARCHITECTURE.md");
    let block = page.split("```").nth(1).unwrap();
    let lines = block.lines().skip(1).filter(|line| !line.trim().is_empty());
    let crates = lines.map(|line| {
        let (name, rest) = line.split_once(' ').unwrap();
        let (_, below) = rest.split_once("->").unwrap_or_else(|| panic!("no arrow in: {line}"));
        let below = below.split(',').map(str::trim).filter(|name| !matches!(*name, "" | "nothing"));
        (
            name.to_owned(),
            below.map(|short| format!("gatewright-{short}").replace("-gatewright", "")).collect(),
        )
    });
    crates.collect()
}

/// Dependencies that only one crate may have.
const OWNED: &[(&str, &[&str])] = &[
    ("gatewright-agentscript", &["oxc", "rquickjs", "seccompiler", "landlock"]),
    ("gatewright-cli", &["anyhow", "clap"]),
    ("gatewright-server", &["axum"]),
];

/// The crates of the project, without the example, each with the crates it depends on.
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
        .filter(|(name, _)| name.starts_with("gatewright"))
        .collect()
}

#[test]
fn the_picture_shows_every_crate_with_all_it_depends_on_below_it() {
    let (picture, found) = (picture(), dependencies());
    let shown: BTreeSet<&String> = picture.iter().map(|(name, _)| name).collect();
    assert_eq!(shown, found.keys().collect(), "crates of docs/ARCHITECTURE.md and of the workspace");
    for (at, (name, allowed)) in picture.iter().enumerate() {
        let own = found[name].iter().filter(|dependency| dependency.starts_with("gatewright"));
        assert_eq!(*allowed, own.cloned().collect(), "dependencies of {name}");
        let below: BTreeSet<&String> = picture[at + 1..].iter().map(|(name, _)| name).collect();
        assert!(allowed.iter().all(|one| below.contains(one)), "{name} stands below one of {allowed:?}");
    }
}

#[test]
fn what_belongs_to_one_crate_is_named_by_it_alone() {
    // The authorization server and the test kit have HTTP endpoints of their own.
    const SERVE_HTTP: &[&str] =
        &["gatewright-auth", "gatewright-console", "gatewright-operator", "gatewright-testing"];
    for (name, dependencies) in dependencies() {
        for (owner, owned) in OWNED.iter().filter(|(owner, _)| *owner != name) {
            for dependency in dependencies.iter().filter(|dependency| owned.contains(&dependency.as_str())) {
                let excused = dependency == "axum" && SERVE_HTTP.contains(&name.as_str());
                assert!(excused, "{name} names {dependency}, which belongs to {owner}");
            }
        }
    }
}
