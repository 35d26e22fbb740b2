//! From a configuration to a connection that answered the handshake.

use std::{sync::Arc, time::Duration};

use gatewright_core::{DownReason, Era, Revision};
use rmcp::{
    RoleClient,
    service::{ClientCacheConfig, ClientLifecycleMode, serve_client_with_lifecycle_and_ct},
    transport::Transport,
};
use tokio::sync::{Notify, watch};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    TransportType,
    connection::Connection,
    failure,
    handler::Handler,
    http::{self, SseTransport},
    http_client::UpstreamHttpClient,
    open_calls::OpenCalls,
    outgoing::Bounded,
    rare_line::RareLine,
    sessions::Sessions,
    stdio::{InputLost, Process, StdioTransport},
    tap::Tap,
    task_tools::TaskTools,
    upstream::Upstream,
};

/// A live connection and what has to be ended with it.
pub(crate) struct Live {
    pub(crate) connection: Arc<Connection>,
    pub(crate) why: watch::Sender<Option<DownReason>>,
    pub(crate) stale: Arc<Notify>,
    pub(crate) closed: CancellationToken,
    stop: CancellationToken,
    process: Option<Process>,
    input_lost: Option<InputLost>,
    tasks: TaskTracker,
}

/// Why there is no connection.
pub(crate) enum NotConnected {
    /// The server refused to begin this way, and may accept the other one.
    WrongEra(DownReason),
    /// Anything else.
    Failed(DownReason),
}

impl NotConnected {
    pub(crate) fn into_reason(self) -> DownReason {
        match self {
            Self::WrongEra(why) | Self::Failed(why) => why,
        }
    }
}

fn failed(why: impl Into<DownReason>) -> NotConnected {
    NotConnected::Failed(why.into())
}

/// Connects and shakes hands as in `era`, within `connectTimeout`. What was started is ended again when that fails.
pub(crate) async fn connect(shared: &Arc<Upstream>, era: Era) -> Result<Live, NotConnected> {
    let config = &shared.config;
    let calls = Arc::new(OpenCalls::default());
    let stale = Arc::new(Notify::new());
    let handler = Handler {
        id: shared.id.clone(),
        calls: calls.clone(),
        followed: shared.followed.clone(),
        stale: stale.clone(),
        ambiguous: RareLine::default(),
    };
    let task_tools = Arc::new(TaskTools::default());
    let limit = config.connect_timeout;
    let task_tools_of_it = task_tools.clone();
    let starting = Starting {
        shared,
        era,
        handler,
        calls: calls.clone(),
        stale,
        task_tools: task_tools_of_it,
        sessions: Sessions::default(),
        limit,
        input_lost: None,
    };
    match config.transport() {
        TransportType::Stdio => {
            let (process, stdin, stdout) =
                Process::start(&shared.id, config, &shared.environment, &shared.redactor)
                    .await
                    .map_err(failed)?;
            let redactor = shared.redactor.clone();
            let (transport, input_lost) =
                StdioTransport::new(&shared.id, stdin, stdout, config, redactor, task_tools, calls);
            let starting = Starting { input_lost: Some(input_lost), ..starting };
            starting.shake_hands(transport, Some(process)).await
        }
        TransportType::Http => {
            let headers = config.request_headers().map_err(|bad| failed(bad.problem))?;
            let (inner, connections) = http::client(&shared.id, config).map_err(failed)?;
            let (id, user) = (shared.id.clone(), shared.user.clone());
            let sessions = starting.sessions.clone();
            let client = UpstreamHttpClient { id, inner, connections, user, task_tools, calls, sessions };
            let transport = Bounded::new(shared.id.clone(), http::streamable(client, config, headers));
            starting.shake_hands(transport, None).await
        }
        TransportType::Sse => {
            let headers = config.request_headers().map_err(|bad| failed(bad.problem))?;
            let client = http::client(&shared.id, config).map_err(failed)?;
            let connecting = SseTransport::connect(
                &shared.id,
                client,
                config,
                headers,
                task_tools,
                calls,
                &shared.redactor,
            );
            let transport = tokio::select! {
                transport = tokio::time::timeout(config.connect_timeout, connecting) => transport,
                () = shared.stop.cancelled() => return Err(failed("the gateway is ending")),
            };
            let transport =
                transport.map_err(|_| failed(too_slow(config.connect_timeout)))?.map_err(failed)?;
            starting.shake_hands(Bounded::new(shared.id.clone(), transport), None).await
        }
    }
}

fn too_slow(limit: Duration) -> DownReason {
    let text = format!("it did not answer the handshake within {} ms (`connectTimeout`)", limit.as_millis());
    text.into()
}

struct Starting<'a> {
    shared: &'a Arc<Upstream>,
    era: Era,
    handler: Handler,
    calls: Arc<OpenCalls>,
    stale: Arc<Notify>,
    task_tools: Arc<TaskTools>,
    sessions: Sessions,
    limit: Duration,
    input_lost: Option<InputLost>,
}

