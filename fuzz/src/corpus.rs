//! Saved inputs of the fuzz targets, for tests of the workspace.

use std::{fs, path::Path};

/// Name and bytes of every input saved for `target`, in the order of their names.
pub(crate) fn of(target: &str) -> Vec<(String, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target);
    let mut inputs: Vec<_> = fs::read_dir(&folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .map(|entry| {
            let path = entry.expect("a folder that can be read").path();
            (path.display().to_string(), fs::read(&path).expect("an input"))
        })
        .collect();
    inputs.sort();
    assert!(!inputs.is_empty(), "{} holds no input", folder.display());
    inputs
}
