//! The order of the modules in the crate documentation. (Circles of files are found by a test of the binary, for every crate.)

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

fn source() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src")
}

/// The modules in the order of the crate documentation, from the top down.
fn layers() -> Vec<String> {
    let text = std::fs::read_to_string(source().join("lib.rs")).unwrap();
    let list = text.split("//! ```text\n").nth(1).and_then(|rest| rest.split("//! ```").next()).unwrap();
    list.lines().map(|line| line.split_whitespace().nth(1).unwrap().to_owned()).collect()
}

/// Source files with the top module they belong to, and their code up to the unit tests.
fn files() -> Vec<(String, PathBuf, String)> {
    fn collect(dir: &Path, found: &mut Vec<(String, PathBuf, String)>) {
        for entry in std::fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                collect(&path, found);
            } else if path.extension().is_some_and(|end| end == "rs") {
                let place = path.strip_prefix(source()).unwrap();
                let top = place.iter().next().unwrap().to_str().unwrap().trim_end_matches(".rs").to_owned();
                let text = std::fs::read_to_string(&path).unwrap();
                let code = text.split("#[cfg(test)]\nmod tests").next().unwrap().lines();
                let code = code.filter(|line| !line.trim_start().starts_with("//"));
                found.push((top, path, code.collect::<Vec<_>>().join("\n")));
            }
        }
    }
    let mut found = Vec::new();
    collect(&source(), &mut found);
    found.retain(|(top, ..)| top != "lib");
    found
}

/// The top modules that code names, as `crate::name` or in `crate::{name, other::…}`.
fn used(code: &str) -> BTreeSet<&str> {
    let mut names = BTreeSet::new();
    for (at, found) in code.match_indices("crate::") {
        let rest = &code[at + found.len()..];
        if code[..at].ends_with('$') {
            continue;
        }
        let (mut depth, mut start) = (0, 0);
        for (end, c) in rest.char_indices().filter(|(_, c)| !c.is_alphanumeric() && *c != '_') {
            let name = &rest[start..end];
            if !name.is_empty() && depth <= 1 && (depth == 0 || !rest[..start].ends_with("::")) {
                names.insert(name);
            }
            start = end + c.len_utf8();
            match c {
                '{' => depth += 1,
                '}' => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                break;
            }
        }
    }
    names
}

#[test]
fn every_module_uses_only_modules_below_it() {
    let (layers, files) = (layers(), files());
    let modules: BTreeSet<&String> = files.iter().map(|(top, ..)| top).collect();
    assert_eq!(layers.iter().collect::<BTreeSet<_>>(), modules);
    let depth = |name: &str| layers.iter().position(|one| one == name);
    for (top, path, code) in &files {
        for name in used(code) {
            let path = path.display();
            let other = depth(name).unwrap_or_else(|| panic!("{path} imports `{name}` from the crate root"));
            assert!(other >= depth(top).unwrap(), "{path} uses `{name}`, which is above `{top}`");
        }
    }
}

#[test]
fn finds_the_modules_that_code_uses() {
    let code = "use crate::{a::{b, c::D}, e};\nlet x = crate::f::g(); $crate::h::I;\nuse crate::j::k;";
    assert_eq!(used(code), BTreeSet::from(["a", "e", "f", "j"]));
}
