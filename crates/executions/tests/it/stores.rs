//! The stores that executions can be kept in, as two instances see them.

use std::{
    io::{BufRead as _, BufReader},
    net::TcpListener,
    path::PathBuf,
    process::{Child, Command, Stdio},
    sync::Arc,
};

use gatewright_auth::{
    SystemClock,
    store::{RedisEndpoint, RedisStore, SqliteStore, Store, StoreRecords},
};
use gatewright_executions::{Executions, ExecutionsConfig};
use tempfile::TempDir;

use crate::support::{Clock, TestRecords, key};

fn instance(config: &ExecutionsConfig, store: impl Store + 'static, name: &str) -> Executions {
    let records = Arc::new(StoreRecords::new(Arc::new(store), "execution"));
    Executions::shared(config.clone(), records, &key(), name)
}

/// Memory, as one instance sees it.
pub(crate) fn memory(config: &ExecutionsConfig) -> [Executions; 2] {
    let executions = Executions::in_memory(config.clone());
    [executions.clone(), executions]
}

/// Records of the tests.
pub(crate) fn records(config: &ExecutionsConfig) -> [Executions; 2] {
    let clock = Clock::default();
    let records = TestRecords::new(&clock);
    [clock.shared(config.clone(), records.clone()), clock.shared(config.clone(), records)]
}

/// One SQLite file.
pub(crate) struct Sqlite {
    folder: TempDir,
    pub(crate) instances: [Executions; 2],
}

impl Sqlite {
    pub(crate) fn new(config: &ExecutionsConfig) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("auth.db");
        let open =
            |name| instance(config, SqliteStore::open(&path, "gw:", Arc::new(SystemClock)).unwrap(), name);
        Self { instances: [open("a"), open("b")], folder }
    }

    /// The file and its journals.
    pub(crate) fn contents(&self) -> Vec<u8> {
        let files = std::fs::read_dir(self.folder.path()).unwrap();
        files.flat_map(|file| std::fs::read(file.unwrap().path()).unwrap()).collect()
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.folder.path().join("auth.db")
    }
}

/// A Redis of one test.
pub(crate) struct Redis {
    child: Child,
    port: u16,
    _folder: TempDir,
}

impl Redis {
    pub(crate) fn start() -> Self {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let folder = tempfile::tempdir().unwrap();
        let mut child = Command::new("redis-server")
            .args([
                "--bind",
                "127.0.0.1",
                "--save",
                "",
                "--appendonly",
                "no",
                "--port",
                &port.to_string(),
                "--dir",
            ])
            .arg(folder.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("redis-server is installed");
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let ready =
            lines.by_ref().map_while(Result::ok).any(|line| line.contains("Ready to accept connections"));
        assert!(ready, "redis-server started");
        std::thread::spawn(move || lines.map_while(Result::ok).for_each(drop));
        Self { child, port, _folder: folder }
    }

    pub(crate) async fn instances(&self, config: &ExecutionsConfig) -> [Executions; 2] {
        let endpoint =
            RedisEndpoint { key_prefix: "gw:".to_owned(), ..RedisEndpoint::new("127.0.0.1", self.port) };
        let a = RedisStore::connect(&endpoint).await.unwrap();
        let b = RedisStore::connect(&endpoint).await.unwrap();
        [instance(config, a, "a"), instance(config, b, "b")]
    }

    /// Every name, lifetime in milliseconds and value.
    pub(crate) fn contents(&self) -> Vec<(String, i64, Vec<u8>)> {
        let client = redis::Client::open(format!("redis://127.0.0.1:{}/", self.port)).unwrap();
        let mut connection = client.get_connection().unwrap();
        let names: Vec<String> = redis::cmd("KEYS").arg("*").query(&mut connection).unwrap();
        let record = |name: String| {
            let left = redis::cmd("PTTL").arg(&name).query(&mut connection).unwrap();
            let value = redis::cmd("GET").arg(&name).query(&mut connection).unwrap();
            (name, left, value)
        };
        names.into_iter().map(record).collect()
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
