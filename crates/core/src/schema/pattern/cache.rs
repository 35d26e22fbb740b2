//! Programs that are used, for the whole process. Their memory is bounded together: those that were not used for long are made again.

use std::{
    collections::HashMap,
    sync::{Arc, LazyLock, Mutex, PoisonError},
};

use super::program::Program;

/// Memory of the programs that are kept.
const MOST_BYTES: usize = 16 << 20;
/// Memory of an entry besides its program and its expression, about.
const ENTRY: usize = 256;

/// Programs by expression: those that were used lately, and those that were before. Either half is at most half of all.
#[derive(Default)]
pub(super) struct Cache {
    recent: HashMap<Arc<str>, Arc<Program>>,
    older: HashMap<Arc<str>, Arc<Program>>,
    recent_bytes: usize,
}

impl Cache {
    pub(super) fn get(&mut self, expression: &str) -> Option<Arc<Program>> {
        if let Some(program) = self.recent.get(expression) {
            return Some(program.clone());
        }
        let (expression, program) = self.older.remove_entry(expression)?;
        self.insert(expression, program.clone());
        Some(program)
    }

    pub(super) fn insert(&mut self, expression: Arc<str>, program: Arc<Program>) {
        let bytes = program.bytes() + expression.len() + ENTRY;
        if self.recent_bytes + bytes > MOST_BYTES / 2 {
            self.older = std::mem::take(&mut self.recent);
            self.recent_bytes = 0;
        }
        if self.recent.insert(expression, program).is_none() {
            self.recent_bytes += bytes;
        }
    }

    #[cfg(test)]
    pub(super) fn bytes(&self) -> usize {
        let of =
            |(expression, program): (&Arc<str>, &Arc<Program>)| program.bytes() + expression.len() + ENTRY;
        self.recent.iter().chain(&self.older).map(of).sum()
    }
}

/// Calls `with` with the programs of this process.
pub(super) fn shared<R>(with: impl FnOnce(&mut Cache) -> R) -> R {
    static CACHE: LazyLock<Mutex<Cache>> = LazyLock::new(Mutex::default);
    with(&mut CACHE.lock().unwrap_or_else(PoisonError::into_inner))
}
