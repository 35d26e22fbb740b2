//! The whole gateway, as a client sees it.

mod arrows;
mod check;
mod describe;
mod examples;
mod execute;
mod invoke;
mod search;
mod serve;
mod support;
mod visibility;
