//! Integration tests, one file per capability.

#[cfg(test)]
mod memory;
