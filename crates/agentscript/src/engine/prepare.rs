//! From the caller's text to what the engine compiles.

use super::{Ending, Settings};
use crate::{Rejection, Script, ScriptSource};

/// Validates `source`; gives what to run.
pub(crate) fn prepare(source: &str, settings: &Settings) -> Result<Script, Ending> {
    ScriptSource::new(source).validate(&settings.policy, &settings.limits).map_err(|rejection| match rejection {
        Rejection::SyntaxError { message, location } => Ending::Syntax { message, location },
        Rejection::Illegal { kind, message, location } => Ending::Illegal { kind, message, location: Some(location) },
    })
}
