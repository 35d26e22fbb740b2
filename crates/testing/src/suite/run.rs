//! Running a suite.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use futures::{StreamExt, stream};
use serde_json::{Map, Value, json};

use super::{
    RunOptions, Suite, SuiteReport, TestOutcome, TestReport,
    format::{HttpMockEntry, List, Step, SuiteFile, TestEntry, User, expectation},
    variables::filled,
};
use crate::{
    AsSubject, Auth, ClientError, HttpMock, HttpMockOptions, Mcp, Mismatch, MockOAuthServer,
    MockOAuthServerOptions, RpcRequest, RpcResponse, Server, Subject, TokenFactory, TokenOptions,
    expect::settle, http_mock, http_response, matchers,
};

type Check = fn(&Subject<'_>, &Value) -> Result<(), Mismatch>;

/// Every expectation under the contract's name.
pub(super) const EXPECTATIONS: &[(&str, Check)] = &[
    ("toContainTool", |subject, wanted| matchers::contains_tool(subject, &text(wanted))),
    ("toContainResource", |subject, wanted| matchers::contains_resource(subject, &text(wanted))),
    ("toContainResourceTemplate", |subject, wanted| {
        matchers::contains_resource_template(subject, &text(wanted))
    }),
    ("toContainPrompt", |subject, wanted| matchers::contains_prompt(subject, &text(wanted))),
    ("toBeSuccessful", |subject, _| matchers::is_successful(subject)),
    ("toBeError", |subject, wanted| matchers::is_error(subject, wanted.as_i64())),
    ("toHaveTextContent", |subject, wanted| {
        matchers::has_text_content(subject, (!wanted.is_null()).then(|| text(wanted)).as_deref())
    }),
    ("toHaveImageContent", |subject, _| matchers::has_image_content(subject)),
    ("toHaveResourceContent", |subject, _| matchers::has_resource_content(subject)),
    ("toHaveMimeType", |subject, wanted| matchers::has_mime_type(subject, &text(wanted))),
    ("toHaveMessages", |subject, wanted| {
        matchers::has_messages(
            subject,
            wanted.as_u64().and_then(|count| count.try_into().ok()).unwrap_or(usize::MAX),
        )
    }),
    ("toHaveRole", |subject, wanted| matchers::has_role(subject, &text(wanted))),
    ("toContainText", |subject, wanted| matchers::contains_text(subject, &text(wanted))),
    ("toBeValidJsonRpc", |subject, _| matchers::is_valid_json_rpc(subject)),
    ("toHaveResult", |subject, _| matchers::has_result(subject)),
    ("toHaveError", |subject, _| matchers::has_error(subject)),
    ("toHaveErrorCode", |subject, wanted| {
        matchers::has_error_code(subject, wanted.as_i64().unwrap_or(i64::MAX))
    }),
    ("toMatchJson", |subject, wanted| matchers::matches_json(subject, wanted)),
];

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// What the tests of a suite share.
struct Stage {
    server: Server,
    auth: Auth,
    _issuer: Option<MockOAuthServer>,
    http: Option<HttpMock>,
    protocol_version: Option<String>,
}

pub(super) async fn run(suite: &Suite, options: &RunOptions) -> SuiteReport {
    let wanted =
        |test: &&TestEntry| options.filter.as_ref().is_none_or(|part| test.name.contains(part.as_str()));
    let tests: Vec<&TestEntry> = suite.file.tests.iter().filter(wanted).collect();
    let stage = Stage::set(&suite.file).await.map(Arc::new);
    let tests = stream::iter(tests)
        .map(|test| {
            let stage = stage.clone();
            async move {
                let started = Instant::now();
                let outcome = match (&test.skip, stage) {
                    (Some(why), _) => TestOutcome::Skipped(why.clone()),
                    (None, Err(problem)) => TestOutcome::Failed(problem),
                    (None, Ok(stage)) => play(&stage, test, &suite.file.variables).await,
                };
                TestReport { name: test.name.clone(), outcome, duration: started.elapsed() }
            }
        })
        .buffered(options.parallel.max(1))
        .collect()
        .await;
    if let Ok(stage) = stage {
        stage.server.stop().await;
    }
    SuiteReport { name: suite.name.clone(), tests }
}

impl Stage {
    async fn set(file: &SuiteFile) -> Result<Self, String> {
        let section = &file.server;
        let mut builder = Server::builder(&section.command).transport(section.transport);
        for arg in &section.args {
            builder = builder.arg(arg);
        }
        for (name, value) in &section.env {
            builder = builder.env(name, value);
        }
        if let Some(port) = section.port {
            builder = builder.port(port);
        }
        if let Some(path) = &section.path {
            builder = builder.path(path);
        }
        if let Some(path) = &section.ready_path {
            builder = builder.ready_path(path);
        }
        if let Some(url) = &section.base_url {
            builder = builder.base_url(url);
        }
        if let Some(ms) = section.startup_timeout_ms {
            builder = builder.startup_timeout(Duration::from_millis(ms));
        }
        let (mut auth, mut issuer) = (Auth::default(), None);
        if file.auth {
            let options = MockOAuthServerOptions { auto_approve: true, ..MockOAuthServerOptions::default() };
            let mut mock = MockOAuthServer::new(TokenFactory::default(), options);
            let info = mock.start().await.map_err(|error| format!("the mock OAuth server: {error}"))?;
            auth = Auth::new(mock.get_token_factory());
            builder = builder
                .env("IDP_PROVIDER_URL", info.base_url)
                .env("IDP_EXPECTED_AUDIENCE", auth.get_audience());
            issuer = Some(mock);
        }
        let mut http = None;
        if !file.http_mocks.is_empty() {
            let mock = http_mock::interceptor().map_err(|error| format!("the HTTP mock: {error}"))?;
            for entry in &file.http_mocks {
                mock.mock(entry.options());
            }
            builder = builder.http_mock(&mock);
            http = Some(mock);
        }
        let server = builder.start().await.map_err(|error| error.to_string())?;
        Ok(Self { server, auth, _issuer: issuer, http, protocol_version: section.protocol_version.clone() })
    }

    async fn client(&self, test: &TestEntry) -> Result<Mcp, ClientError> {
        let mut client = self.server.client();
        if let Some(version) = &self.protocol_version {
            client = client.protocol_version(version);
        }
        let users = &self.auth.users;
        let user = match &test.user {
            None => None,
            Some(User::Named(name)) => Some(match name.as_str() {
                "admin" => users.admin.clone(),
                "user" => users.user.clone(),
                "readOnly" => users.read_only.clone(),
                sub => TokenOptions::new(sub),
            }),
            Some(User::Described { sub, scopes }) => Some(TokenOptions::new(sub).scopes(scopes)),
        };
        if let Some(user) = user {
            client = client.token(self.auth.create_token(&user));
        }
        client.connect().await
    }
}

impl HttpMockEntry {
    fn options(&self) -> HttpMockOptions {
        let mut response = match (&self.json, &self.text) {
            (Some(json), _) => http_response::json(json.clone()),
            (None, Some(text)) => http_response::text(text),
            (None, None) => http_response::text(""),
        };
        response = response.status(self.status.unwrap_or(200));
        response = response.delay(Duration::from_millis(self.delay_ms.unwrap_or(0)));
        let mut options = HttpMockOptions::new(self.url.as_str(), response);
        if let Some(method) = &self.method {
            options = options.method(method);
        }
        if let Some(times) = self.times {
            options = options.times(times);
        }
        options
    }
}

async fn play(stage: &Stage, test: &TestEntry, variables: &Map<String, Value>) -> TestOutcome {
    let mcp = match stage.client(test).await {
        Ok(mcp) => mcp,
        Err(error) => return TestOutcome::Failed(format!("the client does not connect: {error}")),
    };
    for mock in &test.mocks {
        match (&mock.tool, &mock.resource, &mock.error) {
            (Some(tool), _, Some(error)) => drop(mcp.mock().tool_error(tool, error.code, &error.message)),
            (Some(tool), _, None) => drop(mcp.mock().tool(tool, mock.response.clone().unwrap_or_default())),
            (None, Some(uri), _) => drop(mcp.mock().resource(uri, mock.response.clone().unwrap_or_default())),
            (None, None, _) => return TestOutcome::Failed("a mock needs `tool` or `resource`".into()),
        }
    }
    let mut variables = variables.clone();
    let mut outcome = TestOutcome::Passed;
    for (number, step) in test.steps.iter().enumerate() {
        if let Err(problem) = take(&mcp, step, &mut variables).await {
            let place = format!("step {} ({}): {problem}", number + 1, step.kinds().join(", "));
            outcome = TestOutcome::Failed(format!("{place}{}", seen(stage, &mcp)));
            break;
        }
    }
    mcp.disconnect().await;
    outcome
}

/// What the client, the server and the outside world saw.
fn seen(stage: &Stage, mcp: &Mcp) -> String {
    let mut text = String::from("\nrequests:");
    for one in mcp.trace().all() {
        text.push_str(&format!("\n  {}", one.to_string().replace('\n', "\n  ")));
    }
    let logs = stage.server.get_logs();
    if !logs.is_empty() {
        text.push_str("\nserver, its last lines:");
        for line in logs.iter().skip(logs.len().saturating_sub(20)) {
            text.push_str(&format!("\n  | {line}"));
        }
    }
    for call in stage.http.iter().flat_map(HttpMock::unmatched) {
        text.push_str(&format!("\nno HTTP mock wants: {call}"));
    }
    text
}

/// What a step gave.
enum Got {
    Record(Box<dyn AsSubject + Send>),
    Failed(RpcResponse),
}

impl Got {
    fn of<T: AsSubject + Send + 'static>(outcome: Result<T, ClientError>) -> Result<Self, String> {
        match outcome {
            Ok(record) => Ok(Self::Record(Box::new(record))),
            // An expectation may want the error.
            Err(ClientError::Rpc { error, .. }) => {
                Ok(Self::Failed(RpcResponse::failure(&error).with_id(&json!(0))))
            }
            Err(error) => Err(error.to_string()),
        }
    }

    fn subject(&self) -> Subject<'_> {
        match self {
            Self::Record(record) => record.as_subject(),
            Self::Failed(response) => response.as_subject(),
        }
    }
}

