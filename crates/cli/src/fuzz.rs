//! Body of the fuzz target `config`: an ordinary function that panics on a violation. A test runs it over the corpus.

use std::collections::HashMap;

use gatewright_findings::Format;

use crate::config::{Config, Surroundings};

/// Value of the variable `SECRET`. No finding may show it.
const SECRET: &str = "hush-4f1c9d";

/// Reads any text as a configuration of each format: it is accepted, or every problem has a reason and a line of the file.
pub fn config(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let variables = [("SECRET", SECRET), ("PORT", "8080"), ("EMPTY", "")];
    let environment: HashMap<String, String> =
        variables.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    // Neither files nor commands: the text is anybody's.
    let around = Surroundings { environment: &environment, folder: None, is_own: false };
    let lines = text.matches(['\n', '\r']).count() + 1;
    for format in [Format::Yaml, Format::Json, Format::Toml] {
        let (config, findings, _) = Config::parse(&text, format, around);
        assert!(config.is_some() || !findings.is_empty(), "nothing is said of {format:?} {text:?}");
        for finding in findings {
            assert!(!finding.problem.is_empty(), "no reason: {finding:?} of {format:?} {text:?}");
            let inside = finding.line.is_some_and(|line| (1..=lines).contains(&line));
            assert!(inside, "{finding:?} of {lines} lines of {format:?} {text:?}");
            let shown = finding.to_string();
            assert!(text.contains(SECRET) || !shown.contains(SECRET), "a secret in {shown:?} of {text:?}");
        }
    }
}
