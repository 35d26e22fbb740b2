//! The last lines a server printed.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
};

use tokio::{
    io::{AsyncBufReadExt, AsyncRead, BufReader},
    sync::watch,
};

use crate::lock;

/// Lines kept.
const MOST_LINES: usize = 10_000;

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
            while matches!(reader.read_until(b'\n', &mut line).await, Ok(read) if read > 0) {
                ring.push(String::from_utf8_lossy(line.trim_ascii_end()).into_owned());
                line.clear();
            }
        })
    }
}
