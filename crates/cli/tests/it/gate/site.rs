//! A running `gatewright serve`, and its configuration.

use std::{
    io::Write as _,
    process::{Child, Command, Stdio},
    sync::{Arc, OnceLock},
    time::Duration,
};

use serde_json::{Value, json};

use super::{Gate, PASSWORD, log::Log};
use crate::{leaks, support::gatewright};

/// The hash of [`PASSWORD`], made by `gatewright user hash`.
pub fn password_hash() -> String {
    static HASH: OnceLock<String> = OnceLock::new();
    HASH.get_or_init(|| {
        let output = feed(&["user", "hash"], PASSWORD);
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    })
    .clone()
}

/// Runs the binary with `input` on its standard input.
pub fn feed(arguments: &[&str], input: &str) -> std::process::Output {
    let mut child = Command::new(gatewright())
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

/// A configuration with the built-in authorization server; `auth` replaces or adds fields of its section.
pub fn config(auth: Value) -> Value {
    let mut all = json!({
        "http": {"port": 0},
        "apps": {"crm": {"builtin": "crm"}, "billing": {"builtin": "billing"}},
        "codecall": {"mode": "metadata_driven", "worker": {"workers": 1}},
        "auth": {
            "mode": "orchestrated",
            "type": "local",
            "local": {"users": [{"username": "ada", "passwordHash": password_hash(), "name": "Ada"}]},
            "scopes": {"crm:read": "Read the CRM", "crm:delete": "Delete from the CRM", "billing:read": "Read invoices"},
            "clients": [
                {"clientId": "app", "name": "An app", "redirectUris": ["http://127.0.0.1/callback"]},
                machine("robot"),
                machine("other"),
            ],
        },
    });
    for (key, value) in auth.as_object().unwrap() {
        all["auth"][key] = value.clone();
    }
    all
}

/// A client that gets tokens for itself.
fn machine(id: &str) -> Value {
    json!({"clientId": id, "clientSecret": secret(id), "grantTypes": ["client_credentials"]})
}

pub fn secret(id: &str) -> String {
    format!("{id}-0123456789-abcdefghij-0123456789")
}

/// The audit files of a configuration.
fn audit_files(config: &str) -> Vec<String> {
    let config: Value = serde_saphyr::from_str(config).unwrap();
    config["audit"]["file"].as_str().map(str::to_owned).into_iter().collect()
}

/// Searches the audit files of a server for secrets. A file that cannot be read is a failure.
fn search_audit_files(paths: &[String]) {
    for path in paths {
        let bytes = std::fs::read(path).unwrap_or_else(|error| panic!("the audit file {path}: {error}"));
        leaks::assert_absent("audit file", &String::from_utf8_lossy(&bytes));
    }
}

/// A running `gatewright serve`. Dropping it kills the process and searches its output for every secret that was [`leaks`].
pub struct Site {
    pub child: Child,
    pub base: String,
    pub log: Arc<Log>,
    /// Secrets that it prints on purpose.
    pub printed_on_purpose: Vec<String>,
    /// Its audit files.
    audits: Vec<String>,
    _folder: tempfile::TempDir,
}

impl Drop for Site {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            return;
        }
        let output = self.log.text_to_the_end(Duration::from_secs(60));
        let output = self.printed_on_purpose.iter().fold(output, |text, secret| text.replacen(secret, "", 1));
        leaks::assert_absent("output", &output);
        search_audit_files(&self.audits);
    }
}

impl Site {
    pub fn start(config: &Value) -> Self {
        Self::launch("json", &config.to_string(), &[], &[])
    }

    /// Starts with the text of a configuration of this format, these variables and these further arguments.
    pub fn launch(format: &str, text: &str, variables: &[(&str, String)], arguments: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join(format!("gatewright.{format}"));
        std::fs::write(&file, text).unwrap();
        let mut child = Command::new(gatewright())
            .args(["serve", "--no-watch", "--config"])
            .arg(&file)
            .args(arguments)
            .envs(variables.iter().map(|(name, value)| (*name, value)))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let log = Arc::new(Log::default());
        log.follow(child.stdout.take().unwrap());
        log.follow(child.stderr.take().unwrap());
        let Some(line) = log.wait_for("serving MCP on http://") else { panic!("{}", log.text()) };
        let base = format!("http{}", line.rsplit_once("http").unwrap().1);
        let base = base.split_whitespace().next().unwrap().trim_end_matches("/mcp").to_owned();
        let audits = audit_files(text);
        Self { child, base, log, printed_on_purpose: Vec::new(), audits, _folder: folder }
    }

    pub fn gate(&self) -> Gate {
        Gate::new(&self.base, vec![self.base.clone()])
    }
}

#[test]
fn an_audit_file_that_cannot_be_read_is_a_failure() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.jsonl").display().to_string();
    let named = audit_files(&format!("audit:\n  file: {path}\n"));
    assert_eq!(named, std::slice::from_ref(&path));
    let told = super::log::said(|| search_audit_files(&named));
    assert!(told.starts_with(&format!("the audit file {path}: ")), "{told}");
    // Not text, and a secret in it.
    leaks::request("/", &[], "code=a-code-in-an-audit-file");
    std::fs::write(&path, b"\xff a-code-in-an-audit-file").unwrap();
    let told = super::log::said(|| search_audit_files(&named));
    assert!(told.contains("holds secrets"), "{told}");
}
