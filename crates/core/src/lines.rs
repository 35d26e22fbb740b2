//! Lines of bounded length from a byte stream: the framing of MCP over stdio.

use std::io;

use tokio::io::{
    AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, BufReader,
};

/// Bytes read at once, and memory for a line that is too long.
const CHUNK_BYTES: usize = 64 << 10;
/// Bytes kept from both ends of a line that is too long.
const KEPT_BYTES: usize = 256;

/// A line, without the newline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Line {
    /// All its bytes.
    Whole(Vec<u8>),
    /// The line was over the limit and is not kept.
    TooLong {
        /// Its first 256 bytes.
        head: Vec<u8>,
        /// Its last 256 bytes.
        tail: Vec<u8>,
    },
}

/// Memory for the line under way.
pub trait LineRoom: std::fmt::Debug + Send {
    /// Takes `bytes` in place of what was taken before; 0 between lines. Returns `false` if there is no memory: what was taken stays.
    fn set(&mut self, bytes: usize) -> bool;
}

/// Reads lines up to a limit. Longer ones are read past without being kept.
#[derive(Debug)]
pub struct LineReader<R> {
    reader: BufReader<R>,
    longest: usize,
    room: Option<Box<dyn LineRoom>>,
    /// Bytes for which room is taken.
    granted: usize,
    /// There was no room for the last line.
    lacks_room: bool,
    /// Bytes of the line under way; only its latest ones if it is too long.
    line: Vec<u8>,
    /// Both ends of the line under way, if it is too long.
    ends: Option<(Vec<u8>, Vec<u8>)>,
}

impl<R: AsyncRead + Unpin> LineReader<R> {
    /// Reads lines of at most `longest` bytes, which do not count the newline.
    pub fn new(reader: R, longest: usize) -> Self {
        let reader = BufReader::with_capacity(CHUNK_BYTES, reader);
        let (room, line) = (None, Vec::new());
        Self { reader, longest, room, granted: usize::MAX, lacks_room: false, line, ends: None }
    }

    /// Takes room for lines as they grow. A line for which there is none is too long.
    #[must_use]
    pub fn within(self, room: impl LineRoom + 'static) -> Self {
        Self { room: Some(Box::new(room)), granted: CHUNK_BYTES, ..self }
    }

    /// Takes room for twice the line that is under way.
    fn grow(&mut self) -> bool {
        let wanted = self.granted.saturating_mul(2).min(self.longest);
        let grows = self.room.as_mut().is_some_and(|room| room.set(wanted));
        self.lacks_room = !grows;
        if grows {
            self.granted = wanted;
        }
        grows
    }

    /// Gives back what the last line took, which whoever got it has read.
    fn begin(&mut self) {
        if self.line.is_empty()
            && self.ends.is_none()
            && let Some(room) = &mut self.room
        {
            room.set(0);
            (self.granted, self.lacks_room) = (CHUNK_BYTES, false);
        }
    }

    /// Returns `true` if the last line was too long for the room that there was, and not for the limit.
    pub fn lacked_room(&self) -> bool {
        self.lacks_room
    }

    /// Returns the next line, or `None` at the end of the stream. The last line may lack its newline. Cancel safe: a call that was dropped
    /// loses nothing.
    ///
    /// # Errors
    /// The stream cannot be read.
    pub async fn next(&mut self) -> io::Result<Option<Line>> {
        // One read may bring thousands of lines: other tasks have their turns between them.
        tokio::task::consume_budget().await;
        self.begin();
        loop {
            let most = if self.ends.is_some() { CHUNK_BYTES } else { self.longest.min(self.granted) };
            let room = most.saturating_add(1) - self.line.len();
            let read = (&mut self.reader).take(room as u64).read_until(b'\n', &mut self.line).await?;
            let is_whole = self.line.pop_if(|last| *last == b'\n').is_some() || read == 0;
            let is_over = self.ends.is_none() && self.line.len() > most;
            if is_over && most < self.longest && self.grow() {
                continue;
            }
            if self.ends.is_some() || is_over {
                self.keep_ends();
                if is_whole {
                    return Ok(self.ends.take().map(|(head, tail)| Line::TooLong { head, tail }));
                }
            } else if is_whole {
                let is_end = read == 0 && self.line.is_empty();
                return Ok((!is_end).then(|| Line::Whole(std::mem::take(&mut self.line))));
            }
        }
    }

    /// Drops what was read of a line that is too long, but for its ends.
    fn keep_ends(&mut self) {
        let part = std::mem::take(&mut self.line);
        let (head, tail) = self.ends.get_or_insert_default();
        let room = KEPT_BYTES - head.len();
        head.extend_from_slice(&part[..part.len().min(room)]);
        tail.extend_from_slice(&part[part.len().saturating_sub(KEPT_BYTES)..]);
        tail.drain(..tail.len().saturating_sub(KEPT_BYTES));
    }
}

/// Writes a line and its newline.
///
/// # Errors
/// The stream cannot be written.
pub async fn write_line(writer: &mut (impl AsyncWrite + Unpin), mut line: Vec<u8>) -> io::Result<()> {
    line.push(b'\n');
    writer.write_all(&line).await?;
    writer.flush().await
}

#[cfg(test)]
mod tests {
    use std::{
        collections::VecDeque,
        pin::Pin,
        task::{Context, Poll},
    };

    use futures::FutureExt as _;
    use proptest::prelude::*;
    use tokio::io::ReadBuf;

    use super::*;

