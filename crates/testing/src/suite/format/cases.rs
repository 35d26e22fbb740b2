//! The key `cases` of a test.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

/// Cases of a test: in the suite, or in a file.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(untagged)]
pub(in crate::suite) enum CasesSection {
    /// Variables by name, for each case.
    Inline(Vec<Map<String, Value>>),
    /// A `.csv` file whose first line has the names, or a `.json` file with an array of objects.
    File(String),
}
