//! Settings and report of a worker's sandbox.

use serde::{Deserialize, Serialize};

/// The sandbox measures that are in force around a worker.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SandboxReport {
    /// Only the system calls a running script needs are allowed; any other kills the worker.
    pub seccomp: bool,
    /// The file system and the network are out of reach (Landlock).
    pub landlock: bool,
    /// Address space, files, processes and core dumps are limited.
    pub rlimits: bool,
    /// Measures that are missing, and the reasons, for people.
    pub missing: Vec<String>,
}

impl SandboxReport {
    /// Returns true when no measure is missing.
    pub fn is_complete(&self) -> bool {
        self.seccomp && self.landlock && self.rlimits
    }
}

/// Settings of a worker process, from its arguments.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    pub(super) parent: u32,
    pub(super) address_space: u64,
    pub(super) early: SandboxReport,
}

impl Plan {
    /// Arguments for a worker of the process `parent` that may map `address_space` bytes.
    pub(crate) fn to_args(parent: u32, address_space: u64) -> [String; 2] {
        [parent.to_string(), address_space.to_string()]
    }

    /// Reads what [`Plan::to_args`] wrote.
    pub(crate) fn from_args(args: impl IntoIterator<Item = String>) -> Option<Self> {
        let mut args = args.into_iter();
        let parent = args.next()?.parse().ok()?;
        let address_space = args.next()?.parse().ok()?;
        Some(Self { parent, address_space, early: SandboxReport::default() })
    }
}
