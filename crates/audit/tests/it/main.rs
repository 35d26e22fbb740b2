//! The audit file from outside.

#[cfg(test)]
mod chain;
