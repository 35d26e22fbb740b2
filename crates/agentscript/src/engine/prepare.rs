//! From the caller's text to what the engine compiles, and places back to the caller's text.

use super::{Ending, Settings};
use crate::script::{Rejection, Script, ScriptSource};

/// Validates `source`.
pub(crate) fn prepare(source: &str, settings: &Settings) -> Result<Script, Ending> {
    ScriptSource::new(source).validate(&settings.policy, &settings.limits).map_err(
        |rejection| match rejection {
            Rejection::SyntaxError { message, location } => Ending::Syntax { message, location },
            Rejection::Illegal { kind, message, location } => {
                Ending::Illegal { kind, message, location: Some(location) }
            }
        },
    )
}

impl Ending {
    /// The same ending with its place in the caller's text instead of the text that ran.
    pub(crate) fn in_source(mut self, script: &Script) -> Self {
        match &mut self {
            Self::Illegal { location: Some(location), .. }
            | Self::Runtime { location: Some(location), .. } => {
                *location = script.map_location(*location);
            }
            // The engine found fault with the result when the script's own code had ended.
            Self::Runtime { location, returned: Some(number), .. } => *location = script.returned(*number),
            _ => {}
        }
        self
    }
}
