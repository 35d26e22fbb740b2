#![expect(deprecated, reason = "clients of the older era are sent log messages")]
//! Room for the log messages of a session: `rmcp` keeps its last messages for a client that comes back, as long as the session lives.

use std::{collections::VecDeque, sync::Arc};

use gatewright_core::{Claimant, Portion, Share, Shares, value_bytes};
use rmcp::{
    RoleServer,
    model::{JsonRpcMessage, ServerNotification},
    service::TxJsonRpcMessage,
};

/// Messages that `rmcp` keeps for a session, at most.
pub(crate) const MOST: usize = 16;
/// Bytes of the log messages of all sessions that are kept.
const MOST_BYTES: usize = 64 << 20;
/// Bytes of a message that are not counted: the number of sessions is bounded elsewhere.
const UNCOUNTED: usize = 1024;

/// The room that the last messages of a session take.
pub(crate) struct KeptMessages {
    budget: Arc<Shares>,
    claimant: Claimant,
    /// Of the last messages, the oldest first.
    room: VecDeque<Option<Share>>,
}

impl KeptMessages {
    /// Room for the messages of all sessions, and a share of it for each caller.
    pub(crate) fn budget() -> Arc<Shares> {
        Shares::of_memory(MOST_BYTES, Portion::QuarterOfFree)
    }

    /// Nothing yet, of a session that `claimant` opened.
    pub(crate) fn new(budget: Arc<Shares>, claimant: Claimant) -> Self {
        Self { budget, claimant, room: VecDeque::new() }
    }

    /// Returns `false` for a log message that finds no room. All others are short, and go to their client.
    pub(crate) fn has_room(&mut self, message: &TxJsonRpcMessage<RoleServer>) -> bool {
        let JsonRpcMessage::Notification(notification) = message else { return true };
        let room = match &notification.notification {
            // Those go with an answer.
            ServerNotification::ProgressNotification(_) => return true,
            ServerNotification::LoggingMessageNotification(log) => {
                let logger = log.params.logger.as_ref().map_or(0, String::len);
                let data = usize::try_from(value_bytes(&log.params.data)).unwrap_or(usize::MAX);
                let bytes = data.saturating_add(logger);
                match (bytes > UNCOUNTED).then(|| self.budget.take(self.claimant.clone(), bytes)) {
                    None => None,
                    Some(Ok(room)) => Some(room),
                    Some(Err(why)) => {
                        tracing::debug!(bytes, ?why, "a long log message finds no room, and is not sent");
                        return false;
                    }
                }
            }
            _ => None,
        };
        if self.room.len() >= MOST {
            self.room.pop_front();
        }
        self.room.push_back(room);
        true
    }
}

#[cfg(test)]
mod tests {
    use rmcp::model::{
        LoggingLevel, LoggingMessageNotification, LoggingMessageNotificationParam, ServerJsonRpcMessage,
    };
    use serde_json::{Value, json};

    use super::*;

    fn log(data: Value) -> ServerJsonRpcMessage {
        let params = LoggingMessageNotificationParam::new(LoggingLevel::Info, data);
        ServerJsonRpcMessage::notification(LoggingMessageNotification::new(params).into())
    }

    #[test]
    fn long_log_messages_of_all_sessions_have_one_budget_and_short_ones_none() {
        let budget = Shares::new(1 << 20, Portion::QuarterOfFree);
        let new =
            |subject: &str| KeptMessages::new(budget.clone(), Claimant::new(Some(subject.into()), None, &[]));
        let (mut first, mut second, mut other) = (new("ada"), new("ada"), new("bob"));
        let long = log(json!("x".repeat(10_000)));
        let sent = |kept: &mut KeptMessages| (0..40).filter(|_| kept.has_room(&long)).count();
        assert_eq!(sent(&mut first), 40, "only the last ones are kept");
        assert!((16..17 * 10_500).contains(&budget.taken()) && budget.taken() < 200_000);
        assert!(sent(&mut second) < 10, "a caller has a share");
        assert!(sent(&mut other) > 0);
        assert!(second.has_room(&log(json!("short"))));
        drop((first, second, other));
        assert_eq!(budget.taken(), 0);
    }
}
