//! Workflow commands of GitHub Actions, which show failures beside the lines of the suite.

use gatewright_findings::printable_lines;

use crate::{
    base::text::shorten,
    suite::results::{TestOutcome, TestReport},
};

/// Longest message, in characters.
const LONGEST: usize = 4_000;

/// The annotation of a test that failed; nothing for others.
pub(super) fn annotation(suite: &str, file: &str, test: &TestReport) -> String {
    let TestOutcome::Failed(why) = &test.outcome else { return String::new() };
    let line = test.failure.as_ref().and_then(|failure| failure.line).or(test.line).unwrap_or(1);
    let title = property(&format!("{suite} > {}", test.name));
    format!("::error file={},line={line},title={title}::{}\n", property(file), data(&shorten(why, LONGEST)))
}

/// The text with a mark before each line that the runner would take for a command: much of it is text of the server.
pub(super) fn without_commands(text: &str) -> String {
    let is_command = |line: &str| line.trim_start().starts_with("::") || line.contains("##[");
    text.split_inclusive('\n')
        .flat_map(|line| [if is_command(line) { "| " } else { "" }, line])
        .collect::<String>()
        .replace("##[", "## [")
}

fn data(text: &str) -> String {
    printable_lines(text).replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}
