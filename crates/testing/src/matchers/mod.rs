//! Matchers: `expect(&value).to_…()` panics with a readable message, a function of the same matcher returns
//! `Result<(), Mismatch>`, and suites use it by its name in camel case.
//!
//! # Add a matcher
//!
//! 1. Add one entry to the list in `matchers/registry.rs`: documentation, type, argument, function and method.
//! 2. Implement [`Match`] for the type, in `lists.rs`, `content.rs` or `rpc.rs`: return `Ok(())`, or a [`Mismatch`] that names
//!    the expected and the actual value. Return [`Subject::unsupported`] for types of values the matcher cannot check; such a
//!    mismatch also fails under [`Expect::not`], so that a test that looks at the wrong value never passes.
//!
//! The function, the method, the name in suites and its entry in their JSON Schema follow from these two. A test in
//! `tests/it/matchers.rs` and a row in the contract table, if the contract names it, complete the change.
//!
//! # Write your own
//!
//! Implement [`Match`], or pass a closure, and use it with [`Expect::to`]:
//!
//! ```
//! use gatewright_testing::{Match, Mismatch, Subject, expect, json};
//!
//! /// The price is below a limit.
//! struct CheaperThan(f64);
//!
//! impl Match for CheaperThan {
//!     fn check(&self, subject: &Subject<'_>) -> Result<(), Mismatch> {
//!         match subject.json()["price"].as_f64() {
//!             Some(price) if price < self.0 => Ok(()),
//!             _ => Err(Mismatch::new(format!("a price below {}", self.0), subject.to_string())),
//!         }
//!     }
//! }
//!
//! let order = json!({"price": 4.5});
//! expect(&order).to(CheaperThan(5.0));
//! expect(&order).not().to(CheaperThan(4.0));
//! expect(&order).to(|subject: &Subject<'_>| match subject.json().is_object() {
//!     true => Ok(()),
//!     false => Err(Mismatch::new("an object", subject.to_string())),
//! });
//! ```

#[cfg(feature = "suites")]
mod argument;
mod content;
mod diff;
mod expect;
mod lists;
mod matching;
mod mismatch;
mod registry;
mod rpc;
mod subject;

pub use diff::json_diff;
pub use expect::{Expect, expect};
pub use matching::Match;
#[cfg(feature = "suites")]
pub(crate) use matching::apply;
pub use mismatch::{Mismatch, Outcome};
pub use registry::*;
pub use subject::{AsSubject, Subject};

#[cfg(feature = "suites")]
pub(crate) use argument::text;
