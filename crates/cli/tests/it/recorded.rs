//! Recorded runs: replayed, and made into suites and saved plans that work.

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::Command,
    sync::Arc,
};

use gatewright::rmcp::{
    ServiceExt as _, model::CallToolRequestParams, transport::StreamableHttpClientTransport,
};
use gatewright_auth::{
    SystemClock,
    store::{SqliteStore, StoreRecords},
};
use gatewright_core::{Principal, SealKey};
use gatewright_executions::{CallCounts, Ending, Executions, ExecutionsConfig, NewExecution, Reader};
use serde_json::{Value, json};

use crate::{served::Served, support::gatewright};

const KEY: &str = "a secret of thirty-two characters";
const APPS: &str =
    "apps:\n  crm: { builtin: crm }\n  billing: { builtin: billing }\n  support: { builtin: support }\n";
const BRIEF: &str = "// A brief
const { accountId } = codecallContext;
console.log(`brief of ${accountId}`);
const account = await callTool('crm:accounts_get', { id: accountId });
const [tickets, invoices] = await Promise.all([
  callTool('support:tickets_list', { accountId, status: 'open' }),
  callTool('billing:invoices_list', { accountId, status: 'overdue' }),
]);
let missing;
try { await callTool('crm:accounts_get', { id: 'acc_none' }); } catch (error) { missing = error.code; }
return { name: account.name, tickets: `${tickets.items.length} open`, overdue: invoices.items.length, missing };
";

/// A folder with a store of executions, and configurations beside it.
pub struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    pub fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn config(&self, more_apps: &str) -> String {
        format!(
            "{APPS}{more_apps}auth:\n  encryptionKey: {KEY}\n  tokenStorage: {{ type: sqlite, config: {{ path: {} }} }}\n",
            self.path("auth.db").display()
        )
    }

    fn executions(&self) -> Executions {
        let store = SqliteStore::open(&self.path("auth.db"), "gw:", Arc::new(SystemClock)).unwrap();
        let records = Arc::new(StoreRecords::new(Arc::new(store), "execution"));
        let key = SealKey::derived(KEY.as_bytes());
        Executions::shared(ExecutionsConfig::default(), records, &key, "test")
    }

    /// Runs `script` on a server, which ends then. Returns the id of the execution and the reply.
    async fn ran(&self, script: &str, context: Value) -> (String, Value) {
        self.ran_with("", script, context).await
    }

    /// The same, with more apps.
    pub async fn ran_with(&self, more_apps: &str, script: &str, context: Value) -> (String, Value) {
        fs::write(self.path("gatewright.yaml"), self.config(more_apps)).unwrap();
        let mut served = Served::start(&self.config(more_apps), &[]);
        let transport = StreamableHttpClientTransport::from_uri(format!("http://{}/mcp", served.address));
        let client = ().serve(transport).await.unwrap();
        let input = json!({"script": script, "context": context});
        let params =
            CallToolRequestParams::new("codecall:execute").with_arguments(input.as_object().unwrap().clone());
        let reply = client.peer().call_tool(params).await.unwrap();
        let id = reply.meta.unwrap().0["gatewright/execution"].as_str().unwrap().to_owned();
        client.cancel().await.unwrap();
        // What is to be kept is written before it ends.
        served.terminate();
        (id, reply.structured_content.unwrap())
    }

    pub fn command(&self, arguments: &[&str]) -> (i32, String) {
        run(Command::new(gatewright()).args(arguments).arg("--config").arg(self.path("gatewright.yaml")))
    }
}

fn run(command: &mut Command) -> (i32, String) {
    let output = command.output().unwrap();
    let text = if output.stdout.is_empty() { output.stderr } else { output.stdout };
    (output.status.code().unwrap(), String::from_utf8(text).unwrap())
}

