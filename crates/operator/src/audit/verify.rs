//! Verification of a file: the first line that was changed, removed, added or moved.

use std::io::BufRead;

use serde::Deserialize;

use super::chain::{CONTINUES, LOST, TORN, link, parts, sha256_hex};

/// A file that fits together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verified {
    /// Its lines, torn ones included.
    pub lines: usize,
    /// Lines that a crash cut in two.
    pub torn: usize,
    /// Events that could not be written, as lines say.
    pub lost: u64,
    /// The digest that the file before this one ends with, when the first line says that it continues one.
    pub previous: Option<String>,
    /// Digest of the last line; whoever keeps it elsewhere notices when lines are cut off at the end.
    pub chain: String,
}

/// The first place where a file is not as it was written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Broken {
    /// A line does not follow from the one before.
    #[error(
        "line {0} does not follow from the line before: one of them was changed, or lines between them were taken out, put in or moved"
    )]
    Chain(usize),
    /// A line cannot be read.
    #[error("line {0} is not one that was written here, or was changed by hand")]
    Foreign(usize),
    /// The last line has no end.
    #[error("line {0} is cut off: a crash while it was written, or somebody's hand")]
    CutOff(usize),
    /// The file cannot be read.
    #[error("the file cannot be read: {0}")]
    Io(#[from] std::io::Error),
}

/// Members of a line about the file itself.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Note {
    event: String,
    sha256: String,
    previous: Option<String>,
    count: u64,
}

/// Checks every line from the first on.
///
/// # Errors
/// The first line that does not fit.
pub fn verify(mut file: impl BufRead) -> Result<Verified, Broken> {
    let mut verified = Verified { lines: 0, torn: 0, lost: 0, previous: None, chain: String::new() };
    // What cannot be read, and the number of its first line.
    let mut torn: Option<(Vec<u8>, usize)> = None;
    loop {
        let mut line = Vec::new();
        if file.read_until(b'\n', &mut line)? == 0 {
            break;
        }
        verified.lines += 1;
        let at = verified.lines;
        if line.pop() != Some(b'\n') {
            return Err(Broken::CutOff(at));
        }
        let text = std::str::from_utf8(&line).ok();
        let Some((text, (body, chain))) = text.and_then(|text| Some((text, parts(text)?))) else {
            // It may be a line that was cut in two: then the next one says so. That one may have been cut as well.
            match &mut torn {
                None => torn = Some((line, at)),
                Some((cut, first)) if at == *first + 1 => {
                    cut.push(b'\n');
                    cut.extend(line);
                }
                Some((_, first)) => return Err(Broken::Foreign(*first)),
            }
            continue;
        };
        let note: Note = serde_json::from_str(text).unwrap_or_default();
        if let Some((cut, first)) = torn.take() {
            if note.event != TORN || note.sha256 != sha256_hex(&cut) {
                return Err(Broken::Foreign(first));
            }
            verified.torn += 1;
        }
        if chain != link(&verified.chain, body.as_bytes()) {
            return Err(Broken::Chain(at));
        }
        match note.event.as_str() {
            CONTINUES if at == 1 => verified.previous = note.previous,
            LOST => verified.lost += note.count,
            _ => {}
        }
        chain.clone_into(&mut verified.chain);
    }
    match torn {
        Some((_, first)) => Err(Broken::Foreign(first)),
        None => Ok(verified),
    }
}
