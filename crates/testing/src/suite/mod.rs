//! Test suites in YAML, for teams that write no Rust. `gatewright test FILE…` runs them, and so does a test in Rust:
//!
//! ```no_run
//! use gatewright_testing::suite::{RunOptions, Suite};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! Suite::from_file("tests/weather.yaml")?.run(&RunOptions::default()).await.assert_passed();
//! # Ok(())
//! # }
//! ```
//!
//! The keys and an example are in `docs/testing/suites.md`, and in [`schema`]. Each test has its own client; the tests of a suite
//! share one server and run concurrently.

mod answers;
mod cases;
mod check;
mod environment;
mod expectations;
mod failure;
mod file;
mod format;
mod observations;
mod options;
mod report;
mod results;
mod run;
mod session;
mod step;
mod summary;
mod tolerant;
mod upstreams;
mod variables;

pub use check::schema;
pub use file::{Suite, SuiteError};
pub use gatewright_findings::Finding;
pub use options::RunOptions;
pub use report::{Live, LiveFormat, json, junit, readable, tap};
pub use results::{FailureDetails, SuiteReport, TestOutcome, TestReport};
pub use run::run_all;
pub(crate) use session::Session;
