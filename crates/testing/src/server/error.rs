//! The error of a server that does not start.

use std::fmt;

/// A server did not start. The message names the command, its exit status, its last lines, and advice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StartError {
    /// The problem, in one sentence.
    pub problem: String,
    /// The command line.
    pub command: String,
    /// The exit status of the process, if it ended.
    pub exit: Option<String>,
    /// The last lines it printed.
    pub log_tail: Vec<String>,
    /// Advice.
    pub advice: String,
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "the server under test does not run: {}", self.problem)?;
        f.write_str(&self.details())
    }
}

impl StartError {
    /// The message without the problem.
    pub(crate) fn details(&self) -> String {
        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = self.write_details(&mut text);
        text
    }

    fn write_details(&self, f: &mut String) -> fmt::Result {
        use fmt::Write as _;
        writeln!(f, "  command: {}", self.command)?;
        if let Some(exit) = &self.exit {
            writeln!(f, "  ended: {exit}")?;
        }
        if self.log_tail.is_empty() {
            writeln!(f, "  it printed nothing")?;
        } else {
            writeln!(f, "  its last lines:")?;
            for line in &self.log_tail {
                writeln!(f, "    | {line}")?;
            }
        }
        write!(f, "  try: {}", self.advice)
    }
}

impl std::error::Error for StartError {}
