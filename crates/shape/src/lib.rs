//! Shapes of JSON values: field names, types, optionality and lengths, learned from values and written as JSON Schema.
//!
//! A [`Shape`] contains no values. Names of object members are contents as well when a server uses data as keys, so a name is
//! kept only if it reads like a field's, and is shown only to a [`Witness`] whose values had it or once [`ENOUGH_WITNESSES`]
//! different ones had it (docs/adr/0016). Size and work are bounded, whatever the values are.
#![forbid(unsafe_code)]

mod digits;
mod learn;
mod merge;
mod names;
mod schema;
mod shape;

pub use digits::{Digits, keep_digits, loses_digits, spell_long_integers};
pub use names::LONGEST_NAME;
pub use shape::{DEEPEST, ENOUGH_WITNESSES, MOST_FIELDS, MOST_NODES, Shape, Witness};
