//! Gatewright upstream.
