//! Gatewright testing-macros.
