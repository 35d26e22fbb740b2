//! The audit file: executions of tools, and events of the authorization server.

use std::{
    net::IpAddr,
    path::PathBuf,
    sync::Arc,
    time::{Duration, SystemTime},
};

use gatewright_auth::{AuditEvent, AuditSink};
use gatewright_core::{
    ApprovalDuration, ApprovalEvent, ApprovalListener, CallRecord, Execution, Observer, RequestObject,
    TraceContext, rmcp::model::JsonObject,
};
use gatewright_operator::audit::{AuditFile, hex};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;

use super::GuardError;

/// The audit file.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct AuditConfig {
    /// File to which a line of JSON is appended for each execution and each event of the authorization server. Default: none.
    pub file: Option<PathBuf>,
    /// Keep the text of scripts. Default false: only their SHA-256 and length.
    pub include_scripts: bool,
    /// Keep the arguments of calls by clients, which may contain secrets. Default false.
    pub include_arguments: bool,
    /// Write each line to the disk before the call continues, so that it survives a crash of the machine. Default false: lines
    /// survive a crash of the process.
    pub sync: bool,
}

impl AuditConfig {
    /// Opens the file; `None` without one.
    ///
    /// # Errors
    /// The file cannot be used.
    pub(super) fn open(&self) -> Result<Option<Arc<Audit>>, GuardError> {
        let Some(path) = &self.file else { return Ok(None) };
        let file =
            AuditFile::open(path).map_err(|error| GuardError::Config(format!("`audit.file`: {error}")))?;
        let (scripts, arguments) = (self.include_scripts, self.include_arguments);
        Ok(Some(Arc::new(Audit { file: file.sync_each(self.sync), scripts, arguments })))
    }
}

/// Writes executions and events of the authorization server to one file.
pub struct Audit {
    file: AuditFile,
    scripts: bool,
    arguments: bool,
}

impl std::fmt::Debug for Audit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Audit").finish_non_exhaustive()
    }
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
    /// Name of the endpoint, other than the main one.
    #[serde(skip_serializing_if = "Option::is_none")]
    endpoint: Option<&'a str>,
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
            endpoint: principal.endpoint.as_deref(),
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

/// One step of an approval. Members without a value are left out.
#[derive(Serialize)]
struct ApprovalLine<'a> {
    at_ms: u64,
    event: &'static str,
    /// `tool`, `resource` or `prompt`.
    #[serde(flatten)]
    object: &'a RequestObject,
    actor: &'a str,
    policy: &'a str,
    /// Digest of the object and its arguments.
    call: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    client: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    by: Option<&'a str>,
    #[serde(rename = "for", skip_serializing_if = "Option::is_none")]
    duration: Option<&'static str>,
}

impl ApprovalListener for Audit {
    fn notice(&self, event: &ApprovalEvent) {
        self.file.append(&ApprovalLine {
            at_ms: at_ms(event.at),
            event: event.kind.name(),
            object: &event.object,
            actor: &event.subject,
            policy: &event.policy,
            call: &event.digest,
            client: event.client.as_deref(),
            by: event.by.as_deref(),
            duration: event.duration.map(ApprovalDuration::name),
        });
    }
}

impl AuditSink for Audit {
    fn record(&self, event: &AuditEvent) {
        self.file.append(event);
    }
}
