//! Bodies of the fuzz targets under `fuzz/`: ordinary functions that panic when something does not hold.
//!
//! They also run as tests, over the corpus and over random input. Not part of the public interface.

use std::{
    io::Write as _,
    os::unix::net::UnixStream,
    sync::Arc,
    time::{Duration, Instant},
};

use serde_json::value::RawValue;
use tokio_util::sync::CancellationToken;

use crate::{
    Host, HostFuture, Limits, Preset, Rejection, RunError, RunRequest, Script, ScriptPolicy, ScriptSource,
    ToolAnswer, ToolCall, ToolFailure, WorkerError, WorkerPool,
    engine::{Compiler, wrapped},
    messages::RunSettings,
    pool,
    protocol::{self, MessageKind},
    validate,
    worker::Link,
};

/// Validates any bytes as a script: it does not panic, a rejection has a message and a place inside the text, and an accepted script runs as it
/// was checked (see `printed`).
///
/// Needs [`crate::VALIDATE_STACK`] bytes of stack.
pub fn validator(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let lines = text.split(['\n', '\r']).count();
    for preset in [Preset::LockedDown, Preset::Secure] {
        let policy = ScriptPolicy::new(preset).reserved_tool_prefixes(["codecall:"]);
        match ScriptSource::new(&text).validate(&policy, &Limits::preset(preset)) {
            Ok(script) => printed(&text, &script),
            Err(
                Rejection::Illegal { message, location, .. } | Rejection::SyntaxError { message, location },
            ) => {
                assert!(!message.is_empty(), "no reason: {text:?}");
                let inside = location.column >= 1 && (1..=lines + 1).contains(&(location.line as usize));
                assert!(inside, "{location:?} of {text:?}");
                assert!(!message.contains("could not read the script"), "the parser panicked on {text:?}");
                assert!(message != validate::verify::UNFAITHFUL, "printed as another program: {text:?}");
            }
        }
    }
}

/// Checks the text that runs: it uses the names that were checked and no other, the engine compiles it, and reads no word in it that the
/// parser does not read there, such as one of a comment.
fn printed(source: &str, script: &Script) {
    let text = script.text();
    let context = || format!("{source:?}\nwas printed as {text:?}");
    let checked = validate::free_names(source).unwrap_or_else(|error| panic!("{error}: {}", context()));
    match validate::free_names(text) {
        Ok(mut names) => {
            names.retain(|name| !name.starts_with("__ag_"));
            assert_eq!(names, checked, "{}", context());
        }
        // The calls that were added nest too.
        Err(error) if error.to_string().contains("levels") => return,
        Err(error) => panic!("{error}: {}", context()),
    }
    thread_local! {
        static COMPILER: Compiler = Compiler::new().expect("an engine");
    }
    let compile = |text: &str| {
        COMPILER.with(|compiler| compiler.script(text, "script", &Limits::preset(Preset::Balanced), None))
    };
    match compile(&wrapped(text)) {
        Ok(bytecode) => {
            let found = bytecode.words().unwrap_or_else(|| panic!("no words of {}", context()));
            let hidden = unread(&found, &wrapped(text));
            assert!(hidden.is_empty(), "the engine reads {hidden:?}, the parser does not: {}", context());
        }
        Err(RunError::SyntaxError { message, .. }) => {
            // The parser leaves regular expressions to the engine: one of them is wrong by itself, then.
            let mut literals = validate::regular_expressions(text).into_iter();
            let known = literals.any(|(_, literal)| compile(&format!("({literal})")).is_err())
                || message.contains("stack overflow");
            assert!(known, "the engine refuses it, {message}: {}", context());
        }
        Err(_) => {}
    }
}

/// The words of the engine that the parser does not find in `text`.
fn unread<'w>(found: &'w [String], text: &str) -> Vec<&'w str> {
    let Ok(read) = validate::words(text) else { return Vec::new() };
    let is_name = |word: &str| {
        word.starts_with(|c: char| c.is_alphabetic() || matches!(c, '_' | '$' | '#'))
            && word.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '$' | '#'))
    };
    let known = |word: &str| {
        read.contains(word) || word == "script" || ENGINE_NAMES.iter().any(|own| word.starts_with(own))
    };
    found.iter().map(String::as_str).filter(|word| is_name(word) && !known(word)).collect()
}

