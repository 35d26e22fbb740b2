//! Checks of expectations.

use gatewright_findings::unknown;
use serde_json::Value;

use crate::{
    matchers::registered,
    suite::expectations::{self, Expectation},
};

pub(super) fn check_expectation(written: &Value) -> Result<(), String> {
    let expectation = Expectation::parse(written)?;
    let name = &expectation.name;
    match expectations::find(name) {
        Some(registered) => expectation.check_argument(registered),
        None => {
            let names = registered().iter().map(|one| &*one.name);
            Err(format!("`{name}`: {}", unknown("expectation", name, names)))
        }
    }
}
