//! The audit file: executions of tools, and events of the authorization server.

use std::{
    net::IpAddr,
    sync::Arc,
    time::{Duration, SystemTime},
};

use gatewright::Observer;
use gatewright_auth::{AuditEvent, AuditSink};
use gatewright_core::{CallRecord, Execution, TraceContext, rmcp::model::JsonObject};
use gatewright_operator::audit::{AuditFile, hex};
use serde::{Serialize, Serializer};
use serde_json::Value;

use crate::{config::Config, exit::BadConfig};

/// Writes executions and events of the authorization server to one file.
pub struct Audit {
    file: AuditFile,
    scripts: bool,
    arguments: bool,
}

/// The audit file of the configuration; `None` without `audit.file`.
///
/// # Errors
/// The file cannot be used.
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

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

/// One execution. Members without a value are left out.
#[derive(Serialize)]
struct Line<'a> {
    at_ms: u64,
    event: &'static str,
    tool: &'a str,
    actor: &'a str,
    status: &'a str,
    duration_us: u64,
    calls: Calls<'a>,
    #[serde(skip_serializing_if = "is_zero")]
    more_calls: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    client: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ip: Option<IpAddr>,
    #[serde(skip_serializing_if = "Option::is_none")]
    trace: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    script: Option<ScriptLine<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    arguments: Option<Arguments<'a>>,
}

/// Arguments of a call in the order in which they were sent, without the script.
struct Arguments<'a>(&'a JsonObject);

impl Serialize for Arguments<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().filter(|(name, _)| *name != "script"))
    }
}

/// Serializes as a list of [`CallLine`]s without collecting them.
struct Calls<'a>(&'a [CallRecord]);

impl Serialize for Calls<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(CallLine::from))
    }
}

#[derive(Serialize)]
struct CallLine<'a> {
    tool: &'a str,
    status: &'a str,
    start_us: u64,
    duration_us: u64,
}

#[derive(Serialize)]
struct ScriptLine<'a> {
    sha256: String,
    bytes: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<&'a Value>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_zero(count: &usize) -> bool {
    *count == 0
}

impl<'a> From<&'a CallRecord> for CallLine<'a> {
    fn from(call: &'a CallRecord) -> Self {
        Self {
            tool: &call.tool,
            status: call.ending.status(),
            start_us: micros(call.start),
            duration_us: micros(call.duration),
        }
    }
}

impl Audit {
    /// Opens a new file if the current one was moved away (log rotation).
    pub fn follow(&self) {
        match self.file.reopen() {
            Ok(true) => tracing::info!("the audit continues in a new file"),
            Ok(false) => {}
            Err(error) => tracing::error!("the audit continues in the file that was moved away: {error}"),
        }
    }

    fn line<'a>(&self, execution: &'a Execution) -> Line<'a> {
        let (principal, given) = (&execution.principal, execution.arguments.as_ref());
        let text = given.filter(|_| self.scripts).and_then(|given| given.get("script"));
        Line {
            at_ms: at_ms(execution.started),
            event: "execution",
            tool: &execution.tool,
            actor: &principal.subject,
            status: execution.ending.status(),
            duration_us: micros(execution.duration),
            calls: Calls(&execution.calls),
            more_calls: execution.more_calls,
            client: principal.client_id.as_deref(),
            ip: execution.address,
            trace: execution.trace.as_ref().map(TraceContext::trace_id),
            script: execution.script.map(|script| ScriptLine {
                sha256: hex(&script.sha256),
                bytes: script.bytes,
                text,
            }),
            arguments: given.filter(|_| self.arguments).map(Arguments),
        }
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
