//! Messages of a server, one JSON text a line, from a reader that trusts nothing.
//!
//! Junk is skipped and counted. A line over the limit is read past without keeping it; when it was the answer to a
//! request, that request gets an error in its place, so that nobody waits for it.

use std::sync::Arc;

use gatewright_core::{Line, LineReader, off_thread};
use rmcp::{
    ErrorData,
    model::{RequestId, ServerJsonRpcMessage},
};
use serde_json::{Value, json};
use tokio::io::AsyncRead;

use crate::{
    arriving::Arriving,
    event_stream::give_way,
    message_limit::{MessageLimit, instead},
    open_calls::OpenCalls,
    redactor::Redactor,
    result_kinds::set_apart,
    task_tools::TaskTools,
};

/// Junk lines that are logged.
const LOGGED: u64 = 3;

/// Reads messages until the end.
pub(crate) struct Lines<R> {
    lines: LineReader<R>,
    /// `None` only while a line is parsed.
    parser: Option<Parser>,
}

/// Parses lines, and counts those that are not messages.
struct Parser {
    id: String,
    limit: MessageLimit,
    redactor: Redactor,
    task_tools: Arc<TaskTools>,
    junk: u64,
}

/// Input from the server.
#[derive(Debug)]
pub(crate) enum Received {
    /// Messages, one for each member of a batch.
    Messages(Vec<ServerJsonRpcMessage>),
    /// An answer over the limit whose request is not known: the connection is of no use any more.
    TooLong,
    /// The server closed its output.
    End,
}

impl<R: AsyncRead + Unpin> Lines<R> {
    pub(crate) fn new(
        id: &str,
        reader: R,
        longest: usize,
        redactor: Redactor,
        task_tools: Arc<TaskTools>,
        calls: Arc<OpenCalls>,
    ) -> Self {
        let lines = LineReader::new(reader, longest).within(Arriving::of_app(&id.into()));
        let limit = MessageLimit::new(id, longest, calls);
        let parser = Parser { id: id.to_owned(), limit, redactor, task_tools, junk: 0 };
        Self { lines, parser: Some(parser) }
    }

    /// The next messages. Not cancel safe. Long lines are parsed on a thread for such work.
    pub(crate) async fn next(&mut self) -> Received {
        loop {
            let line = self.lines.next().await;
            let Some(mut parser) = self.parser.take() else { return Received::End };
            let received = match line {
                Ok(None) | Err(_) => Some(parser.end()),
                Ok(Some(Line::TooLong { head, tail })) => {
                    parser.too_long(&head, &tail, self.lines.lacked_room())
                }
                Ok(Some(Line::Whole(line))) => {
                    give_way(line.len()).await;
                    let parsed = off_thread(line.len(), move || {
                        let received = parser.whole(&line);
                        (parser, received)
                    });
                    let received;
                    (parser, received) = parsed.await;
                    received
                }
            };
            self.parser = Some(parser);
            if let Some(received) = received {
                return received;
            }
        }
    }
}

impl Parser {
    fn end(&self) -> Received {
        if self.junk > LOGGED {
            tracing::warn!(app.id = %self.id, lines = self.junk, "lines of an app's output that are not MCP");
        }
        Received::End
    }

