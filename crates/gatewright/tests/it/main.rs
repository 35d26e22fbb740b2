//! Integration tests, one file per capability.

#[cfg(all(test, feature = "guard"))]
mod guarded;
