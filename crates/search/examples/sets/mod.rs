//! Labelled sets of a folder.

use std::{error::Error, fs::File, io::BufReader, path::Path};

use gatewright_search::{
    Document,
    eval::{Case, read_cases, read_corpus},
};

/// Tools, and requests with those that answer them.
pub struct Set {
    pub name: String,
    pub corpus: Vec<Document>,
    pub cases: Vec<Case>,
}

/// The sets of a folder, each a folder with `corpus.jsonl` and `queries.jsonl`.
pub fn load(folder: &Path) -> Result<Vec<Set>, Box<dyn Error>> {
    let mut sets = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        sets.push(Set {
            name: path.file_name().unwrap_or_default().to_string_lossy().into_owned(),
            corpus: read_corpus(BufReader::new(File::open(path.join("corpus.jsonl"))?))?,
            cases: read_cases(BufReader::new(File::open(path.join("queries.jsonl"))?))?,
        });
    }
    sets.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(sets)
}
