//! The files that may have unsafe code. They do nothing else.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// Files with unsafe code, below `crates`.
const ALLOWED: [&str; 7] = [
    "agentscript/src/engine/raw.rs",
    "agentscript/src/worker/harden.rs",
    "agentscript/src/worker/heap.rs",
    "agentscript/src/worker/heap/allocator.rs",
    "agentscript/src/worker/heap/tests.rs",
    "cli/src/allocator.rs",
    "upstream/src/stdio/sys.rs",
];

pub(crate) fn rust_files(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.ends_with("target") {
            rust_files(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
}

#[test]
fn unsafe_code_is_only_in_the_files_of_the_list() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut files = Vec::new();
    rust_files(&crates, &mut files);
    let starts = ["{", "fn ", "impl ", "extern "].map(|what| ["unsafe", what].join(" "));
    let is_unsafe = |text: &str| {
        let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
        code.into_iter().any(|line| starts.iter().any(|start| line.contains(start)))
    };
    let mut found: Vec<String> = files
        .iter()
        .filter(|path| is_unsafe(&fs::read_to_string(path).unwrap()))
        .map(|path| path.strip_prefix(&crates).unwrap().to_string_lossy().replace('\\', "/"))
        .collect();
    found.sort();
    assert_eq!(found, ALLOWED);
}
