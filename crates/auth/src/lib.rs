//! Gatewright auth.
