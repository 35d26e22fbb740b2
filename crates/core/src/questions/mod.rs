//! Questions that an app asks during a call: forms and addresses for the user (elicitation), texts of the client's model (sampling), and
//! the client's folders (roots).
//!
//! Kinds of questions and what a client must declare for each are in `kind`; asking a client with requests is in `client`.

mod client;
mod kind;

pub use client::{CannotAsk, ask_client};
pub use kind::{can_answer, outline};

/// Times that one call may ask, each time any number of questions at once.
pub const MOST_ROUNDS: usize = 10;
