//! Limit on the bytes that a connection reads beside answers.
//!
//! Interim responses, control frames, empty frames and padding are free by the rules of HTTP: a server may send them without end, and the
//! client has to read them, even while no request is open. Here they have a limit, after which the connection ends.

use std::{
    io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll, ready},
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
};

/// Bytes that a connection may read before anything of them is part of an answer: twice what HTTP/2 lets arrive before it is read.
pub(super) const MOST_UNASKED: usize = 2 * 1024 * 1024;
/// Bytes that a response adds: its head, and what was under way when it was given up.
const OF_RESPONSE: usize = MOST_UNASKED / 4;
/// Bytes that a part of a body adds beside twice its length: its frame, and the record of TLS around it.
const OF_PART: usize = 64;
/// The message of the error with which a connection ends.
pub(super) const TOO_MUCH: &str = "the server sends too much beside answers";

/// Bytes that a connection may still read.
#[derive(Debug, Clone)]
pub(super) struct Traffic(Arc<AtomicUsize>);

impl Traffic {
    pub(super) fn new() -> Self {
        Self(Arc::new(AtomicUsize::new(MOST_UNASKED)))
    }

    /// Counts a response that arrived.
    pub(super) fn response(&self) {
        self.add(OF_RESPONSE);
    }

    /// Counts a part of a body that a caller took.
    pub(super) fn part(&self, length: usize) {
        if length > 0 {
            self.add(length.saturating_mul(2).saturating_add(OF_PART));
        }
    }

    fn add(&self, bytes: usize) {
        let added = |left: usize| Some(left.saturating_add(bytes).min(MOST_UNASKED));
        // The closure refuses nothing.
        let _ = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, added);
    }

    /// Returns `false` if a connection must not read so many bytes.
    fn take(&self, bytes: usize) -> bool {
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(bytes)).is_ok()
    }
}

/// A TCP connection that counts what it reads, and breaks at the limit.
#[derive(Debug)]
pub(super) struct Counted {
    stream: TcpStream,
    traffic: Traffic,
}

impl Counted {
    pub(super) fn new(stream: TcpStream) -> Self {
        Self { stream, traffic: Traffic::new() }
    }

    pub(super) fn traffic(&self) -> &Traffic {
        &self.traffic
    }
}

impl AsyncRead for Counted {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(context, buffer))?;
        Poll::Ready(match self.traffic.take(buffer.filled().len() - before) {
            true => Ok(()),
            false => Err(io::Error::other(TOO_MUCH)),
        })
    }
}

impl AsyncWrite for Counted {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_pay_for_what_is_read_and_nothing_else_does() {
        let traffic = Traffic::new();
        for _ in 0..10_000 {
            // A part of a body in one frame in one record.
            assert!(traffic.take(1_000 + 9 + 22));
            traffic.part(1_000);
            // The shortest.
            assert!(traffic.take(1 + 9 + 22));
            traffic.part(1);
        }
        assert!(traffic.take(MOST_UNASKED));
        traffic.part(0);
        assert!(!traffic.take(1), "an empty part pays for nothing");
        traffic.response();
        assert!(traffic.take(OF_RESPONSE) && !traffic.take(1));
        for _ in 0..100 {
            traffic.response();
        }
        assert!(traffic.take(MOST_UNASKED) && !traffic.take(1), "answers are not saved up");
    }
}
