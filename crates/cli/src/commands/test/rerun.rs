//! Whether a watched suite runs again, from what its files were before and after each run. Nothing here reads a disk.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Component, Path, PathBuf},
    time::SystemTime,
};

/// When files were changed, and their sizes. Paths are [`plain`].
pub type State = BTreeMap<PathBuf, (Option<SystemTime>, u64)>;

/// What was seen of the files so far.
#[derive(Debug, Default)]
pub struct Rerun {
    /// Files that runs write: reports, and what two runs in a row changed and nobody writes by hand.
    outputs: BTreeSet<PathBuf>,
    /// What the last run changed, and is no source.
    written: BTreeSet<PathBuf>,
    /// The files as the last run knew them.
    known: State,
}

impl Rerun {
    /// `reports`: files that every run writes.
    pub fn new<'a>(reports: impl Iterator<Item = &'a PathBuf>) -> Self {
        Self { outputs: reports.map(|file| plain(file)).collect(), ..Self::default() }
    }

    /// Takes note of a run that began at `before` and ended at `after`.
    ///
    /// A source that changed meanwhile was changed by a person, after it was read maybe: that is due. A file of another kind may
    /// be one or the other. That it is new tells of the server, which may write another one in each run; that it is changed
    /// does when the run before changed it, too.
    pub fn ran(&mut self, before: State, after: &State) {
        let mut changed = changes(&before, after);
        changed.retain(|file| !is_source(file));
        self.known = before;
        for file in &changed {
            if let (None, Some(made)) = (self.known.get(file), after.get(file)) {
                self.known.insert(file.clone(), *made);
            }
        }
        self.outputs.extend(changed.intersection(&self.written).cloned());
        self.written = changed;
    }

    /// Whether the files, as they are `now`, want another run.
    pub fn is_due(&self, now: &State) -> bool {
        changes(&self.known, now).iter().any(|file| !self.outputs.contains(file))
    }
}

/// Files that are new, gone or other.
fn changes(before: &State, after: &State) -> BTreeSet<PathBuf> {
    let files = before.keys().chain(after.keys());
    files.filter(|file| before.get(*file) != after.get(*file)).cloned().collect()
}

/// Whether people write files of this kind.
fn is_source(file: &Path) -> bool {
    const ENDINGS: [&str; 10] = ["yaml", "yml", "js", "mjs", "cjs", "ts", "mts", "py", "rs", "go"];
    file.extension().and_then(|ending| ending.to_str()).is_some_and(|ending| ENDINGS.contains(&ending))
}

/// A path without `./`, as directories are walked.
pub fn plain(path: &Path) -> PathBuf {
    path.components().filter(|part| *part != Component::CurDir).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Files by name, with what stands for their time and size.
    fn files(all: &[(&str, u64)]) -> State {
        all.iter().map(|(name, size)| (PathBuf::from(name), (None, *size))).collect()
    }

    fn after_a_run(before: &[(&str, u64)], after: &[(&str, u64)]) -> Rerun {
        let mut rerun = Rerun::default();
        rerun.ran(files(before), &files(after));
        rerun
    }

    #[test]
    fn nothing_is_due_while_nothing_changes() {
        let all = [("a.suite.yaml", 1), ("server.mjs", 1), ("data.json", 1)];
        assert!(!after_a_run(&all, &all).is_due(&files(&all)));
    }

    #[test]
    fn a_file_that_is_new_gone_or_other_is_due_whatever_it_is() {
        let rerun = after_a_run(&[("a.yaml", 1), ("b.json", 1)], &[("a.yaml", 1), ("b.json", 1)]);
        for now in [
            &[("a.yaml", 1), ("b.json", 1), ("c.txt", 1)][..],
            &[("a.yaml", 1)],
            &[("a.yaml", 2), ("b.json", 1)],
            &[("a.yaml", 1), ("b.json", 2)],
        ] {
            assert!(rerun.is_due(&files(now)), "{now:?}");
        }
    }

    #[test]
    fn what_a_person_changed_during_a_run_is_due_when_it_ends() {
        for (before, after) in [(1, 2), (0, 1)] {
            let before = if before == 0 { vec![] } else { vec![("server.mjs", before)] };
            let after = [("server.mjs", after)];
            assert!(after_a_run(&before, &after).is_due(&files(&after)), "{before:?}");
        }
        let (before, after) = ([("data.json", 1)], [("data.json", 2)]);
        assert!(after_a_run(&before, &after).is_due(&files(&after)));
    }

    #[test]
    fn a_file_that_every_run_changes_starts_no_third_one_and_a_source_always_does() {
        for (name, due) in [("state.db", false), ("server.mjs", true)] {
            let at = |size| files(&[(name, size)]);
            let mut rerun = Rerun::default();
            rerun.ran(at(1), &at(2));
            assert!(rerun.is_due(&at(2)), "a person may have changed {name}");
            rerun.ran(at(2), &at(3));
            assert_eq!(rerun.is_due(&at(3)), due, "{name}");
        }
    }

    #[test]
    fn a_file_that_two_runs_changed_with_one_between_that_did_not_is_still_looked_at() {
        let at = |size| files(&[("data.json", size)]);
        let mut rerun = Rerun::default();
        rerun.ran(at(1), &at(2));
        rerun.ran(at(2), &at(2));
        rerun.ran(at(2), &at(3));
        assert!(rerun.is_due(&at(3)));
    }

    #[test]
    fn a_server_that_writes_another_file_in_each_run_does_not_run_for_ever() {
        let mut rerun = Rerun::default();
        let suite = ("a.suite.yaml", 1);
        rerun.ran(files(&[suite]), &files(&[suite, ("1.log", 5)]));
        assert!(!rerun.is_due(&files(&[suite, ("1.log", 5)])));
        assert!(rerun.is_due(&files(&[suite, ("1.log", 6)])), "changed after the run");
        rerun.ran(files(&[suite, ("1.log", 5)]), &files(&[suite, ("1.log", 5), ("2.log", 5)]));
        assert!(!rerun.is_due(&files(&[suite, ("1.log", 5), ("2.log", 5)])));
    }

    #[test]
    fn the_reports_of_a_run_are_never_due() {
        let mut rerun = Rerun::new([PathBuf::from("./out/./report.xml")].iter());
        rerun.ran(files(&[]), &files(&[("out/report.xml", 1)]));
        assert!(!rerun.is_due(&files(&[("out/report.xml", 2)])));
        assert!(!rerun.is_due(&files(&[])));
    }
}
