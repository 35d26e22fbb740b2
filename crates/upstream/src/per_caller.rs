//! [`PerCallerApp`]: a server with a connection, and a process where it is started by a command, for each principal or session.
//!
//! The catalog of a connection is that of its own callers only. With a token of each user, users have connections of their own, for a
//! server may bind its sessions to users; before a user has authorized, the app offers only the tool
//! [`AUTHORIZE`].

use std::{
    collections::HashMap,
    future::Future,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use gatewright_core::{
    App, AppEvent, AppFuture, AppHealth, Audience, Authorize, CallContext, Caller, Catalog, NetworkTransport,
    PerCaller, Permit, SIGN_IN_QUESTION, Unavailable, UserCredentials, ask_to_sign_in, sign_in_error,
};
use rmcp::{
    ErrorData,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, CancelTaskParams, CompleteRequestParams,
        CompleteResult, ContentBlock, GetPromptRequestParams, GetPromptResponse, GetTaskParams,
        GetTaskResult, LoggingLevel, ReadResourceRequestParams, ReadResourceResponse, UpdateTaskParams,
    },
};
use tokio::{sync::broadcast, time::Instant};

use crate::{
    Sessions, TransportType, UpstreamApp, UpstreamConfig,
    authorize::{self, AUTHORIZE},
    connections::{Connections, Full, Lease},
    failure,
    upstream::SharedByConnections,
    user::User,
};

/// Longest wait for a caller's own catalog before it is offered what is known.
const PREPARE: Duration = Duration::from_secs(10);

/// Time for which nobody waits again for a catalog that did not come in [`PREPARE`]: other apps are not to be kept waiting by one whose server, or
/// authorization server, hangs.
const NO_WAIT: Duration = Duration::from_secs(30);

/// An [`App`] whose server has a connection for each principal or session.
pub struct PerCallerApp {
    id: String,
    config: UpstreamConfig,
    environment: HashMap<String, String>,
    /// Keeps the users' tokens, for a server that demands one of each.
    credentials: Option<Arc<dyn UserCredentials>>,
    connections: Arc<Connections>,
    beside: SharedByConnections,
    /// Callers whose catalog was waited for in vain, and the time until which nobody waits for it again.
    late: Mutex<HashMap<Audience, Instant>>,
}

impl std::fmt::Debug for PerCallerApp {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PerCallerApp").field("id", &self.id).finish_non_exhaustive()
    }
}

/// Why a caller has no connection.
enum Refusal {
    Authorize(Authorize),
    Failed(ErrorData),
}

impl PerCallerApp {
    /// An app that connects for each caller as `config.sessions` says. With `credentials`, requests carry the token of the caller's
    /// user. It is up at once. `environment` is the gateway's own.
    ///
    /// A configuration that with [problems](UpstreamConfig::problems) gives an app that is down for good.
    ///
    /// # Panics
    /// Outside a Tokio runtime.
    pub fn start(
        id: &str,
        config: UpstreamConfig,
        environment: HashMap<String, String>,
        credentials: Option<Arc<dyn UserCredentials>>,
    ) -> Arc<Self> {
        let connections = Connections::new(config.most_sessions(), config.session_idle);
        match config.problems().into_iter().next() {
            Some(bad) => connections.link.down(bad.problem),
            None if credentials.is_some() => connections.link.up(authorize::catalog(id)),
            None => connections.link.up(Catalog::default()),
        }
        let beside = SharedByConnections::new(&config, true);
        Arc::new(Self {
            id: id.to_owned(),
            config,
            environment,
            credentials,
            connections,
            beside,
            late: Mutex::default(),
        })
    }

    fn late(&self) -> MutexGuard<'_, HashMap<Audience, Instant>> {
        self.late.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns `true` if the catalog of `audience` was waited for in vain a short time ago.
    fn is_late(&self, audience: &Audience) -> bool {
        self.late().get(audience).is_some_and(|until| Instant::now() < *until)
    }

