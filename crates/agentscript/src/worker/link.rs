//! The worker's end of the socket: blocking reads and writes of whole frames.

use std::{
    io::{self, Read, Write},
    os::unix::net::UnixStream,
    thread,
    time::{Duration, Instant},
};

use super::harden;
use crate::protocol::{self, Frame, MessageKind};

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
    /// Answers still to be waited for asleep before it is tried again to stay awake for one.
    asleep: u32,
}

impl Link {
    pub(crate) fn new(stream: UnixStream, limit: usize) -> Self {
        Self { stream, input: Vec::new(), taken: 0, filled: 0, output: Vec::new(), limit, asleep: 0 }
    }

    /// Sends a frame, after those that are queued.
    pub(crate) fn send(
        &mut self,
        kind: MessageKind,
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
        kind: MessageKind,
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
        self.wait(false)
    }

    /// As [`Link::next`], for the answer to a call: stays awake for it while answers come within [`AWAKE`] and nobody else
    /// needs the processor, because to be woken takes longer than many tools do.
    ///
    /// # Errors
    /// As for [`Link::next`].
    pub(crate) fn next_answer(&mut self) -> io::Result<Option<Frame<'_>>> {
        self.wait(true)
    }

    fn wait(&mut self, answer: bool) -> io::Result<Option<Frame<'_>>> {
        let refused = |_| io::Error::from(io::ErrorKind::InvalidData);
        let end = loop {
            let pending = &self.input[self.taken..self.filled];
            let needed = match protocol::frame_len(pending, self.limit).map_err(refused)? {
                Some(len) if pending.len() >= len => break self.taken + len,
                needed => needed,
            };
            self.flush()?;
            self.make_room(needed.unwrap_or(0));
            let read = self.read(answer)?;
            if read == 0 {
                return Ok(None);
            }
            self.filled += read;
        };
        let start = std::mem::replace(&mut self.taken, end);
        protocol::parse(&self.input[start..end]).map(Some).map_err(refused)
    }

    /// Reads what there is, or waits for it.
    fn read(&mut self, answer: bool) -> io::Result<usize> {
        let room = &mut self.input[self.filled..];
        if answer && self.asleep > 0 {
            self.asleep -= 1;
        } else if answer {
            let started = Instant::now();
            let (mut before, mut in_vain) = (started, false);
            loop {
                match harden::receive_now(&self.stream, room) {
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    other => return other,
                }
                if in_vain {
                    self.asleep = SLEEPS;
                    break;
                }
                thread::yield_now();
                let now = Instant::now();
                // Somebody else needs the processor, or the answer takes longer than waking up for it does.
                in_vain = now - before > GONE || now - started > AWAKE;
                before = now;
            }
        }
        loop {
            match self.stream.read(room) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                other => return other,
            }
        }
    }

    /// Moves what is not handed out yet to the front, and makes the buffer larger for a frame of `needed` bytes, smaller when it can be.
    fn make_room(&mut self, needed: usize) {
        self.input.copy_within(self.taken..self.filled, 0);
        self.filled -= self.taken;
        self.taken = 0;
        if self.filled == 0 && self.input.len() > KEEP {
            self.input = Vec::new();
        }
        if self.filled == self.input.len() {
            let room = needed.max(CHUNK).max(self.filled + 1);
            self.input.reserve_exact(room - self.filled);
            self.input.resize(room, 0);
        }
    }
}

/// Longest time to stay awake for an answer: about what it takes to be woken.
const AWAKE: Duration = Duration::from_micros(50);
/// Whoever gives way to others and comes back only after this long was not alone on the processor.
const GONE: Duration = Duration::from_micros(8);
/// Answers that are waited for asleep after staying awake was in vain.
const SLEEPS: u32 = 64;
/// Queued frames are written when they are longer than this together.
const QUEUE: usize = 16 * 1024;
/// Bytes of the buffer at first.
const CHUNK: usize = 16 * 1024;
/// Larger buffers are given back after use.
const KEEP: usize = 256 * 1024;
