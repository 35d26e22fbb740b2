//! Answers that are sequences: server-sent events, and JSON texts one after the other.
//!
//! Each item is reported as progress when it arrives; the result is the array of all.

use std::time::{Duration, Instant};

use gatewright_core::{ProgressSink, Unreadable, measure, off_thread};
use rmcp::{
    RoleServer,
    model::{CallToolResult, ContentBlock, NumberOrString, ProgressNotificationParam, ProgressToken},
    service::RequestContext,
};
use serde_json::{Map, Value, json};

use super::{
    answer::{self, Memory},
    failure::CallError,
    redactor::Redactor,
    response::Response,
};
use crate::ResponseShape;

/// Bytes of an answer for each item, key or value that it may have.
const BYTES_PER_VALUE: usize = 32;
const LEAST_VALUES: usize = 10_000;
/// Items whose arrival is reported one by one; later ones are reported from time to time.
const REPORTED: usize = 100;
const BETWEEN: Duration = Duration::from_millis(500);
/// Lines or records that are read in one turn; other work on the thread gets its turn between them.
const LINES_PER_TURN: usize = 500;
/// Memory of an item or an event beside its value, in bytes.
const ITEM_BYTES: u64 = 256;
/// Bytes of an item in the message of its progress.
const MOST_MESSAGE: usize = 300;

/// Hears of items as they arrive.
#[derive(Clone, Copy, Default)]
pub enum Reporter<'a> {
    /// Nobody does.
    #[default]
    Nobody,
    /// The caller of a tool, if it asked for progress.
    Caller(&'a RequestContext<RoleServer>),
    /// A sink.
    Sink(&'a ProgressSink),
}

impl std::fmt::Debug for Reporter<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Reporter")
    }
}

impl Reporter<'_> {
    async fn report(self, count: usize, item: &str) {
        let nobody = ProgressToken(NumberOrString::Number(0));
        let progress = |token| {
            ProgressNotificationParam::new(token, count as f64)
                .with_message(&item[..item.floor_char_boundary(MOST_MESSAGE)])
        };
        match self {
            Self::Nobody => {}
            Self::Sink(sink) => sink.receive(progress(nobody)).await,
            Self::Caller(context) => {
                if let Some(sink) = context.extensions.get::<ProgressSink>() {
                    sink.receive(progress(nobody)).await;
                } else if let Some(token) = context.meta.get_progress_token() {
                    // A caller that is gone hears nothing, and its call is cancelled by others.
                    let _ = context.peer.notify_progress(progress(token)).await;
                }
            }
        }
    }
}

/// Kinds of sequences.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sequence {
    /// `text/event-stream`.
    Events,
    /// A JSON text on each line.
    JsonLines,
    /// JSON texts after a record separator each (RFC 7464).
    JsonRecords,
}

impl Sequence {
    /// The kind of a media type.
    pub(crate) fn of(media_type: &str) -> Option<Self> {
        match media_type {
            "text/event-stream" => Some(Self::Events),
            "application/x-ndjson"
            | "application/ndjson"
            | "application/jsonl"
            | "application/x-jsonl"
            | "application/jsonlines"
            | "application/x-jsonlines" => Some(Self::JsonLines),
            "application/json-seq" => Some(Self::JsonRecords),
            _ => None,
        }
    }

    /// The byte that ends a line or a record.
    fn end(self) -> u8 {
        if self == Self::JsonRecords { 0x1e } else { b'\n' }
    }
}

/// Reads a sequence to its end, or until `until`: what came before that is the result.
///
/// # Errors
/// It is longer than `most` bytes, has too many values, breaks off, or there is no memory for it.
pub(crate) async fn read(
    mut response: Response,
    sequence: Sequence,
    most: usize,
    until: Instant,
    reporter: Reporter<'_>,
    redactor: &Redactor,
    memory: &mut Memory,
) -> Result<CallToolResult, CallError> {
    response.check()?;
    let mut items = Items::new(sequence, (most / BYTES_PER_VALUE).max(LEAST_VALUES), redactor, memory);
    let (mut bytes, mut note, mut reported) = (0, None, 0);
    let mut reporter = Some(reporter);
    let mut last_report = Instant::now();
    loop {
        let part = match tokio::time::timeout_at(until.into(), response.chunk()).await {
            Ok(Ok(Some(part))) => part,
            Ok(Ok(None)) => break,
            // A part is not taken for the whole, which a script would not notice.
            Ok(Err(error)) => return Err(error),
            Err(_) => {
                note = Some("the sequence did not end in time; these are the items that came until then");
                break;
            }
        };
        bytes += part.len();
        if bytes > most {
            return Err(CallError::TooLarge(most));
        }
        items.memory.take_body(part.len())?;
        items.feed(&part).await?;
        while reported < items.found.len() {
            let is_due = reported < REPORTED || last_report.elapsed() >= BETWEEN;
            reported += 1;
            if let (true, Some(heard)) = (is_due, reporter) {
                last_report = Instant::now();
                let item = items.found[reported - 1].to_string();
                let report = heard.report(reported, &item);
                // A caller that takes no reports must not keep the answer, and others behind it on the connection, from being read.
                if tokio::time::timeout(BETWEEN, report).await.is_err() {
                    reporter = None;
                }
            }
        }
    }
    items.end().await?;
    if let (Some(last), Some(heard)) = (items.found.get(reported), reporter) {
        // The result follows, so that a report that is lost is no loss.
        let _ = tokio::time::timeout(BETWEEN, heard.report(items.found.len(), &last.to_string())).await;
    }
    let found = Value::Array(items.found);
    let mut result = CallToolResult::success(vec![ContentBlock::text(found.to_string())]);
    if let Some(note) = note {
        result.content.push(ContentBlock::text(note));
    }
    result.structured_content = Some(answer::shaped(ResponseShape::Wrapped, found));
    Ok(result)
}

