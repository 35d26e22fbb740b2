//! The outcome of a run: its value or error, and its record.

use std::{
    fmt,
    time::{Duration, SystemTime},
};

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::{excerpt, journal::JournalError};

/// A place in the caller's text; both are counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Location {
    /// Line, from 1.
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
}

/// The rule a refused script broke (`error.kind`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub enum IllegalKind {
    /// `eval`, `Function` and their kin.
    IllegalBuiltinAccess,
    /// `require`, `import`.
    IllegalModuleAccess,
    /// `process`, `global`, `globalThis`, `window`, `this` at top level.
    IllegalGlobalAccess,
    /// `__proto__`, `.constructor`, `.prototype` and computed forms of them.
    IllegalPrototypeAccess,
    /// `setTimeout` and its kin.
    IllegalTimer,
    /// A reserved identifier, such as one that begins with `__ag_`.
    IllegalIdentifier,
    /// A loop the preset does not allow.
    IllegalLoop,
    /// Syntax that AgentScript leaves out, such as `with` or generators.
    IllegalSyntax,
    /// An invisible or bidirectional control character.
    IllegalCharacter,
    /// The text is longer than `Limits::script_bytes`.
    ScriptTooLarge,
    /// A call of one of the embedder's own meta-tools.
    SelfReferenceBlocked,
}

impl fmt::Display for IllegalKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// Most values of `progress` that are kept.
pub const PROGRESS_VALUES: usize = 20;
/// Most bytes of JSON of the values of `progress` that are kept, together; one value may not be longer.
pub const PROGRESS_BYTES: usize = 16 * 1024;

/// The value that a script returned, as JSON text, or why there is none.
pub type RunResult = Result<Box<RawValue>, RunError>;

/// The reason why a run ended without a value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub enum RunError {
    /// The text is not JavaScript.
    #[error("{message}")]
    SyntaxError {
        /// The parser's message.
        message: String,
        /// Place in the caller's text.
        location: Location,
    },
    /// A rule of the language subset was broken, before or (self-reference) during the run.
    #[error("{kind}: {message}")]
    IllegalAccess {
        /// The rule.
        kind: IllegalKind,
        /// Advice for the author.
        message: String,
        /// Place in the caller's text, when the validator found it.
        location: Option<Location>,
    },
    /// The script threw something that no tool caused, or spent a limit other than time.
    #[error("{name}: {message}")]
    RuntimeError {
        /// Class of the error, such as `TypeError`, or the limit's name, such as `IterationLimitError`.
        name: String,
        /// The error's message.
        message: String,
        /// Place of the `throw`, when known.
        location: Option<Location>,
    },
    /// A tool failed and the script did not catch it.
    #[error("{tool_name}: {message}")]
    ToolError {
        /// The tool's name as the script gave it.
        tool_name: String,
        /// The tool's message.
        message: String,
        /// The tool's code.
        code: String,
        /// Place of the call, when known.
        location: Option<Location>,
    },
    /// Time ran out and the engine ended the run; the message names the calls that were still open. A script stuck in a native
    /// loop is ended by the watchdog instead: [`WorkerError::Timeout`].
    #[error("{message}")]
    Timeout {
        /// The limit and the calls that were open.
        message: String,
    },
    /// All open calls wait for something outside of the run, and the script waits for them. Its journal takes it on from here.
    #[error("the run waits for answers from outside")]
    Suspended,
    /// The run did not do what its journal says: nothing was done that is not in the journal.
    #[error("{message}")]
    ReplayDiverged {
        /// The difference.
        message: String,
    },
    /// The journal could not be written.
    #[error("{message}")]
    Journal {
        /// The journal's code.
        code: String,
        /// The journal's message.
        message: String,
    },
    /// The sandbox itself ended the run.
    #[error(transparent)]
    Worker(#[from] WorkerError),
}

impl From<JournalError> for RunError {
    fn from(JournalError { code, message }: JournalError) -> Self {
        Self::Journal { code, message }
    }
}

impl RunError {
    /// A runtime error without a place.
    pub(crate) fn runtime(name: &str, message: impl Into<String>) -> Self {
        Self::RuntimeError { name: name.to_owned(), message: message.into(), location: None }
    }

