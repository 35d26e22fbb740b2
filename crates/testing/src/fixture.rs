//! Fixtures: what `#[gatewright_testing::test]` hands to a test, by the type of its arguments.
//!
//! Each test has a context of its own. A fixture is built when it is asked for, and everything ends with the test, whether it
//! passes, fails or panics.

mod ending;
mod options;
mod run;

pub use options::{AuthOptions, TestOptions};
pub use run::{Outcome, run};

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicBool, Ordering},
};

use tokio::sync::OnceCell;

use crate::{
    Auth, HttpMock, Mcp, MockOAuthServer, MockOAuthServerOptions, Server, TokenFactory, TokenFactoryOptions,
    http_mock, lock,
};

/// An error of any kind.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Something a test can ask for by its type. Implement it for your own: `build` may ask the context for other fixtures.
pub trait Fixture: Sized {
    /// Says, before anything is built, that the test asks for this.
    fn announce(context: &Arc<TestContext>) {
        let _ = context;
    }

    /// Builds it.
    ///
    /// # Errors
    /// It cannot be built; the test fails with this error.
    fn build(context: &Arc<TestContext>) -> impl Future<Output = Result<Self, BoxError>> + Send;
}

/// What belongs to one test.
pub struct TestContext {
    name: &'static str,
    options: TestOptions,
    wants_http_mock: AtomicBool,
    server: OnceCell<Server>,
    auth: OnceCell<(Auth, Option<Arc<MockOAuthServer>>)>,
    http_mock: OnceCell<HttpMock>,
    clients: Mutex<Vec<Mcp>>,
}

impl std::fmt::Debug for TestContext {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TestContext").field("name", &self.name).finish_non_exhaustive()
    }
}

impl TestContext {
    fn new(name: &'static str, options: TestOptions) -> Self {
        Self {
            name,
            options,
            wants_http_mock: AtomicBool::new(false),
            server: OnceCell::new(),
            auth: OnceCell::new(),
            http_mock: OnceCell::new(),
            clients: Mutex::default(),
        }
    }

    /// The test's path, such as `it::orders::places_an_order`.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Takes a client that a fixture of your own made into the report of a failure, and disconnects it at the end.
    pub fn watch(&self, client: &Mcp) {
        lock(&self.clients).push(client.clone());
    }

    async fn auth(&self) -> Result<&(Auth, Option<Arc<MockOAuthServer>>), BoxError> {
        self.auth
            .get_or_try_init(|| async {
                let Some(options) = &self.options.auth else { return Ok((Auth::default(), None)) };
                let mut factory = TokenFactoryOptions::default();
                if let Some(audience) = &options.audience {
                    factory.audience.clone_from(audience);
                }
                let mock = MockOAuthServerOptions { auto_approve: true, ..MockOAuthServerOptions::default() };
                let mut mock = MockOAuthServer::new(TokenFactory::new(factory), mock);
                mock.start().await?;
                Ok((Auth::new(mock.get_token_factory()), Some(Arc::new(mock))))
            })
            .await
    }

    async fn server(&self) -> Result<&Server, BoxError> {
        self.server
            .get_or_try_init(|| async {
                if let Some(app) = &self.options.app {
                    return Ok(match self.auth().await? {
                        (auth, Some(_)) => app(Some(auth)),
                        (_, None) => app(None),
                    });
                }
                let mut builder = self.options.server.clone().ok_or(
                    "the test asks for a server, and neither `test_use!` nor the attribute names one: \
                     set `server`, `base_url` or `app`",
                )?;
                if let (auth, Some(mock)) = self.auth().await? {
                    builder = builder
                        .env("IDP_PROVIDER_URL", &mock.info().base_url)
                        .env("IDP_EXPECTED_AUDIENCE", auth.get_audience());
                }
                if self.wants_http_mock.load(Ordering::Relaxed) {
                    builder = builder.http_mock(self.http_mock().await?);
                }
                Ok(builder.start().await?)
            })
            .await
    }

    async fn http_mock(&self) -> Result<&HttpMock, BoxError> {
        self.http_mock.get_or_try_init(|| async { Ok(http_mock::interceptor()?) }).await
    }
}

impl Fixture for Server {
    async fn build(context: &Arc<TestContext>) -> Result<Self, BoxError> {
        context.server().await.cloned()
    }
}

/// A connected client. When the server refuses a client without a token (401, 403) it is handed out all the same:
/// [`Mcp::authenticate`] connects it.
impl Fixture for Mcp {
    async fn build(context: &Arc<TestContext>) -> Result<Self, BoxError> {
        let mut client = context.server().await?.client();
        if let Some(version) = &context.options.protocol_version {
            client = client.protocol_version(version);
        }
        if let Some(user) = context.options.auth.as_ref().and_then(|auth| auth.user.as_ref()) {
            client = client.token(context.auth().await?.0.create_token(user));
        }
        let client = client.connect_or_refused().await?;
        context.watch(&client);
        Ok(client)
    }
}

impl Fixture for Auth {
    async fn build(context: &Arc<TestContext>) -> Result<Self, BoxError> {
        Ok(context.auth().await?.0.clone())
    }
}

/// The authorization server the option `auth` starts.
impl Fixture for Arc<MockOAuthServer> {
    async fn build(context: &Arc<TestContext>) -> Result<Self, BoxError> {
        let mock = context.auth().await?.1.clone();
        mock.ok_or_else(|| {
            "the test asks for the mock OAuth server; set `auth: AuthOptions::default()`".into()
        })
    }
}

impl Fixture for HttpMock {
    fn announce(context: &Arc<TestContext>) {
        context.wants_http_mock.store(true, Ordering::Relaxed);
    }

    async fn build(context: &Arc<TestContext>) -> Result<Self, BoxError> {
        context.http_mock().await.cloned()
    }
}

/// The context itself.
impl Fixture for Arc<TestContext> {
    async fn build(context: &Arc<TestContext>) -> Result<Self, BoxError> {
        Ok(context.clone())
    }
}