    /// Gives its chunks one at a time, and is not ready before each.
    struct Chunks {
        chunks: VecDeque<Vec<u8>>,
        is_ready: bool,
    }

    impl AsyncRead for Chunks {
        fn poll_read(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
            buffer: &mut ReadBuf<'_>,
        ) -> Poll<io::Result<()>> {
            self.is_ready = !self.is_ready;
            if self.is_ready {
                return Poll::Pending;
            }
            if let Some(mut chunk) = self.chunks.pop_front() {
                let rest = chunk.split_off(chunk.len().min(buffer.remaining()));
                buffer.put_slice(&chunk);
                if !rest.is_empty() {
                    self.chunks.push_front(rest);
                }
            }
            Poll::Ready(Ok(()))
        }
    }

    /// All lines, where every call that has to wait is dropped and made again.
    fn lines(chunks: Vec<Vec<u8>>, longest: usize) -> Vec<Line> {
        let chunks = chunks.into_iter().filter(|chunk| !chunk.is_empty()).collect();
        let mut reader = LineReader::new(Chunks { chunks, is_ready: true }, longest);
        let mut lines = Vec::new();
        loop {
            match reader.next().now_or_never() {
                None => {}
                Some(line) => match line.unwrap() {
                    Some(line) => lines.push(line),
                    None => return lines,
                },
            }
        }
    }

    /// The lines of `text`, found with everything in memory.
    fn expected(text: &[u8], longest: usize) -> Vec<Line> {
        let text = text.strip_suffix(b"\n").unwrap_or(text);
        let limited = |line: &[u8]| match line.len() > longest {
            false => Line::Whole(line.to_vec()),
            true => Line::TooLong {
                head: line[..line.len().min(KEPT_BYTES)].to_vec(),
                tail: line[line.len().saturating_sub(KEPT_BYTES)..].to_vec(),
            },
        };
        text.split(|byte| *byte == b'\n').map(limited).collect()
    }

    proptest! {
        #[test]
        fn lines_are_the_same_however_the_stream_is_cut(
            words in prop::collection::vec((any::<u8>(), 0..700_usize, any::<bool>()), 1..40),
            longest in 0..900_usize,
            sizes in prop::collection::vec(1..300_usize, 1..20),
        ) {
            let word = |(byte, count, ends): &(u8, usize, bool)| {
                let mut word = vec![*byte; *count];
                word.extend(ends.then_some(b'\n'));
                word
            };
            let text: Vec<u8> = words.iter().flat_map(word).collect();
            prop_assume!(!text.is_empty());
            let (mut rest, mut chunks, mut sizes) = (&text[..], Vec::new(), sizes.iter().cycle());
            while !rest.is_empty() {
                let (chunk, more) = rest.split_at(rest.len().min(*sizes.next().unwrap()));
                chunks.push(chunk.to_vec());
                rest = more;
            }
            prop_assert_eq!(lines(chunks, longest), expected(&text, longest));
        }
    }

    #[tokio::test]
    async fn other_tasks_have_their_turns_while_one_read_brings_many_lines() {
        let text = b"1\n".repeat(10_000);
        let turns = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
        let count = turns.clone();
        let other = tokio::spawn(async move {
            loop {
                count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                tokio::task::yield_now().await;
            }
        });
        let mut reader = LineReader::new(&text[..], 100);
        while reader.next().await.unwrap().is_some() {}
        other.abort();
        let turns = turns.load(std::sync::atomic::Ordering::Relaxed);
        assert!(turns >= 20, "{turns} turns during 10,000 lines");
    }

    #[test]
    fn a_line_far_over_the_limit_is_not_kept_in_memory() {
        let chunks = (0..200).map(|_| vec![b'x'; 10_000]).chain([b"end\nnext".to_vec()]).collect();
        let mut reader = LineReader::new(Chunks { chunks, is_ready: true }, 100);
        let first = loop {
            if let Some(line) = reader.next().now_or_never() {
                break line.unwrap().unwrap();
            }
            assert!(reader.line.capacity() <= 4 * CHUNK_BYTES, "{} bytes", reader.line.capacity());
        };
        let Line::TooLong { head, tail } = first else { panic!("{first:?}") };
        assert_eq!((head.len(), tail.len()), (KEPT_BYTES, KEPT_BYTES));
        assert!(tail.ends_with(b"xxend"));
        let next = std::iter::repeat_with(|| reader.next().now_or_never()).flatten().next().unwrap();
        assert_eq!(next.unwrap(), Some(Line::Whole(b"next".to_vec())));
    }

    /// Room for this many bytes.
    #[derive(Debug)]
    struct Narrow(usize);

    impl LineRoom for Narrow {
        fn set(&mut self, bytes: usize) -> bool {
            bytes <= self.0
        }
    }

    #[tokio::test]
    async fn a_line_without_room_is_told_from_one_over_the_limit() {
        let long = 4 * CHUNK_BYTES;
        let text = format!("{}\n{}\nshort\n", "x".repeat(long), "x".repeat(9 * CHUNK_BYTES));
        for (room, lacked) in [(2 * CHUNK_BYTES, [true, true, false]), (usize::MAX, [false, false, false])] {
            let mut reader = LineReader::new(text.as_bytes(), 8 * CHUNK_BYTES).within(Narrow(room));
            for lacked in lacked {
                reader.next().await.unwrap();
                assert_eq!(reader.lacked_room(), lacked, "{room}");
            }
        }
    }
}