async fn take(mcp: &Mcp, step: &Step, variables: &mut Map<String, Value>) -> Result<(), String> {
    let fill = |value: &Value| filled(value, variables);
    let fill_text = |value: &str| filled(&value.into(), variables).map(|value| text(&value));
    let arguments = fill(&step.arguments)?;
    let got = if let Some(list) = step.list {
        match list {
            List::Tools => Got::of(mcp.tools().list().await)?,
            List::Resources => Got::of(mcp.resources().list().await)?,
            List::ResourceTemplates => Got::of(mcp.resources().list_templates().await)?,
            List::Prompts => Got::of(mcp.prompts().list().await)?,
        }
    } else if let Some(tool) = &step.call {
        let arguments = if arguments.is_null() { json!({}) } else { arguments };
        Got::of(mcp.tools().call(&fill_text(tool)?, arguments).await)?
    } else if let Some(uri) = &step.read {
        Got::of(mcp.resources().read(&fill_text(uri)?).await)?
    } else if let Some(prompt) = &step.get {
        Got::of(mcp.prompts().get(&fill_text(prompt)?, arguments).await)?
    } else {
        let raw = fill(step.raw.as_ref().unwrap_or(&Value::Null))?;
        match &raw {
            Value::String(text) => Got::of(mcp.raw().send_raw(text).await)?,
            message if message["jsonrpc"].is_string() => {
                Got::of(mcp.raw().send_raw(&message.to_string()).await)?
            }
            message => {
                let request = RpcRequest::new(text(&message["method"]), message["params"].clone());
                let id = message.get("id").cloned().unwrap_or_else(|| "raw".into());
                Got::of(mcp.raw().request(request.id(id)).await)?
            }
        }
    };
    let subject = got.subject();
    for one in &step.expect {
        let (name, argument, negated) = expectation(&fill(one)?)?;
        let check = EXPECTATIONS.iter().find(|(known, _)| known.to_lowercase() == name);
        let (known, check) = check.ok_or_else(|| format!("there is no expectation `{name}`"))?;
        settle(check(&subject, &argument), negated, &subject).map_err(|mismatch| {
            let not = if negated { "not " } else { "" };
            format!("{not}{known}\n{mismatch}")
        })?;
    }
    // A failure nobody expected must not pass for want of an expectation.
    if let (Got::Failed(response), true) = (&got, step.expect.is_empty()) {
        return Err(format!("it failed: {}", response.raw["error"]));
    }
    let whole = subject.json();
    for (name, pointer) in &step.save {
        let value = whole.pointer(pointer);
        let value =
            value.ok_or_else(|| format!("`save`: there is nothing at `{pointer}` in {subject}"))?.clone();
        variables.insert(name.clone(), value);
    }
    Ok(())
}