    fn whole(&mut self, line: &[u8]) -> Option<Received> {
        // Some programs begin their output with a byte order mark.
        let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line).trim_ascii();
        match line.first() {
            None => return None,
            Some(b'{' | b'[') => {}
            Some(_) => {
                self.skip(line);
                return None;
            }
        }
        let refused = match self.limit.check(line) {
            Ok(()) => {
                let messages = self.parse(line);
                return (!messages.is_empty()).then_some(Received::Messages(messages));
            }
            Err(error) => instead(line, error),
        };
        match refused {
            Some(instead) => Some(Received::Messages(vec![instead])),
            // The requests that a batch answers would wait for ever.
            None if line.starts_with(b"[") => Some(Received::TooLong),
            None => {
                self.skip(line);
                None
            }
        }
    }

    /// Of a line over the limit, or one for which there was no memory.
    fn too_long(&mut self, head: &[u8], tail: &[u8], lacks_memory: bool) -> Option<Received> {
        if self.limit.may_log() {
            let why = if lacks_memory { "for which there is no memory" } else { "over `maxMessageBytes`" };
            tracing::warn!(app.id = %self.id, limit_bytes = self.limit.longest(), "an app sent a line {why}");
        }
        if !looks_like_an_answer(head) {
            self.skip(head);
            return None;
        }
        Some(match answered_id(head, tail) {
            Some(id) => {
                let why = if lacks_memory { self.limit.no_memory() } else { self.limit.too_long() };
                Received::Messages(vec![ServerJsonRpcMessage::error(why, Some(id))])
            }
            None => Received::TooLong,
        })
    }

    fn parse(&mut self, line: &[u8]) -> Vec<ServerJsonRpcMessage> {
        if let Some(Ok(message)) = set_apart(line).map(serde_json::from_value) {
            self.task_tools.read(line);
            return vec![message];
        }
        if let Ok(message) = serde_json::from_slice(line) {
            self.task_tools.note(&message, line);
            return vec![message];
        }
        match serde_json::from_slice::<Value>(line) {
            // Batches were part of 2025-03-26 only, and some servers still send them.
            Ok(Value::Array(batch)) if !batch.is_empty() => {
                batch.into_iter().filter_map(|value| self.judge(value, line)).collect()
            }
            Ok(value) => self.judge(value, line).into_iter().collect(),
            Err(problem) => self.unreadable(&problem, line).into_iter().collect(),
        }
    }

    /// An error in place of an answer that cannot be read, such as one with half a surrogate pair or nested too deep, so that
    /// nobody waits for it.
    fn unreadable(&mut self, problem: &serde_json::Error, line: &[u8]) -> Option<ServerJsonRpcMessage> {
        #[derive(serde::Deserialize)]
        struct Answer {
            id: RequestId,
            #[serde(default)]
            method: Option<serde::de::IgnoredAny>,
        }
        match serde_json::from_slice::<Answer>(line) {
            Ok(Answer { id, method: None }) => Some(self.bad_answer(id, problem)),
            _ => {
                self.skip(line);
                None
            }
        }
    }

    fn bad_answer(&self, id: RequestId, problem: &serde_json::Error) -> ServerJsonRpcMessage {
        let text = format!("the server behind `{}` gave an answer that is not valid MCP: {problem}", self.id);
        let text = self.redactor.line(&text, 300);
        let data = Some(json!({"code": "UPSTREAM_BAD_ANSWER"}));
        ServerJsonRpcMessage::error(ErrorData::internal_error(text, data), Some(id))
    }

    /// A message; an error in place of an answer that is none; or nothing.
    fn judge(&mut self, value: Value, line: &[u8]) -> Option<ServerJsonRpcMessage> {
        let id = value.get("id").and_then(|id| serde_json::from_value(id.clone()).ok());
        let has = |key: &str| value.get(key).is_some();
        let answer = has("result") || has("error") || (has("jsonrpc") && !has("method"));
        match (serde_json::from_value(value), id) {
            (Ok(message), _) => Some(message),
            (Err(problem), Some(id)) if answer => Some(self.bad_answer(id, &problem)),
            _ => {
                self.skip(line);
                None
            }
        }
    }

    fn skip(&mut self, line: &[u8]) {
        self.junk += 1;
        if self.junk <= LOGGED {
            let text = self.redactor.line(&String::from_utf8_lossy(&line[..line.len().min(400)]), 100);
            tracing::warn!(app.id = %self.id, line = text,
                "an app printed a line that is not MCP to its standard output; it is skipped. Servers should log to standard error");
        }
    }
}

/// Returns `true` if a caller may wait for the message that begins like this.
fn looks_like_an_answer(head: &[u8]) -> bool {
    let head = String::from_utf8_lossy(head);
    let head = head.trim_start();
    head.starts_with('[')
        || (head.starts_with('{')
            && !head.split("\"params\"").next().is_some_and(|start| start.contains("\"method\"")))
}

/// The id of an answer of which only both ends are known. Servers write it before `result` or after it.
fn answered_id(head: &[u8], tail: &[u8]) -> Option<RequestId> {
    let head = String::from_utf8_lossy(head);
    let tail = String::from_utf8_lossy(tail);
    let before = head.find("\"result\"").unwrap_or(0);
    let after = |at: usize| head[at + 4..].trim_start().strip_prefix(':');
    let early = head[..before].find("\"id\"").and_then(after).and_then(read_id);
    early.or_else(|| {
        // `…},"jsonrpc":"2.0","id":7}`: the very last member of the message.
        let end = tail.trim_end().strip_suffix('}')?;
        let at = end.rfind("\"id\"")?;
        let value = end[at + 4..].trim_start().strip_prefix(':')?;
        let with_version = value.split_once(",\"jsonrpc\"").map_or(value, |(id, _)| id);
        read_id(with_version)
    })
}

