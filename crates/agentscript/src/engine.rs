//! The only module that names the JavaScript engine: realms, and runs in them.
//!
//! A [`Realm`] is a runtime with everything that a script may touch, frozen. It is built before a run is known and is put back to its first
//! state after each. `state` counts what a run spends; `answers` reads the host's answers; `locale` formats numbers, dates and the order of
//! texts; `texts` reads the script's texts and `halves` replaces halves of surrogate pairs in them; `raw` has the calls without a safe wrapper. The text that runs comes from the validator.

mod answers;
mod compile;
mod limit_errors;
mod locale;
pub(crate) mod names;
mod places;
mod raw;
mod realm;
mod run;
mod state;
mod surrogates;
mod texts;

pub(crate) use compile::Compiler;
pub(crate) use limit_errors::by_host;
pub(crate) use places::wrapped;
pub(crate) use realm::Realm;
