//! Frames between a run and its host: one length, four small fields, then text.
//!
//! Both ends treat what they read as hostile: lengths are checked before anything is allocated, kinds and text before anything
//! is used. `messages` has the contents of the heads.

use std::str;

/// Bytes before `head`: kind, run, id, length of `head`.
const FIXED: usize = 1 + 4 + 4 + 4;
/// Bytes of the length in front of every frame.
const PREFIX: usize = 4;

/// The kind of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum MessageKind {
    /// Worker to pool: ready, with its sandbox report.
    Ready = 1,
    /// Worker to pool: `callTool`; head is the name, body the input.
    Call = 2,
    /// Worker to pool: `getTool`; head is the name.
    GetTool = 3,
    /// Worker to pool: one console line, in body; or, with an id, how many were left out.
    Log = 4,
    /// Worker to pool: the run ended; head is `Ok` or the error, body the value.
    Done = 5,
    /// Worker to pool: a value for `progress`, in body.
    Progress = 6,
    /// Worker to pool: `readResource`, `listResources` or `getPrompt`; head is a name for the call log, body the request.
    Content = 8,
    /// Worker to pool: facts about the script, before its first call; body is the facts as JSON.
    Plan = 7,
    /// Worker to pool: `callTool` with `paginate`; head is the name, body the input and the limit.
    CallPages = 10,
    /// Worker to pool: the script waits for answers, and it did when ping `id` came.
    Idle = 9,
    /// Pool to worker: a run; head is its settings, body the script and its context.
    Run = 16,
    /// Pool to worker: a call succeeded; body is the result.
    Answer = 17,
    /// Pool to worker: a call failed; head is the failure.
    Failure = 18,
    /// Pool to worker: time is up.
    Stop = 19,
    /// Pool to worker: to be answered once the script waits.
    Ping = 20,
}

impl MessageKind {
    pub(crate) fn from_byte(byte: u8) -> Option<Self> {
        [
            Self::Ready,
            Self::Call,
            Self::GetTool,
            Self::Log,
            Self::Done,
            Self::Progress,
            Self::Plan,
            Self::Content,
            Self::CallPages,
            Self::Run,
            Self::Answer,
            Self::Failure,
            Self::Stop,
            Self::Idle,
            Self::Ping,
        ]
        .into_iter()
        .find(|kind| *kind as u8 == byte)
    }
}

/// One frame, borrowed from the buffer it was read into.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Frame<'a> {
    pub(crate) kind: MessageKind,
    pub(crate) run: u32,
    pub(crate) id: u32,
    pub(crate) head: &'a str,
    pub(crate) body: &'a str,
}

/// The reason why bytes are not a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FrameError {
    /// Longer than the reader allows.
    TooLarge,
    /// Not a frame at all.
    Malformed,
}

/// Appends a frame to `out`.
pub(crate) fn put(out: &mut Vec<u8>, kind: MessageKind, run: u32, id: u32, head: &str, body: &[&str]) {
    let body_len: usize = body.iter().map(|part| part.len()).sum();
    let total = FIXED + head.len() + body_len;
    out.reserve(PREFIX + total);
    out.extend_from_slice(&length(total).to_le_bytes());
    out.push(kind as u8);
    out.extend_from_slice(&run.to_le_bytes());
    out.extend_from_slice(&id.to_le_bytes());
    out.extend_from_slice(&length(head.len()).to_le_bytes());
    out.extend_from_slice(head.as_bytes());
    for part in body {
        out.extend_from_slice(part.as_bytes());
    }
}

/// Converts a length. No frame reaches the largest: every sender first checks a limit far below it.
fn length(bytes: usize) -> u32 {
    u32::try_from(bytes).unwrap_or(u32::MAX)
}

/// Bytes of the whole frame at the start of `buffer`, once its length has arrived.
///
/// # Errors
/// The frame is longer than `limit`, or too short to be one.
pub(crate) fn frame_len(buffer: &[u8], limit: usize) -> Result<Option<usize>, FrameError> {
    let Some(prefix) = buffer.first_chunk::<PREFIX>() else { return Ok(None) };
    let total = u32::from_le_bytes(*prefix) as usize;
    if total < FIXED {
        return Err(FrameError::Malformed);
    }
    if total > limit {
        return Err(FrameError::TooLarge);
    }
    Ok(Some(PREFIX + total))
}

/// Reads one whole frame, its length included.
///
/// # Errors
/// The bytes are not a frame: unknown kind, lengths that do not add up, text that is not UTF-8.
pub(crate) fn parse(bytes: &[u8]) -> Result<Frame<'_>, FrameError> {
    let fixed = bytes.get(PREFIX..PREFIX + FIXED).ok_or(FrameError::Malformed)?;
    let word = |at: usize| {
        fixed
            .get(at..at + 4)
            .and_then(|b| b.try_into().ok())
            .map(u32::from_le_bytes)
            .ok_or(FrameError::Malformed)
    };
    let kind = MessageKind::from_byte(fixed[0]).ok_or(FrameError::Malformed)?;
    let (run, id, head_len) = (word(1)?, word(5)?, word(9)? as usize);
    let rest = &bytes[PREFIX + FIXED..];
    if head_len > rest.len() {
        return Err(FrameError::Malformed);
    }
    let (head, body) = rest.split_at(head_len);
    let text = |bytes| str::from_utf8(bytes).map_err(|_| FrameError::Malformed);
    Ok(Frame { kind, run, id, head: text(head)?, body: text(body)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_reads_as_it_was_written() {
        let mut bytes = Vec::new();
        put(&mut bytes, MessageKind::Call, 7, 9, "crm:get", &["{\"id\"", ":1}"]);
        assert_eq!(frame_len(&bytes, 1024), Ok(Some(bytes.len())));
        let frame = parse(&bytes).unwrap();
        assert_eq!((frame.kind, frame.run, frame.id), (MessageKind::Call, 7, 9));
        assert_eq!((frame.head, frame.body), ("crm:get", "{\"id\":1}"));
    }

    #[test]
    fn refuses_lengths_kinds_and_text_that_are_not_a_frame() {
        assert_eq!(frame_len(&[1, 0], 10), Ok(None));
        assert_eq!(frame_len(&[1, 0, 0, 0], 100), Err(FrameError::Malformed));
        assert_eq!(frame_len(&[255, 255, 255, 255], 100), Err(FrameError::TooLarge));
        let mut bytes = Vec::new();
        put(&mut bytes, MessageKind::Log, 1, 0, "", &["x"]);
        let mut unknown = bytes.clone();
        unknown[4] = 99;
        assert_eq!(parse(&unknown), Err(FrameError::Malformed));
        let mut head = bytes.clone();
        head[13] = 200;
        assert_eq!(parse(&head), Err(FrameError::Malformed));
        let mut utf8 = bytes;
        *utf8.last_mut().unwrap() = 0xff;
        assert_eq!(parse(&utf8), Err(FrameError::Malformed));
    }
}
