//! Helpers that know nothing of MCP: text, time, JSON comparison, sockets.

pub(crate) mod json;
pub(crate) mod net;
#[cfg(feature = "oauth")]
pub(crate) mod serve;
pub(crate) mod text;
#[cfg(any(feature = "oauth", feature = "http-mock"))]
pub(crate) mod tls;

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::{SystemTime, UNIX_EPOCH},
};

/// Locks a mutex even after a test panicked with it, so that the failure report can still be written.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Seconds since the Unix epoch.
pub(crate) fn unix_now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
}
