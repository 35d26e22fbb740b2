//! Gatewright testing.
