//! Questions to the person at a terminal.

use std::io::{self, BufRead as _, IsTerminal as _};

use tokio::sync::mpsc;

use crate::output;

/// Longest answer, in bytes.
const LONGEST: u64 = 4096;

/// Returns true if somebody can be asked.
pub fn can_ask() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Asks for a line of text. The end of the input is an empty answer.
pub fn line(question: &str) -> io::Result<String> {
    output::progress(&format!("{question} "));
    let mut answer = String::new();
    io::Read::take(io::stdin().lock(), LONGEST).read_line(&mut answer)?;
    Ok(answer.trim().to_owned())
}

/// Asks for yes or no; anything but yes is no.
pub fn yes(question: &str) -> io::Result<bool> {
    Ok(matches!(line(&format!("{question} [y/N]"))?.to_ascii_lowercase().as_str(), "y" | "yes"))
}

/// Lines that the person at the terminal writes from now on; none where nobody can be asked.
pub fn lines() -> mpsc::Receiver<String> {
    let (sender, lines) = mpsc::channel(1);
    if can_ask() {
        // Its reading cannot be ended: it goes on for as long as the process.
        std::thread::spawn(move || {
            loop {
                let mut line = String::new();
                let read = io::Read::take(io::stdin().lock(), LONGEST).read_line(&mut line);
                if !matches!(read, Ok(1..)) || sender.blocking_send(line).is_err() {
                    return;
                }
            }
        });
    }
    lines
}
