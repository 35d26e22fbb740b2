//! Rate limits on tools: how often one caller may call.
//!
//! [`Limits`] is a [`RateLimiter`](gatewright_core::RateLimiter): meta-tools, direct calls and calls inside scripts are all counted. Each rule counts
//! each caller apart: a subject with all its clients, or an address where nobody logs in. Counts are kept in the process, or by a [`SharedCounter`] for all
//! instances together.

mod limiter;
mod local;
mod rule;

pub use limiter::{Counted, CounterFuture, Limits, SharedCounter, Unavailable};
pub use rule::RateLimitRule;
