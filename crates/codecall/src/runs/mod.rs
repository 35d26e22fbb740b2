//! Runs of scripts as executions: the start of a run, its journal, the questions that it waits with, and its continuation.
//!
//! `begin` has its start, `flow` is the course of a run, `refusal` an answer without one. `record` has what the chunks of an execution hold, `keeper` writes them, `questions` has the calls that wait, and `ask` brings their questions to
//! the client. `answering` goes on with the answers, `on_page` with those that users give on a page. `detached` has the runs without one, `tasks` shows them as MCP tasks, `rehearsal` the calls of a plan that is only tried.
//! `recorded` has runs as their executions kept them, and `replay` compares one with its journal.

mod answering;
mod approvals;
mod ask;
mod background;
mod begin;
mod detached;
mod flow;
mod keeper;
mod on_page;
mod other_instances;
mod outcome;
mod questions;
mod record;
mod recorded;
mod refusal;
mod rehearsal;
mod replay;
mod tasks;

pub(crate) use ask::{Asked, Ticket};
pub(crate) use background::Background;
pub(crate) use keeper::RunJournal;
pub(crate) use outcome::KeptOutcome;
pub(crate) use questions::{Asking, NestedOutOfBand, OutOfBand, Questions, waited_for};
pub(crate) use record::{Past, RunStart};
pub use recorded::{NotRecorded, RecordedCall, RecordedOutcome, RecordedRun};
pub(crate) use rehearsal::{DryRun, Rehearsal};
pub use replay::{Replayed, Verdict};
