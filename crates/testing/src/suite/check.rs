//! Validation of suites, by schema and beyond: steps with no or two actions, unknown expectations and users.

use std::sync::OnceLock;

use gatewright_findings::{Finding, Schema, escape, unknown};
use serde_json::Value;

use super::{
    expectations::{self, Expectation},
    format::{ACTIONS, AuthSection, HttpMockEntry, MockEntry, Step, SuiteFile, TestEntry, User},
    variables::Variables,
};
use crate::matchers::registered;

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
    findings.retain(|finding| !finding.pointer.contains("/expect/"));
    findings
}

/// Violations that the schema cannot express.
pub(super) fn problems(file: &SuiteFile) -> Vec<Finding> {
    let mut found = Findings { file, all: Vec::new() };
    found.server();
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

/// The last line of an error that spans several lines and quotes its source.
fn last_line(text: &str) -> &str {
    let line = text.lines().last().unwrap_or_default();
    line.trim_start_matches("error: ")
}

struct Findings<'a> {
    file: &'a SuiteFile,
    all: Vec<Finding>,
}

impl Findings<'_> {
    fn add(&mut self, pointer: &str, problem: impl Into<String>) {
        self.all.push(Finding::new(pointer, problem));
    }

    fn server(&mut self) {
        let server = &self.file.server;
        let targets = [&server.command, &server.url, &server.base_url].into_iter().flatten().count();
        if targets != 1 {
            self.add("/server", "it needs exactly one of `command` and `url` (or `baseUrl`)");
        }
        if let Some(url) = &server.url
            && !url.contains("${")
            && !url::Url::parse(url).is_ok_and(|url| url.has_host() && url.scheme().starts_with("http"))
        {
            self.add(
                "/server/url",
                format!("`{url}` is no http or https URL, such as http://127.0.0.1:3000/mcp"),
            );
        }
        if server.command.is_none() && server.per_test {
            self.add("/server/perTest", "a server that runs already cannot be started for each test");
        }
        if server.command.is_none() && !self.file.http_mocks.is_empty() {
            self.add(
                "/httpMocks",
                "calls of a server that runs already cannot be mocked; start it with `command`",
            );
        }
        if server.command.is_none() && self.file.record_http.is_some() {
            self.add(
                "/recordHttp",
                "calls of a server that runs already cannot be recorded; start it with `command`",
            );
        }
        if server.command.is_none() && !self.file.upstreams.is_empty() {
            self.add(
                "/upstreams",
                "a server that runs already does not know their addresses; start it with `command`",
            );
        }
        let names_config = server.args.iter().any(|arg| arg.contains("{config}"));
        if server.config.is_some() != names_config {
            self.add(
                "/server/config",
                "`config` needs `{config}` in `args`, where its file is named, and that needs `config`",
            );
        }
        for (name, upstream) in &self.file.upstreams {
            for (tool, answers) in &upstream.tools {
                for (at, answer) in answers.answers.iter().enumerate() {
                    let given = [answer.value.is_some(), answer.response.is_some(), answer.error.is_some()];
                    if given.into_iter().filter(|given| *given).count() != 1 {
                        let place =
                            format!("/upstreams/{}/tools/{}/answers/{at}", escape(name), escape(tool));
                        self.add(&place, "it needs exactly one of `value`, `response` and `error`");
                    }
                }
            }
        }
        if let AuthSection::Issuer(issuer) = &self.file.auth
            && issuer.issuer.is_some()
            && issuer.key.is_none()
        {
            self.add("/auth", "tokens of an issuer that runs already need its `key`");
        }
    }

    fn http_mock(&mut self, place: &str, mock: &HttpMockEntry) {
        match (&mock.url, &mock.url_regex) {
            (Some(_), Some(_)) => self.add(place, "`url` and `urlRegex` exclude each other; leave one out"),
            (None, None) => self.add(place, "it needs `url` or `urlRegex`"),
            (None, Some(regex)) => {
                if let Err(error) = regex::Regex::new(regex) {
                    self.add(
                        &format!("{place}/urlRegex"),
                        format!("this is no regular expression: {}", last_line(&error.to_string())),
                    );
                }
            }
            (Some(_), None) => {}
        }
        if mock.required && self.file.server.per_test {
            self.add(
                &format!("{place}/required"),
                "with `perTest` each test has HTTP mocks of its own; use a step `httpCalls`",
            );
        }
        if let Some(status) = mock.status.filter(|status| !(100..1000).contains(status)) {
            self.add(&format!("{place}/status"), format!("{status} is no HTTP status; they are 100 to 999"));
        }
        for (key, headers) in [("headers", &mock.headers), ("requestHeaders", &mock.request_headers)] {
            for name in headers.keys().filter(|name| http::HeaderName::try_from(name.as_str()).is_err()) {
                let place = format!("{place}/{key}/{}", escape(name));
                self.add(&place, format!("`{name}` is no name of an HTTP header"));
            }
        }
        if mock.json.is_some() && mock.text.is_some() {
            self.add(place, "`json` and `text` exclude each other; leave one out");
        }
    }

    fn test(&mut self, index: usize, test: &TestEntry, variables: &Variables) {
        let place = format!("/tests/{index}");
        if self.file.tests[..index].iter().any(|earlier| earlier.name == test.name) {
            self.add(
                &format!("{place}/name"),
                format!("there is a test `{}` already; give it another name", test.name),
            );
        }
        if let Some(user) = &test.user {
            self.user(&format!("{place}/as"), user);
        }
        for (name, problem) in variables.own_cycles(&test.variables) {
            self.add(&format!("{place}/variables/{}", escape(&name)), problem);
        }
        if test.record.is_some()
            && self.file.tests[..index].iter().any(|earlier| earlier.record == test.record)
        {
            self.add(
                &format!("{place}/record"),
                "another test has this cassette; each needs a file of its own",
            );
        }
        for (at, mock) in test.mocks.iter().enumerate() {
            self.mock(&format!("{place}/mocks/{at}"), mock);
        }
        self.steps(&format!("{place}/steps"), &test.steps);
    }

    fn mock(&mut self, place: &str, mock: &MockEntry) {
        let targets = [&mock.tool, &mock.resource, &mock.method].into_iter().flatten().count();
        if targets != 1 {
            self.add(place, "it needs exactly one of `tool`, `resource` and `method`");
        }
        if mock.method.is_none() && mock.params.is_some() {
            self.add(place, "`params` belongs to `method`, such as `method: tools/call`");
        }
        if mock.response.is_some() == mock.error.is_some() {
            self.add(place, "it needs exactly one of `response` and `error`");
        }
    }

    fn user(&mut self, place: &str, user: &User) {
        if let User::Named(name) = user
            && !name.contains("${")
            && !USERS.contains(&name.as_str())
            && !self.file.users.contains_key(name)
        {
            let known = USERS.into_iter().chain(self.file.users.keys().map(String::as_str));
            self.add(place, format!("`{name}`: {}", unknown("user", name, known)));
        }
    }

    fn steps(&mut self, place: &str, steps: &[Step]) {
        for (number, step) in steps.iter().enumerate() {
            self.step(&format!("{place}/{number}"), step);
        }
    }

    fn step(&mut self, place: &str, step: &Step) {
        let actions = step.actions();
        let action = match actions.as_slice() {
            [one] => *one,
            _ => {
                let all = ACTIONS.map(|action| format!("`{action}`")).join(", ");
                self.add(place, format!("a step is exactly one of {all}; this one is {}", listed(&actions)));
                return;
            }
        };
        for (key, present, actions) in [
            ("with", !step.arguments.is_null(), &["call", "get", "notify"][..]),
            ("progress", step.progress.is_some(), &["call"]),
            ("count", step.count.is_some(), &["wait", "httpCalls"]),
            ("timeoutMs", step.timeout_ms.is_some(), &["wait", "httpCalls", "log"]),
        ] {
            if present && !actions.contains(&action) {
                let actions = actions.iter().map(|one| format!("`{one}`")).collect::<Vec<_>>().join(", ");
                self.add(
                    &format!("{place}/{key}"),
                    format!("`{key}` belongs to {actions}, not to `{action}`"),
                );
            }
        }
        if let Some(user) = &step.authenticate {
            self.user(&format!("{place}/authenticate"), user);
        }
        if action == "httpCalls" && self.file.http_mocks.is_empty() && self.file.record_http.is_none() {
            self.add(
                &format!("{place}/httpCalls"),
                "nothing sees the server's HTTP calls without `httpMocks` or `recordHttp`",
            );
        }
        for (name, pointer) in &step.save {
            if !pointer.is_empty() && !pointer.starts_with('/') {
                let place = format!("{place}/save/{}", escape(name));
                self.add(
                    &place,
                    format!("`{pointer}` is no JSON pointer; did you mean `/{}`?", pointer.replace('.', "/")),
                );
            }
        }
        for (at, one) in step.expect.iter().enumerate() {
            if let Err(problem) = check_expectation(&one.0) {
                self.add(&format!("{place}/expect/{at}"), problem);
            }
        }
    }
}

fn check_expectation(written: &Value) -> Result<(), String> {
    let expectation = Expectation::parse(written)?;
    let name = &expectation.name;
    match expectations::find(name) {
        Some(registered) => expectation.check_argument(registered),
        None => {
            let names = registered().iter().map(|one| &*one.name);
            Err(format!("`{name}`: {}", unknown("expectation", name, names)))
        }
    }
}

fn listed(actions: &[&str]) -> String {
    match actions {
        [] => "none".to_owned(),
        actions => actions.iter().map(|action| format!("`{action}`")).collect::<Vec<_>>().join(" and "),
    }
}
