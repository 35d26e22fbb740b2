//! Validation of suites, by schema and beyond: steps with no or two actions, unknown expectations and users. Each section of the
//! format has its checks in a file.

mod expectation;
mod http_mocks;
mod http_step;
mod server;
mod step;
mod test;
mod users;
mod variables;

use std::sync::OnceLock;

use gatewright_findings::{Finding, Schema, escape};
use serde_json::Value;

use super::{format::SuiteFile, variables::Variables};
pub(super) use variables::unknown_variables;

/// Predefined users.
pub(super) const USERS: [&str; 4] = ["admin", "user", "readOnly", "anonymous"];

/// The JSON Schema of suite files.
pub fn schema() -> Value {
    serde_json::to_value(schemars::schema_for!(SuiteFile)).unwrap_or_default()
}

/// Violations of the schema. Expectations are left to [`problems`], whose messages say more.
pub(super) fn by_schema(value: &Value) -> Vec<Finding> {
    static COMPILED: OnceLock<Option<Schema>> = OnceLock::new();
    let Some(schema) = COMPILED.get_or_init(|| Schema::new(schema()).ok()) else {
        return vec![Finding::new("", "internal error: the schema of suites does not compile")];
    };
    let mut findings = schema.findings(value);
    findings.retain(|finding| !finding.pointer.contains("/expect/") && !finding.pointer.ends_with("/expect"));
    for finding in &mut findings {
        let mut parts = finding.pointer.rsplit('/');
        let (key, _, list) = (parts.next(), parts.next(), parts.next().unwrap_or_default());
        if let Some((_, meant)) = SYNONYMS.iter().find(|(other, _)| Some(*other) == key)
            && STEPS.contains(&list)
            && finding.problem.starts_with("unknown key")
        {
            finding.problem = format!("unknown key; did you mean `{meant}`?");
        }
    }
    findings
}

/// Keys with lists of steps.
const STEPS: [&str; 6] = ["steps", "parallel", "setup", "teardown", "beforeEach", "afterEach"];

/// Keys of steps in other test tools, with ours.
const SYNONYMS: [(&str, &str); 12] = [
    ("args", "with"),
    ("arguments", "with"),
    ("input", "with"),
    ("params", "with"),
    ("tool", "call"),
    ("resource", "read"),
    ("prompt", "get"),
    ("request", "http"),
    ("assert", "expect"),
    ("capture", "save"),
    ("retries", "retry"),
    ("sleep", "retry"),
];

/// Violations that the schema cannot express.
pub(super) fn problems(file: &SuiteFile) -> Vec<Finding> {
    let mut found = Findings { file, all: Vec::new() };
    found.server();
    found.matchers();
    found.answers("/answers", &file.answers);
    if file.users.contains_key("anonymous") {
        found.add(
            "/users/anonymous",
            "`anonymous` is nobody, and sends no credential; give the user another name",
        );
    }
    if let Some(user) = &file.user {
        found.user("/as", user);
    }
    for (index, mock) in file.http_mocks.iter().enumerate() {
        found.http_mock(&format!("/httpMocks/{index}"), mock);
    }
    if file.record_http.is_some() && file.server.per_test {
        found.add("/recordHttp", "with `perTest` there is no one server whose calls a cassette could hold");
    }
    for (key, steps) in [
        ("setup", &file.setup),
        ("beforeEach", &file.before_each),
        ("afterEach", &file.after_each),
        ("teardown", &file.teardown),
    ] {
        found.steps(&format!("/{key}"), steps);
    }
    let variables = Variables::of_file(file.variables.clone());
    for (name, problem) in variables.cycles() {
        found.add(&format!("/variables/{}", escape(name)), problem);
    }
    if file.tests.is_empty() {
        found.add("/tests", "a suite holds at least one test");
    }
    for (index, test) in file.tests.iter().enumerate() {
        found.test(index, test, &variables);
    }
    found.all
}

struct Findings<'a> {
    file: &'a SuiteFile,
    all: Vec<Finding>,
}

impl Findings<'_> {
    fn add(&mut self, pointer: &str, problem: impl Into<String>) {
        self.all.push(Finding::new(pointer, problem));
    }
}