/// The JSON value at the start of `text`, when it is an id. Nothing is built from an object or an array.
fn read_id(text: &str) -> Option<RequestId> {
    let text = text.trim_start();
    let id = || serde_json::Deserializer::from_str(text).into_iter::<Value>().next()?.ok();
    if text.starts_with(['{', '[']) { None } else { serde_json::from_value(id()?).ok() }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn all(input: &[u8], longest: usize) -> Vec<Received> {
        let mut lines = Lines::new("a", input, longest, Redactor::default(), Arc::default(), Arc::default());
        let mut all = Vec::new();
        loop {
            match lines.next().await {
                Received::End => return all,
                other => all.push(other),
            }
        }
    }

    fn id_of_error(received: &Received) -> Option<i64> {
        match received {
            Received::Messages(messages) => match &messages[0] {
                ServerJsonRpcMessage::Error(error) => match error.id.as_ref()? {
                    RequestId::Number(id) => Some(*id),
                    RequestId::String(_) => None,
                },
                _ => None,
            },
            _ => None,
        }
    }

    #[test]
    fn an_id_that_is_an_object_is_not_built() {
        let id = r#"{"$serde_json::private::RawValue":"7"}"#;
        let line = format!(r#"{{"id":{id},"result":"#);
        assert_eq!(answered_id(line.as_bytes(), b""), None);
        assert_eq!(answered_id(b"", format!(r#"","jsonrpc":"2.0","id":{id}}}"#).as_bytes()), None);
        assert_eq!(answered_id(b"", br#"","id":7,"jsonrpc":"2.0"}"#), Some(RequestId::Number(7)));
    }

    #[tokio::test]
    async fn long_lines_are_parsed_on_another_thread_and_keep_their_order() {
        let line = |id: u32, length: usize| {
            format!(
                "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"error\":{{\"code\":1,\"message\":\"{}\"}}}}\n",
                "x".repeat(length)
            )
        };
        let input = line(1, 10) + &line(2, 200_000) + &line(3, 10);
        let mut lines =
            Lines::new("a", input.as_bytes(), 1 << 20, Redactor::default(), Arc::default(), Arc::default());
        for (id, is_long) in [(1, false), (2, true), (3, false)] {
            let mut next = std::pin::pin!(lines.next());
            let received = match futures::poll!(&mut next) {
                // The other thread may have been quick.
                std::task::Poll::Ready(received) => received,
                std::task::Poll::Pending => {
                    assert!(is_long);
                    next.await
                }
            };
            assert_eq!(id_of_error(&received), Some(id));
        }
    }

    #[tokio::test]
    async fn junk_between_messages_is_skipped() {
        let input = b"hello\n\xff\xfe\n\n{\"a\":1}\n{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n[1]\n{";
        assert_eq!(all(input, 4096).await.len(), 1);
    }

    #[tokio::test]
    async fn an_answer_that_is_too_long_becomes_an_error_for_its_request_wherever_the_id_stands() {
        let long = "x".repeat(10_000);
        let first = format!("{{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{{\"a\":\"{long}\"}}}}\n");
        let last = format!("{{\"result\":{{\"a\":\"{long}\"}},\"jsonrpc\":\"2.0\",\"id\":8}}\n");
        let middle = format!("{{\"result\":{{\"a\":\"{long}\"}},\"id\":9,\"jsonrpc\":\"2.0\"}}\n");
        let received = all((first + &last + &middle).as_bytes(), 2000).await;
        assert_eq!(received.iter().map(id_of_error).collect::<Vec<_>>(), [Some(7), Some(8), Some(9)]);
    }

    #[tokio::test]
    async fn an_answer_of_too_many_values_becomes_an_error_and_other_such_lines_are_skipped() {
        let many = "{},".repeat(10_000);
        let answer = format!("{{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{{\"a\":[{many}0]}}}}\n");
        let note = format!("{{\"jsonrpc\":\"2.0\",\"method\":\"n\",\"params\":{{\"a\":[{many}0]}}}}\n");
        let short = "{\"jsonrpc\":\"2.0\",\"id\":8,\"result\":{}}\n";
        let received = all((answer + &note + short).as_bytes(), 40_000).await;
        assert_eq!(received.iter().map(id_of_error).collect::<Vec<_>>(), [Some(7), None]);
        let batch = format!("[{many}0]\n");
        assert!(matches!(all(batch.as_bytes(), 40_000).await[..], [Received::TooLong]));
    }

    #[tokio::test]
    async fn an_answer_that_no_parser_reads_becomes_an_error_for_its_request() {
        let half = "{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{\"a\":\"\\ud800\"}}\n";
        let deep = format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":8,\"result\":{}{}}}\n",
            "[".repeat(5_000),
            "]".repeat(5_000)
        );
        let note = "{\"jsonrpc\":\"2.0\",\"id\":9,\"method\":\"\\ud800\"}\n";
        let received = all((half.to_owned() + &deep + note).as_bytes(), 20_000).await;
        assert_eq!(received.iter().map(id_of_error).collect::<Vec<_>>(), [Some(7), Some(8)]);
    }

    #[tokio::test]
    async fn an_answer_without_a_result_is_an_error_and_one_behind_a_byte_order_mark_is_read() {
        let empty = "{\"jsonrpc\":\"2.0\",\"id\":7}\n{\"id\":8,\"level\":\"info\"}\n";
        let marked = "\u{feff}{\"jsonrpc\":\"2.0\",\"id\":9,\"result\":{}}\n";
        let received = all((empty.to_owned() + marked).as_bytes(), 20_000).await;
        assert_eq!(received.iter().map(id_of_error).collect::<Vec<_>>(), [Some(7), None]);
    }

    #[tokio::test]
    async fn a_long_line_is_skipped_unless_it_may_answer_someone_unknown() {
        let long = "x".repeat(10_000);
        assert!(all(format!("{long}\n").as_bytes(), 2000).await.is_empty());
        let note = format!("{{\"jsonrpc\":\"2.0\",\"method\":\"n\",\"params\":{{\"a\":\"{long}\"}}}}\n");
        assert!(all(note.as_bytes(), 2000).await.is_empty());
        let unknown = format!("{{\"result\":\"{long}\"}}\n");
        assert!(matches!(all(unknown.as_bytes(), 2000).await[..], [Received::TooLong]));
    }
}
