//! The journal of a run: its host calls and their answers, in the order in which the script saw them.
//!
//! A run depends on nothing but its script, its context, its [`Inputs`](crate::Inputs) and the answers of its host with their order and times. So a run
//! that replays a journal comes to the point where the journal ends, and goes on from there.

use std::{fmt::Debug, future::ready, time::Duration};

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::host::{HostFuture, ToolFailure};

/// A function by which a script calls its host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum HostFunction {
    /// `callTool`.
    CallTool,
    /// `callTool` with `paginate`: one call, whose answer has the items of all pages.
    CallPages,
    /// `getTool`.
    GetTool,
    /// `readResource`, `listResources` or `getPrompt`.
    Content,
}

/// One step of a run. Times are milliseconds since the run began.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum JournalEntry {
    /// The script made a host call. Written before the host is asked.
    Call {
        /// Number of the call in its run, from 0.
        id: u32,
        /// Time of the call.
        at_ms: u64,
        /// The function that the script called.
        function: HostFunction,
        /// Name of the tool, or of the content, as the script gave it.
        name: String,
        /// Its input; `null` for `getTool`, and for an input that is nested too deep to be passed on.
        input: Box<RawValue>,
    },
    /// The host answered. Written before the script sees the answer.
    Answer {
        /// Number of the call.
        id: u32,
        /// Time of the answer, which the script's clock shows.
        at_ms: u64,
        /// The result, or the failure that the script can catch.
        answer: Result<Box<RawValue>, ToolFailure>,
        /// State that the host keeps beside the answer.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        kept: Option<Box<RawValue>>,
    },
    /// The call waits for something outside of the run, such as a person.
    Waits {
        /// Number of the call.
        id: u32,
        /// State that the host needs to go on with the call.
        state: Box<RawValue>,
    },
    /// The host is asked again for the answer to a call that an earlier part of the run left open.
    Retried {
        /// Number of the call.
        id: u32,
    },
}

/// The reason why a journal could not be written. It ends the run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct JournalError {
    /// Stable code.
    pub code: String,
    /// The problem and what to do.
    pub message: String,
}

/// Keeps the journal of a run.
pub trait Journal: Debug + Send + Sync {
    /// Writes entries, in order. The run goes on when they are safe: calls among them are sent, and answers reach the script.
    fn write(&self, entries: Vec<JournalEntry>) -> HostFuture<'_, Result<(), JournalError>>;

    /// Returns `true` if [`Journal::read`] gives back what was written. Default: it does not.
    fn can_be_read(&self) -> bool {
        false
    }

    /// Reads all entries that were written, of earlier parts of the run, too.
    fn read(&self) -> HostFuture<'_, Result<Vec<JournalEntry>, JournalError>> {
        let message = "the journal of the run cannot be read".to_owned();
        Box::pin(ready(Err(JournalError { code: "JOURNAL_UNREADABLE".to_owned(), message })))
    }
}

/// A journal to go on from.
#[derive(Debug, Clone, Default)]
pub struct Replay {
    /// All entries so far.
    pub entries: Vec<JournalEntry>,
    /// Time since the run began, as the script's clock shows it from the end of the journal on.
    pub elapsed: Duration,
}

/// State of a call that an earlier part of the run left open.
#[derive(Debug, Clone)]
pub enum Resumed {
    /// It waited; the host's own state.
    Waited(Box<RawValue>),
    /// The host was at work on it: its effect may have happened.
    Interrupted,
}
