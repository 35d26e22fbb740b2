//! Fuzzing: calls the tools of a server with valid, boundary and invalid inputs that are made from their schemas, and reports the promises
//! that they break.
//!
//! `cases` makes inputs (`values` those that fit), `choose` leaves out tools that may destroy something, `judge` finds what one call broke,
//! `shrink` makes its input smaller, `suite_text` writes a suite that repeats it. `run` has the course of all of it.

mod cases;
mod choose;
mod finding;
mod judge;
mod leaks;
mod random;
mod readable;
mod run;
mod shrink;
mod suite_text;
mod target;
mod values;
mod watch;

pub(crate) use finding::LIST;
pub use finding::{Finding, FuzzReport, Promise, Severity, ToolReport};
pub(crate) use judge::weight;
pub use readable::readable;
pub use run::{FuzzOptions, fuzz};
pub use target::Target;
