//! The registry and the gateway from outside.

mod local_app;
mod support;
