//! The last lines of a server's output.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
};

use tokio::{
    io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, BufReader},
    sync::watch,
};

use crate::base::lock;

/// Number of lines kept.
const MAX_LINES: usize = 10_000;

/// Maximal length of a line in bytes. A longer line is kept in pieces, which bounds the memory for output without line ends.
const MAX_LINE_BYTES: u64 = 64 * 1024;

#[derive(Debug, Clone)]
pub(crate) struct LogRing {
    lines: Arc<Mutex<VecDeque<String>>>,
    count: Arc<watch::Sender<u64>>,
}

impl Default for LogRing {
    fn default() -> Self {
        Self { lines: Arc::default(), count: Arc::new(watch::Sender::new(0)) }
    }
}

impl LogRing {
    pub(crate) fn push(&self, line: String) {
        let mut lines = lock(&self.lines);
        if lines.len() == MAX_LINES {
            lines.pop_front();
        }
        lines.push_back(line);
        drop(lines);
        self.count.send_modify(|count| *count += 1);
    }

    pub(crate) fn all(&self) -> Vec<String> {
        lock(&self.lines).iter().cloned().collect()
    }

    pub(crate) fn tail(&self, most: usize) -> Vec<String> {
        let lines = lock(&self.lines);
        lines.iter().skip(lines.len().saturating_sub(most)).cloned().collect()
    }

    pub(crate) fn clear(&self) {
        lock(&self.lines).clear();
    }

    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.count.subscribe()
    }

    /// Reads lines of `stream` until it ends.
    pub(crate) fn follow(
        &self,
        stream: impl AsyncRead + Send + Unpin + 'static,
    ) -> tokio::task::JoinHandle<()> {
        let ring = self.clone();
        tokio::spawn(async move {
            let mut reader = BufReader::new(stream);
            let mut line = Vec::new();
            while matches!((&mut reader).take(MAX_LINE_BYTES).read_until(b'\n', &mut line).await, Ok(read) if read > 0)
            {
                ring.push(without_colours(&String::from_utf8_lossy(line.trim_ascii_end())));
                line.clear();
            }
        })
    }
}

/// The text without terminal control sequences (ECMA-48 §5.4: `ESC [`, parameters, one final byte).
fn without_colours(line: &str) -> String {
    let mut parts = line.split("\u{1b}[");
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let end = part.find(|c: char| ('@'..='~').contains(&c)).map_or(part.len(), |at| at + 1);
        text.push_str(&part[end..]);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn removes_colours() {
        assert_eq!(
            without_colours("\u{1b}[1;31mERROR\u{1b}[0m no \u{1b}[2Jdatabase [1]"),
            "ERROR no database [1]"
        );
        assert_eq!(without_colours("cut off \u{1b}[31"), "cut off ");
    }

    #[tokio::test]
    async fn splits_a_line_without_an_end() {
        let ring = LogRing::default();
        let text = "x".repeat(3 * MAX_LINE_BYTES as usize + 5) + "\nnext\n";
        ring.follow(std::io::Cursor::new(text.into_bytes())).await.unwrap();
        let lengths: Vec<usize> = ring.all().iter().map(String::len).collect();
        assert_eq!(
            lengths,
            [MAX_LINE_BYTES as usize, MAX_LINE_BYTES as usize, MAX_LINE_BYTES as usize, 5, 4]
        );
    }
}
