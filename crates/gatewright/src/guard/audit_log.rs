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
use gatewright_operator::audit::{AuditFile, hex, sha256_hex};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::value::RawValue;

use super::GuardError;

/// The audit file.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct AuditConfig {
    /// File to which a line of JSON is appended for each execution and each event of the authorization server. Default: none.
    pub file: Option<PathBuf>,
    /// Keep the text of scripts, up to 64 KiB of each. Default false: only their SHA-256 and length.
    pub include_scripts: bool,
    /// Keep the arguments of calls by clients, which may contain secrets; of those over 64 KiB their beginning, SHA-256 and length. Default false.
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
    /// Id of the execution of a plan that went on without a client.
    #[serde(skip_serializing_if = "Option::is_none")]
    plan: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    trace: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    script: Option<ScriptLine<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    arguments: Option<Box<RawValue>>,
    /// In place of arguments that are too long.
    #[serde(skip_serializing_if = "Option::is_none")]
    cut_arguments: Option<Cut>,
}

/// Bytes of arguments, and of a script, that a line keeps.
const MOST_KEPT: usize = 64 * 1024;

/// The beginning of a long JSON text.
#[derive(Debug, Serialize)]
struct Cut {
    sha256: String,
    bytes: usize,
    start: String,
}

/// The beginning of `text` that a line keeps.
fn start(text: &str) -> &str {
    &text[..text.floor_char_boundary(MOST_KEPT)]
}

/// The arguments as JSON, or the beginning of that if they are long.
fn kept(arguments: &Arguments<'_>) -> (Option<Box<RawValue>>, Option<Cut>) {
    let json = serde_json::to_string(arguments).unwrap_or_default();
    if json.len() > MOST_KEPT {
        let (sha256, bytes) = (sha256_hex(json.as_bytes()), json.len());
        return (None, Some(Cut { sha256, bytes, start: start(&json).to_owned() }));
    }
    (RawValue::from_string(json).ok(), None)
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
    text: Option<&'a str>,
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
        let text = given.filter(|_| self.scripts).and_then(|given| given.get("script")?.as_str());
        let (arguments, cut_arguments) =
            given.filter(|_| self.arguments).map(|given| kept(&Arguments(given))).unwrap_or_default();
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
            plan: execution.plan.as_deref(),
            trace: execution.trace.as_ref().map(TraceContext::trace_id),
            script: execution.script.map(|script| ScriptLine {
                sha256: hex(&script.sha256),
                bytes: script.bytes,
                text: text.map(start),
            }),
            arguments,
            cut_arguments,
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn long_arguments_and_scripts_are_cut_and_short_ones_kept_as_they_were_sent() {
        let kept_of = |arguments: serde_json::Value| kept(&Arguments(arguments.as_object().unwrap()));
        let (whole, cut) = kept_of(json!({"b": 1, "script": "return 1;", "a": [2]}));
        assert_eq!((whole.unwrap().get(), cut.is_none()), (r#"{"b":1,"a":[2]}"#, true));
        let text = "é".repeat(10 << 20);
        let (whole, cut) = kept_of(json!({"text": text}));
        let cut = cut.unwrap();
        assert!(whole.is_none() && cut.start.len().abs_diff(MOST_KEPT) < 2, "{}", cut.start.len());
        let json = json!({"text": text}).to_string();
        assert_eq!((cut.bytes, &cut.sha256), (json.len(), &sha256_hex(json.as_bytes())));
        assert!(serde_json::to_string(&cut).unwrap().len() < 2 * MOST_KEPT);
        assert_eq!((start(&text).len(), start("short")), (MOST_KEPT, "short"));
    }
}
