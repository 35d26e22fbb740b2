//! The binary as it is started with a configuration, for tests that follow its log.

use std::{
    fs,
    io::{BufRead as _, BufReader},
    net::SocketAddr,
    path::PathBuf,
    process::{Child, Command, Stdio},
    sync::mpsc,
    time::Duration,
};

use serde_json::Value;

use crate::support::gatewright;

pub const LONG: Duration = Duration::from_secs(60);

/// A server with its configuration in a folder; killed when dropped.
pub struct Served {
    pub child: Child,
    pub folder: tempfile::TempDir,
    log: mpsc::Receiver<String>,
    pub address: SocketAddr,
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Served {
    pub fn start(config: &str, arguments: &[&str]) -> Self {
        Self::by(Command::new(gatewright()), config, arguments)
    }

    /// The same, by a command that ends in the binary.
    pub fn by(mut command: Command, config: &str, arguments: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("gatewright.yaml"), config).unwrap();
        let mut child = command
            .args(["serve", "--port", "0", "--config"])
            .arg(folder.path().join("gatewright.yaml"))
            .args(arguments)
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let (sender, log) = mpsc::channel();
        let lines = BufReader::new(child.stderr.take().unwrap()).lines();
        std::thread::spawn(move || lines.map_while(Result::ok).try_for_each(|line| sender.send(line)));
        let mut served = Self { child, folder, log, address: ([127, 0, 0, 1], 0).into() };
        let line = served.says("serving MCP on http");
        let rest = line.split("://").nth(1).unwrap();
        served.address = rest.split('/').next().unwrap().parse().unwrap();
        served
    }

    /// The next line of the log with `text` in it.
    pub fn says(&self, text: &str) -> String {
        let mut before = Vec::new();
        loop {
            match self.log.recv_timeout(LONG) {
                Ok(line) if line.contains(text) => return line,
                Ok(line) => before.push(line),
                Err(error) => panic!("no `{text}` ({error}); it said:\n{}", before.join("\n")),
            }
        }
    }

    pub fn file(&self) -> PathBuf {
        self.folder.path().join("gatewright.yaml")
    }

    pub fn hang_up(&self) {
        self.signal("-HUP");
    }

    pub fn signal(&self, name: &str) {
        let done = Command::new("kill").args([name, &self.child.id().to_string()]).status().unwrap();
        assert!(done.success());
    }

    /// Asks it to end, and gives the rest of its log.
    pub fn terminate(&mut self) -> Vec<String> {
        self.signal("-TERM");
        // The log ends with the process.
        let rest = self.log.iter().collect();
        assert!(self.child.wait().unwrap().success());
        rest
    }

    /// Writes a new file beside the old one and moves it there, as editors do.
    pub fn replace(&self, config: &str) {
        let new = self.folder.path().join(".new");
        fs::write(&new, config).unwrap();
        fs::rename(new, self.file()).unwrap();
    }

    pub async fn readiness(&self) -> Value {
        let answer = reqwest::get(format!("http://{}/readyz", self.address)).await.unwrap();
        serde_json::from_str(&answer.text().await.unwrap()).unwrap()
    }
}
