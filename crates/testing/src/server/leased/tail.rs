//! The log of a shared server, which is a file, as it grows.

use std::{io::SeekFrom, path::Path, time::Duration};

use tokio::{
    fs::File,
    io::{AsyncReadExt as _, AsyncSeekExt as _},
    task::JoinHandle,
};

use crate::server::log_ring::LogRing;

/// Time between looks at the file.
const INTERVAL: Duration = Duration::from_millis(10);

/// Most bytes of a line; a longer one is kept in pieces.
const MAX_LINE_BYTES: usize = 64 * 1024;

/// Reads a log until it is dropped.
pub(super) struct Tail(JoinHandle<()>);

impl Tail {
    /// Reads what is written from now on.
    pub(super) fn from_end(path: &Path, log: LogRing) -> Self {
        let length = std::fs::metadata(path).map(|data| data.len()).unwrap_or_default();
        Self::from(path, length, log)
    }

    /// Reads everything, once the file is there.
    pub(super) fn from_start(path: &Path, log: LogRing) -> Self {
        Self::from(path, 0, log)
    }

    fn from(path: &Path, start: u64, log: LogRing) -> Self {
        let path = path.to_owned();
        Self(tokio::spawn(async move {
            let mut file = loop {
                match File::open(&path).await {
                    Ok(file) => break file,
                    Err(_) => tokio::time::sleep(INTERVAL).await,
                }
            };
            if file.seek(SeekFrom::Start(start)).await.is_err() {
                return;
            }
            let (mut line, mut piece) = (Vec::new(), vec![0; 16 * 1024]);
            loop {
                match file.read(&mut piece).await {
                    Ok(0) => tokio::time::sleep(INTERVAL).await,
                    Ok(read) => push(&mut line, &piece[..read], &log),
                    Err(_) => return,
                }
            }
        }))
    }
}

impl Drop for Tail {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Adds bytes to the line, and whole lines to the log.
fn push(line: &mut Vec<u8>, bytes: &[u8], log: &LogRing) {
    for byte in bytes {
        if *byte != b'\n' {
            line.push(*byte);
        }
        if *byte == b'\n' || line.len() >= MAX_LINE_BYTES {
            log.push(String::from_utf8_lossy(line).trim_end_matches('\r').to_owned());
            line.clear();
        }
    }
}
