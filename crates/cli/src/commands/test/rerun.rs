//! The decision to run a watched suite again, from the state of its files before and after each run. Nothing here reads a disk.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Component, Path, PathBuf},
    time::SystemTime,
};

/// Modification times and sizes of files. Paths are [`plain`].
pub type FileStates = BTreeMap<PathBuf, (Option<SystemTime>, u64)>;

/// The observed states of the files.
#[derive(Debug, Default)]
pub struct Rerun {
    /// Files that runs write: reports, and generated files that two consecutive runs changed.
    outputs: BTreeSet<PathBuf>,
    /// Files that the last run changed, without sources.
    written: BTreeSet<PathBuf>,
    /// The files as the last run read them.
    known: FileStates,
}

impl Rerun {
    /// Ignores changes of `reports`, which every run writes.
    pub fn new<'a>(reports: impl Iterator<Item = &'a PathBuf>) -> Self {
        Self { outputs: reports.map(|file| plain(file)).collect(), ..Self::default() }
    }

    /// Records a run with the states of the files before and after it.
    ///
    /// A source that changed during the run was changed by a person, perhaps after it was read, so another run is due. Other files
    /// may be written by the server: new ones are assumed to be, and changed ones if the previous run changed them, too.
    pub fn ran(&mut self, before: FileStates, after: &FileStates) {
        let mut changed = changes(&before, after);
        changed.retain(|file| !is_source(file));
        self.known = before;
        for file in &changed {
            if let (None, Some(created)) = (self.known.get(file), after.get(file)) {
                self.known.insert(file.clone(), *created);
            }
        }
        self.outputs.extend(changed.intersection(&self.written).cloned());
        self.written = changed;
    }

    /// Returns the files that, in the state `now`, require another run.
    pub fn due(&self, now: &FileStates) -> BTreeSet<PathBuf> {
        let mut changed = changes(&self.known, now);
        changed.retain(|file| !self.outputs.contains(file));
        changed
    }
}

/// Files that were added, removed or changed.
fn changes(before: &FileStates, after: &FileStates) -> BTreeSet<PathBuf> {
    let files = before.keys().chain(after.keys());
    files.filter(|file| before.get(*file) != after.get(*file)).cloned().collect()
}

/// Returns true for file types that people write.
fn is_source(file: &Path) -> bool {
    const ENDINGS: [&str; 10] = ["yaml", "yml", "js", "mjs", "cjs", "ts", "mts", "py", "rs", "go"];
    file.extension().and_then(|ending| ending.to_str()).is_some_and(|ending| ENDINGS.contains(&ending))
}

/// The path without `./`, as a directory walk returns it.
pub fn plain(path: &Path) -> PathBuf {
    path.components().filter(|part| *part != Component::CurDir).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Files by name, with a number in place of time and size.
    fn files(all: &[(&str, u64)]) -> FileStates {
        all.iter().map(|(name, size)| (PathBuf::from(name), (None, *size))).collect()
    }

    impl Rerun {
        fn is_due_now(&self, now: &FileStates) -> bool {
            !self.due(now).is_empty()
        }
    }

    fn after_a_run(before: &[(&str, u64)], after: &[(&str, u64)]) -> Rerun {
        let mut rerun = Rerun::default();
        rerun.ran(files(before), &files(after));
        rerun
    }

    #[test]
    fn nothing_is_due_while_nothing_changes() {
        let all = [("a.suite.yaml", 1), ("server.mjs", 1), ("data.json", 1)];
        assert!(!after_a_run(&all, &all).is_due_now(&files(&all)));
    }

    #[test]
    fn any_added_removed_or_changed_file_is_due() {
        let rerun = after_a_run(&[("a.yaml", 1), ("b.json", 1)], &[("a.yaml", 1), ("b.json", 1)]);
        for now in [
            &[("a.yaml", 1), ("b.json", 1), ("c.txt", 1)][..],
            &[("a.yaml", 1)],
            &[("a.yaml", 2), ("b.json", 1)],
            &[("a.yaml", 1), ("b.json", 2)],
        ] {
            assert!(rerun.is_due_now(&files(now)), "{now:?}");
        }
    }

    #[test]
    fn a_source_changed_during_a_run_is_due_when_it_ends() {
        for (before, after) in [(1, 2), (0, 1)] {
            let before = if before == 0 { vec![] } else { vec![("server.mjs", before)] };
            let after = [("server.mjs", after)];
            assert!(after_a_run(&before, &after).is_due_now(&files(&after)), "{before:?}");
        }
        let (before, after) = ([("data.json", 1)], [("data.json", 2)]);
        assert!(after_a_run(&before, &after).is_due_now(&files(&after)));
    }

    #[test]
    fn a_file_that_every_run_changes_starts_no_third_run_but_a_source_does() {
        for (name, due) in [("state.db", false), ("server.mjs", true)] {
            let at = |size| files(&[(name, size)]);
            let mut rerun = Rerun::default();
            rerun.ran(at(1), &at(2));
            assert!(rerun.is_due_now(&at(2)), "a person may have changed {name}");
            rerun.ran(at(2), &at(3));
            assert_eq!(rerun.is_due_now(&at(3)), due, "{name}");
        }
    }

    #[test]
    fn a_file_changed_by_two_runs_that_are_not_consecutive_is_still_watched() {
        let at = |size| files(&[("data.json", size)]);
        let mut rerun = Rerun::default();
        rerun.ran(at(1), &at(2));
        rerun.ran(at(2), &at(2));
        rerun.ran(at(2), &at(3));
        assert!(rerun.is_due_now(&at(3)));
    }

    #[test]
    fn a_server_that_writes_a_new_file_in_each_run_does_not_cause_endless_runs() {
        let mut rerun = Rerun::default();
        let suite = ("a.suite.yaml", 1);
        rerun.ran(files(&[suite]), &files(&[suite, ("1.log", 5)]));
        assert!(!rerun.is_due_now(&files(&[suite, ("1.log", 5)])));
        assert!(rerun.is_due_now(&files(&[suite, ("1.log", 6)])), "changed after the run");
        rerun.ran(files(&[suite, ("1.log", 5)]), &files(&[suite, ("1.log", 5), ("2.log", 5)]));
        assert!(!rerun.is_due_now(&files(&[suite, ("1.log", 5), ("2.log", 5)])));
    }

    #[test]
    fn the_reports_of_a_run_are_never_due() {
        let mut rerun = Rerun::new([PathBuf::from("./out/./report.xml")].iter());
        rerun.ran(files(&[]), &files(&[("out/report.xml", 1)]));
        assert!(!rerun.is_due_now(&files(&[("out/report.xml", 2)])));
        assert!(!rerun.is_due_now(&files(&[])));
    }
}