    /// The connection of the caller, once its server's lists are read.
    async fn connected(&self, caller: &Caller) -> Result<Lease, Refusal> {
        if !self.has_token(caller).await? {
            return Err(self.must_authorize(caller).await);
        }
        let lease = self.lease(caller).map_err(|full| self.failed(&full.to_string()))?;
        match lease.app.wait_ready(self.config.connect_timeout).await {
            AppHealth::Up => Ok(lease),
            AppHealth::Starting => Err(self.failed("is still being connected; try again")),
            AppHealth::Down(why) => {
                self.connections.let_go(&self.audience(caller));
                // Its token may have been refused meanwhile: then the user can help.
                if !self.has_token(caller).await? {
                    return Err(self.must_authorize(caller).await);
                }
                Err(self.failed(&format!("is down: {why}; try again")))
            }
        }
    }

    fn lease(&self, caller: &Caller) -> Result<Lease, Full> {
        let start = || {
            let user = self.credentials.as_ref().map(|credentials| User {
                principal: caller.principal().clone(),
                credentials: credentials.clone(),
            });
            let (config, environment) = (self.config.clone(), self.environment.clone());
            UpstreamApp::start_for(&self.id, config, environment, user, self.beside.clone())
        };
        self.connections.lease_or(&self.audience(caller), caller, start)
    }

    /// Returns `true` if the server can be called for the caller: a server that wants no tokens can.
    async fn has_token(&self, caller: &Caller) -> Result<bool, Refusal> {
        let Some(credentials) = &self.credentials else { return Ok(true) };
        let token = credentials.bearer(&self.id, caller.principal(), &[]).await;
        token.map(|token| token.is_some()).map_err(|why| self.unauthorized(&why))
    }

    async fn must_authorize(&self, caller: &Caller) -> Refusal {
        self.connections.let_go(&self.audience(caller));
        let Some(credentials) = &self.credentials else { return self.failed("wants no authorization") };
        match credentials.authorize(&self.id, caller.principal(), &[]).await {
            Ok(authorize) => Refusal::Authorize(authorize),
            Err(why) => self.unauthorized(&why),
        }
    }

    fn failed(&self, what: &str) -> Refusal {
        Refusal::Failed(failure::failed(format!("app `{}` {what}", self.id), "UPSTREAM_DOWN"))
    }

    fn unauthorized(&self, why: &str) -> Refusal {
        let message = format!("app `{}` cannot be called for you: {why}", self.id);
        Refusal::Failed(failure::failed(message, "UPSTREAM_AUTHORIZATION"))
    }

    fn to_error(&self, refusal: Refusal) -> ErrorData {
        match refusal {
            Refusal::Failed(error) => error,
            Refusal::Authorize(authorize) => sign_in_error(&self.id, &authorize),
        }
    }

    /// Connects for what is not a tool call: an error that holds the address asks the user.
    async fn connected_for<T, F>(
        &self,
        context: CallContext,
        run: impl FnOnce(Arc<UpstreamApp>, CallContext) -> F,
    ) -> Result<T, ErrorData>
    where
        F: Future<Output = Result<T, ErrorData>>,
    {
        let lease = self.connected(context.caller()).await.map_err(|refusal| self.to_error(refusal))?;
        run(lease.app.clone(), context).await
    }

    async fn call(
        &self,
        mut params: CallToolRequestParams,
        context: CallContext,
    ) -> Result<CallToolResponse, ErrorData> {
        let lease = match self.connected(context.caller()).await {
            Ok(lease) => lease,
            Err(Refusal::Authorize(authorize)) => return ask_to_sign_in(&self.id, &authorize, &context),
            Err(Refusal::Failed(error)) => return Err(error),
        };
        if self.credentials.is_none() {
            return lease.app.call_tool(params, context).await;
        }
        // The answer to our own question is not the server's.
        if let Some(answers) = &mut params.input_responses {
            answers.remove(SIGN_IN_QUESTION);
        }
        let theirs = lease.app.catalog();
        if params.name == AUTHORIZE && theirs.tools.iter().all(|tool| tool.name != AUTHORIZE) {
            let text = format!("`{}` is authorized and has {} tools.", self.id, theirs.tools.len());
            return Ok(CallToolResponse::Complete(CallToolResult::success(vec![ContentBlock::text(text)])));
        }
        let failed = match lease.app.call_tool(params, context.clone()).await {
            Ok(response) => return Ok(response),
            Err(error) => error,
        };
        // The token was taken back during the call: then the user can help.
        if !matches!(self.has_token(context.caller()).await, Ok(false)) {
            return Err(failed);
        }
        match self.must_authorize(context.caller()).await {
            Refusal::Authorize(authorize) => ask_to_sign_in(&self.id, &authorize, &context),
            Refusal::Failed(error) => Err(error),
        }
    }
}

