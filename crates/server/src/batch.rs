//! Batches of messages in one POST: MCP 2025-03-26 alone has them.
//!
//! Each message is served as if it had come alone.

use serde_json::value::RawValue;

/// Messages of a batch, at most.
const MOST_MESSAGES: usize = 100;

/// Returns `true` if `body` begins as a batch does.
pub(crate) fn is_batch(body: &[u8]) -> bool {
    body.trim_ascii_start().first() == Some(&b'[')
}

/// The messages of a batch.
///
/// # Errors
/// The reason why it is none that is served.
pub(crate) fn messages(body: &[u8]) -> Result<Vec<&RawValue>, String> {
    let messages: Vec<&RawValue> = serde_json::from_slice(body).map_err(|error| error.to_string())?;
    match messages.len() {
        0 => Err("the batch is empty".to_owned()),
        1..=MOST_MESSAGES => Ok(messages),
        many => Err(format!("a batch may hold {MOST_MESSAGES} messages; this one holds {many}")),
    }
}
