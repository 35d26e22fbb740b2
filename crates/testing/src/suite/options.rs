//! Options of a run.

use std::{collections::BTreeMap, path::PathBuf};

use serde_json::{Map, Value};

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
    /// Overrides `server.command`.
    pub command: Option<String>,
    /// Overrides the server with one that is already running, like `server.url`.
    pub url: Option<String>,
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
            command: None,
            url: None,
        }
    }
}
