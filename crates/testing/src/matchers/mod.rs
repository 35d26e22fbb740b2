//! Matchers: `expect(&value).to_…()` panics with a readable message, a function of the same matcher returns
//! `Result<(), Mismatch>`, and suites use it by its name in camel case.
//!
//! # Add a matcher
//!
//! 1. Add one entry to the list in `matchers/registry.rs`: documentation, type, argument, function and method.
//! 2. Implement [`Match`] for the type, in the file of its topic (`lists.rs`, `content.rs`, `values.rs` and others): return `Ok(())`, or a [`Mismatch`] that names
//!    the expected and the actual value. Return [`Subject::unsupported`] for types of values the matcher cannot check; such a
//!    mismatch also fails under [`Expect::not`], so that a test that looks at the wrong value never passes.
//!
//! The function, the method, the name in suites and its entry in their JSON Schema follow from these two. A test in
//! `tests/it/matchers.rs` and a row in the contract table, if the contract names it, complete the change.
//!
//! # Go to a part
//!
//! [`Expect::at`] goes to a part of a result before it is matched. Paths start at the result as the server sent it:
//!
//! ```
//! use gatewright_testing::{expect, json};
//!
//! let result = json!({"content": [{"type": "text", "text": "21 °C"}], "structuredContent": {"degrees": 21}, "isError": false});
//! expect(&result).at("structuredContent.degrees").to_be_in_range(-50..=60);
//! expect(&result).at("content.*.text").to_match_regex(r"^-?\d+ °C$");
//! expect(&result).at("isError").to_equal(false);
//! expect(&result).not().to_have_property("structuredContent.password");
//! ```
//!
//! # Write your own
//!
//! Implement [`Match`], or pass a closure, and use it with [`Expect::to`], [`Expect::each`] or [`Expect::containing`]:
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
mod arguments;
mod at;
mod content;
mod diff;
mod expect;
mod items;
mod latency;
mod lists;
mod matching;
mod mismatch;
mod numbers;
mod recorded;
mod registry;
mod rpc;
mod snapshot;
mod subject;
mod values;
#[cfg(feature = "suites")]
mod vocabulary;

#[cfg(feature = "suites")]
pub(crate) use argument::text;
#[cfg(feature = "suites")]
pub(crate) use arguments::KeptFiles;
pub use arguments::{
    ItemMatcher, JsonSchema, Latency, LogMessage, Message, NumberRange, Path, Pattern, Snapshot, Times,
};
pub use diff::json_diff;
pub use expect::{Expect, expect};
pub use matching::Match;
pub use mismatch::{Mismatch, Outcome};
#[cfg(feature = "suites")]
pub(crate) use registry::registered;
pub use registry::*;
pub use subject::{AsSubject, Recorded, Subject};
#[cfg(feature = "suites")]
pub(crate) use vocabulary::{Expectation, Vocabulary};