impl PerCaller for PerCallerApp {
    fn audience(&self, caller: &Caller) -> Audience {
        match self.config.sessions {
            Some(Sessions::PerSession) => Audience::session(caller),
            // The token is that of the user, whichever client calls.
            _ if self.credentials.is_some() => Audience::subject(caller),
            _ => Audience::principal(caller),
        }
    }

    fn catalog(&self, audience: &Audience) -> Option<Arc<Catalog>> {
        self.connections.catalog(audience)
    }

    fn prepare<'a>(&'a self, caller: &'a Caller) -> AppFuture<'a, ()> {
        Box::pin(async move {
            let audience = self.audience(caller);
            if self.connections.catalog(&audience).is_some() || self.is_late(&audience) {
                return;
            }
            let longest = PREPARE.min(self.config.connect_timeout);
            let ready = async {
                // Without a token, or when the server fails, the caller is offered what everybody is.
                if self.connections.link.health() == AppHealth::Up
                    && matches!(self.has_token(caller).await, Ok(true))
                    && let Ok(lease) = self.lease(caller)
                {
                    // Longer than the time that it has.
                    lease.app.wait_ready(2 * longest).await;
                }
            };
            if tokio::time::timeout(longest, ready).await.is_err() {
                let now = Instant::now();
                let mut late = self.late();
                late.retain(|_, until| now < *until);
                late.insert(audience, now + NO_WAIT);
            }
        })
    }

    fn unavailable<'a>(&'a self, caller: &'a Caller) -> AppFuture<'a, Option<Unavailable>> {
        Box::pin(async move {
            let audience = self.audience(caller);
            if self.connections.health(&audience) == Some(AppHealth::Up) {
                return None;
            }
            // Whether there is a token may be what was waited for.
            if !self.is_late(&audience) && !self.has_token(caller).await.ok()? {
                return Some(Unavailable::SignIn(AUTHORIZE.to_owned()));
            }
            Some(match self.connections.health(&audience) {
                Some(AppHealth::Up) => return None,
                Some(AppHealth::Down(why)) => Unavailable::Down(why.to_string()),
                Some(AppHealth::Starting) => Unavailable::Starting,
                None => match self.lease(caller) {
                    Ok(_) => Unavailable::Starting,
                    Err(full) => Unavailable::Busy(full.to_string()),
                },
            })
        })
    }

    fn supports_tasks(&self) -> bool {
        self.connections.make_tasks()
    }
}

impl App for PerCallerApp {
    fn catalog(&self) -> Arc<Catalog> {
        self.connections.link.catalog()
    }

    fn per_caller(&self) -> Option<&dyn PerCaller> {
        Some(self)
    }

    fn health(&self) -> AppHealth {
        self.connections.link.health()
    }

    fn transport(&self) -> Option<NetworkTransport> {
        let by_command = self.config.transport() == TransportType::Stdio;
        Some(if by_command { NetworkTransport::Pipe } else { NetworkTransport::Tcp })
    }

    fn events(&self) -> broadcast::Receiver<AppEvent> {
        self.connections.link.events()
    }

