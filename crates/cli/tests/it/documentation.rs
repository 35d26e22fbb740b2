//! The documents are correct: references match the code, commands parse, configurations are valid, links have targets, and the book
//! has every page.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::Value;

use crate::support::gatewright;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// README.md, CONTRIBUTING.md and every page below docs/, with their texts.
fn pages() -> Vec<(PathBuf, String)> {
    fn below(folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => below(&path, found),
                false if path.extension().is_some_and(|extension| extension == "md") => found.push(path),
                false => {}
            }
        }
    }
    let mut found = vec![root().join("README.md"), root().join("CONTRIBUTING.md")];
    below(&root().join("docs"), &mut found);
    found.sort();
    assert!(found.len() > 15, "{found:?}");
    found.into_iter().map(|path| (path.clone(), fs::read_to_string(path).unwrap())).collect()
}

/// A fenced block.
struct Block {
    /// Page and line, for messages.
    place: String,
    /// The text after the fence.
    kind: String,
    text: String,
}

fn blocks() -> Vec<Block> {
    let mut blocks = Vec::new();
    for (path, text) in pages() {
        let name = path.strip_prefix(root()).unwrap().display().to_string();
        let mut open: Option<Block> = None;
        for (number, line) in text.lines().enumerate() {
            match (line.trim_start().strip_prefix("```"), &mut open) {
                (Some(_), Some(_)) => blocks.extend(open.take()),
                (Some(kind), None) => {
                    let place = format!("{name}:{}", number + 1);
                    open = Some(Block { place, kind: kind.trim().to_owned(), text: String::new() });
                }
                (None, Some(block)) => {
                    block.text.push_str(line);
                    block.text.push('\n');
                }
                (None, None) => {}
            }
        }
        assert!(open.is_none(), "{name}: a block is not closed");
    }
    blocks
}

fn of_kind(kind: &str) -> Vec<Block> {
    blocks().into_iter().filter(|block| block.kind.split([' ', ',']).next() == Some(kind)).collect()
}

#[test]
fn the_references_say_what_the_code_says() {
    for what in ["config", "errors", "commands", "clients"] {
        let output = Command::new(gatewright()).args(["reference", what]).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let page = root().join(format!("docs/reference/{what}.md"));
        let text = fs::read_to_string(&page).unwrap();
        let fresh = String::from_utf8(output.stdout).unwrap();
        let line = text.lines().zip(fresh.lines()).position(|(a, b)| a != b).unwrap_or(0);
        assert!(
            text == fresh,
            "docs/reference/{what}.md is out of date at line {}: scripts/reference writes it again\n- {}\n+ {}",
            line + 1,
            text.lines().nth(line).unwrap_or_default(),
            fresh.lines().nth(line).unwrap_or_default()
        );
    }
}

#[test]
fn the_readme_and_the_quickstart_tell_clients_of_the_gateway_as_the_reference_does() {
    let page = fs::read_to_string(root().join("docs/reference/clients.md")).unwrap();
    let start = page.find("| client | connect it |").unwrap();
    let table = page[start..].split("\n\n").next().unwrap();
    for name in ["README.md", "docs/quickstart/platform.md"] {
        let text = fs::read_to_string(root().join(name)).unwrap();
        assert!(text.contains(table), "{name} has another table of clients than docs/reference/clients.md");
    }
}

/// Every code that the crates can answer with is in the reference.
#[test]
fn no_error_code_of_the_sources_is_missing_in_the_reference() {
    let reference = fs::read_to_string(root().join("docs/reference/errors.md")).unwrap();
    let mut seen = 0;
    for file in [
        "core/src/codes.rs",
        "agentscript/src/outcome.rs",
        "openapi/src/call/failure.rs",
        "upstream/src/failure.rs",
        "upstream/src/app.rs",
        "upstream/src/call.rs",
        "upstream/src/per_caller.rs",
        "upstream/src/upstream.rs",
        "upstream/src/stdio/lines.rs",
        "codecall/src/execute.rs",
        "executions/src/error.rs",
    ] {
        let text = fs::read_to_string(root().join("crates").join(file)).unwrap();
        // Quoted words in capitals with an underscore.
        for word in text.split('"').skip(1).step_by(2) {
            let capital = |c: char| c.is_ascii_uppercase() || c == '_';
            if word.len() > 5 && word.contains('_') && word.chars().all(capital) {
                seen += 1;
                assert!(
                    reference.contains(&format!("`{word}`")),
                    "{file} has {word}; docs/reference/errors.md has not"
                );
            }
        }
    }
    assert!(seen > 25, "the search finds the codes: {seen}");
}

