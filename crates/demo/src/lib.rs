//! Gatewright demo.
