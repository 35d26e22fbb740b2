//! The audit file: what was executed, and what the authorization server did.

use std::{path::PathBuf, sync::Arc, time::SystemTime};

use gatewright::Observer;
use gatewright_audit::AuditFile;
use gatewright_auth::{AuditEvent, AuditSink};
use gatewright_core::{CallRecord, Execution};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::{config::Config, exit::BadConfig};

/// The audit file.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct AuditConfig {
    /// File that a JSON line is appended to for each execution and each event of the authorization server. None is kept without it.
    pub file: Option<PathBuf>,
    /// Whether the text of scripts is kept. Default false: their SHA-256 and length only.
    pub include_scripts: bool,
    /// Whether arguments of calls by clients are kept. They may hold secrets. Default false.
    pub include_arguments: bool,
    /// Whether each line is written to the disk before the call goes on, so that it outlives a crash of the machine. Default false:
    /// lines outlive a crash of the process.
    pub sync: bool,
}

/// Writes both kinds of events to one file.
pub struct Audit {
    file: AuditFile,
    scripts: bool,
    arguments: bool,
}

/// The audit file of the configuration; none without `audit.file`.
///
/// # Errors
/// A file that cannot be used.
pub fn open(config: &Config) -> anyhow::Result<Option<Arc<Audit>>> {
    let audit = &config.audit;
    let Some(path) = &audit.file else { return Ok(None) };
    let file = AuditFile::open(path).map_err(|error| BadConfig(format!("`audit.file`: {error}")))?;
    let (scripts, arguments) = (audit.include_scripts, audit.include_arguments);
    Ok(Some(Arc::new(Audit { file: file.sync_each(audit.sync), scripts, arguments })))
}

fn at_ms(time: SystemTime) -> u64 {
    let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

fn call(call: &CallRecord) -> Value {
    json!({
        "tool": call.tool,
        "status": call.ending.status(),
        "start_us": call.start.as_micros() as u64,
        "duration_us": call.duration.as_micros() as u64,
    })
}

impl Audit {
    /// Goes on in a new file when the one that is open was moved away.
    pub fn follow(&self) {
        match self.file.reopen() {
            Ok(true) => tracing::info!("the audit goes on in a new file"),
            Ok(false) => {}
            Err(error) => tracing::error!("the audit goes on in the file that was moved away: {error}"),
        }
    }

    fn line(&self, execution: &Execution) -> Value {
        let principal = &execution.principal;
        let mut line = json!({
            "at_ms": at_ms(execution.started),
            "event": "execution",
            "tool": execution.tool,
            "actor": principal.subject,
            "status": execution.ending.status(),
            "duration_us": execution.duration.as_micros() as u64,
            "calls": execution.calls.iter().map(call).collect::<Vec<_>>(),
        });
        if let Some(client) = &principal.client_id {
            line["client"] = json!(client);
        }
        if let Some(address) = execution.address {
            line["ip"] = json!(address);
        }
        if let Some(trace) = &execution.trace {
            line["trace"] = json!(trace.trace_id());
        }
        if execution.more_calls > 0 {
            line["more_calls"] = json!(execution.more_calls);
        }
        let given = execution.arguments.as_ref();
        if let Some(script) = execution.script {
            let sha256: String = script.sha256.iter().map(|byte| format!("{byte:02x}")).collect();
            line["script"] = json!({"sha256": sha256, "bytes": script.bytes});
            if let Some(text) = given.filter(|_| self.scripts).and_then(|given| given.get("script")) {
                line["script"]["text"] = text.clone();
            }
        }
        if self.arguments
            && let Some(given) = given
        {
            let kept: Map<String, Value> = given
                .iter()
                .filter(|(name, _)| *name != "script")
                .map(|(n, v)| (n.clone(), v.clone()))
                .collect();
            line["arguments"] = Value::Object(kept);
        }
        line
    }
}

impl Observer for Audit {
    fn finished(&self, execution: &Execution) {
        self.file.append(&self.line(execution));
    }

    fn wants_arguments(&self) -> bool {
        self.scripts || self.arguments
    }
}

impl AuditSink for Audit {
    fn record(&self, event: &AuditEvent) {
        self.file.append(event);
    }
}
