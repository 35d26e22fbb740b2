//! Saved plans: scripts in files with a header, which are tools of an app like any other.
//!
//! `sources` finds the files, `header` reads the comment that each begins with, `plan` makes a tool of it, `safety` its annotations, `app`
//! offers the tools, and `run` runs them. A plan has no rights of its own: each call that it makes goes through the gateway for the caller
//! of the plan. `nesting` beside this module has the limits that plans share with the scripts that call them.

mod app;
mod header;
mod plan;
mod run;
mod safety;
mod sources;

pub(crate) use header::has_header;

pub use app::{PlanChanges, PlanReport, SavedPlans};
pub use sources::PlanSources;
