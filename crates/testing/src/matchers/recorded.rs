//! Matchers of what a server sent by itself: questions (elicitation, sampling, roots), notifications, log messages, progress.

use serde_json::Value;

use super::{
    arguments::{LogMessage, Message, NumberRange, Times},
    matching::Match,
    mismatch::{Mismatch, Outcome},
    registry::{HasAsked, HasLogged, HasNotified, HasProgress},
    subject::{Recorded, Subject},
};
use crate::base::{json::is_subset, text::shorten};

impl Match for HasAsked {
    fn check(&self, subject: &Subject<'_>) -> Outcome {
        let asked = match subject {
            Subject::ToolResult(result) => Recorded::of(&result.asked).items,
            Subject::Recorded(list) => list.items.clone(),
            other => return Err(other.unsupported("a tool call, or a list of requests of the server")),
        };
        found(&self.0, &asked, "request")
    }
}

impl Match for HasNotified {
    fn check(&self, subject: &Subject<'_>) -> Outcome {
        found(&self.0, &notifications(subject)?, "notification")
    }
}

impl Match for HasLogged {
    fn check(&self, subject: &Subject<'_>) -> Outcome {
        let all: Vec<Value> = notifications(subject)?.into_iter().filter_map(log_message).collect();
        let LogMessage { text, level, logger, times } = &self.0;
        let fits = |one: &&Value| {
            let message = one["data"].as_str().map_or_else(|| one["data"].to_string(), str::to_owned);
            message.contains(text.as_str())
                && level.as_ref().is_none_or(|level| one["level"] == **level)
                && logger.as_ref().is_none_or(|logger| one["logger"] == **logger)
        };
        let mut expected = format!("{times} log messages with {text:?}");
        if let Some(level) = level {
            expected = format!("{expected} of level `{level}`");
        }
        if let Some(logger) = logger {
            expected = format!("{expected} of `{logger}`");
        }
        counted(all.iter().filter(fits).count(), times, expected, "log message", &all)
    }
}

/// Checks that there are as many progress notifications as expected, that each is greater than the one before (MCP 2025-11-25,
/// progress), and that none exceeds its total.
impl Match for HasProgress {
    fn check(&self, subject: &Subject<'_>) -> Outcome {
        let mut all = notifications(subject)?;
        all.retain(|one| one["method"] == "notifications/progress");
        let Times(times) = self.0;
        counted(all.len(), &times, format!("{times} progress notifications"), "one", &all)?;
        for (at, one) in all.iter().enumerate() {
            let params = &one["params"];
            let Some(progress) = params["progress"].as_f64() else {
                return Err(Mismatch::new("progress as a number", params.to_string()));
            };
            let same =
                all[..at].iter().rfind(|other| other["params"]["progressToken"] == params["progressToken"]);
            if let Some(before) = same.and_then(|other| other["params"]["progress"].as_f64())
                && progress <= before
            {
                return Err(Mismatch::new("progress that increases", format!("{progress} after {before}")));
            }
            if let Some(total) = params["total"].as_f64()
                && progress > total
            {
                return Err(Mismatch::new("progress up to its total", format!("{progress} of {total}")));
            }
        }
        Ok(())
    }
}

fn notifications(subject: &Subject<'_>) -> Result<Vec<Value>, Mismatch> {
    match subject {
        Subject::ToolResult(result) => Ok(Recorded::of(&result.notifications).items),
        Subject::Recorded(list) => Ok(list.items.clone()),
        // As the step `wait` of a suite lists them.
        Subject::Json(Value::Array(items)) if items.iter().all(|one| one["method"].is_string()) => {
            Ok(items.clone())
        }
        other => Err(other.unsupported("a tool call, or a list of notifications")),
    }
}

/// Level, logger and data of a log message: of a notification, or of an entry of the client's log.
fn log_message(one: Value) -> Option<Value> {
    match one["method"].as_str() {
        Some("notifications/message") => Some(one["params"].clone()),
        Some(_) => None,
        None => {
            let mut entry = one;
            entry["data"] = entry["message"].take();
            Some(entry)
        }
    }
}

fn found(expected: &Message, all: &[Value], what: &str) -> Outcome {
    let Message { method, params, times } = expected;
    let fits = |one: &&Value| {
        one["method"] == **method && params.as_ref().is_none_or(|params| is_subset(params, &one["params"]))
    };
    let with = params.as_ref().map(|params| format!(" with {}", shorten(&params.to_string(), 400)));
    let text = format!("{times} {what}s `{method}`{}", with.unwrap_or_default());
    counted(all.iter().filter(fits).count(), times, text, what, all)
}

fn counted(count: usize, times: &NumberRange, expected: String, what: &str, all: &[Value]) -> Outcome {
    if times.contains(count as f64) {
        return Ok(());
    }
    let listed: Vec<String> = all.iter().take(10).map(|one| shorten(&one.to_string(), 300)).collect();
    let all = match (all.len(), listed.as_slice()) {
        (0, _) => format!("there is no {what} at all"),
        (most @ 11.., listed) => format!("of {most}, the first: {}", listed.join(", ")),
        (_, listed) => listed.join(", "),
    };
    Err(Mismatch::new(expected, format!("{count}: {all}")))
}
