//! The last lines a server printed.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
};

use tokio::{
    io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, BufReader},
    sync::watch,
};

use crate::lock;

/// Lines kept.
const MOST_LINES: usize = 10_000;

/// Bytes of one line. A longer one is kept in pieces, so that a server that prints without line ends fills no memory.
const LONGEST_LINE: u64 = 64 * 1024;

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
        if lines.len() == MOST_LINES {
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

    /// Keeps the lines of `stream` until it ends.
    pub(crate) fn follow(
        &self,
        stream: impl AsyncRead + Send + Unpin + 'static,
    ) -> tokio::task::JoinHandle<()> {
        let ring = self.clone();
        tokio::spawn(async move {
            let mut reader = BufReader::new(stream);
            let mut line = Vec::new();
            while matches!((&mut reader).take(LONGEST_LINE).read_until(b'\n', &mut line).await, Ok(read) if read > 0)
            {
                ring.push(plain(&String::from_utf8_lossy(line.trim_ascii_end())));
                line.clear();
            }
        })
    }
}

/// The text without the sequences that colour it on a terminal (ECMA-48 §5.4: `ESC [`, parameters, one final byte).
fn plain(line: &str) -> String {
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
    fn colours_are_left_out() {
        assert_eq!(plain("\u{1b}[1;31mERROR\u{1b}[0m no \u{1b}[2Jdatabase [1]"), "ERROR no database [1]");
        assert_eq!(plain("cut off \u{1b}[31"), "cut off ");
    }

    #[tokio::test]
    async fn a_line_without_an_end_is_kept_in_pieces() {
        let ring = LogRing::default();
        let text = "x".repeat(3 * LONGEST_LINE as usize + 5) + "\nnext\n";
        ring.follow(std::io::Cursor::new(text.into_bytes())).await.unwrap();
        let lengths: Vec<usize> = ring.all().iter().map(String::len).collect();
        assert_eq!(lengths, [LONGEST_LINE as usize, LONGEST_LINE as usize, LONGEST_LINE as usize, 5, 4]);
    }
}