impl Starting<'_> {
    async fn shake_hands<T: Transport<RoleClient> + 'static>(
        self,
        transport: T,
        mut process: Option<Process>,
    ) -> Result<Live, NotConnected> {
        // Ends with the app, while it shakes hands too.
        let stop = self.shared.stop.child_token();
        let lifecycle = match self.era {
            // Servers of both eras mostly answer `initialize`.
            Era::Session => ClientLifecycleMode::Initialize,
            Era::Stateless => {
                ClientLifecycleMode::Discover { preferred_versions: vec![Revision::LATEST.into()] }
            }
        };
        let tap = Tap::new(self.shared.id.clone(), transport, self.calls.clone());
        let shaking = serve_client_with_lifecycle_and_ct(self.handler, tap, lifecycle, stop.clone());
        let running = match tokio::time::timeout(self.limit, shaking).await {
            Ok(Ok(running)) => running,
            Ok(Err(error)) => {
                let mut why = failure::of_handshake(&error, &self.shared.redactor);
                if let Some(mut process) = process.take() {
                    why = with_end(why, &mut process, Duration::from_millis(500)).await;
                    process.end().await;
                }
                return Err(match failure::refuses_era(&error) {
                    true => NotConnected::WrongEra(why),
                    false => NotConnected::Failed(why),
                });
            }
            Err(_) => {
                let mut why = too_slow(self.limit);
                if let Some(process) = process.take() {
                    why = why.with_details(&process.words().said());
                    process.end().await;
                }
                return Err(failed(why));
            }
        };
        // Its lists are kept as a catalog, and read again only when they changed.
        running.peer().set_response_cache_config(ClientCacheConfig::disabled()).await;
        let info = running.peer_info();
        let capabilities = info.as_ref().map(|info| info.capabilities.clone()).unwrap_or_default();
        let era = info.map_or(Era::Session, |info| Era::of_version(info.protocol_version.as_str()));
        let (why, ended) = watch::channel(None);
        let connection = Arc::new(Connection {
            peer: running.peer().clone(),
            capabilities,
            era,
            calls: self.calls,
            task_tools: self.task_tools,
            sessions: self.sessions,
            ended,
        });
        let closed = CancellationToken::new();
        let tasks = TaskTracker::new();
        tasks.spawn({
            let closed = closed.clone();
            async move {
                let _closed = closed.drop_guard();
                let _ = running.waiting().await;
            }
        });
        let (stale, input_lost) = (self.stale, self.input_lost);
        Ok(Live { connection, why, stale, closed, stop, process, input_lost, tasks })
    }
}

impl Live {
    /// Waits until the connection is over, and says why.
    pub(crate) async fn over(&mut self) -> DownReason {
        match &mut self.process {
            None => {
                self.closed.cancelled().await;
                "the connection was closed".into()
            }
            Some(process) => {
                // The exit of the process is noticed before the end of its output or its input is, or after.
                let ended = tokio::select! {
                    () = self.closed.cancelled() => Err("it closed its output".into()),
                    status = process.exit_within(Duration::MAX) => {
                        status.ok_or_else(|| "it closed its output".into())
                    }
                    why = lost(&mut self.input_lost) => Err(why),
                };
                match ended {
                    Ok(status) => {
                        // Answers it wrote before it ended may still be in the pipe.
                        let _ =
                            tokio::time::timeout(Duration::from_millis(250), self.closed.cancelled()).await;
                        let why = DownReason::from(format!("it ended ({status})"));
                        why.with_details(&process.words().said())
                    }
                    Err(why) => with_end(why, process, Duration::from_millis(500)).await,
                }
            }
        }
    }

    /// Ends the connection, and the process when there is one.
    pub(crate) async fn end(self, why: DownReason) {
        self.why.send_replace(Some(why));
        self.stop.cancel();
        // rmcp gives open handlers time to finish; ours are over, for their calls heard of the end above.
        let _ = tokio::time::timeout(Duration::from_secs(3), self.closed.cancelled()).await;
        if let Some(process) = self.process {
            process.end().await;
        }
        self.tasks.close();
        let _ = tokio::time::timeout(Duration::from_secs(1), self.tasks.wait()).await;
    }
}

/// Waits until nothing can be written to a child any more, and says why.
async fn lost(input: &mut Option<InputLost>) -> DownReason {
    let why = match input {
        Some(input) => input.wait_for(Option::is_some).await.ok().and_then(|why| why.clone()),
        None => None,
    };
    match why {
        Some(why) => (*why).into(),
        // It ended in another way.
        None => std::future::pending().await,
    }
}

/// Adds how the process ended and what it said last.
async fn with_end(why: DownReason, process: &mut Process, longest: Duration) -> DownReason {
    let why = match process.exit_within(longest).await {
        Some(status) => why.map_summary(|why| format!("{why} ({status})")),
        None => why,
    };
    why.with_details(&process.words().said())
}
