//! A Redis server of one test, on a free port, gone when the test ends.

use std::{
    io::{BufRead as _, BufReader},
    net::TcpListener,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use gatewright_auth::store::RedisEndpoint;
use tempfile::TempDir;

pub(crate) struct RedisServer {
    child: Child,
    pub(crate) port: u16,
    folder: TempDir,
    ca: Option<PathBuf>,
    args: Vec<String>,
}

impl RedisServer {
    pub(crate) fn start() -> Self {
        Self::with(&[])
    }

    pub(crate) fn with(args: &[&str]) -> Self {
        let port = free_port();
        let mut all = vec!["--port".to_owned(), port.to_string()];
        all.extend(args.iter().map(|arg| (*arg).to_owned()));
        Self::spawn(port, tempfile::tempdir().unwrap(), None, all)
    }

    /// A node of a cluster, without slots yet, and the port of its bus.
    pub(crate) fn cluster_node() -> (Self, u16) {
        let bus = free_port();
        let args = [
            "--cluster-enabled",
            "yes",
            "--cluster-node-timeout",
            "1000",
            "--cluster-port",
            &bus.to_string(),
        ];
        (Self::with(&args), bus)
    }

    /// A server that speaks TLS only, with a certificate of a fresh authority.
    pub(crate) fn with_tls() -> Self {
        Self::with_tls_and(&[])
    }

    pub(crate) fn with_tls_and(more: &[&str]) -> Self {
        let (port, folder) = (free_port(), tempfile::tempdir().unwrap());
        let ca = write_certificates(folder.path());
        let file = |name: &str| folder.path().join(name).display().to_string();
        let all = ["--port", "0", "--tls-port", &port.to_string(), "--tls-auth-clients", "no"]
            .into_iter()
            .map(str::to_owned)
            .chain([
                "--tls-cert-file".into(),
                file("server.pem"),
                "--tls-key-file".into(),
                file("server.key"),
            ])
            .chain(["--tls-ca-cert-file".into(), file("ca.pem")])
            .chain(more.iter().map(|arg| (*arg).to_owned()))
            .collect();
        Self::spawn(port, folder, Some(ca), all)
    }

    fn spawn(port: u16, folder: TempDir, ca: Option<PathBuf>, args: Vec<String>) -> Self {
        let child = launch(folder.path(), &args);
        Self { child, port, folder, ca, args }
    }

    pub(crate) fn endpoint(&self, prefix: &str) -> RedisEndpoint {
        RedisEndpoint {
            tls: self.ca.is_some(),
            ca_file: self.ca.clone(),
            key_prefix: prefix.to_owned(),
            ..RedisEndpoint::new("127.0.0.1", self.port)
        }
    }

    /// Stops the server; its port stays free for [`RedisServer::again`].
    pub(crate) fn stop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Starts the server again, empty, on the same port.
    pub(crate) fn again(&mut self) {
        self.child = launch(self.folder.path(), &self.args);
    }

    /// Runs a command on a connection of its own.
    pub(crate) fn command<T: redis::FromRedisValue>(&self, words: &[&str]) -> T {
        let client = redis::Client::open(format!("redis://127.0.0.1:{}/", self.port)).unwrap();
        let mut connection = client.get_connection().unwrap();
        let mut command = redis::cmd(words[0]);
        for word in &words[1..] {
            command.arg(*word);
        }
        command.query(&mut connection).unwrap()
    }
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        self.stop();
    }
}

pub(crate) fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

fn launch(folder: &Path, args: &[String]) -> Child {
    let mut child = Command::new("redis-server")
        .args(["--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir"])
        .arg(folder)
        .args(args)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("redis-server is installed");
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let ready = lines.by_ref().map_while(Result::ok).any(|line| line.contains("Ready to accept connections"));
    assert!(ready, "redis-server started");
    // The rest of the log is read, so that the server never waits for a full pipe.
    std::thread::spawn(move || lines.map_while(Result::ok).for_each(drop));
    child
}

/// An authority and a certificate for 127.0.0.1 signed by it; returns the authority's file.
fn write_certificates(folder: &Path) -> PathBuf {
    let ca_key = rcgen::KeyPair::generate().unwrap();
    let mut ca = rcgen::CertificateParams::new(Vec::new()).unwrap();
    ca.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    ca.distinguished_name.push(rcgen::DnType::CommonName, "test authority");
    let ca_certificate = ca.self_signed(&ca_key).unwrap();
    let issuer = rcgen::Issuer::new(ca, ca_key);
    let key = rcgen::KeyPair::generate().unwrap();
    let names = vec!["127.0.0.1".to_owned(), "localhost".to_owned()];
    let certificate = rcgen::CertificateParams::new(names).unwrap().signed_by(&key, &issuer).unwrap();
    let write = |name: &str, text: String| {
        let path = folder.join(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    write("server.pem", certificate.pem());
    write("server.key", key.serialize_pem());
    write("ca.pem", ca_certificate.pem())
}
