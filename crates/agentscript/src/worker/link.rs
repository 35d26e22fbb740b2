//! The worker's end of the socket: blocking reads and writes of whole frames.

use std::{
    io::{self, Read, Write},
    os::unix::net::UnixStream,
};

use crate::protocol::{self, Frame, Kind};

/// Reads and writes frames. Every frame is written at once, so that what a script did is known even if it then never returns.
pub(crate) struct Link {
    stream: UnixStream,
    input: Vec<u8>,
    /// Bytes of `input` already handed out.
    taken: usize,
    output: Vec<u8>,
    /// Longest frame this end accepts.
    limit: usize,
}

impl Link {
    pub(crate) fn new(stream: UnixStream, limit: usize) -> Self {
        Self { stream, input: Vec::new(), taken: 0, output: Vec::new(), limit }
    }

    pub(crate) fn send(
        &mut self,
        kind: Kind,
        run: u32,
        id: u32,
        head: &str,
        body: &[&str],
    ) -> io::Result<()> {
        self.output.clear();
        protocol::put(&mut self.output, kind, run, id, head, body);
        self.stream.write_all(&self.output)?;
        if self.output.capacity() > KEEP {
            self.output = Vec::new();
        }
        Ok(())
    }

    /// Waits for the next frame; `None` when the other end is closed.
    ///
    /// # Errors
    /// The socket failed, or what came is not a frame.
    pub(crate) fn next(&mut self) -> io::Result<Option<Frame<'_>>> {
        let refused = |_| io::Error::from(io::ErrorKind::InvalidData);
        let end = loop {
            let pending = &self.input[self.taken..];
            match protocol::frame_len(pending, self.limit).map_err(refused)? {
                Some(len) if pending.len() >= len => break self.taken + len,
                _ => {}
            }
            if self.taken > 0 {
                self.input.drain(..self.taken);
                self.taken = 0;
            }
            if self.input.is_empty() && self.input.capacity() > KEEP {
                self.input = Vec::new();
            }
            let start = self.input.len();
            self.input.resize(start + CHUNK, 0);
            let read = loop {
                match self.stream.read(&mut self.input[start..]) {
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    other => break other?,
                }
            };
            self.input.truncate(start + read);
            if read == 0 {
                return Ok(None);
            }
        };
        let start = std::mem::replace(&mut self.taken, end);
        protocol::parse(&self.input[start..end]).map(Some).map_err(refused)
    }
}

/// Bytes read at once.
const CHUNK: usize = 64 * 1024;
/// Larger buffers are given back after use.
const KEEP: usize = 256 * 1024;
