//! Builds what runs from a configuration: apps, the gateway with its semantic search, and the guard around it.
//!
//! The parts of the guard (authentication, limits, audit, metrics, traces) are put together in the crate `gatewright`. Nothing here reads a file of
//! the configuration (`config`) or decides when to read it again (`reload`).

pub mod apps;
pub mod auth_store;
pub mod embedding;
pub mod gateway;
pub mod guard;
mod own_paths;
pub mod policies;
