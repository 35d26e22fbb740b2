//! Integration tests, one file per capability.

#[cfg(test)]
#[cfg(feature = "guard")]
mod guarded;
#[cfg(test)]
mod hello;
#[cfg(test)]
#[cfg(feature = "guard")]
mod questions;
