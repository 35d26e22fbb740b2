//! The tests that failed in the last run, for `--last-failed`: a file in the user's cache for each working directory.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    path::{Path, PathBuf},
};

use gatewright_testing::suite::{SuiteReport, TestOutcome};
use sha2::{Digest as _, Sha256};

/// Names of tests by the file of their suite.
pub type Failed = BTreeMap<String, BTreeSet<String>>;

/// Where the failures of runs in a working directory are kept. `None` without a home directory.
pub fn file(environment: &HashMap<String, String>, dir: &Path) -> Option<PathBuf> {
    let set = |name: &str| environment.get(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let cache = set("XDG_CACHE_HOME").or_else(|| Some(set("HOME")?.join(".cache")))?;
    let digest = Sha256::digest(dir.as_os_str().as_encoded_bytes());
    let name: String = digest.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
    Some(cache.join("gatewright/last-failed").join(format!("{name}.json")))
}

/// The tests that failed in the last run; none if there was no run.
pub fn read(file: &Path) -> Failed {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    serde_json::from_str(&text).unwrap_or_default()
}

/// Keeps what failed: tests that ran replace what is known of them, others stay.
pub fn update(file: &Path, reports: &[SuiteReport]) -> std::io::Result<()> {
    let mut failed = read(file);
    merge(&mut failed, reports);
    if let Some(dir) = file.parent() {
        std::fs::create_dir_all(dir)?;
    }
    std::fs::write(file, serde_json::to_string(&failed)?)
}

fn merge(failed: &mut Failed, reports: &[SuiteReport]) {
    for report in reports {
        let names = failed.entry(report.file.clone()).or_default();
        for test in &report.tests {
            match test.outcome {
                TestOutcome::Failed(_) => names.insert(test.name.clone()),
                TestOutcome::Passed => names.remove(&test.name),
                TestOutcome::Skipped(_) => false,
            };
        }
        // A test that was renamed is gone.
        if report.left_out == 0 {
            names.retain(|name| report.tests.iter().any(|test| test.name == *name));
        }
    }
    failed.retain(|_, names| !names.is_empty());
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use gatewright_testing::suite::TestReport;

    use super::*;

    fn report(left_out: usize, tests: &[(&str, TestOutcome)]) -> SuiteReport {
        let test = |(name, outcome): &(&str, TestOutcome)| TestReport {
            name: (*name).to_owned(),
            line: None,
            outcome: outcome.clone(),
            failure: None,
            duration: Duration::ZERO,
            notes: Vec::new(),
        };
        let tests = tests.iter().map(test).collect();
        SuiteReport { name: "s".into(), file: "s.yaml".into(), tests, left_out, interrupted: false }
    }

    #[test]
    fn only_tests_that_ran_again_are_forgotten() {
        let (fails, passes) = (TestOutcome::Failed("why".into()), TestOutcome::Passed);
        let mut failed = Failed::new();
        merge(
            &mut failed,
            &[report(0, &[("a", fails.clone()), ("b", fails.clone()), ("c", passes.clone())])],
        );
        merge(&mut failed, &[report(2, &[("a", passes.clone())])]);
        assert_eq!(failed["s.yaml"], BTreeSet::from(["b".to_owned()]));
        merge(&mut failed, &[report(0, &[("renamed", passes)])]);
        assert!(failed.is_empty());
    }

    #[test]
    fn each_working_directory_has_its_file() {
        let environment = HashMap::from([("HOME".to_owned(), "/home/ada".to_owned())]);
        let of = |dir: &str| file(&environment, Path::new(dir)).unwrap();
        assert!(of("/a").starts_with("/home/ada/.cache/gatewright/last-failed"));
        assert_ne!(of("/a"), of("/b"));
        assert_eq!(file(&HashMap::new(), Path::new("/a")), None);
    }
}