    /// Cuts every text to the length that the pool accepts.
    #[must_use]
    pub(crate) fn cut(mut self) -> Self {
        match &mut self {
            Self::SyntaxError { message, .. }
            | Self::IllegalAccess { message, .. }
            | Self::Timeout { message } => excerpt::cut_message(message),
            Self::RuntimeError { name, message, .. } => {
                excerpt::cut_name(name);
                excerpt::cut_message(message);
            }
            Self::ToolError { tool_name, message, code, .. } => {
                excerpt::cut_name(tool_name);
                excerpt::cut_message(message);
                excerpt::cut_name(code);
            }
            Self::ReplayDiverged { message } | Self::Journal { message, .. } => excerpt::cut_message(message),
            Self::Suspended | Self::Worker(_) => {}
        }
        self
    }
}

/// Errors of the worker pool (contract: "Worker-pool errors").
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[non_exhaustive]
pub enum WorkerError {
    /// The watchdog killed a worker that did not end in time: show it as a timeout.
    #[error("the worker did not end within {} ms and was killed", .0.as_millis())]
    Timeout(Duration),
    /// The script's heap, or its process, reached its limit; a script cannot catch it.
    #[error("the worker exceeded its memory limit of {0} bytes")]
    MemoryExceeded(u64),
    /// The worker died.
    #[error("the worker crashed ({0})")]
    Crashed(String),
    /// The pool was shut down during the run.
    #[error("the worker pool was shut down")]
    Disposed,
    /// As many runs are waiting as the pool allows.
    #[error("the execution queue is full ({0} waiting); try again later")]
    QueueFull(usize),
    /// The machine or container has too little memory left for another run.
    #[error("there is too little memory left for another script; try again later")]
    NoMemory,
    /// No worker came free in time.
    #[error("waited {} ms for a worker; try again later", .0.as_millis())]
    QueueTimeout(Duration),
    /// The caller cancelled the run.
    #[error("the execution was cancelled")]
    Aborted,
    /// The worker sent more messages than allowed.
    #[error(
        "the script called callTool and getTool more than {0} times in one second; keep what getTool returns in a variable"
    )]
    MessageFlood(u32),
    /// The worker sent something that is not a message.
    #[error("the worker sent a malformed message")]
    MessageInvalid,
    /// A message was larger than allowed.
    #[error("a message exceeded {0} bytes")]
    MessageTooLarge(u64),
    /// No worker could be started.
    #[error("a worker could not be started: {0}")]
    StartupFailed(String),
    /// Too many tool calls were open at once.
    #[error(
        "more than {0} tool calls were open at the same time; use __safe_parallel with a lower maxConcurrency"
    )]
    TooManyPendingCalls(u32),
}

impl WorkerError {
    /// The class names of all errors.
    pub(crate) const CLASSES: [&'static str; 12] = [
        "WorkerTimeoutError",
        "WorkerMemoryError",
        "WorkerCrashedError",
        "WorkerPoolDisposedError",
        "QueueFullError",
        "QueueTimeoutError",
        "ExecutionAbortedError",
        "MessageFloodError",
        "MessageValidationError",
        "MessageSizeError",
        "WorkerStartupError",
        "TooManyPendingCallsError",
    ];

    /// The contract's class name and code.
    pub fn class_and_code(&self) -> (&'static str, &'static str) {
        let (class, code) = match self {
            Self::Timeout(_) => (0, "WORKER_TIMEOUT"),
            Self::MemoryExceeded(_) => (1, "WORKER_MEMORY_EXCEEDED"),
            Self::Crashed(_) => (2, "WORKER_CRASHED"),
            Self::Disposed => (3, "POOL_DISPOSED"),
            Self::QueueFull(_) | Self::NoMemory => (4, "QUEUE_FULL"),
            Self::QueueTimeout(_) => (5, "QUEUE_TIMEOUT"),
            Self::Aborted => (6, "EXECUTION_ABORTED"),
            Self::MessageFlood(_) => (7, "MESSAGE_FLOOD"),
            Self::MessageInvalid => (8, "MESSAGE_INVALID"),
            Self::MessageTooLarge(_) => (9, "MESSAGE_TOO_LARGE"),
            Self::StartupFailed(_) => (10, "WORKER_STARTUP_FAILED"),
            Self::TooManyPendingCalls(_) => (11, "TOO_MANY_PENDING_CALLS"),
        };
        (Self::CLASSES[class], code)
    }
}

