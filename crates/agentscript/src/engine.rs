//! The only module that names the JavaScript engine: realms, and runs in them.
//!
//! A [`Realm`] is a fresh runtime with everything a script may touch, frozen. It is built before a run is known and serves one run.
//! What a run may spend is counted in `state`; the text it runs comes from the validator; frames go through `worker::Link`; `locale` writes texts for people.

mod compile;
mod locale;
pub(crate) mod names;
mod prepare;
mod realm;
mod run;
mod state;

pub(crate) use compile::{Compiler, Uncompilable};
pub(crate) use prepare::prepare;
pub(crate) use realm::Realm;
pub(crate) use run::{Ending, Failure, Settings, wrapped};
