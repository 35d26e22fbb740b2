//! The files of suites, and those beside them.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use gatewright_testing::suite::{RunOptions, Suite};

use super::rerun::{self, FileStates};
use crate::exit::BadConfig;

/// Reads all suites, or returns the problems of all of them.
pub fn read(named: &[PathBuf], options: &RunOptions) -> anyhow::Result<Vec<Suite>> {
    let (mut suites, mut problems) = (Vec::new(), Vec::new());
    for file in suites_of(named)? {
        match Suite::from_file(&file).and_then(|suite| suite.check(options).map(|()| suite)) {
            Ok(suite) => suites.push(suite),
            Err(error) => problems.push(error.to_string()),
        }
    }
    if problems.is_empty() {
        return Ok(suites);
    }
    Err(BadConfig(format!("suites that cannot be used\n{}", problems.join("\n"))).into())
}

fn suites_of(named: &[PathBuf]) -> anyhow::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for path in named {
        if !path.is_dir() {
            files.push(path.clone());
            continue;
        }
        let before = files.len();
        visit(path, &mut |file| {
            let name = file.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            if ["suite.yaml", "suite.yml", "suite.json"].iter().any(|end| name.ends_with(end)) {
                files.push(file.to_owned());
            }
        });
        if files.len() == before {
            return Err(BadConfig(format!(
                "{} holds no suite; their names end in suite.yaml, suite.yml or suite.json",
                path.display()
            ))
            .into());
        }
    }
    Ok(files)
}

/// The suites to run again after files changed: those among them if only suites changed, otherwise all.
pub fn due(named: &[PathBuf], changed: &BTreeSet<PathBuf>) -> Vec<PathBuf> {
    let all = suites_of(named).unwrap_or_default();
    let changed_suites: Vec<PathBuf> =
        all.iter().filter(|file| changed.contains(&rerun::plain(file))).cloned().collect();
    if changed_suites.len() == changed.len() { changed_suites } else { named.to_vec() }
}

/// Visits the files below a directory in order of their names, without directories of generated files.
fn visit(dir: &Path, found: &mut impl FnMut(&Path)) {
    const LEFT_OUT: [&str; 4] = ["node_modules", "target", "__pycache__", "venv"];
    let Ok(entries) = std::fs::read_dir(dir) else { return };
    let mut entries: Vec<_> = entries.filter_map(Result::ok).collect();
    entries.sort_by_key(std::fs::DirEntry::file_name);
    for entry in entries {
        let (name, path) = (entry.file_name(), entry.path());
        let name = name.to_string_lossy();
        let Ok(kind) = entry.file_type() else { continue };
        if name.starts_with('.') || LEFT_OUT.contains(&name.as_ref()) {
            continue;
        }
        match kind.is_dir() {
            true => visit(&path, found),
            false => found(&path),
        }
    }
}

/// States of the suites and of the files in their directories.
pub fn states(named: &[PathBuf]) -> FileStates {
    const MOST: usize = 5_000;
    let mut found = FileStates::new();
    for path in named {
        let dir = if path.is_dir() { path } else { path.parent().unwrap_or(Path::new(".")) };
        let dir = if dir.as_os_str().is_empty() { Path::new(".") } else { dir };
        visit(dir, &mut |file| {
            if found.len() < MOST
                && let Ok(facts) = file.metadata()
            {
                found.insert(rerun::plain(file), (facts.modified().ok(), facts.len()));
            }
        });
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_suite_runs_alone_and_a_changed_server_runs_all() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        for name in ["a.suite.yaml", "b.suite.yaml", "server.mjs"] {
            std::fs::write(path(name), "").unwrap();
        }
        let named = [dir.path().to_owned()];
        let due = |changed: &[&str]| due(&named, &changed.iter().map(|name| path(name)).collect());
        assert_eq!(due(&["b.suite.yaml"]), [path("b.suite.yaml")]);
        assert_eq!(due(&["b.suite.yaml", "server.mjs"]), named);
        assert_eq!(due(&["server.mjs"]), named);
    }
}
