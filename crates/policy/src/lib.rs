//! Policies in Cedar: a [`PolicyEngine`](gatewright_core::PolicyEngine) that decides on calls of tools, on resources and prompts.
//!
//! Files are read in `load`, and what their policies look at in `reads`; requests become Cedar's values in `values`, and are decided on in
//! `engine` with what `classes` keeps; `quick` evaluates the usual conditions. `bounds` limits how long and deep policies are. `check` compares policies with a catalog, by the schema that `schema` makes of it;
//! `comparisons` finds the values that conditions compare attributes with, and `caller_names` lists scopes, clients and endpoints that policies name.
#![forbid(unsafe_code)]

mod bounds;
mod caller_names;
mod cedar;
mod check;
mod classes;
mod comparisons;
mod engine;
mod load;
mod quick;
mod reads;
mod residual;
mod schema;
mod values;

pub use caller_names::{CallerName, CallerNameKind};
pub use check::Catalog;
pub use engine::{CedarPolicies, Explanation, Matched};
pub use load::{PolicyFile, PolicyProblem};