/// Items of a sequence, as far as it was read.
struct Items<'r> {
    sequence: Sequence,
    redactor: &'r Redactor,
    memory: &'r mut Memory,
    values_left: usize,
    found: Vec<Value>,
    /// The line or the record under way.
    pending: Vec<u8>,
    event: Map<String, Value>,
}

impl<'r> Items<'r> {
    fn new(sequence: Sequence, values_left: usize, redactor: &'r Redactor, memory: &'r mut Memory) -> Self {
        let (found, pending, event) = (Vec::new(), Vec::new(), Map::new());
        Self { sequence, redactor, memory, values_left, found, pending, event }
    }

    async fn feed(&mut self, part: &[u8]) -> Result<(), CallError> {
        let Some(last) = memchr::memrchr(self.sequence.end(), part) else {
            self.pending.extend_from_slice(part);
            return Ok(());
        };
        let mut whole = std::mem::take(&mut self.pending);
        whole.extend_from_slice(&part[..last]);
        self.pending.extend_from_slice(&part[last + 1..]);
        self.pieces(whole).await
    }

    /// Takes what is left at the end of the body. An event without its empty line is complete, too: many servers leave it out.
    async fn end(&mut self) -> Result<(), CallError> {
        if !self.pending.is_empty() {
            let last = std::mem::take(&mut self.pending);
            self.pieces(last).await?;
        }
        if self.sequence == Sequence::Events { self.dispatch().await } else { Ok(()) }
    }

    /// Takes lines or records. Credentials are looked for in all of them at once: there may be millions.
    async fn pieces(&mut self, whole: Vec<u8>) -> Result<(), CallError> {
        let (whole, end) = (self.redactor.data(whole), self.sequence.end());
        for (number, piece) in whole.split(|byte| *byte == end).enumerate() {
            if number % LINES_PER_TURN == LINES_PER_TURN - 1 {
                tokio::task::yield_now().await;
            }
            self.piece(piece).await?;
        }
        // Parts that have arrived are read one after the other without a wait.
        tokio::task::yield_now().await;
        Ok(())
    }

    async fn piece(&mut self, piece: &[u8]) -> Result<(), CallError> {
        let text = String::from_utf8_lossy(piece);
        match self.sequence {
            Sequence::Events => self.line(text.strip_suffix('\r').unwrap_or(&text)).await,
            Sequence::JsonLines | Sequence::JsonRecords if text.trim().is_empty() => Ok(()),
            Sequence::JsonLines | Sequence::JsonRecords => {
                self.count(text.as_bytes())?;
                let item = parsed(text.trim()).await.ok_or_else(|| {
                    let at = self.found.len() + 1;
                    CallError::BadAnswer(format!("item {at} of the sequence is no JSON"))
                })?;
                self.found.push(item);
                Ok(())
            }
        }
    }

    /// A line of an event stream (HTML, server-sent events).
    async fn line(&mut self, line: &str) -> Result<(), CallError> {
        if line.is_empty() {
            return self.dispatch().await;
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field.trim_start_matches('\u{feff}') {
            "data" => match self.event.get_mut("data") {
                Some(Value::String(data)) => {
                    data.push('\n');
                    data.push_str(value);
                }
                _ => drop(self.event.insert("data".to_owned(), json!(value))),
            },
            name @ ("event" | "id") => drop(self.event.insert(name.to_owned(), json!(value))),
            "retry" => {
                if let Ok(milliseconds) = value.parse::<u64>() {
                    self.event.insert("retry".to_owned(), json!(milliseconds));
                }
            }
            _ => {}
        }
        Ok(())
    }

    async fn dispatch(&mut self) -> Result<(), CallError> {
        let mut event = std::mem::take(&mut self.event);
        let Some(Value::String(data)) = event.get("data").cloned() else { return Ok(()) };
        self.count(data.as_bytes())?;
        // Most streams have JSON in them, and words such as `[DONE]`.
        if let Some(parsed) = parsed(&data).await {
            event.insert("data".to_owned(), parsed);
        }
        self.found.push(Value::Object(event));
        Ok(())
    }

    fn count(&mut self, json: &[u8]) -> Result<(), CallError> {
        let too_many = |_| {
            CallError::BadAnswer(
                "the sequence has too many keys and values, or one that cannot be read".to_owned(),
            )
        };
        let measured = measure(json, self.values_left).map_err(too_many)?;
        let left = self.values_left.checked_sub(measured.values + 1);
        self.values_left = left.ok_or_else(|| too_many(Unreadable::TooMany))?;
        self.memory.take_part(ITEM_BYTES + measured.bytes)
    }
}

/// The value of a JSON text that was measured; a long one is read on a thread for such work.
async fn parsed(text: &str) -> Option<Value> {
    let text = text.to_owned();
    off_thread(text.len(), move || serde_json::from_str(&text).ok()).await
}

#[cfg(test)]
mod tests {
    use std::sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    };

