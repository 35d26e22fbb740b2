//! Options of a run.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
};

use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use crate::cassette::RecordMode;

/// Options of a run.
#[derive(Debug, Clone)]
pub struct RunOptions {
    /// Maximal number of concurrent tests. Default 8.
    pub parallel: usize,
    /// Runs only tests whose name contains this text.
    pub filter: Option<String>,
    /// Runs only tests with one of these tags. Empty: all tests.
    pub tags: Vec<String>,
    /// Skips tests with one of these tags.
    pub exclude_tags: Vec<String>,
    /// Variables that override those of the suite.
    pub variables: Map<String, Value>,
    /// The environment, available as `${env.NAME}`.
    pub environment: BTreeMap<String, String>,
    /// Programs that `server.command` names, besides those that the system finds.
    pub programs: BTreeMap<String, PathBuf>,
    /// Overrides the mode of all cassettes.
    pub record: Option<RecordMode>,
    /// Overrides `server.command`.
    pub command: Option<String>,
    /// Begins no further test after one that failed. Default false.
    pub fail_fast: bool,
    /// Stops the run when it is cancelled: running tests fail, others are not begun, `teardown` runs, servers end.
    pub stop: CancellationToken,
    /// Runs only these tests, by the file of their suite and their name. Default: all.
    pub only: Option<BTreeMap<String, BTreeSet<String>>>,
    /// Overrides the server with one that is already running, like `server.url`.
    pub url: Option<String>,
    /// Writes snapshots and latency baselines instead of comparing with them. Default false.
    pub update: bool,
}

impl Default for RunOptions {
    fn default() -> Self {
        Self {
            parallel: 8,
            filter: None,
            tags: Vec::new(),
            exclude_tags: Vec::new(),
            variables: Map::new(),
            environment: BTreeMap::new(),
            programs: BTreeMap::new(),
            record: None,
            command: None,
            fail_fast: false,
            stop: CancellationToken::new(),
            only: None,
            url: None,
            update: false,
        }
    }
}
