//! Gatewright core.
