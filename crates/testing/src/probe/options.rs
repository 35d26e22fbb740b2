//! Options of a probe.

use std::time::Duration;

use crate::{fuzz::FuzzOptions, token::TokenFactory};

/// Options of a probe.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ProbeOptions {
    /// Calls of tools: time, seed, tools that are called.
    pub fuzz: FuzzOptions,
    /// Time of the whole probe. Default: 90 s more than that of the calls.
    pub deadline: Option<Duration>,
    /// An issuer whose tokens the server accepts, for tokens that are expired or for another audience. Default: none.
    pub issuer: Option<TokenFactory>,
}

impl Default for ProbeOptions {
    fn default() -> Self {
        let fuzz = FuzzOptions { time: Duration::from_secs(60), ..FuzzOptions::default() };
        Self { fuzz, deadline: None, issuer: None }
    }
}
