//! Questions that an app asks during a call: forms and addresses for the user (elicitation), texts of the client's model (sampling), and
//! the client's folders (roots).
//!
//! Kinds of questions and what a client must declare for each are in `kind`; asking a client with requests is in `client`. `call` is what
//! an app asks through, `addresses` makes questions of errors, `conversation` has the questions of one request answered, and `open_questions` and
//! `open_calls` keep a call open whose caller answers in another request; `room` bounds what waits in both. `plans` has the questions of scripts that users answer on a page.

mod addresses;
mod call;
mod client;
mod conversation;
mod kind;
mod open_calls;
mod open_questions;
mod plans;
mod repetitions;
mod room;
mod unasked;

pub(crate) use addresses::addresses;
pub use call::{
    AnsweredLater, AnswersByRetry, AskedAtOnce, CountedBefore, Presence, Questions, ask, caller_peer,
};
pub use client::ask_client;
pub(crate) use conversation::{Answers, Asking, Conversation, Response, Unanswered};
pub use kind::{can_answer, declare_questions, is_web_address, outline, question_capabilities};
pub(crate) use kind::{leads_to_web, missing};
pub(crate) use open_calls::{ArgumentsDigest, CallKey, OpenCalls};
pub use open_calls::{DigestPart, digest_of_parts};
pub(crate) use open_questions::OpenCallId;
pub use plans::{CannotAnswer, PlanQuestion, PlanQuestions, WaitingPlan};
pub(crate) use repetitions::Repetitions;
pub use unasked::{CannotAsk, Unasked};

/// Times that one call may ask, each time any number of questions at once.
pub const MOST_ROUNDS: usize = 10;
/// Questions that one call may ask in all.
pub const MOST_QUESTIONS: usize = 64;
/// Bytes of the questions that one call of a script may ask at once, and of the state that comes with them: a run keeps both while it waits.
pub const MOST_QUESTION_BYTES: usize = 64 * 1024;
/// Questions that a server may ask with requests during one call, and that are open at once.
pub const MOST_OPEN: usize = 16;