    use gatewright_core::{AnswerRoom, MASK, Reserved, Secret};

    use super::*;

    async fn items(sequence: Sequence, parts: &[&str]) -> Result<Vec<Value>, CallError> {
        let (redactor, mut memory) = (Redactor::default(), Memory::default());
        let mut items = Items::new(sequence, 50, &redactor, &mut memory);
        for part in parts {
            items.feed(part.as_bytes()).await?;
        }
        items.end().await?;
        Ok(items.found)
    }

    #[tokio::test]
    async fn credentials_are_taken_out_of_lines_that_come_in_parts() {
        let (redactor, mut memory) = (Redactor::default(), Memory::default());
        redactor.learn(&Secret::new("token-of-now"));
        let mut items = Items::new(Sequence::JsonLines, 50, &redactor, &mut memory);
        for part in ["1\n\"tok", "en-of-now\"\n\"token", "-of-now\""] {
            items.feed(part.as_bytes()).await.unwrap();
        }
        items.end().await.unwrap();
        assert_eq!(items.found, [json!(1), json!(MASK), json!(MASK)]);
    }

    #[tokio::test]
    async fn other_work_gets_its_turn_while_lines_are_read() {
        let turns = Arc::new(AtomicU64::new(0));
        let other = tokio::spawn({
            let turns = Arc::clone(&turns);
            async move {
                loop {
                    turns.fetch_add(1, Ordering::Relaxed);
                    tokio::task::yield_now().await;
                }
            }
        });
        let (redactor, mut memory) = (Redactor::default(), Memory::default());
        for (sequence, line) in [(Sequence::Events, ":\n"), (Sequence::JsonLines, "\n")] {
            turns.store(0, Ordering::Relaxed);
            let mut items = Items::new(sequence, 50, &redactor, &mut memory);
            items.feed(line.repeat(50_000).as_bytes()).await.unwrap();
            let of_one = turns.swap(0, Ordering::Relaxed);
            assert!(of_one >= 100, "{of_one} turns within one part");
            for _ in 0..100 {
                items.feed(line.as_bytes()).await.unwrap();
            }
            let of_many = turns.load(Ordering::Relaxed);
            assert!(of_many >= 100, "{of_many} turns between parts");
        }
        other.abort();
    }

    #[tokio::test]
    async fn items_take_the_memory_of_an_answer() {
        let taken = Arc::new(AtomicU64::new(0));
        let room = AnswerRoom::new({
            let taken = Arc::clone(&taken);
            move |bytes| match taken.fetch_add(bytes, Ordering::Relaxed) + bytes {
                0..1_000_000 => Ok(Box::new(()) as Reserved),
                _ => Err("no room".to_owned()),
            }
        });
        let (redactor, mut memory) = (Redactor::default(), Memory::new(Some(room)));
        let mut items = Items::new(Sequence::Events, 1_000_000, &redactor, &mut memory);
        let mut fed = 0;
        while items.feed(b"data: 1\n\n").await.is_ok() {
            fed += 1;
        }
        assert!((1_000..4_000).contains(&fed), "{fed}");
    }

    #[tokio::test]
    async fn events_and_json_texts_are_items_however_they_are_cut() {
        let parts = [": hi\n\nevent: tok", "en\r\ndata: {\"a\":\r\ndata: 1}\r\n", "\r\nid: 7\ndata: [DONE]"];
        let free = items(Sequence::Events, &parts).await.unwrap();
        assert_eq!(free, [json!({"event": "token", "data": {"a": 1}}), json!({"id": "7", "data": "[DONE]"})]);
        assert_eq!(
            items(Sequence::JsonLines, &["{\"a\"", ":1}\r\n\n2", "\n"]).await.unwrap(),
            [json!({"a": 1}), json!(2)]
        );
        assert_eq!(
            items(Sequence::JsonRecords, &["\u{1e}1\n\u{1e}[", "2]\n"]).await.unwrap(),
            [json!(1), json!([2])]
        );
        assert!(items(Sequence::JsonLines, &["{\n"]).await.is_err());
        assert!(items(Sequence::JsonLines, &["1\n".repeat(60).as_str()]).await.is_err(), "too many");
    }
}
