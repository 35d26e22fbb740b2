//! Detects that a file has changed.
//!
//! Files are polled every half second rather than watched through the kernel. Polling also sees a file that an editor replaces, a
//! symlink in its path that is redirected (Kubernetes volumes), and network file systems.

use std::{os::unix::fs::MetadataExt as _, path::PathBuf, time::Duration};

use gatewright_codecall::PlanSources;

use crate::config::Config;

/// Time between two polls.
const EVERY: Duration = Duration::from_millis(500);
/// Time without a change after which a file counts as completely written.
const SETTLED: Duration = Duration::from_millis(150);

/// Identity and state of a file: device, inode, size, mtime, ctime. `None` if it is missing.
type Fingerprint = Option<(u64, u64, u64, i64, i64, i64, i64)>;

/// State of files that must be there, and of those of saved plans, policies and pins, which may come and go.
#[derive(Debug, Clone, Default, PartialEq)]
struct State {
    files: Vec<Fingerprint>,
    plans: Vec<(PathBuf, Fingerprint)>,
    policies: Vec<Fingerprint>,
}

/// Files, with their state when it was last recorded.
pub(super) struct FileWatch {
    paths: Vec<PathBuf>,
    plans: Vec<PlanSources>,
    policies: Vec<PathBuf>,
    recorded: State,
    /// A missing file has been logged.
    warned: bool,
}

impl FileWatch {
    /// Records the state of the files.
    pub(super) fn new(paths: impl Iterator<Item = PathBuf>) -> Self {
        let paths: Vec<PathBuf> = paths.collect();
        let recorded = State { files: fingerprints(&paths), ..State::default() };
        Self { paths, plans: Vec::new(), policies: Vec::new(), recorded, warned: false }
    }

    /// Watches the saved plans of `config` too, for a caller that is about to read them, and its policies and pins, which were read.
    pub(super) fn watch(&mut self, config: &Config) {
        self.plans = config.apps.values().filter_map(|app| app.plan_sources().cloned()).collect();
        self.recorded.plans = plan_files(&self.plans);
        // The state of files that were watched before is of before they were read.
        let watched: Vec<PathBuf> =
            config.policy_files.watched.iter().chain(&config.pin_file.path).cloned().collect();
        if self.policies != watched {
            self.policies = watched;
            self.recorded.policies = fingerprints(&self.policies);
        }
    }

    /// Returns once all files exist, at least one differs from its recorded state, and all are completely written.
    pub(super) async fn changed(&mut self) {
        loop {
            tokio::time::sleep(EVERY).await;
            let mut now = self.poll().await;
            if now == self.recorded {
                continue;
            }
            loop {
                tokio::time::sleep(SETTLED).await;
                let again = self.poll().await;
                if again == now {
                    break;
                }
                now = again;
            }
            if let Some(gone) = now.files.iter().position(Option::is_none) {
                if !std::mem::replace(&mut self.warned, true) {
                    let path = self.paths[gone].display();
                    tracing::warn!("{path} is missing; its last content stays in force until it is back");
                }
                continue;
            }
            self.warned = false;
            if now != self.recorded {
                return;
            }
        }
    }

    /// Records the state of the files, for a caller that is about to read them.
    pub(super) async fn record(&mut self) {
        self.recorded = self.poll().await;
    }

    async fn poll(&self) -> State {
        let (paths, plans, policies) = (self.paths.clone(), self.plans.clone(), self.policies.clone());
        let poll = move || State {
            files: fingerprints(&paths),
            plans: plan_files(&plans),
            policies: fingerprints(&policies),
        };
        tokio::task::spawn_blocking(poll).await.unwrap_or_else(|_| self.recorded.clone())
    }
}

/// The files of plans; of a folder that cannot be read, none.
fn plan_files(sources: &[PlanSources]) -> Vec<(PathBuf, Fingerprint)> {
    let files: Vec<PathBuf> =
        sources.iter().flat_map(|sources| sources.files().unwrap_or_default()).collect();
    let found = fingerprints(&files);
    files.into_iter().zip(found).collect()
}

fn fingerprints(paths: &[PathBuf]) -> Vec<Fingerprint> {
    let fingerprint = |path: &PathBuf| {
        let file = std::fs::metadata(path).ok()?;
        Some((
            file.dev(),
            file.ino(),
            file.size(),
            file.mtime(),
            file.mtime_nsec(),
            file.ctime(),
            file.ctime_nsec(),
        ))
    };
    paths.iter().map(fingerprint).collect()
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::symlink, path::Path};

    use super::*;

    async fn notices(watch: &mut FileWatch) -> bool {
        tokio::time::timeout(Duration::from_secs(20), watch.changed()).await.is_ok()
    }

    fn watch(path: &Path) -> FileWatch {
        FileWatch::new(std::iter::once(path.to_owned()))
    }

    #[tokio::test]
    async fn a_file_that_is_replaced_as_editors_do_is_noticed_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("c.yaml");
        fs::write(&path, "a").unwrap();
        let mut watch = watch(&path);
        fs::write(folder.path().join("new"), "b").unwrap();
        fs::rename(folder.path().join("new"), &path).unwrap();
        assert!(notices(&mut watch).await);
        watch.record().await;
        let again = tokio::time::timeout(3 * EVERY, watch.changed()).await;
        assert!(again.is_err(), "nothing has changed since");
    }

    #[tokio::test]
    async fn a_symlink_on_the_way_that_is_swapped_is_noticed() {
        let folder = tempfile::tempdir().unwrap();
        for (version, text) in [("v1", "a"), ("v2", "b")] {
            fs::create_dir(folder.path().join(version)).unwrap();
            fs::write(folder.path().join(version).join("c.yaml"), text).unwrap();
        }
        let link = |target: &str, name: &str| symlink(target, folder.path().join(name)).unwrap();
        link("v1", "..data");
        link("..data/c.yaml", "c.yaml");
        let mut watch = watch(&folder.path().join("c.yaml"));
        link("v2", "..data_tmp");
        fs::rename(folder.path().join("..data_tmp"), folder.path().join("..data")).unwrap();
        assert!(notices(&mut watch).await);
    }

    #[tokio::test]
    async fn a_file_that_is_gone_for_a_while_is_noticed_when_it_is_back() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("c.yaml");
        fs::write(&path, "a").unwrap();
        let mut watch = watch(&path);
        fs::remove_file(&path).unwrap();
        let gone = tokio::time::timeout(3 * EVERY, watch.changed()).await;
        assert!(gone.is_err(), "a missing file is no new configuration");
        fs::write(&path, "b").unwrap();
        assert!(notices(&mut watch).await);
    }
}
