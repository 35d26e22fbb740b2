//! Identity of a server: tests share one only if everything is the same.

use std::{
    ffi::OsStr,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

use aws_lc_rs::digest::{Context, SHA256};

use crate::server::{builder::ServerBuilder, marked, program::Program};

/// The start of the names of variables that differ from test to test under `cargo nextest`, or from server to server.
const OF_THE_TEST: [&str; 3] = ["NEXTEST", "__NEXTEST", marked::VARIABLE];

/// The id of a run of `cargo nextest`, the same for all its tests.
const RUN_ID: &str = "NEXTEST_RUN_ID";

/// A digest of program, arguments, environment and options, of the files they name, and of the run. Contains none of them, since a
/// variable may be a secret.
pub(super) fn of(options: &ServerBuilder) -> String {
    let mut identity = Identity(Context::new(&SHA256));
    let program = Program::find(&options.server);
    identity.file(&on_path(&program.program));
    for arg in program.args.iter().chain(&options.args) {
        identity.text(arg);
        let dir = options.current_dir.as_deref().unwrap_or(Path::new(""));
        let path = dir.join(arg);
        if path.is_file() {
            identity.file(&path);
        }
    }
    let dir = options.current_dir.clone().map_or_else(std::env::current_dir, Ok).unwrap_or_default();
    identity.text(dir.as_os_str());
    for (name, value) in &options.env {
        identity.text(name);
        identity.text(value);
    }
    let kept = |name: &OsStr| {
        let name = name.to_string_lossy();
        !OF_THE_TEST.iter().any(|start| name.starts_with(start))
    };
    let mut inherited: Vec<_> = std::env::vars_os().filter(|(name, _)| kept(name)).collect();
    inherited.sort();
    for (name, value) in inherited {
        identity.text(&name);
        identity.text(&value);
    }
    let others = (
        options.port,
        options.transport,
        &options.path,
        &options.ready_path,
        &options.log_level,
        options.stop_timeout,
        run(),
    );
    identity.text(format!("{others:?}"));
    let digest = identity.0.finish();
    digest.as_ref().iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}

/// The directory of all shared servers of a build: beside the programs that cargo built.
pub(super) fn directory() -> PathBuf {
    let test = std::env::current_exe().unwrap_or_default();
    let built = test.parent().filter(|dir| dir.file_name().is_some_and(|name| name == "deps"));
    let dir = built.and_then(Path::parent).map_or_else(std::env::temp_dir, Path::to_owned);
    dir.join("gatewright-shared-servers")
}

/// The run: that of `cargo nextest`, otherwise this process.
fn run() -> String {
    let run = std::env::var_os(RUN_ID).map(|id| id.to_string_lossy().into_owned());
    run.unwrap_or_else(|| {
        let pid = std::process::id();
        format!("{pid} {:?}", super::state::started_at(pid))
    })
}

/// The file of a program that is named without a directory.
fn on_path(program: &Path) -> PathBuf {
    if program.components().count() > 1 {
        return program.to_owned();
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).map(|dir| dir.join(program)).find(|path| path.is_file());
    found.unwrap_or_else(|| program.to_owned())
}

struct Identity(Context);

impl Identity {
    fn text(&mut self, text: impl AsRef<OsStr>) {
        let bytes = text.as_ref().as_encoded_bytes();
        self.0.update(&bytes.len().to_le_bytes());
        self.0.update(bytes);
    }

    /// The place of a file, and what changes when it is written again.
    fn file(&mut self, path: &Path) {
        let path = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        self.text(&path);
        if let Ok(data) = std::fs::metadata(&path) {
            let changes =
                (data.dev(), data.ino(), data.size(), data.mtime(), data.mtime_nsec(), data.ctime_nsec());
            self.text(format!("{changes:?}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::server::Server;

    use super::*;

    #[test]
    fn any_other_program_argument_variable_or_changed_file_is_another_server() {
        let dir = tempfile::tempdir().unwrap();
        let script = dir.path().join("server.mjs");
        std::fs::write(&script, "1").unwrap();
        let builder = || Server::builder(script.display().to_string()).arg("a").env("MODE", "x");
        let same = of(&builder());
        assert_eq!(of(&builder()), same);
        let others = [
            Server::builder("other.mjs").arg("a").env("MODE", "x"),
            builder().arg("b"),
            builder().env("MODE", "y"),
            builder().env("MORE", ""),
            builder().port(9),
            builder().ready_path("/up"),
            builder().current_dir(dir.path()),
        ];
        let mut seen = vec![same.clone()];
        for other in others {
            let identity = of(&other);
            assert!(!seen.contains(&identity), "{other:?}");
            seen.push(identity);
        }
        std::fs::write(&script, "22").unwrap();
        assert_ne!(of(&builder()), same);
    }
}