    fn call_tool(
        &self,
        params: CallToolRequestParams,
        context: CallContext,
    ) -> AppFuture<'_, Result<CallToolResponse, ErrorData>> {
        Box::pin(self.call(params, context))
    }

    fn read_resource(
        &self,
        params: ReadResourceRequestParams,
        context: CallContext,
    ) -> AppFuture<'_, Result<ReadResourceResponse, ErrorData>> {
        Box::pin(
            self.connected_for(
                context,
                |app, context| async move { app.read_resource(params, context).await },
            ),
        )
    }

    fn get_prompt(
        &self,
        params: GetPromptRequestParams,
        context: CallContext,
    ) -> AppFuture<'_, Result<GetPromptResponse, ErrorData>> {
        Box::pin(
            self.connected_for(context, |app, context| async move { app.get_prompt(params, context).await }),
        )
    }

    fn complete(
        &self,
        params: CompleteRequestParams,
        context: CallContext,
    ) -> AppFuture<'_, Result<CompleteResult, ErrorData>> {
        Box::pin(
            self.connected_for(context, |app, context| async move { app.complete(params, context).await }),
        )
    }

    fn subscribe<'a>(&'a self, uri: String, permit: &'a Permit) -> AppFuture<'a, Result<(), ErrorData>> {
        Box::pin(async move {
            let lease = self.connected(permit.caller()).await.map_err(|refusal| self.to_error(refusal))?;
            lease.app.subscribe(uri, permit).await
        })
    }

    fn unsubscribe<'a>(&'a self, uri: String, permit: &'a Permit) -> AppFuture<'a, Result<(), ErrorData>> {
        Box::pin(async move {
            match self.connections.lease(&self.audience(permit.caller())) {
                Some(lease) => lease.app.unsubscribe(uri, permit).await,
                None => Ok(()),
            }
        })
    }

    fn set_level<'a>(
        &'a self,
        level: LoggingLevel,
        permit: &'a Permit,
    ) -> AppFuture<'a, Result<(), ErrorData>> {
        Box::pin(async move {
            match self.connections.lease(&self.audience(permit.caller())) {
                Some(lease) => lease.app.set_level(level, permit).await,
                None => Ok(()),
            }
        })
    }

    fn get_task(
        &self,
        params: GetTaskParams,
        context: CallContext,
    ) -> AppFuture<'_, Result<GetTaskResult, ErrorData>> {
        Box::pin(
            self.connected_for(context, |app, context| async move { app.get_task(params, context).await }),
        )
    }

    fn update_task(
        &self,
        params: UpdateTaskParams,
        context: CallContext,
    ) -> AppFuture<'_, Result<(), ErrorData>> {
        Box::pin(
            self.connected_for(context, |app, context| async move { app.update_task(params, context).await }),
        )
    }

    fn cancel_task(
        &self,
        params: CancelTaskParams,
        context: CallContext,
    ) -> AppFuture<'_, Result<(), ErrorData>> {
        Box::pin(
            self.connected_for(context, |app, context| async move { app.cancel_task(params, context).await }),
        )
    }

    fn shutdown(&self) -> AppFuture<'_, ()> {
        Box::pin(self.connections.shutdown())
    }
}

#[cfg(test)]
mod tests {
    use gatewright_core::{BearerToken, Principal};

    use super::*;

    /// An authorization server that does not answer.
    struct Hangs;

    impl UserCredentials for Hangs {
        fn bearer<'a>(
            &'a self,
            _: &'a str,
            _: &'a Principal,
            _: &'a [String],
        ) -> AppFuture<'a, Result<Option<BearerToken>, String>> {
            Box::pin(std::future::pending())
        }

        fn authorize<'a>(
            &'a self,
            _: &'a str,
            _: &'a Principal,
            _: &'a [String],
        ) -> AppFuture<'a, Result<Authorize, String>> {
            Box::pin(std::future::pending())
        }

        fn refused<'a>(
            &'a self,
            _: &'a str,
            _: &'a Principal,
            _: &'a BearerToken,
        ) -> AppFuture<'a, Result<Option<BearerToken>, String>> {
            Box::pin(std::future::pending())
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_catalog_that_does_not_come_is_waited_for_once_in_a_while() {
        let config = UpstreamConfig { url: Some("http://127.0.0.1:9/mcp".to_owned()), ..Default::default() };
        let app = PerCallerApp::start("slow", config, HashMap::new(), Some(Arc::new(Hangs)));
        let caller = Caller::new(Principal { subject: "ada".into(), ..Principal::local() });
        let took = async |caller: &Caller| {
            let start = Instant::now();
            app.prepare(caller).await;
            let why = app.unavailable(caller).await;
            assert!(matches!(why, Some(Unavailable::Starting | Unavailable::Down(_))), "{why:?}");
            start.elapsed()
        };
        assert!(took(&caller).await >= Duration::from_secs(5));
        assert_eq!(took(&caller).await, Duration::ZERO, "other apps are not kept waiting again");
        let other = Caller::new(Principal { subject: "bob".into(), ..Principal::local() });
        assert!(took(&other).await >= Duration::from_secs(5), "the wait of one is not that of another");
        tokio::time::advance(NO_WAIT).await;
        assert!(took(&caller).await >= Duration::from_secs(5));
    }
}