/// A problem of a script that does not keep it from running.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Warning {
    /// The problem and what to do.
    pub message: String,
    /// Place in the caller's text.
    pub location: Location,
}

/// Status of a tool call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallStatus {
    /// Answered with a result.
    Ok,
    /// Answered with an error.
    Error,
    /// Still open when the run ended, and then cancelled.
    Open,
}

/// One tool call of a run. Arguments and results are never kept.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CallRecord {
    /// The tool's name as the script gave it.
    pub name: String,
    /// Status of the call.
    pub status: CallStatus,
    /// The error's code, for `status: error`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// From the start of the run to the start of the call, in milliseconds.
    #[serde(serialize_with = "to_the_microsecond")]
    pub started_ms: f64,
    /// From the call to its answer (or to the end of the run), in milliseconds.
    #[serde(serialize_with = "to_the_microsecond")]
    pub duration_ms: f64,
}

/// Rounds to three decimals, the resolution of the clock.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde calls")]
fn to_the_microsecond<S: serde::Serializer>(milliseconds: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64((milliseconds * 1_000.0).round() / 1_000.0)
}

/// Inputs of a run besides its script, its context and the host's answers. A run with the same inputs has the same outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Inputs {
    /// Seed of `Math.random`.
    pub seed: u64,
    /// Time that `Date` shows when the run starts.
    pub started_at: SystemTime,
}

/// The end of a run, and its record until then: also after a failure.
#[derive(Debug)]
pub struct Outcome {
    /// The value that the script returned, as JSON text, a deep copy.
    ///
    /// Values that JSON lacks take these forms: `undefined`, functions and symbols are left out of objects and `null`
    /// elsewhere; `NaN` and infinities are `null`; a `BigInt` is its digits as text (up to 4,096); a `Date` its ISO text, `null`
    /// when invalid; a `Map` an object when all keys are texts, else an array of pairs; a `Set` and a typed array an array; an
    /// error `{name, message, code?}`; a regular expression its source. A cycle, a `toJSON` function of the script's, or more
    /// than 100 levels is a [`RunError::RuntimeError`].
    pub result: RunResult,
    /// Console lines so far, in order, within `Limits::log_lines` and `Limits::log_bytes`.
    pub logs: Vec<String>,
    /// Console lines that were left out or shortened because of these limits.
    pub logs_omitted: u32,
    /// The latest values that the script gave to `progress`, as JSON text, in order: up to [`PROGRESS_VALUES`] and [`PROGRESS_BYTES`].
    pub progress: Vec<Box<RawValue>>,
    /// Tool calls so far, in the order the script made them.
    pub calls: Vec<CallRecord>,
    /// Problems of the script that did not keep it from running, in order of the text.
    pub warnings: Vec<Warning>,
    /// Wall-clock time of the run.
    pub duration: Duration,
    /// Inputs of the run; `None` when it did not begin.
    pub inputs: Option<Inputs>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_error_of_the_pool_has_a_class_of_its_own() {
        let all = [
            WorkerError::Timeout(Duration::ZERO),
            WorkerError::MemoryExceeded(0),
            WorkerError::Crashed(String::new()),
            WorkerError::Disposed,
            WorkerError::QueueFull(0),
            WorkerError::QueueTimeout(Duration::ZERO),
            WorkerError::Aborted,
            WorkerError::MessageFlood(0),
            WorkerError::MessageInvalid,
            WorkerError::MessageTooLarge(0),
            WorkerError::StartupFailed(String::new()),
            WorkerError::TooManyPendingCalls(0),
        ];
        assert_eq!(all.map(|error| error.class_and_code().0), WorkerError::CLASSES);
    }
}
