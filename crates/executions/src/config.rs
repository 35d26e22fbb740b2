//! The `executions` section of the configuration.

use std::time::Duration;

use gatewright_core::{InvalidField, Portion};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

const MIB: u64 = 1024 * 1024;
const DAY: Duration = Duration::from_secs(24 * 3_600);

/// Store of executions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ExecutionStore {
    /// The memory of this process: lost on restart.
    Memory,
    /// The SQLite file of `auth.tokenStorage`.
    Sqlite,
    /// The Redis of `auth.tokenStorage`, shared by all instances.
    Redis,
}

/// Journals of scripts: those that wait, those that run in the background, and the latest that ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct ExecutionsConfig {
    /// Store: `memory`, or the type of `auth.tokenStorage`, whose connection it uses; `sqlite` and `redis` need `auth.encryptionKey` or
    /// `http.cluster.key`. Default: that of `auth.tokenStorage` with such a key, else `memory`.
    pub store: Option<ExecutionStore>,
    /// Time after which an execution is forgotten, from its start, whatever its state: 1 minute to 30 days. Default 24 h.
    #[serde(with = "humantime_serde")]
    #[schemars(with = "String")]
    pub retention: Duration,
    /// Executions that wait or run in the background, and as many that have ended: 10 to 100,000. Of those that ended, the oldest ones of the principal whose
    /// executions take the most room make room for new ones.
    /// One principal may have a quarter of the free places (a fifth of all, if nobody else has any), and one in any case while there is room.
    /// Default 10,000.
    pub max_executions: u32,
    /// Bytes of the journals that are kept, once for those that wait or run in the background and once for those that have ended:
    /// 1 MiB (1048576) to 64 GiB. Of those that wait or run, one principal may take a quarter of what is free (a fifth of all, if nobody else takes any); its only one
    /// needs room only. The longest one that has ended may take more than is left, up to a quarter of all. Without a `store`, not more than a 16th of the
    /// container's or machine's memory. Default 64 MiB.
    pub max_bytes: u64,
    /// Bytes of one journal: the script, its calls and their answers. 64 KiB (65536) to 64 MiB, and not above `maxBytes`. Default 4 MiB. A longer
    /// one is not kept, and its script can neither wait nor run in the background.
    pub max_journal_bytes: u64,
    /// Executions of one principal that wait or run in the background: 1 to 10,000. Default 100. A principal is a subject with all its clients; anonymous
    /// callers are counted by network: an IPv4 address or 64 bits of IPv6, and 56 and 48 bits for two and four of them. Those at loopback have no share but the whole.
    pub max_per_principal: u32,
    /// Time after which another instance may go on with an execution whose instance is gone: 3 s to 5 min. Default 15 s.
    #[serde(with = "humantime_serde")]
    #[schemars(with = "String")]
    pub lease: Duration,
}

impl Default for ExecutionsConfig {
    fn default() -> Self {
        Self {
            store: None,
            retention: DAY,
            max_executions: 10_000,
            max_bytes: 64 * MIB,
            max_journal_bytes: 4 * MIB,
            max_per_principal: 100,
            lease: Duration::from_secs(15),
        }
    }
}

impl ExecutionsConfig {
    /// The room that an ended execution of `bytes` takes, as part of `maxBytes`: at least as much as an equal part of it.
    pub(crate) fn weight(&self, bytes: u64) -> u64 {
        bytes.max(self.max_bytes / u64::from(self.max_executions.max(1)))
    }

    /// Returns `true` if `count` ended executions of `bytes` are too many for one of `parts` of the store. The `newest` finds room where the others take a
    /// quarter at most: neither do they make all of it impossible, nor does it take the place of all of them.
    pub(crate) fn are_too_many(&self, count: usize, bytes: u64, newest: u64, parts: usize) -> bool {
        let most_bytes = self.max_bytes / parts as u64;
        let is_too_much = bytes > most_bytes && bytes - newest > most_bytes / 4;
        count > 1 && (is_too_much || count > (self.max_executions as usize).div_ceil(parts))
    }

    /// Every field that is out of range.
    pub fn problems(&self) -> Vec<InvalidField> {
        let mut problems = Vec::new();
        let mut check = |path: &'static str, fits: bool, problem: &str| {
            if !fits {
                problems.push(InvalidField::new(path, problem));
            }
        };
        check(
            "retention",
            (Duration::from_secs(60)..=30 * DAY).contains(&self.retention),
            "must be from 1m to 30d",
        );
        check("maxExecutions", (10..=100_000).contains(&self.max_executions), "must be 10 to 100000");
        check("maxBytes", (MIB..=65_536 * MIB).contains(&self.max_bytes), "must be 1048576 to 68719476736");
        check(
            "maxJournalBytes",
            (MIB / 16..=64 * MIB).contains(&self.max_journal_bytes)
                && self.max_journal_bytes <= self.max_bytes,
            "must be 65536 to 67108864, and not above `maxBytes`",
        );
        check("maxPerPrincipal", (1..=10_000).contains(&self.max_per_principal), "must be 1 to 10000");
        check(
            "lease",
            (Duration::from_secs(3)..=Duration::from_secs(300)).contains(&self.lease),
            "must be from 3s to 5m",
        );
        problems
    }

    /// Open executions that one principal may have.
    pub(crate) fn count_share(&self) -> Portion {
        Portion::UpTo(self.max_per_principal as usize)
    }

    /// Bytes that the open executions of one principal may take.
    pub(crate) fn bytes_share(&self) -> Portion {
        Portion::QuarterOfFree
    }

    pub(crate) fn retention_ms(&self) -> u64 {
        u64::try_from(self.retention.as_millis()).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_out_of_range_is_named_with_its_path() {
        let text =
            r#"{"retention": "31d", "maxExecutions": 9, "maxBytes": 0, "maxPerPrincipal": 0, "lease": "1s"}"#;
        let config: ExecutionsConfig = serde_json::from_str(text).unwrap();
        let paths: Vec<_> = config.problems().into_iter().map(|problem| problem.path).collect();
        assert_eq!(
            paths,
            ["retention", "maxExecutions", "maxBytes", "maxJournalBytes", "maxPerPrincipal", "lease"]
        );
        assert!(ExecutionsConfig::default().problems().is_empty());
    }
}
