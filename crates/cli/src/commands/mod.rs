//! One file for each command.

pub mod check;
pub mod completions;
pub mod demo;
pub mod eval;
pub mod mock;
pub mod schema;
pub mod serve;
pub mod token;
pub mod tools;
