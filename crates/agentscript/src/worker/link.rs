//! The worker's end of the socket: blocking reads and writes of whole frames.

use std::{
    io::{self, Read, Write},
    os::unix::net::UnixStream,
};

use crate::protocol::{self, Frame, Kind};

/// Reads and writes frames.
///
/// Calls and console lines are written at once, so that what a script did is known even if it then never returns. Only the calls
/// that `__safe_parallel` starts travel together; one that was not sent yet when its worker is killed was not made.
pub(crate) struct Link {
    stream: UnixStream,
    input: Vec<u8>,
    /// Bytes of `input` already handed out.
    taken: usize,
    /// Bytes of `input` that came from the socket.
    filled: usize,
    output: Vec<u8>,
    /// Longest frame this end accepts.
    limit: usize,
}

impl Link {
    pub(crate) fn new(stream: UnixStream, limit: usize) -> Self {
        Self { stream, input: Vec::new(), taken: 0, filled: 0, output: Vec::new(), limit }
    }

    /// Sends a frame, after those that are queued.
    pub(crate) fn send(
        &mut self,
        kind: Kind,
        run: u32,
        id: u32,
        head: &str,
        body: &[&str],
    ) -> io::Result<()> {
        protocol::put(&mut self.output, kind, run, id, head, body);
        self.flush()
    }

    /// Queues a frame: it goes out with the next one that is sent, before this end waits, or when [`Link::flush`] is called.
    pub(crate) fn queue(
        &mut self,
        kind: Kind,
        run: u32,
        id: u32,
        head: &str,
        body: &[&str],
    ) -> io::Result<()> {
        protocol::put(&mut self.output, kind, run, id, head, body);
        if self.output.len() > QUEUE { self.flush() } else { Ok(()) }
    }

    /// Writes what is queued.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        if self.output.is_empty() {
            return Ok(());
        }
        let written = self.stream.write_all(&self.output);
        self.output.clear();
        if self.output.capacity() > KEEP {
            self.output = Vec::new();
        }
        written
    }

    /// Waits for the next frame; `None` when the other end is closed.
    ///
    /// # Errors
    /// The socket failed, or what came is not a frame.
    pub(crate) fn next(&mut self) -> io::Result<Option<Frame<'_>>> {
        let refused = |_| io::Error::from(io::ErrorKind::InvalidData);
        let end = loop {
            let pending = &self.input[self.taken..self.filled];
            match protocol::frame_len(pending, self.limit).map_err(refused)? {
                Some(len) if pending.len() >= len => break self.taken + len,
                _ => {}
            }
            self.flush()?;
            self.make_room();
            let read = loop {
                match self.stream.read(&mut self.input[self.filled..]) {
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    other => break other?,
                }
            };
            if read == 0 {
                return Ok(None);
            }
            self.filled += read;
        };
        let start = std::mem::replace(&mut self.taken, end);
        protocol::parse(&self.input[start..end]).map(Some).map_err(refused)
    }

    /// Moves what is not handed out yet to the front, and makes the buffer larger when it is full, smaller when it can be.
    fn make_room(&mut self) {
        self.input.copy_within(self.taken..self.filled, 0);
        self.filled -= self.taken;
        self.taken = 0;
        if self.filled == 0 && self.input.len() > KEEP {
            self.input = Vec::new();
        }
        if self.filled == self.input.len() {
            self.input.resize((2 * self.filled).max(CHUNK), 0);
        }
    }
}

/// Queued frames are written when they are longer than this together.
const QUEUE: usize = 16 * 1024;
/// Bytes of the buffer at first.
const CHUNK: usize = 16 * 1024;
/// Larger buffers are given back after use.
const KEEP: usize = 256 * 1024;