#[test]
fn every_configuration_passes_check() {
    let mut checked = 0;
    for block in of_kind("yaml") {
        let value: Value = serde_saphyr::from_str(&block.text)
            .unwrap_or_else(|error| panic!("{}: it is no YAML: {error}", block.place));
        // `yaml values` is for Helm, and a suite of the test kit has `tests`.
        if block.kind != "yaml" || value.get("tests").is_some() {
            continue;
        }
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("gatewright.yaml");
        fs::write(&file, &block.text).unwrap();
        std::os::unix::fs::symlink(root().join("examples/plans"), folder.path().join("plans")).unwrap();
        let document = root().join("examples/openapi/billing.yaml");
        std::os::unix::fs::symlink(document, folder.path().join("billing.yaml")).unwrap();
        let mut command = Command::new(gatewright());
        command.args(["check", "--config"]).arg(&file);
        for name in block.text.split("${").skip(1) {
            let name = name.split(['}', ':']).next().unwrap();
            let value = match name.rsplit('_').next() {
                Some("IP") => "10.0.0.1".to_owned(),
                Some("HASH") => crate::gate::password_hash(),
                _ => "5e".repeat(32),
            };
            command.env(name, value);
        }
        command.env("REDIS_HOST", "127.0.0.1");
        let output = command.output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{}: {said}", block.place);
        checked += 1;
    }
    assert!(checked >= 4, "there are configurations to check: {checked}");
}

#[test]
fn values_of_the_chart_are_values_it_has() {
    let schema = fs::read_to_string(root().join("deploy/helm/gatewright/values.schema.json")).unwrap();
    let schema: Value = serde_json::from_str(&schema).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let mut checked = 0;
    for block in of_kind("yaml").into_iter().filter(|block| block.kind == "yaml values") {
        let values: Value = serde_saphyr::from_str(&block.text).unwrap();
        let wrong: Vec<String> = validator.iter_errors(&values).map(|error| error.to_string()).collect();
        assert!(wrong.is_empty(), "{}: {wrong:?}", block.place);
        checked += 1;
    }
    assert!(checked > 0);
}

#[test]
fn json_and_toml_parse() {
    for block in of_kind("json") {
        let parsed: Result<Value, _> = serde_json::from_str(&block.text);
        assert!(parsed.is_ok(), "{}: {}", block.place, parsed.unwrap_err());
    }
    for block in of_kind("toml") {
        let parsed: Result<toml::Table, _> = toml::from_str(&block.text);
        assert!(parsed.is_ok(), "{}: {}", block.place, parsed.unwrap_err());
    }
}

