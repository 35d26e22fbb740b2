//! Fixtures: what `#[gatewright_testing::test]` hands to a test, by the type of its arguments.
//!
//! Each test has a context of its own. A fixture is built when it is asked for, and everything ends with the test, whether it
//! passes, fails or panics.

mod ending;
mod options;
mod run;

#[cfg(feature = "oauth")]
pub use options::AuthOptions;
pub use options::TestOptions;
pub use run::{Outcome, run};

#[cfg(feature = "http-mock")]
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use tokio::sync::OnceCell;

use crate::{Auth, Mcp, Server, lock};
#[cfg(feature = "http-mock")]
use crate::{HttpMock, http_mock};
#[cfg(feature = "oauth")]
use crate::{MockOAuthServer, MockOAuthServerOptions, TokenFactory, TokenFactoryOptions};

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
    server: OnceCell<Server>,
    auth: OnceCell<Auth>,
    #[cfg(feature = "oauth")]
    issuer: OnceCell<Arc<MockOAuthServer>>,
    #[cfg(feature = "http-mock")]
    wants_http_mock: AtomicBool,
    #[cfg(feature = "http-mock")]
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
            server: OnceCell::new(),
            auth: OnceCell::new(),
            #[cfg(feature = "oauth")]
            issuer: OnceCell::new(),
            #[cfg(feature = "http-mock")]
            wants_http_mock: AtomicBool::new(false),
            #[cfg(feature = "http-mock")]
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

    async fn auth(&self) -> Result<&Auth, BoxError> {
        let make = || async {
            #[cfg(feature = "oauth")]
            if let Some(issuer) = self.issuer().await? {
                return Ok(Auth::new(issuer.get_token_factory()));
            }
            Ok(Auth::default())
        };
        self.auth.get_or_try_init(make).await
    }

    /// The mock authorization server, when the options want one.
    #[cfg(feature = "oauth")]
    async fn issuer(&self) -> Result<Option<&Arc<MockOAuthServer>>, BoxError> {
        let Some(options) = &self.options.auth else { return Ok(None) };
        let make = || async {
            let mut factory = TokenFactoryOptions::default();
            if let Some(audience) = &options.audience {
                factory.audience.clone_from(audience);
            }
            let mock = MockOAuthServerOptions { auto_approve: true, ..MockOAuthServerOptions::default() };
            let mut mock = MockOAuthServer::new(TokenFactory::new(factory), mock);
            mock.start().await?;
            Ok::<_, BoxError>(Arc::new(mock))
        };
        self.issuer.get_or_try_init(make).await.map(Some)
    }

    /// Whether the server takes only tokens of the mock authorization server.
    fn guarded(&self) -> bool {
        #[cfg(feature = "oauth")]
        let guarded = self.options.auth.is_some();
        #[cfg(not(feature = "oauth"))]
        let guarded = false;
        guarded
    }

    /// The token the `Mcp` fixture connects with.
    async fn token(&self) -> Result<Option<String>, BoxError> {
        #[cfg(feature = "oauth")]
        if let Some(user) = self.options.auth.as_ref().and_then(|auth| auth.user.as_ref()) {
            return Ok(Some(self.auth().await?.create_token(user)));
        }
        Ok(None)
    }

    async fn server(&self) -> Result<&Server, BoxError> {
        self.server
            .get_or_try_init(|| async {
                if let Some(app) = &self.options.app {
                    let auth = if self.guarded() { Some(self.auth().await?) } else { None };
                    return Ok(app(auth));
                }
                let builder = self.options.server.clone().ok_or(
                    "the test asks for a server, and neither `test_use!` nor the attribute names one: \
                     set `server`, `base_url` or `app`",
                )?;
                #[cfg(feature = "oauth")]
                let builder = match self.issuer().await? {
                    Some(issuer) => builder
                        .env("IDP_PROVIDER_URL", &issuer.info().base_url)
                        .env("IDP_EXPECTED_AUDIENCE", self.auth().await?.get_audience()),
                    None => builder,
                };
                #[cfg(feature = "http-mock")]
                let builder = match self.wants_http_mock.load(Ordering::Relaxed) {
                    true => builder.http_mock(self.http_mock().await?),
                    false => builder,
                };
                Ok(builder.start().await?)
            })
            .await
    }

    #[cfg(feature = "http-mock")]
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
        if let Some(token) = context.token().await? {
            client = client.token(token);
        }
        let client = client.connect_or_refused().await?;
        context.watch(&client);
        Ok(client)
    }
}

impl Fixture for Auth {
    async fn build(context: &Arc<TestContext>) -> Result<Self, BoxError> {
        context.auth().await.cloned()
    }
}

#[cfg(feature = "oauth")]
/// The authorization server the option `auth` starts.
impl Fixture for Arc<MockOAuthServer> {
    async fn build(context: &Arc<TestContext>) -> Result<Self, BoxError> {
        context.issuer().await?.cloned().ok_or_else(|| {
            "the test asks for the mock OAuth server; set `auth: AuthOptions::default()`".into()
        })
    }
}

#[cfg(feature = "http-mock")]
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
