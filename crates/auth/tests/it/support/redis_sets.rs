//! Several Redis servers that belong together: a master with a replica and a sentinel, or a cluster.

use std::{
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use gatewright_auth::store::{RedisEndpoint, RedisLayout};
use tempfile::TempDir;

use super::redis_server::{RedisServer, free_port};

/// Asks until `held` is true, for at most 20 seconds.
pub(crate) fn until(what: &str, mut held: impl FnMut() -> bool) {
    let began = Instant::now();
    while !held() {
        assert!(began.elapsed() < Duration::from_secs(20), "{what} within 20 s");
        std::thread::yield_now();
    }
}

/// A master called `main`, its replica, and a sentinel that watches them.
pub(crate) struct Watched {
    pub(crate) master: RedisServer,
    pub(crate) replica: RedisServer,
    sentinel: Child,
    sentinel_port: u16,
    _folder: TempDir,
}

fn ask(port: u16, words: &[&str]) -> Option<redis::Value> {
    let client = redis::Client::open(format!("redis://127.0.0.1:{port}/")).unwrap();
    let mut connection = client.get_connection_with_timeout(Duration::from_secs(1)).ok()?;
    let mut command = redis::cmd(words[0]);
    for word in &words[1..] {
        command.arg(*word);
    }
    command.query(&mut connection).ok()
}

/// Returns whether the answer to a command contains `text`; `false` without an answer.
pub(crate) fn says(port: u16, words: &[&str], text: &str) -> bool {
    ask(port, words).is_some_and(|value| format!("{value:?}").contains(text))
}

impl Watched {
    pub(crate) fn start() -> Self {
        let master = RedisServer::start();
        let replica = RedisServer::with(&["--replicaof", "127.0.0.1", &master.port.to_string()]);
        until("the replica follows", || {
            says(replica.port, &["INFO", "replication"], "master_link_status:up")
        });
        let (folder, sentinel_port) = (tempfile::tempdir().unwrap(), free_port());
        let file = folder.path().join("sentinel.conf");
        let text = format!(
            "port {sentinel_port}\nbind 127.0.0.1\nsentinel monitor main 127.0.0.1 {} 1\n\
             sentinel down-after-milliseconds main 1000\nsentinel failover-timeout main 4000\n",
            master.port
        );
        std::fs::write(&file, text).unwrap();
        let sentinel = Command::new("redis-server")
            .arg(&file)
            .arg("--sentinel")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("redis-server is installed");
        let replica_port = replica.port.to_string();
        let watched = Self { master, replica, sentinel, sentinel_port, _folder: folder };
        until("the sentinel knows the replica", || {
            says(sentinel_port, &["SENTINEL", "REPLICAS", "main"], &replica_port)
        });
        watched
    }

    pub(crate) fn endpoint(&self) -> RedisEndpoint {
        let address = format!("redis+sentinel://127.0.0.1:{}/main", self.sentinel_port);
        RedisEndpoint { key_prefix: "gw:".into(), ..RedisEndpoint::parse(&address).unwrap() }
    }

    /// Makes the replica the master while the old one lives.
    pub(crate) fn fail_over(&self) {
        until("the sentinel begins", || ask(self.sentinel_port, &["SENTINEL", "FAILOVER", "main"]).is_some());
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        let _ = self.sentinel.kill();
        let _ = self.sentinel.wait();
    }
}

/// Three masters that share the slots, and a replica of the one that holds `{gw}`.
pub(crate) struct Cluster {
    pub(crate) nodes: Vec<RedisServer>,
    pub(crate) owner: usize,
}

impl Cluster {
    pub(crate) fn start() -> Self {
        let (nodes, buses): (Vec<RedisServer>, Vec<u16>) =
            (0..4).map(|_| RedisServer::cluster_node()).unzip();
        for (node, (from, to)) in nodes.iter().zip([(0, 5460), (5461, 10922), (10923, 16383)]) {
            let _: () = node.command(&["CLUSTER", "ADDSLOTSRANGE", &from.to_string(), &to.to_string()]);
        }
        for (node, bus) in nodes.iter().zip(&buses).skip(1) {
            let (port, bus) = (node.port.to_string(), bus.to_string());
            let _: () = nodes[0].command(&["CLUSTER", "MEET", "127.0.0.1", &port, &bus]);
        }
        for node in &nodes {
            until("all nodes know each other", || {
                says(node.port, &["CLUSTER", "INFO"], "cluster_known_nodes:4")
                    && says(node.port, &["CLUSTER", "INFO"], "cluster_state:ok")
            });
        }
        let slot: u16 = nodes[0].command(&["CLUSTER", "KEYSLOT", "{gw}:x"]);
        let owner = usize::from(slot / 5461).min(2);
        let id: String = nodes[owner].command(&["CLUSTER", "MYID"]);
        until("the fourth node becomes a replica", || {
            ask(nodes[3].port, &["CLUSTER", "REPLICATE", &id]).is_some()
        });
        until("the replica follows", || {
            says(nodes[3].port, &["INFO", "replication"], "master_link_status:up")
        });
        for node in &nodes {
            until("every node knows the replica", || says(node.port, &["CLUSTER", "NODES"], "slave"));
        }
        Self { nodes, owner }
    }

    pub(crate) fn endpoint(&self) -> RedisEndpoint {
        let nodes = self.nodes.iter().take(3).map(|node| ("127.0.0.1".to_owned(), node.port)).collect();
        RedisEndpoint {
            key_prefix: "{gw}:".into(),
            layout: RedisLayout::Cluster { nodes },
            ..RedisEndpoint::new("", 0)
        }
    }
}

/// Waits until the replica of `master` has all that was written until now.
pub(crate) fn replicated(master: &RedisServer) {
    let offsets = |master: &RedisServer| -> Option<(String, String)> {
        let text: String = master.command(&["INFO", "replication"]);
        let of =
            |text: &str, name: &str| Some(text.split_once(name)?.1.split([',', '\r']).next()?.to_owned());
        Some((of(&text, "master_repl_offset:")?, of(&text, ",offset=")?))
    };
    until("the replica is level", || {
        offsets(master).is_some_and(|(written, confirmed)| written == confirmed)
    });
}