fn test(suite: &Path) -> (i32, String) {
    run(Command::new(gatewright()).arg("test").arg(suite))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_is_replayed_and_becomes_a_suite_that_passes_and_a_plan_that_works() {
    let place = Place::new();
    let (id, reply) = place.ran(BRIEF, json!({"accountId": "acc_0001"})).await;
    assert_eq!(
        (&reply["status"], &reply["result"]["missing"]),
        (&json!("ok"), &json!("NOT_FOUND")),
        "{reply}"
    );

    let (code, told) = place.command(&["executions", "replay", &id]);
    assert_eq!((code, told.trim()), (0, "identical: 4 calls, result and console"));
    let (_, told) = place.command(&["executions", "replay", &id, "--json"]);
    assert_eq!(serde_json::from_str::<Value>(&told).unwrap()["outcome"], "identical");

    let suite = place.path("brief.suite.yaml");
    let export = ["executions", "export", &id, "--suite", "--output", suite.to_str().unwrap()];
    let (code, told) = place.command(&export);
    assert_eq!(code, 0, "{told}");
    assert_eq!(
        fs::metadata(&suite).unwrap().permissions().mode() & 0o777,
        0o600,
        "answers of tools are in it"
    );
    let (code, told) = test(&suite);
    assert_eq!(code, 0, "{told}\n{}", fs::read_to_string(&suite).unwrap());
    let (code, told) = place.command(&export);
    assert!(code == 2 && told.contains("cannot be written"), "an existing file stays: {told}");
    // A script that makes another call, or one call less, or that returns something else, does not pass.
    let text = fs::read_to_string(&suite).unwrap();
    for (was, is, told) in [
        ("status: 'overdue'", "status: 'paid'", "no answer left for invoices_list"),
        (
            "try { await callTool('crm:accounts_get', { id: 'acc_none' }); }",
            "try { throw { code: 'NOT_FOUND' }; }",
            "not called: accounts_get",
        ),
        (".length} open`", ".length} closed`", "toMatchJson"),
    ] {
        let changed = place.path("changed.suite.yaml");
        assert!(text.contains(was), "{text}");
        fs::write(&changed, text.replace(was, is)).unwrap();
        let (code, report) = test(&changed);
        assert!(code == 1 && report.contains(told), "{is}: {report}");
    }

    fs::create_dir(place.path("plans")).unwrap();
    let plan = place.path("plans/customer_brief.js");
    let described = "What to know about a customer. */ A comment ends in it.";
    let export = [
        "executions",
        "export",
        &id,
        "--plan",
        "--output",
        plan.to_str().unwrap(),
        "--description",
        described,
    ];
    let (code, told) = place.command(&export);
    assert_eq!(code, 0, "{told}");
    let plans = format!("  plans: {{ plans: {} }}\n", place.path("plans").display());
    fs::write(place.path("gatewright.yaml"), place.config(&plans)).unwrap();
    let (code, told) = place.command(&["check"]);
    assert_eq!(code, 0, "{told}");
    let call = |input: &str| place.command(&["tools", "call", "plans:customer_brief", input]);
    let (code, told) = call(r#"{"accountId": "acc_0001"}"#);
    assert!(code == 0 && told.contains(reply["result"]["name"].as_str().unwrap()), "{told}");
    let (code, told) = call(r#"{"accountId": 7}"#);
    assert!(code != 0 && told.contains("VALIDATION_ERROR"), "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_failed_becomes_a_suite_and_one_that_depends_on_the_time_does_not() {
    let place = Place::new();
    let failing = "await callTool('crm:accounts_get', { id: 'acc_none' })";
    let (id, reply) = place.ran(failing, json!({})).await;
    assert_eq!(reply["status"], "tool_error", "{reply}");
    let suite = place.path("failing.suite.yaml");
    let export = ["executions", "export", &id, "--suite", "--output", suite.to_str().unwrap()];
    let (code, told) = place.command(&export);
    assert_eq!(code, 0, "{told}");
    let (code, told) = test(&suite);
    assert_eq!(code, 0, "{told}");

    for (script, why) in [
        ("return Date.now()", "depend on the time"),
        ("return Math.random()", "depend on the time or on random numbers"),
        ("return getTool('crm:accounts_get').name", "only calls of tools"),
    ] {
        let (id, _) = place.ran(script, json!({})).await;
        let (code, told) = place.command(&["executions", "replay", &id]);
        assert!(code == 0 && told.starts_with("identical"), "{script}: {told}");
        let (code, told) = place.command(&["executions", "export", &id, "--suite"]);
        assert!(code == 2 && told.contains(why), "{script}: {told}");
    }
    for arguments in
        [&["--suite", "--plan"][..], &[], &["--suite", "--name", "x"], &["--plan", "--name", "a b"]]
    {
        let (code, told) = place.command(&[&["executions", "export", id.as_str()][..], arguments].concat());
        assert_eq!(code, 2, "{arguments:?}: {told}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replay_names_the_first_difference_with_what_was_expected_and_what_came() {
    let place = Place::new();
    let (id, _) = place.ran(BRIEF, json!({"accountId": "acc_0001"})).await;
    let executions = place.executions();
    let kept = executions.open(&id, Reader::Operator).await.unwrap().chunks;
    let cases: [(&str, &str, &[&str]); 6] = [
        ("{ id: accountId }", "{ id: accountId + 7 }", &["call 0 differs", "acc_0001\"})", "acc_00017\"})"]),
        (
            "'billing:invoices_list'",
            "'billing:payments_list'",
            &["call 2 differs", "invoices_list", "payments_list"],
        ),
        (
            "let missing;",
            "let missing; if (accountId) return 7;",
            &["call 3 is missing", "acc_none", "the script ended"],
        ),
        (
            "return { name",
            "await callTool('crm:users_list', {}); return { name",
            &["call 4 is new", "crm:users_list"],
        ),
        ("overdue: invoices", "due: invoices", &["the result differs", "\"overdue\":", "\"due\":"]),
        ("brief of", "letter of", &["the console differs", "brief of acc_0001", "letter of acc_0001"]),
    ];
    let mut copies: Vec<(String, i32, &[&str])> = Vec::new();
    for (was, is, told) in cases {
        // The script is in the first chunk.
        let mut changed = kept.clone();
        changed[0] = String::from_utf8(kept[0].clone()).unwrap().replacen(was, is, 1).into();
        assert_ne!(changed, kept, "{was}");
        copies.push((copy(&executions, &changed).await, 1, told));
    }
    let is_outcome = |chunk: &&Vec<u8>| chunk.starts_with(b"{\"outcome\"");
    let without_outcome: Vec<_> = kept.iter().filter(|chunk| !is_outcome(chunk)).cloned().collect();
    assert_eq!(without_outcome.len() + 1, kept.len());
    let unreadable = [b"no journal".to_vec()];
    type Case<'a> = (&'a [Vec<u8>], i32, &'a [&'a str]);
    let cases: [Case<'_>; 4] = [
        (&without_outcome, 0, &["identical to the end of the journal: 4 calls", "not kept"]),
        (&kept[..2], 0, &["identical to the end of the journal: 1 calls", "was ended there"]),
        (&kept[..3], 1, &["call 1 is new: the journal has 1 calls", "tickets_list"]),
        (&unreadable, 2, &["cannot be read", "damaged"]),
    ];
    for (chunks, code, told) in cases {
        copies.push((copy(&executions, chunks).await, code, told));
    }
    let mut long = executions.draft(&Principal::local(), NewExecution::default());
    long.append(&vec![b' '; 5 << 20]).unwrap_err();
    copies.push((long.id().to_string(), 2, &["has no journal", "executions.maxJournalBytes"]));
    long.end(&Ending::new("ok"), CallCounts::default());
    executions.close().await;
    for (id, expected, parts) in copies {
        let (code, told) = place.command(&["executions", "replay", &id]);
        assert_eq!(code, expected, "{parts:?}: {told}");
        for part in parts {
            assert!(told.contains(part), "{part}: {told}");
        }
    }
    let (code, told) = place.command(&["executions", "replay", "exe_AAAAAAAAAAAAAAAAAAAAAA"]);
    assert!(code == 2 && told.contains("no such execution"), "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_call_is_shown_with_the_policy_and_its_line() {
    let place = Place::new();
    let rules = place.path("rules.cedar");
    fs::write(
        &rules,
        "permit (principal, action, resource);\n\nforbid (principal, action, resource == Tool::\"crm:users_list\");\n",
    )
    .unwrap();
    let script = "await callTool('crm:accounts_list', {});\nreturn await callTool('crm:users_list', {});";
    let (id, reply) = place.ran_with(&format!("policies: [{}]\n", rules.display()), script, json!({})).await;
    assert_eq!(reply["error"]["code"], "ACCESS_DENIED", "{reply}");
    let expected = "rules.cedar:3` forbids it";
    let (code, text) = place.command(&["executions", "show", &id]);
    let refused: Vec<&str> = text.lines().filter(|line| line.starts_with("refused ")).collect();
    assert!(code == 0 && refused.len() == 1, "{text}");
    assert!(refused[0].contains("crm:users_list: ") && refused[0].ends_with(expected), "{text}");
    let (_, text) = place.command(&["executions", "show", &id, "--json"]);
    let shown: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(shown["refused"][0]["tool"], "crm:users_list");
    assert!(shown["refused"][0]["message"].as_str().unwrap().ends_with(expected), "{text}");
}

/// An execution that ended with this journal.
async fn copy(executions: &Executions, chunks: &[Vec<u8>]) -> String {
    let about = NewExecution::default();
    let lease = executions.create(&Principal::local(), about, &chunks[0]).await.unwrap();
    for chunk in &chunks[1..] {
        lease.append(chunk).await.unwrap();
    }
    let id = lease.id().to_string();
    lease.end(&Ending::new("ok"), CallCounts::default()).await.unwrap();
    id
}