/// Beginnings of names that the engine gives to parts without one.
const ENGINE_NAMES: [&str; 1] = ["computed_field"];

/// Decodes any bytes as messages of a worker: decoding neither panics nor reads past them, and encoding gives the same bytes again.
pub fn messages(bytes: &[u8]) {
    let mut rest = bytes;
    while let Ok(Some(len)) = protocol::frame_len(rest, 1 << 20)
        && let Some(frame) = rest.get(..len)
        && let Ok(frame) = protocol::parse(frame)
    {
        assert!(frame.head.len() + frame.body.len() <= len, "longer than its frame");
        let mut again = Vec::new();
        protocol::put(&mut again, frame.kind, frame.run, frame.id, frame.head, &[frame.body]);
        assert_eq!(again, rest[..len], "decoding lost something");
        rest = &rest[len..];
    }
}

/// Takes any bytes as the messages of a worker during a run, as they are and put into frames: the run keeps to its limits, and the worker
/// is sent frames. Takes the same bytes as the messages of a pool to its worker.
pub fn worker(bytes: &[u8]) {
    messages(bytes);
    replay(bytes);
    replay(&framed(bytes));
    read_as_worker(bytes);
}

/// Frames of run 1 from records of a kind, the lengths of head and body, and both.
fn framed(mut bytes: &[u8]) -> Vec<u8> {
    let (mut out, mut asked) = (Vec::new(), 0);
    while let [kind, head, body, rest @ ..] = bytes {
        let (head, rest) = rest.split_at(rest.len().min((*head).into()));
        let (body, rest) = rest.split_at(rest.len().min((*body).into()));
        bytes = rest;
        let Some(kind) = MessageKind::from_byte(*kind) else { continue };
        let (head, body) = (String::from_utf8_lossy(head), String::from_utf8_lossy(body));
        protocol::put(&mut out, kind, 1, asked, &head, &[&body]);
        asked += u32::from(matches!(
            kind,
            MessageKind::Call | MessageKind::CallPages | MessageKind::GetTool | MessageKind::Content
        ));
    }
    out
}

fn replay(received: &[u8]) {
    let limits = Limits {
        max_tool_calls: 8,
        max_pending_calls: 4,
        result_bytes: 256,
        log_bytes: 256,
        log_lines: 8,
        message_bytes: 512,
        host_bytes: 128 * 1024,
        ..Limits::default()
    };
    let host: Arc<dyn Host> = Arc::new(Echo);
    let (outcome, sent) = pool::replay(received, limits.clone(), &host);
    assert!(outcome.calls.len() <= limits.max_tool_calls as usize, "{outcome:?} after {received:?}");
    assert!(outcome.logs.len() <= limits.log_lines as usize + 1, "{outcome:?} after {received:?}");
    let texts = outcome.logs.iter().chain(outcome.calls.iter().map(|call| &call.name)).map(String::len);
    assert!(texts.sum::<usize>() as u64 <= limits.host_bytes, "{outcome:?} after {received:?}");
    if let Ok(value) = &outcome.result {
        assert!(value.get().len() as u64 <= limits.result_bytes, "{outcome:?} after {received:?}");
        assert!(
            serde_json::from_str::<serde::de::IgnoredAny>(value.get()).is_ok(),
            "{outcome:?} after {received:?}"
        );
    }
    let mut rest = sent.as_slice();
    while !rest.is_empty() {
        let (frame, after) = match protocol::frame_len(rest, sent.len()) {
            Ok(Some(len)) => rest.split_at(len),
            other => panic!("{other:?} for {rest:?}"),
        };
        let frame = protocol::parse(frame).unwrap_or_else(|error| panic!("{error:?} for {frame:?}"));
        assert!(
            matches!(frame.kind, MessageKind::Answer | MessageKind::Failure),
            "{frame:?} was sent after {received:?}"
        );
        rest = after;
    }
}

