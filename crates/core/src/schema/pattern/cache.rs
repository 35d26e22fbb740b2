//! Programs that are used, for the whole process.

use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use super::program::Program;
use crate::schema::kept::Kept;

/// Memory of the programs that are kept.
const MOST_BYTES: usize = 16 << 20;
/// Memory of an entry besides its program and its expression, about.
const ENTRY: usize = 256;

static PROGRAMS: LazyLock<Mutex<Kept<Arc<str>, Program>>> =
    LazyLock::new(|| Mutex::new(Kept::new(MOST_BYTES)));

/// The program of an expression, if it is kept.
pub(super) fn get(expression: &str) -> Option<Arc<Program>> {
    PROGRAMS.lock().unwrap_or_else(PoisonError::into_inner).get(expression)
}

/// Keeps a program.
pub(super) fn insert(expression: &str, program: Arc<Program>) {
    let bytes = program.bytes() + expression.len() + ENTRY;
    PROGRAMS.lock().unwrap_or_else(PoisonError::into_inner).insert(expression.into(), program, bytes);
}

/// Memory of the programs that are kept now.
#[cfg(test)]
pub(super) fn bytes() -> usize {
    PROGRAMS.lock().unwrap_or_else(PoisonError::into_inner).bytes()
}
