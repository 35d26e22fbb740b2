//! The environment of this process, read in one place.

use std::collections::HashMap;

/// Variables whose name and value are Unicode.
pub fn environment() -> HashMap<String, String> {
    std::env::vars_os()
        .filter_map(|(key, value)| Some((key.into_string().ok()?, value.into_string().ok()?)))
        .collect()
}
