//! Reading a labelled set.

use std::io::BufRead;

use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::Document;

/// A query and what it should find.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Case {
    /// The query.
    pub query: String,
    /// Names of all documents that answer it.
    pub relevant: Vec<String>,
}

/// A set that cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The source could not be read.
    #[error("line {line} could not be read")]
    Io {
        /// Counted from 1.
        line: usize,
        /// Cause.
        #[source]
        source: std::io::Error,
    },
    /// A line is not the expected JSON object.
    #[error("line {line} is not valid: {source}")]
    Line {
        /// Counted from 1.
        line: usize,
        /// Cause.
        #[source]
        source: serde_json::Error,
    },
}

/// Reads a corpus: one `{name, appId, description, inputSchema}` a line. Blank lines are skipped.
///
/// # Errors
/// When a line cannot be read or is not such an object.
pub fn read_corpus(source: impl BufRead) -> Result<Vec<Document>, ReadError> {
    lines(source)
}

/// Reads queries: one `{query, relevant}` a line. Blank lines are skipped.
///
/// # Errors
/// When a line cannot be read or is not such an object.
pub fn read_cases(source: impl BufRead) -> Result<Vec<Case>, ReadError> {
    lines(source)
}

fn lines<T: DeserializeOwned>(source: impl BufRead) -> Result<Vec<T>, ReadError> {
    let mut out = Vec::new();
    for (at, text) in source.lines().enumerate() {
        let line = at + 1;
        let text = text.map_err(|source| ReadError::Io { line, source })?;
        if !text.trim().is_empty() {
            out.push(serde_json::from_str(&text).map_err(|source| ReadError::Line { line, source })?);
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bad_line_is_named_by_its_number() {
        let error = read_cases("{\"query\":\"a\",\"relevant\":[]}\n\nnot json\n".as_bytes()).unwrap_err();
        assert!(matches!(error, ReadError::Line { line: 3, .. }), "{error}");
    }

    #[test]
    fn a_corpus_may_leave_out_all_but_the_name() {
        let corpus = read_corpus("{\"name\":\"a:b\"}\n".as_bytes()).unwrap();
        assert_eq!(corpus[0].name, "a:b");
        assert_eq!(corpus[0].description, "");
    }
}
