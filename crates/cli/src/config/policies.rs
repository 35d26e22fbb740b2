//! Reads the policy files that a configuration names.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use gatewright_findings::Finding;
use gatewright_policy::{CedarPolicies, PolicyFile, PolicyProblem};

use super::file;

/// Most files of policies.
const MOST_FILES: usize = 1_000;

/// The policy files of a configuration.
#[derive(Debug, Clone, Default)]
pub struct PolicyFiles {
    /// The policies, if the configuration names any.
    pub engine: Option<Arc<CedarPolicies>>,
    /// Files and folders whose changes matter.
    pub watched: Vec<PathBuf>,
    /// Paths and texts, to notice what differs.
    pub(super) texts: Vec<String>,
}

/// Reads the files that `patterns` name, which are relative to the folder `base`.
pub(super) fn read(patterns: &[String], base: &Path) -> (PolicyFiles, Vec<Finding>) {
    let (mut policies, mut found) = (PolicyFiles::default(), Vec::new());
    if patterns.is_empty() {
        return (policies, found);
    }
    let mut files: Vec<(usize, PolicyFile)> = Vec::new();
    for (at, pattern) in patterns.iter().enumerate() {
        let place = format!("/policies/{at}");
        let paths = match matching(pattern, base) {
            Ok((folder, paths)) => {
                policies.watched.extend(folder);
                paths
            }
            Err(problem) => {
                found.push(Finding::new(&place, problem));
                continue;
            }
        };
        for path in paths {
            let name = path.strip_prefix(base).unwrap_or(&path).display().to_string();
            policies.watched.push(path.clone());
            if files.iter().any(|(_, known)| known.name == name) {
                continue;
            }
            match file::text(&path) {
                Ok(text) => files.push((at, PolicyFile { name, text })),
                Err(error) => found.push(Finding::new(&place, error.to_string())),
            }
        }
    }
    if files.len() > MOST_FILES {
        found.push(Finding::new("/policies", format!("more than {MOST_FILES} files; join some")));
    }
    if !found.is_empty() {
        return (policies, found);
    }
    policies.texts = files.iter().flat_map(|(_, file)| [file.name.clone(), file.text.clone()]).collect();
    let of_file = |name: &str| files.iter().find(|(_, file)| file.name == name).map_or(0, |(at, _)| *at);
    match CedarPolicies::read(files.iter().map(|(_, file)| file.clone()).collect()) {
        Ok(engine) => policies.engine = Some(Arc::new(engine)),
        Err(problems) => {
            found.extend(problems.iter().map(|problem| {
                policy_finding(&format!("/policies/{}", of_file(&problem.file)), problem, base)
            }))
        }
    }
    (policies, found)
}

/// A problem of a policy, whose file is relative to `base`, as a finding at `pointer` of the configuration.
pub fn policy_finding(pointer: &str, problem: &PolicyProblem, base: &Path) -> Finding {
    let finding = Finding::new(pointer, problem.problem.clone()).in_file(&base.join(&problem.file));
    Finding { line: Some(problem.line), ..finding }
}

/// The files of a pattern, in the order of their names; and its folder, for one with `*`.
fn matching(pattern: &str, base: &Path) -> Result<(Option<PathBuf>, Vec<PathBuf>), String> {
    let whole = base.join(pattern);
    let (folder, last) = (whole.parent().unwrap_or(base), whole.file_name().and_then(|name| name.to_str()));
    let Some(last) = last.filter(|last| last.contains('*')) else {
        return match pattern.contains('*') {
            true => {
                Err("`*` may stand for a part of the file's name only, as in `policies/*.cedar`".to_owned())
            }
            false => Ok((None, vec![whole])),
        };
    };
    if folder.to_string_lossy().contains('*') {
        return Err("`*` may stand for a part of the file's name only, as in `policies/*.cedar`".to_owned());
    }
    let entries = fs::read_dir(folder).map_err(|error| format!("its folder cannot be read: {error}"))?;
    let mut paths: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.is_file())
        .filter(|path| path.file_name().and_then(|name| name.to_str()).is_some_and(|name| fits(last, name)))
        .collect();
    paths.sort_unstable();
    match paths.is_empty() {
        true => Err("matches no file".to_owned()),
        false => Ok((Some(folder.to_owned()), paths)),
    }
}

/// Returns `true` if `name` fits a pattern in which `*` stands for any text. Names that begin with a dot fit if the pattern does so.
fn fits(pattern: &str, name: &str) -> bool {
    let mut literals = pattern.split('*');
    let first = literals.next().unwrap_or_default();
    let Some(mut rest) =
        name.strip_prefix(first).filter(|_| !name.starts_with('.') || first.starts_with('.'))
    else {
        return false;
    };
    let literals: Vec<&str> = literals.collect();
    let Some((last, middle)) = literals.split_last() else { return rest.is_empty() };
    for literal in middle {
        let Some(at) = rest.find(literal) else { return false };
        rest = &rest[at + literal.len()..];
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_any_part_of_a_name() {
        for (pattern, name, expected) in [
            ("*.cedar", "a.cedar", true),
            ("*.cedar", "a.cedar.bak", false),
            ("*.cedar", ".a.cedar", false),
            (".*", ".a", true),
            ("a*b*c", "a1b2c", true),
            ("a*b*c", "a1c2b", false),
            ("*", "x", true),
        ] {
            assert_eq!(fits(pattern, name), expected, "{pattern} {name}");
        }
    }
}