/// The words of one shell line, without its comment; each command of a pipe or list on its own.
fn commands(line: &str) -> Vec<Vec<String>> {
    let (mut commands, mut words, mut word, mut quote) =
        (Vec::new(), Vec::new(), None::<String>, None::<char>);
    for c in line.chars() {
        match (quote, c) {
            (Some(q), c) if c == q => quote = None,
            (Some(_), c) => word.get_or_insert_default().push(c),
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, '#') if word.is_none() => break,
            (None, c) if c.is_whitespace() => words.extend(word.take()),
            (None, '|' | ';' | '&') => {
                words.extend(word.take());
                commands.push(std::mem::take(&mut words));
            }
            (None, c) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    commands.push(words);
    commands.retain(|command| !command.is_empty());
    commands
}

#[test]
fn shell_lines_are_split_as_a_shell_does() {
    assert_eq!(commands(r#"a 'b c' --d="e f" | g "" # h"#), [vec!["a", "b c", "--d=e f"], vec!["g", ""]]);
    assert_eq!(commands("a && b"), [["a"], ["b"]]);
}

#[test]
fn every_command_parses() {
    let mut parsed = 0;
    for block in of_kind("sh") {
        for line in block.text.replace("\\\n", " ").lines() {
            for mut words in commands(line) {
                // What is read from a file is no argument.
                if let Some(at) = words.iter().position(|word| word == "<") {
                    words.truncate(at);
                }
                if words.starts_with(&["cargo".to_owned(), "run".to_owned()]) {
                    // What follows `--` is for the binary, when it is this one that runs.
                    let other = words.iter().any(|word| word == "--example" || word == "-p");
                    match words.iter().position(|word| word == "--") {
                        Some(at) if !other => words.drain(..=at),
                        _ => continue,
                    };
                } else if words.first().is_some_and(|word| word == "gatewright") {
                    words.remove(0);
                } else {
                    continue;
                }
                // With --help a line is parsed and nothing is done. Whatever follows `--` is for another program.
                let own = words.iter().position(|word| word == "--").unwrap_or(words.len());
                words.insert(own, "--help".to_owned());
                let output = Command::new(gatewright()).args(&words).output().unwrap();
                let said = String::from_utf8_lossy(&output.stderr).into_owned();
                assert!(output.status.success(), "{}: gatewright {}\n{said}", block.place, words.join(" "));
                parsed += 1;
            }
        }
    }
    assert!(parsed > 20, "there are commands to parse: {parsed}");
}

#[test]
fn a_wrong_command_would_be_noticed() {
    for wrong in [["serve", "--confg", "x"], ["tools", "serch", "x"], ["health", "--timeout", "soon"]] {
        let output = Command::new(gatewright()).args(wrong).arg("--help").output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{wrong:?}");
    }
}

#[test]
fn links_between_pages_lead_somewhere() {
    for (path, text) in pages() {
        for target in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let file = target.split('#').next().unwrap();
            if file.is_empty() || file.contains("://") || file.contains(' ') || file.starts_with("mailto:") {
                continue;
            }
            let there = path.parent().unwrap().join(file);
            assert!(there.exists(), "{}: {target}", path.display());
        }
    }
}

#[test]
fn source_files_named_in_the_guides_of_the_code_exist() {
    let mut files = Vec::new();
    crate::unsafe_code::rust_files(&root().join("crates"), &mut files);
    let short = |path: &str| path.replace("crates/", "").replace("/src/", "/");
    let files: Vec<String> = files
        .iter()
        .map(|path| format!("/{}", short(&path.strip_prefix(root()).unwrap().to_string_lossy())))
        .collect();
    for guide in ["docs/ARCHITECTURE.md", "docs/GLOSSARY.md", "CONTRIBUTING.md"] {
        let text = fs::read_to_string(root().join(guide)).unwrap();
        let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || "_/.-".contains(c)));
        for named in words.filter(|word| word.ends_with(".rs")) {
            let end = format!("/{}", short(named));
            assert!(files.iter().any(|file| file.ends_with(&end)), "{guide}: {named}");
        }
    }
}

#[test]
fn the_book_has_every_page() {
    let summary = fs::read_to_string(root().join("docs/SUMMARY.md")).unwrap();
    for (path, _) in pages() {
        let Ok(page) = path.strip_prefix(root().join("docs")) else { continue };
        let listed = page == Path::new("SUMMARY.md") || summary.contains(&format!("({})", page.display()));
        assert!(listed, "docs/SUMMARY.md does not list {}", page.display());
    }
}

#[test]
fn programs_in_the_quickstarts_are_compiled() {
    let including = fs::read_to_string(root().join("crates/gatewright/src/lib.rs")).unwrap();
    for block in of_kind("rust").into_iter().filter(|block| block.place.starts_with("docs/quickstart/")) {
        let page = block.place.split(':').next().unwrap();
        assert!(
            including.contains(&format!("include_str!(\"../../../{page}\")")),
            "{} is no doctest",
            block.place
        );
    }
}
