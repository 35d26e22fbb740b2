//! The calls of a run in its answer: each of them, or each tool once.

use std::{
    collections::{HashMap, HashSet},
    fmt,
};

use gatewright_agentscript::{CallRecord, CallStatus};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, de};
use serde_json::{Value, json};

/// The calls that the answer to a script lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CallLog {
    /// Every call with its status, start and duration.
    Full,
    /// Each tool once: how many calls succeeded, failed and were still open, their time, and the failures. None when the script
    /// succeeds and every tool was called once, with success. The default.
    #[default]
    Compact,
    /// None when the script succeeds; as `compact` when it does not, because what was done cannot be told otherwise.
    Off,
}

/// The forms in a configuration: `true` is `full`, `false` is `off`.
#[derive(JsonSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "only its schema is used")]
pub(crate) enum Written {
    Named(Name),
    Flag(bool),
}

#[derive(JsonSchema)]
#[serde(rename_all = "snake_case")]
#[expect(dead_code, reason = "only its schema is used")]
pub(crate) enum Name {
    Full,
    Compact,
    Off,
}

impl<'de> Deserialize<'de> for CallLog {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Read;
        impl de::Visitor<'_> for Read {
            type Value = CallLog;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("`full`, `compact`, `off` or a boolean")
            }

            fn visit_bool<E: de::Error>(self, value: bool) -> Result<CallLog, E> {
                Ok(if value { CallLog::Full } else { CallLog::Off })
            }

            fn visit_str<E: de::Error>(self, value: &str) -> Result<CallLog, E> {
                match value {
                    "full" => Ok(CallLog::Full),
                    "compact" => Ok(CallLog::Compact),
                    "off" => Ok(CallLog::Off),
                    other => Err(E::unknown_variant(other, &["full", "compact", "off"])),
                }
            }
        }
        deserializer.deserialize_any(Read)
    }
}

/// Failures that are listed for one tool, at most.
const MOST_FAILURES: usize = 20;

/// The calls of one tool.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ToolCalls<'c> {
    name: &'c str,
    #[serde(skip_serializing_if = "is_zero")]
    ok: usize,
    #[serde(skip_serializing_if = "is_zero")]
    error: usize,
    #[serde(skip_serializing_if = "is_zero")]
    open: usize,
    total_ms: f64,
    /// Place among all calls of the script, from 1, and code.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    failures: Vec<Value>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde calls")]
fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// Returns `true` if the log says no more than the script does: each tool was called once, and succeeded.
pub(crate) fn is_plain(calls: &[CallRecord]) -> bool {
    let mut names = HashSet::new();
    calls.iter().all(|call| call.status == CallStatus::Ok && names.insert(&call.name))
}

/// Each tool once, in the order of the first calls.
pub(crate) fn compact(calls: &[CallRecord]) -> Vec<ToolCalls<'_>> {
    let (mut tools, mut places): (Vec<ToolCalls<'_>>, HashMap<&str, usize>) = Default::default();
    for (at, call) in calls.iter().enumerate() {
        let place = *places.entry(&call.name).or_insert_with(|| {
            let name = &call.name;
            tools.push(ToolCalls { name, ok: 0, error: 0, open: 0, total_ms: 0.0, failures: Vec::new() });
            tools.len() - 1
        });
        let tool = &mut tools[place];
        match call.status {
            CallStatus::Ok => tool.ok += 1,
            CallStatus::Error => {
                tool.error += 1;
                if tool.failures.len() < MOST_FAILURES {
                    tool.failures.push(json!({"call": at + 1, "code": call.code}));
                }
            }
            CallStatus::Open => tool.open += 1,
        }
        tool.total_ms += call.duration_ms;
    }
    for tool in &mut tools {
        tool.total_ms = (tool.total_ms * 10.0).round() / 10.0;
    }
    tools
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(name: &str, status: CallStatus, code: Option<&str>) -> CallRecord {
        let code = code.map(str::to_owned);
        CallRecord { name: name.to_owned(), status, code, started_ms: 1.0, duration_ms: 2.04 }
    }

    #[test]
    fn a_compact_log_names_each_tool_once_with_counts_time_and_failures() {
        let calls = [
            call("crm:list", CallStatus::Ok, None),
            call("crm:get", CallStatus::Error, Some("NOT_FOUND")),
            call("crm:list", CallStatus::Ok, None),
            call("crm:get", CallStatus::Open, None),
        ];
        assert_eq!(
            json!(compact(&calls)),
            json!([
                {"name": "crm:list", "ok": 2, "totalMs": 4.1},
                {"name": "crm:get", "error": 1, "open": 1, "totalMs": 4.1, "failures": [{"call": 2, "code": "NOT_FOUND"}]},
            ])
        );
        let many: Vec<_> = (0..1_000).map(|_| call("a", CallStatus::Error, Some("E"))).collect();
        assert_eq!(compact(&many)[0].failures.len(), MOST_FAILURES);
    }

    #[test]
    fn one_call_of_each_tool_that_succeeds_needs_no_log() {
        let ok = |name: &str| call(name, CallStatus::Ok, None);
        assert!(is_plain(&[]) && is_plain(&[ok("a"), ok("b")]));
        assert!(!is_plain(&[ok("a"), ok("b"), ok("a")]));
        for status in [CallStatus::Error, CallStatus::Open] {
            assert!(!is_plain(&[ok("a"), call("b", status, None)]));
        }
    }

    #[test]
    fn the_former_booleans_still_choose_a_log() {
        for (text, expected) in [
            ("true", CallLog::Full),
            ("false", CallLog::Off),
            ("\"full\"", CallLog::Full),
            ("\"compact\"", CallLog::Compact),
            ("\"off\"", CallLog::Off),
        ] {
            assert_eq!(serde_json::from_str::<CallLog>(text).unwrap(), expected);
        }
        let error = serde_json::from_str::<CallLog>("\"short\"").unwrap_err().to_string();
        assert!(error.contains("`full`, `compact`, `off`"), "{error}");
        assert!(serde_json::from_str::<CallLog>("5").unwrap_err().to_string().contains("a boolean"));
    }
}
