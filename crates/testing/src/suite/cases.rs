//! Cases of tests: the variables of each, and the names of the tests that they make.

use std::{collections::HashMap, path::Path};

use gatewright_findings::{Finding, escape};
use serde_json::{Map, Value};

use super::{
    environment::resolve_path,
    format::{CasesSection, SuiteFile, TestEntry},
    variables::Variables,
};
use crate::{base::text::shorten, matchers::text};

/// Most cases of a test.
const MOST: usize = 10_000;

/// A test to run: an entry of the file, with the variables of one case.
#[derive(Debug, Clone)]
pub(super) struct Instance {
    /// The index of the entry.
    pub(super) test: usize,
    /// The name in reports.
    pub(super) name: String,
    /// The place of the entry, or of the case in the suite.
    pub(super) pointer: String,
    /// Variables of the case; none without `cases`.
    pub(super) case: Map<String, Value>,
    /// True for a case of a file, whose texts are literal.
    is_of_file: bool,
}

impl Instance {
    /// Adds the variables of the case. Texts of a case in the suite may have variables themselves.
    pub(super) fn add_to(&self, variables: &mut Variables) -> Result<(), String> {
        let filled = self.case.iter().map(|(name, value)| {
            let value = if self.is_of_file { value.clone() } else { variables.fill(value)? };
            Ok((name.clone(), value))
        });
        let filled = filled.collect::<Result<Map<_, _>, String>>()?;
        variables.known.extend(filled);
        Ok(())
    }
}

/// All tests of a suite, with the problems of their cases. Files are relative to `dir`.
pub(super) fn instances(file: &SuiteFile, dir: Option<&Path>) -> (Vec<Instance>, Vec<Finding>) {
    let (mut all, mut findings, mut names) = (Vec::new(), Vec::new(), Names::default());
    for (index, test) in file.tests.iter().enumerate() {
        let place = format!("/tests/{index}");
        let Some(section) = &test.cases else {
            let name = names.unique(test.name.clone());
            all.push(Instance { test: index, name, pointer: place, case: Map::new(), is_of_file: false });
            continue;
        };
        let (cases, is_inline) = match section {
            CasesSection::Inline(cases) => (Ok(cases.clone()), true),
            CasesSection::File(name) => (read(&resolve_path(dir, name)), false),
        };
        let pointer = format!("{place}/cases");
        match cases {
            Err(problem) => findings.push(Finding::new(&pointer, problem)),
            Ok(cases) if cases.is_empty() => {
                findings.push(Finding::new(&pointer, "there is no case, so the test would never run"));
            }
            Ok(cases) if cases.len() > MOST => {
                findings.push(Finding::new(&pointer, format!("{} cases are more than {MOST}", cases.len())));
            }
            Ok(cases) => {
                for (at, case) in cases.into_iter().enumerate() {
                    let pointer = if is_inline { format!("{pointer}/{at}") } else { pointer.clone() };
                    for name in case.keys().filter(|name| test.variables.contains_key(*name)) {
                        let pointer = format!("{place}/variables/{}", escape(name));
                        findings.push(Finding::new(&pointer, "the cases have a variable of this name, too"));
                    }
                    let name = names.unique(name(test, &case));
                    all.push(Instance { test: index, name, pointer, case, is_of_file: !is_inline });
                }
            }
        }
    }
    findings.dedup();
    (all, findings)
}

/// The name of a test with its case: variables in the name, or the values behind it.
fn name(test: &TestEntry, case: &Map<String, Value>) -> String {
    if test.name.contains("${") {
        // Other variables are not known yet, and stay as they are written.
        return case.iter().fold(test.name.clone(), |name, (key, value)| {
            name.replace(&format!("${{{key}}}"), &shorten(&text(value), 60))
        });
    }
    let values: Vec<String> =
        case.iter().map(|(key, value)| format!("{key}={}", shorten(&text(value), 40))).collect();
    format!("{} [{}]", test.name, values.join(", "))
}

/// Names that tests have, with the number of tests that wanted each.
#[derive(Default)]
struct Names(HashMap<String, usize>);

impl Names {
    /// The name, with a number if there is a test of this name already.
    fn unique(&mut self, name: String) -> String {
        let count = self.0.entry(name.clone()).and_modify(|count| *count += 1).or_insert(1);
        let numbered = if *count == 1 { name } else { format!("{name} #{count}") };
        self.0.entry(numbered.clone()).or_insert(1);
        numbered
    }
}

fn read(path: &Path) -> Result<Vec<Map<String, Value>>, String> {
    let shown = path.display();
    let content =
        std::fs::read_to_string(path).map_err(|error| format!("{shown} cannot be read: {error}"))?;
    match path.extension().and_then(|ending| ending.to_str()) {
        Some("json") => serde_json::from_str(&content)
            .map_err(|error| format!("{shown} is no JSON array of objects: {error}")),
        Some("csv") => rows(&content).map_err(|error| format!("{shown}: {error}")),
        _ => Err(format!("{shown}: the name of a file with cases ends in .csv or .json")),
    }
}

/// The rows of a CSV file (RFC 4180) by the names in the first line.
fn rows(content: &str) -> Result<Vec<Map<String, Value>>, csv::Error> {
    let mut reader = csv::ReaderBuilder::new().trim(csv::Trim::Headers).from_reader(content.as_bytes());
    let names = reader.headers()?.clone();
    let row = |record: csv::StringRecord| {
        let named = names.iter().zip(record.iter());
        named.map(|(name, cell)| (name.to_owned(), value_of(cell))).collect()
    };
    reader.records().map(|record| record.map(row)).collect()
}

/// The value of a cell: JSON, such as `7`, `true`, `null` or `"7"`, and otherwise text.
fn value_of(cell: &str) -> Value {
    serde_json::from_str(cell).unwrap_or_else(|_| cell.into())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn cells_of_a_csv_file_are_json_or_text() {
        let rows = rows("a, b,c\n7,007,\"x, \"\"y\"\"\"\n\"\"\"7\"\"\",true,\n").unwrap();
        assert_eq!(
            json!(rows),
            json!([{"a": 7, "b": "007", "c": "x, \"y\""}, {"a": "7", "b": true, "c": ""}])
        );
        assert!(super::rows("a,b\n1\n").unwrap_err().to_string().contains("line: 2"));
    }
}
