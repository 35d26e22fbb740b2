//! Licences, bans and sources of every dependency, by the rules of `deny.toml`.
//!
//! `cargo deny check` holds the same file and more; this runs without it.

use std::{collections::BTreeSet, fs, path::Path, process::Command};

use serde_json::Value;

struct Rules {
    licences: Vec<String>,
    banned: Vec<(String, String)>,
}

fn rules() -> Rules {
    let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deny.toml")).unwrap();
    let file: toml::Table = toml::from_str(&text).unwrap();
    let text = |value: &toml::Value| value.as_str().unwrap().to_owned();
    Rules {
        licences: file["licenses"]["allow"].as_array().unwrap().iter().map(text).collect(),
        banned: file["bans"]["deny"]
            .as_array()
            .unwrap()
            .iter()
            .map(|ban| (text(&ban["crate"]), text(&ban["reason"])))
            .collect(),
    }
}

/// Every package that some feature builds on Linux, development included.
fn packages() -> Vec<Value> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--locked", "--all-features"])
        .args(["--filter-platform", "x86_64-unknown-linux-gnu"])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    let nodes = metadata["resolve"]["nodes"].as_array().unwrap();
    let built: BTreeSet<&str> = nodes.iter().map(|node| node["id"].as_str().unwrap()).collect();
    let all = metadata["packages"].as_array().unwrap().iter();
    all.filter(|package| built.contains(package["id"].as_str().unwrap())).cloned().collect()
}

/// Returns true if the allowed licences satisfy an SPDX expression. The older `MIT/Apache-2.0` means OR.
fn satisfied(expression: &str, allowed: &dyn Fn(&str) -> bool) -> bool {
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut at = 0;
    let answer = any(&words, &mut at, allowed);
    assert_eq!(at, words.len(), "`{expression}` is read to its end");
    answer
}

fn any(words: &[&str], at: &mut usize, allowed: &dyn Fn(&str) -> bool) -> bool {
    let mut answer = all(words, at, allowed);
    while words.get(*at) == Some(&"OR") {
        *at += 1;
        answer |= all(words, at, allowed);
    }
    answer
}

fn all(words: &[&str], at: &mut usize, allowed: &dyn Fn(&str) -> bool) -> bool {
    let mut answer = one(words, at, allowed);
    while words.get(*at) == Some(&"AND") {
        *at += 1;
        answer &= one(words, at, allowed);
    }
    answer
}

fn one(words: &[&str], at: &mut usize, allowed: &dyn Fn(&str) -> bool) -> bool {
    if words[*at] == "(" {
        *at += 1;
        let answer = any(words, at, allowed);
        assert_eq!(words[*at], ")");
        *at += 1;
        return answer;
    }
    let mut licence = words[*at].to_owned();
    *at += 1;
    if words.get(*at) == Some(&"WITH") {
        licence = format!("{licence} WITH {}", words[*at + 1]);
        *at += 2;
    }
    allowed(&licence)
}

#[test]
fn licence_expressions_are_read_as_spdx_means_them() {
    let allowed = |licence: &str| ["MIT", "ISC", "Apache-2.0 WITH LLVM-exception"].contains(&licence);
    for (expression, fits) in [
        ("MIT", true),
        ("GPL-3.0-only", false),
        ("MIT OR GPL-3.0-only", true),
        ("MIT AND GPL-3.0-only", false),
        ("GPL-3.0-only OR MIT AND ISC", true),
        ("(MIT OR GPL-3.0-only) AND GPL-2.0-only", false),
        ("ISC AND (GPL-2.0-only OR ISC)", true),
        ("MIT/Apache-2.0", true),
        ("Apache-2.0 WITH LLVM-exception", true),
        ("Apache-2.0", false),
    ] {
        assert_eq!(satisfied(expression, &allowed), fits, "{expression}");
    }
}

#[test]
fn every_dependency_has_a_licence_that_is_allowed_and_every_allowed_licence_is_used() {
    let rules = rules();
    let used = std::cell::RefCell::new(BTreeSet::new());
    let allowed = |licence: &str| {
        let fits = rules.licences.iter().any(|one| one == licence);
        if fits {
            used.borrow_mut().insert(licence.to_owned());
        }
        fits
    };
    let packages = packages();
    assert!(packages.len() > 300, "{}", packages.len());
    let wrong: Vec<String> = packages
        .iter()
        .filter(|package| !package["license"].as_str().is_some_and(|licence| satisfied(licence, &allowed)))
        .map(|package| format!("{}: {}", package["name"], package["license"]))
        .collect();
    assert!(wrong.is_empty(), "licences that deny.toml does not allow: {wrong:#?}");
    let idle: Vec<&String> = rules.licences.iter().filter(|one| !used.borrow().contains(*one)).collect();
    assert!(idle.is_empty(), "no dependency needs these any more; take them out of deny.toml: {idle:?}");
}

#[test]
fn no_banned_crate_is_built_in() {
    let rules = rules();
    assert!(rules.banned.len() > 5);
    for package in packages() {
        let name = package["name"].as_str().unwrap();
        let ban = rules.banned.iter().find(|(banned, _)| banned == name);
        assert!(ban.is_none(), "{name} is banned: {}", ban.unwrap().1);
    }
}

#[test]
fn every_dependency_comes_from_the_registry_or_this_workspace() {
    for package in packages() {
        let (name, source) = (&package["name"], &package["source"]);
        let registry = source.as_str().is_some_and(|source| source.starts_with("registry+"));
        // Without a source: of this workspace, whose example for the test kit is named for what it teaches.
        let name = name.as_str().unwrap();
        let own = source.is_null() && (name.starts_with("gatewright") || name == "orders-server");
        assert!(registry || own, "{name} comes from {source}");
    }
}
