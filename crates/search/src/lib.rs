//! Gatewright search.