/// The worker's end reads the frames that decoding gives, until one is none.
fn read_as_worker(sent: &[u8]) {
    const LONGEST: usize = 1 << 20;
    let (mut pool, worker) = UnixStream::pair().expect("a socket");
    let mut link = Link::new(worker, LONGEST);
    let mut rest = &sent[..sent.len().min(64 * 1024)];
    pool.write_all(rest).expect("room in the socket");
    drop(pool);
    while let Ok(Some(frame)) = link.next() {
        let len = match protocol::frame_len(rest, LONGEST) {
            Ok(Some(len)) if len <= rest.len() => len,
            other => panic!("{frame:?} from {other:?} of {rest:?}"),
        };
        assert_eq!(Ok(&frame), protocol::parse(&rest[..len]).as_ref(), "of {sent:?}");
        if let Ok(settings) = serde_json::from_str::<RunSettings>(frame.head) {
            let _ = frame.body.split_at_checked(settings.script_len);
        }
        rest = &rest[len..];
    }
}

/// Runs any bytes as a script in `pool`: it ends within its limit and a second, and its worker survives.
pub async fn script(bytes: &[u8], pool: &WorkerPool) {
    let text = String::from_utf8_lossy(bytes).into_owned();
    let mut took = Duration::MAX;
    // A machine that others keep busy makes one run late, not five in a row.
    for _ in 0..5 {
        let mut request = RunRequest::new(text.clone());
        request.limits.timeout = Duration::from_millis(100);
        let started = Instant::now();
        let outcome = pool.run(request, Arc::new(Echo), CancellationToken::new()).await;
        took = started.elapsed();
        let broken = matches!(
            outcome.result,
            Err(RunError::Worker(
                WorkerError::Crashed(_) | WorkerError::MessageInvalid | WorkerError::StartupFailed(_)
            ))
        );
        assert!(!broken, "{text:?} broke its worker: {:?}", outcome.result);
        if took < LATE {
            break;
        }
    }
    assert!(took < LATE, "{text:?} took {took:?}");
}

/// Longest time of a run of [`script`] that ended at its limit.
const LATE: Duration = Duration::from_millis(1_100);

/// Answers every call with its input; `never` is not answered.
struct Echo;

impl Host for Echo {
    fn call_tool(&self, call: ToolCall) -> HostFuture<'_, Result<ToolAnswer, ToolFailure>> {
        Box::pin(async move {
            if call.name == "never" {
                std::future::pending::<()>().await;
            }
            Ok(call.input.into())
        })
    }

    fn get_tool(&self, _: String) -> HostFuture<'_, Result<Box<RawValue>, ToolFailure>> {
        Box::pin(async { Ok(RawValue::NULL.to_owned()) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The words that the engine reads in a text, and the parser reads nowhere in another one.
    fn hidden(compiled: &str, read: &str) -> Vec<String> {
        let compiler = Compiler::new().unwrap();
        let bytecode = compiler.script(&wrapped(compiled), "script", &Limits::preset(Preset::Balanced), None);
        let found = bytecode.unwrap_or_else(|error| panic!("{error:?}")).words().unwrap();
        unread(&found, &wrapped(read)).into_iter().map(str::to_owned).collect()
    }

    #[test]
    fn a_word_that_only_the_engine_reads_is_found() {
        let script = "const a = { key: 'text', get b() { return 1 }, ['c' + 1]: 2 }; class D { #e = 1; f() { return this.#e } }\n\
                      for (const \u{e9} of [`t${a.key}`, /x(?<group>y)/u]) callTool('crm:x', { \u{e9} }); g: for (;;) break g;";
        assert_eq!(hidden(script, script), Vec::<String>::new());
        // As if one of the two took a part for a comment, a text or a regular expression.
        for (compiled, read, word) in [
            ("a(); b()", "a(); /* b() */", "b"),
            ("a(); b()", "a() // b()", "b"),
            ("a(); b()", "a(); /b()/", "b"),
            ("a.secret", "a['sec' + 'ret']", "secret"),
            ("a(x => evil)", "a(x => 'e', x)", "evil"),
        ] {
            assert_eq!(hidden(compiled, read), [word], "{compiled} for {read}");
        }
    }
}
