//! The order of the modules in the crate documentation, and the imports between files.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

/// Source files by module path, such as `client::tools`, with their text up to the unit tests.
fn modules() -> BTreeMap<Vec<String>, String> {
    fn collect(dir: &Path, module: &[String], found: &mut BTreeMap<Vec<String>, String>) {
        for entry in std::fs::read_dir(dir).unwrap() {
            let path: PathBuf = entry.unwrap().path();
            let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
            let inner: Vec<String> = module.iter().cloned().chain([name.clone()]).collect();
            if path.is_dir() {
                collect(&path, &inner, found);
            } else if path.extension().is_some_and(|end| end == "rs") {
                let text = std::fs::read_to_string(&path).unwrap();
                let code = text.split("#[cfg(test)]\nmod tests").next().unwrap();
                let code = code.lines().filter(|line| !line.trim_start().starts_with("//"));
                let module = if name == "mod" || name == "lib" { module.to_vec() } else { inner };
                found.insert(module, code.collect::<Vec<_>>().join("\n"));
            }
        }
    }
    let mut found = BTreeMap::new();
    collect(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &[], &mut found);
    found
}

/// Every path that begins with `crate` or `super`, groups in braces spread out.
fn paths(code: &str) -> Vec<Vec<String>> {
    fn is_word(c: char) -> bool {
        c.is_alphanumeric() || c == '_'
    }
    /// Reads a path or a group of paths, and returns the rest of the text.
    fn read<'a>(text: &'a str, start: &[String], found: &mut Vec<Vec<String>>) -> &'a str {
        let text = text.trim_start();
        if let Some(mut rest) = text.strip_prefix('{') {
            loop {
                rest = rest.trim_start().trim_start_matches(',').trim_start();
                match rest.strip_prefix('}') {
                    Some(rest) => return rest,
                    None if rest.is_empty() => return rest,
                    None => {
                        let before = rest.len();
                        rest = read(rest, start, found);
                        if rest.len() == before {
                            rest = &rest[1..];
                        }
                    }
                }
            }
        }
        let end = text.find(|c| !is_word(c)).unwrap_or(text.len());
        let path: Vec<String> = start.iter().cloned().chain([text[..end].to_owned()]).collect();
        match text[end..].strip_prefix("::") {
            Some(rest) => read(rest, &path, found),
            None => {
                found.push(path);
                &text[end..]
            }
        }
    }
    let mut found = Vec::new();
    for (at, _) in code.match_indices("crate::").chain(code.match_indices("super::")) {
        let before = code[..at].chars().next_back();
        if !before.is_some_and(|c| is_word(c) || c == ':' || c == '$') && !code[..at].ends_with("pub(in ") {
            read(&code[at..], &[], &mut found);
        }
    }
    found
}

/// The file that a path of `module` names: the longest prefix that is a module.
fn target(
    modules: &BTreeMap<Vec<String>, String>,
    module: &[String],
    path: &[String],
) -> (Vec<String>, Option<String>) {
    let mut place: Vec<String> = Vec::new();
    let mut names = path.iter().peekable();
    if path[0] == "super" {
        place = module.to_vec();
        while names.next_if(|name| *name == "super").is_some() {
            place.pop();
        }
    } else {
        names.next();
    }
    for name in names {
        let inner: Vec<String> = place.iter().chain([name]).cloned().collect();
        if !modules.contains_key(&inner) {
            return (place, Some(name.clone()));
        }
        place = inner;
    }
    (place, None)
}

fn imports() -> BTreeMap<Vec<String>, BTreeSet<Vec<String>>> {
    let modules = modules();
    let of = |(module, code): (&Vec<String>, &String)| {
        let targets = paths(code).iter().map(|path| target(&modules, module, path).0).collect();
        (module.clone(), targets)
    };
    modules.iter().filter(|(module, _)| !module.is_empty()).map(of).collect()
}

/// The modules in the order of the crate documentation, from the top down.
fn layers() -> Vec<String> {
    let text = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/src/lib.rs")).unwrap();
    let list = text.split("//! ```text\n").nth(1).and_then(|rest| rest.split("//! ```").next()).unwrap();
    list.lines().map(|line| line.split_whitespace().nth(1).unwrap().to_owned()).collect()
}

#[test]
fn every_module_uses_only_modules_below_it() {
    let layers = layers();
    let all: BTreeSet<String> = imports().keys().map(|module| module[0].clone()).collect();
    assert_eq!(layers.iter().cloned().collect::<BTreeSet<_>>(), all);
    let depth = |module: &String| layers.iter().position(|one| one == module).unwrap();
    for (module, targets) in imports() {
        for target in targets {
            let name = module.join("::");
            let used = target.first().unwrap_or_else(|| panic!("{name} imports from the crate root"));
            assert!(depth(used) >= depth(&module[0]), "{name} uses {}", target.join("::"));
        }
    }
}

#[test]
fn no_files_import_each_other_in_a_circle() {
    let imports = imports();
    for (module, direct) in &imports {
        let mut seen = BTreeSet::new();
        let mut open: Vec<&Vec<String>> = direct.iter().filter(|target| *target != module).collect();
        while let Some(next) = open.pop() {
            if seen.insert(next) {
                open.extend(imports.get(next).into_iter().flatten().filter(|target| *target != next));
            }
        }
        assert!(!seen.contains(module), "{} leads back to itself", module.join("::"));
    }
}

#[test]
fn finds_paths_in_groups_and_calls() {
    let code =
        "use super::{a::B, c};\nuse crate::{base::{d, e::F}, g};\nlet x = crate::h::i(); $crate::j::K;";
    let mut found: Vec<String> = paths(code).iter().map(|path| path.join("::")).collect();
    found.sort();
    let expected =
        ["crate::base::d", "crate::base::e::F", "crate::g", "crate::h::i", "super::a::B", "super::c"];
    assert_eq!(found, expected);
}
