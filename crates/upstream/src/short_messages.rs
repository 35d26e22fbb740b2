//! Progress and log messages of servers, cut to a length of which any number of requests and sessions may keep some: clients need not read them.

use rmcp::model::{LoggingMessageNotificationParam, ProgressNotificationParam};
use serde_json::Value;

use crate::open_calls::weight;

/// Bytes of a progress notification.
const MOST_OF_PROGRESS: usize = 4 << 10;
/// Bytes that a log message takes in memory.
const MOST_OF_LOG: usize = 16 << 10;
/// Bytes of the name of a logger that stay in a log message that is cut.
const MOST_OF_LOGGER: usize = 256;

/// The notification with a message that is cut, and without `_meta`, if it is longer than 4 KiB.
pub(crate) fn short_progress(params: &ProgressNotificationParam) -> ProgressNotificationParam {
    let mut short = params.clone();
    if weight(params) > MOST_OF_PROGRESS {
        short.meta = None;
        short.message = params.message.as_deref().map(|message| cut(message, MOST_OF_PROGRESS));
    }
    short
}

/// The message with its data as a text that is cut, and without `_meta`, if it takes more than 16 KiB.
pub(crate) fn short_log(params: &LoggingMessageNotificationParam) -> LoggingMessageNotificationParam {
    if weight(params) <= MOST_OF_LOG {
        return params.clone();
    }
    let text = match &params.data {
        Value::String(text) => cut(text, MOST_OF_LOG / 2),
        data => cut(&data.to_string(), MOST_OF_LOG / 2),
    };
    let mut short = LoggingMessageNotificationParam::new(params.level, text.into());
    short.logger = params.logger.as_deref().map(|logger| cut(logger, MOST_OF_LOGGER));
    short
}

fn cut(text: &str, most: usize) -> String {
    match text.len() > most {
        true => format!("{}…", &text[..text.floor_char_boundary(most)]),
        false => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use rmcp::model::{LoggingLevel, NumberOrString, ProgressToken};
    use serde_json::json;

    use super::*;

    #[test]
    fn short_messages_stay_and_every_member_of_long_ones_is_cut() {
        let token = ProgressToken(NumberOrString::Number(1));
        let progress = ProgressNotificationParam::new(token, 1.0).with_message("half done");
        assert_eq!(short_progress(&progress), progress);
        let long = "é".repeat(1 << 20);
        assert!(weight(&short_progress(&progress.with_message(&long))) < MOST_OF_PROGRESS + 1_000);

        let log = |data| LoggingMessageNotificationParam::new(LoggingLevel::Info, data);
        assert_eq!(short_log(&log(json!({"a": [1]}))), log(json!({"a": [1]})));
        let mut named = log(json!("x"));
        named.logger = Some(long.clone());
        let many = vec![json!({"a": 1}); 100_000];
        for params in [log(json!(long)), log(json!(many)), named] {
            let short = short_log(&params);
            assert!(weight(&short) <= MOST_OF_LOG && weight(&short) > 100, "{}", weight(&short));
        }
    }
}
