//! Paths of this process, which errors show to no client.

use std::path::{Path, PathBuf};

use gatewright_core::OwnPaths;

use crate::environment::environment;

/// The home folder, the program, and these files.
pub fn own_paths(files: &[PathBuf]) -> OwnPaths {
    let environment = environment();
    let home = environment.get("HOME").or_else(|| environment.get("USERPROFILE"));
    let program = std::env::current_exe().ok();
    OwnPaths {
        home: home.map(|home| plain(Path::new(home))).filter(|home| !home.is_empty()),
        others: files.iter().chain(&program).map(|path| plain(path)).collect(),
    }
}

fn plain(path: &Path) -> String {
    let whole = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    whole.to_string_lossy().replace('\\', "/").trim_end_matches('/').to_owned()
}
