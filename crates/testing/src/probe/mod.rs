//! A probe of a stranger's server: lifecycle, protocol, shapes, tools, Streamable HTTP and authorization, with a grade for each.
//!
//! Every wait has a limit, and so has the whole. `run` has the course, `context` the clients; `notebook` keeps what was found, also when the time is up.

mod auth;
mod bypass;
mod context;
mod http;
mod lifecycle;
mod mismatch;
mod notebook;
mod options;
mod protocol;
mod readable;
mod report;
mod run;
mod shapes;

pub use options::ProbeOptions;
pub use readable::readable;
pub use report::{Area, AreaReport, Finding, Grade, ProbeReport};
pub use run::probe;
