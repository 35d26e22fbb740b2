//! The validators of a process. They take many times the memory of their schemas, so that those that were not used for long are built again.

use std::sync::{
    Arc, LazyLock, Mutex, PoisonError,
    atomic::{AtomicU64, Ordering},
};

use super::{Compiled, kept::Kept};

/// Memory of all validators that are kept, as estimated.
const MOST_BYTES: usize = 128 << 20;

static VALIDATORS: LazyLock<Mutex<Kept<u64, Compiled>>> = LazyLock::new(|| Mutex::new(Kept::new(MOST_BYTES)));

/// The place of a schema's validator, which is given up with the schema.
#[derive(Debug)]
pub(super) struct Place {
    key: u64,
    /// Held while the validator is built, so that it is built once.
    building: Mutex<()>,
}

impl Place {
    pub(super) fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self { key: NEXT.fetch_add(1, Ordering::Relaxed), building: Mutex::default() }
    }

    /// The validator: the one that is kept, or the one that `build` builds.
    ///
    /// # Errors
    /// `build` fails.
    pub(super) fn get_or_build<E>(
        &self,
        build: impl FnOnce() -> Result<Compiled, E>,
    ) -> Result<Arc<Compiled>, E> {
        let kept = || with_all(|all| all.get(&self.key));
        if let Some(validator) = kept() {
            return Ok(validator);
        }
        let _building = self.building.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(validator) = kept() {
            return Ok(validator);
        }
        let validator = Arc::new(build()?);
        with_all(|all| all.insert(self.key, validator.clone(), validator.bytes));
        Ok(validator)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        with_all(|all| all.remove(&self.key));
    }
}

fn with_all<R>(with: impl FnOnce(&mut Kept<u64, Compiled>) -> R) -> R {
    with(&mut VALIDATORS.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Memory of the validators that are kept now, as estimated.
#[cfg(test)]
pub(super) fn bytes() -> usize {
    with_all(|all| all.bytes())
}
