//! The client of steps: connecting it, running steps one after the other, and the report of one that failed.

use std::time::Duration;

use super::{StepRunner, place::Place};
use crate::{
    client::Mcp,
    protocol::ClientError,
    suite::{
        answers::Answers,
        environment::Environment,
        failure::Failure,
        file::Suite,
        format::{Step, TestEntry, User},
        observations::observations,
        variables::Variables,
    },
};

/// Default time limit of a response.
const RESPONSE_LIMIT: Duration = Duration::from_secs(30);

impl<'a> StepRunner<'a> {
    /// Connects a client for steps.
    pub(in crate::suite) async fn connect(
        suite: &'a Suite,
        environment: &'a Environment,
        user: Option<&User>,
        variables: Variables,
        test: Option<&TestEntry>,
    ) -> Result<Self, String> {
        let caller = environment.caller(suite, user, &variables)?;
        let cassette = test.and_then(|test| test.record.as_ref());
        let tape = cassette.map(|cassette| environment.tape(suite, cassette, &variables)).transpose()?;
        let strict = test.and_then(|test| test.strict.clone());
        let client = environment.client_builder(&caller, tape.clone(), strict.as_ref());
        let mcp = match test.is_some_and(|test| environment.needs_no_client(suite, test)) {
            true => client.unconnected(),
            false => client
                .connect_or_refused()
                .await
                .map_err(|error| format!("the client does not connect: {error}"))?,
        };
        Ok(Self {
            suite,
            environment,
            main: mcp.clone(),
            mcp,
            others: Vec::new(),
            variables,
            subscriptions: Vec::new(),
            answers: Answers::default(),
            at: Place::default(),
            since: environment.http_mark(),
            response_limit: suite.file.timeout_ms.map_or(RESPONSE_LIMIT, Duration::from_millis),
            strict,
            tape,
            durations_ms: Vec::new(),
            is_branch: false,
        })
    }

    /// The client of a step: that of the test, or one of the user that the step names.
    pub(super) async fn client_of(&mut self, user: Option<&User>) -> Result<Mcp, String> {
        let Some(user) = user else { return Ok(self.main.clone()) };
        let name = format!("{user:?}");
        if let Some((_, client)) = self.others.iter().find(|(known, _)| *known == name) {
            return Ok(client.clone());
        }
        let caller = self.environment.caller(self.suite, Some(user), &self.variables)?;
        let client = self.environment.client(&caller, None, self.strict.as_ref()).await;
        let client = client.map_err(|error| format!("its client does not connect: {error}"))?;
        self.answers.install(&client);
        self.others.push((name, client.clone()));
        Ok(client)
    }

    /// Sets the answers to requests of the server: those of the test, then those of the suite.
    pub(in crate::suite) fn answer(&mut self, test: Option<&TestEntry>) -> Result<(), String> {
        self.answers = Answers::of(test, &self.suite.file.answers, &self.variables)?;
        self.answers.install(&self.main);
        Ok(())
    }

    /// Runs steps until one fails; the failure names its line, the requests and the server's log.
    pub(in crate::suite) async fn run_all(&mut self, place: &str, steps: &[Step]) -> Result<(), Failure> {
        for (number, step) in steps.iter().enumerate() {
            let file = &self.suite.path;
            let line = self.suite.line(&format!("{place}/{number}"));
            let at = line.map_or_else(String::new, |line| format!(":{line}"));
            let group = place.strip_prefix('/').filter(|group| !group.contains('/'));
            let group = group.map_or_else(String::new, |group| format!("{group}, "));
            let step_name = format!("{group}step {} ({})", number + 1, step.actions().join(", "));
            self.at = Place { prefix: format!("{file}{at}: {step_name}: "), line, step: step_name };
            if let Err(failure) = self.run(step).await {
                return Err(self.report(failure).await);
            }
        }
        Ok(())
    }

    /// Adds the step that runs and what was observed to a failure.
    pub(in crate::suite) async fn report(&self, mut failure: Failure) -> Failure {
        let clients = std::iter::once(&self.main).chain(self.others.iter().map(|(_, client)| client));
        let observed = observations(self.environment, self.since, clients).await;
        failure.details.line = self.at.line;
        failure.details.step = Some(self.at.step.clone()).filter(|step| !step.is_empty());
        failure.details.message.clone_from(&failure.text);
        failure.text = format!("{}{}{observed}", self.at.prefix, failure.text);
        self.environment.secrets.redact(&mut failure);
        failure
    }

    /// Protocol violations that the clients noticed.
    pub(in crate::suite) fn violations(&self) -> Vec<String> {
        let others = self.others.iter().flat_map(|(_, client)| client.logs().violations());
        self.main.logs().violations().into_iter().chain(others).collect()
    }

    /// The problem of a secret in what the server sent without a step that shows it: messages, and its output.
    pub(in crate::suite) fn leak(&self) -> Option<Failure> {
        let secrets = &self.environment.secrets;
        if secrets.is_empty() {
            return None;
        }
        let clients = std::iter::once(&self.main).chain(self.others.iter().map(|(_, client)| client));
        let in_messages = clients.into_iter().find_map(|client| {
            let sent = client.notifications().all().into_iter().map(|one| (one.method, one.params));
            let asked = client.server_requests().into_iter().map(|one| (one.method, one.params));
            sent.chain(asked).find_map(|(method, params)| {
                secrets.problem_in_json(&format!("the message `{method}`"), &params)
            })
        });
        let found = in_messages.or_else(|| secrets.problem_in_output(&self.environment.server.get_logs()));
        found.map(Failure::from)
    }

    /// The error of violations that no step has failed with.
    pub(in crate::suite) fn untold_violations(&self) -> Option<ClientError> {
        let mut clients = std::iter::once(&self.main).chain(self.others.iter().map(|(_, client)| client));
        clients.find_map(Mcp::untold_violations)
    }

    /// True if the server accepted the client of the test.
    pub(in crate::suite) fn is_connected(&self) -> bool {
        self.main.is_connected()
    }

    /// Writes the cassette of a test that passed, and returns notes for the report.
    pub(in crate::suite) fn finish_cassette(&self, passed: bool) -> Result<Vec<String>, String> {
        self.tape.as_ref().map_or(Ok(Vec::new()), |tape| tape.finish(passed))
    }

    /// Ends all sessions.
    pub(in crate::suite) async fn disconnect(&self) {
        self.main.disconnect().await;
        for (_, client) in &self.others {
            client.disconnect().await;
        }
    }
}
