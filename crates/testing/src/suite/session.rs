//! The environment of a suite without its tests, for runs that make their own.

use serde_json::Value;

use super::{
    environment::{Caller, Environment},
    file::Suite,
    options::RunOptions,
    variables::Variables,
};
use crate::{base::text::random_text, client::McpBuilder, server::Server};

/// The server of a suite, with its mocks and its authorization server.
pub(crate) struct Session {
    environment: Environment,
    name: String,
    caller: Caller,
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Session {
    /// Starts everything. The error names what does not start, and the reason.
    pub(crate) async fn start(suite: &Suite, options: &RunOptions) -> Result<Self, String> {
        let mut variables = Variables::of_file(suite.file.variables.clone());
        variables.known.clone_from(&options.variables);
        let env = options.environment.iter().map(|(name, value)| (name.clone(), Value::from(value.as_str())));
        variables.known.insert("env".into(), Value::Object(env.collect()));
        variables.known.insert("random".into(), random_text().into());
        let environment = Environment::start(suite, options, &variables, None).await?;
        variables.known.extend(environment.variables());
        let caller = environment.caller(suite, suite.file.user.as_ref(), &variables)?;
        Ok(Self { environment, name: suite.path.clone(), caller })
    }

    /// A client that is not connected yet, with the token of the suite's user.
    pub(crate) fn client(&self) -> McpBuilder {
        let mut client = self.environment.server.client();
        if let Some(version) = self.environment.protocol_version() {
            client = client.protocol_version(version);
        }
        for (name, value) in self.environment.headers(&self.caller) {
            client = client.header(name, value);
        }
        if self.caller.is_anonymous {
            client = client.without_credentials();
        }
        self.caller.token.iter().fold(client, |client, token| client.token(token))
    }

    pub(crate) fn server(&self) -> &Server {
        &self.environment.server
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }
}
