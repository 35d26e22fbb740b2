//! Gatewright server.
