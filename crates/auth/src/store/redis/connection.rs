//! A connection that is opened again when it breaks, and to the new master after a failover.
//!
//! A command is retried only when it cannot have run: the connection could not be opened, or the server is a replica. (A cluster's client
//! follows redirections and retries by itself. Every step is safe to repeat: one that ran already reports a use, never a second success.)

use std::{sync::Arc, time::Duration};

use arc_swap::ArcSwap;
use redis::{
    AsyncConnectionConfig, Client, Cmd, ConnectionAddr, ErrorKind, IntoConnectionInfo as _, Pipeline,
    RedisConnectionInfo, RedisError, RedisFuture, ServerErrorKind, TlsCertificates, TlsMode, Value,
    aio::{ConnectionLike, ConnectionManager, ConnectionManagerConfig, MultiplexedConnection, PubSub},
    cluster::ClusterClient,
    cluster_async::ClusterConnection,
    io::tcp::{TcpSettings, socket2::TcpKeepalive},
    sentinel::{SentinelClient, SentinelClientBuilder, SentinelServerType},
};
use secrecy::ExposeSecret as _;
use tokio::{sync::Mutex, time::timeout};

use super::endpoint::{RedisEndpoint, RedisLayout};

pub(super) const CONNECT: Duration = Duration::from_secs(2);
pub(super) const ANSWER: Duration = Duration::from_secs(2);
/// Time without a packet after which the other end is asked whether it is there.
const PROBE: Duration = Duration::from_secs(10);
/// Time after which a connection ends whose other end confirms nothing.
#[cfg(target_os = "linux")]
const GONE: Duration = Duration::from_secs(20);
/// Longest search for a master: several sentinels may have to be asked.
pub(super) const FIND_MASTER: Duration = Duration::from_secs(4);

/// A connection to the server of the records.
#[derive(Clone)]
pub(super) enum Connection {
    Single(Arc<Single>),
    Master(Arc<Master>),
    Cluster(ClusterConnection),
}

/// A connection to one server.
pub(super) struct Single {
    client: Client,
    current: ArcSwap<ConnectionManager>,
}

/// A connection to the master that the sentinels name.
pub(super) struct Master {
    state: Mutex<SentinelState>,
    database: i64,
}

struct SentinelState {
    client: SentinelClient,
    /// Number of the connection. Of several callers whose connection broke, the first drops it and the others do not drop its successor.
    number: u64,
    connection: Option<MultiplexedConnection>,
}

impl Connection {
    pub(super) async fn open(endpoint: &RedisEndpoint) -> Result<Self, RedisError> {
        if endpoint.tls {
            // The process may hold two providers through other crates; this crate's choice stands when none was made.
            let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
        }
        let mut connection = match &endpoint.layout {
            RedisLayout::Single => Self::Single(Arc::new(Single::open(endpoint).await?)),
            RedisLayout::Sentinel { .. } => Self::Master(Arc::new(Master {
                state: Mutex::new(SentinelState {
                    client: sentinels(endpoint)?,
                    number: 0,
                    connection: None,
                }),
                database: endpoint.database,
            })),
            RedisLayout::Cluster { nodes } => {
                Self::Cluster(cluster(endpoint, nodes)?.get_async_connection().await?)
            }
        };
        // Credentials are refused at the first command only.
        redis::cmd("PING").query_async::<()>(&mut connection).await?;
        Ok(connection)
    }
}

impl Single {
    async fn open(endpoint: &RedisEndpoint) -> Result<Self, RedisError> {
        let client = client(endpoint, &endpoint.host, endpoint.port)?;
        let manager = ConnectionManager::new_with_config(client.clone(), Self::config()).await?;
        Ok(Self { client, current: ArcSwap::from_pointee(manager) })
    }

    fn config() -> ConnectionManagerConfig {
        ConnectionManagerConfig::new()
            .set_connection_timeout(Some(CONNECT))
            .set_response_timeout(Some(ANSWER))
            .set_number_of_retries(1)
            .set_min_delay(Duration::from_millis(50))
            .set_max_delay(Duration::from_millis(500))
    }

    /// Drops the connection `used` when what came over it is not Redis' protocol, as nobody knows where the next answer begins, when it
    /// could not be opened again for another reason than that nobody answers, or when an answer did not come in time: a proxy or firewall
    /// between may have forgotten it. The library keeps such a connection.
    fn check<T>(
        &self,
        used: &Arc<ConnectionManager>,
        outcome: Result<T, RedisError>,
    ) -> Result<T, RedisError> {
        let is_useless = |error: &RedisError| {
            error.is_timeout()
                || matches!(
                    error.kind(),
                    ErrorKind::Parse
                        | ErrorKind::UnexpectedReturnType
                        | ErrorKind::AuthenticationFailed
                        | ErrorKind::Server(ServerErrorKind::BusyLoading)
                )
        };
        if let Err(error) = &outcome
            && is_useless(error)
            && let Ok(new) = ConnectionManager::new_lazy_with_config(self.client.clone(), Self::config())
        {
            tracing::warn!(%error, "the connection to Redis is made anew");
            self.current.compare_and_swap(used, Arc::new(new));
        }
        outcome
    }
}

/// Subscribes to `channel` at the first server that permits it.
pub(super) async fn subscribe(endpoint: &RedisEndpoint, channel: &str) -> Result<PubSub, RedisError> {
    let mut last = RedisError::from((ErrorKind::InvalidClientConfig, "no server is named"));
    for client in subscriber(endpoint).await? {
        let subscription = async {
            let mut connection = client.get_async_pubsub().await?;
            connection.subscribe(channel).await?;
            Ok(connection)
        };
        match timeout(CONNECT, subscription).await {
            Ok(Ok(connection)) => return Ok(connection),
            Ok(Err(error)) => last = error,
            Err(_) => last = (ErrorKind::Io, "no subscription in time").into(),
        }
    }
    Err(last)
}

/// Returns whether the user lacks a permission.
pub(super) fn is_refused(error: &RedisError) -> bool {
    error.kind() == ErrorKind::Server(ServerErrorKind::NoPerm)
}

/// Servers to ask for a subscription, in order: the server, the master, or the nodes of a cluster.
async fn subscriber(endpoint: &RedisEndpoint) -> Result<Vec<Client>, RedisError> {
    match &endpoint.layout {
        RedisLayout::Single => Ok(vec![client(endpoint, &endpoint.host, endpoint.port)?]),
        RedisLayout::Sentinel { .. } => Ok(vec![sentinels(endpoint)?.async_get_client().await?]),
        RedisLayout::Cluster { nodes } => {
            nodes.iter().map(|(host, port)| client(endpoint, host, *port)).collect()
        }
    }
}

fn client(endpoint: &RedisEndpoint, host: &str, port: u16) -> Result<Client, RedisError> {
    let mut login = RedisConnectionInfo::default().set_db(endpoint.database);
    if let Some(username) = &endpoint.username {
        login = login.set_username(username);
    }
    if let Some(password) = &endpoint.password {
        login = login.set_password(password.expose_secret());
    }
    let info = address(endpoint, host, port).into_connection_info()?;
    let info = info.set_redis_settings(login).set_tcp_settings(tcp());
    match endpoint.tls {
        true => Client::build_with_tls(info, certificates(endpoint)?),
        false => Client::open(info),
    }
}

fn sentinels(endpoint: &RedisEndpoint) -> Result<SentinelClient, RedisError> {
    let RedisLayout::Sentinel { master, sentinels, username, password } = &endpoint.layout else {
        return Err((ErrorKind::InvalidClientConfig, "no sentinels are named").into());
    };
    let nodes = sentinels.iter().map(|(host, port)| address(endpoint, host, *port));
    let mut builder = SentinelClientBuilder::new(nodes, master, SentinelServerType::Master)?
        .set_client_to_redis_db(endpoint.database);
    if let Some(username) = &endpoint.username {
        builder = builder.set_client_to_redis_username(username);
    }
    if let Some(password) = &endpoint.password {
        builder = builder.set_client_to_redis_password(password.expose_secret());
    }
    if let Some(username) = username {
        builder = builder.set_client_to_sentinel_username(username);
    }
    if let Some(password) = password {
        builder = builder.set_client_to_sentinel_password(password.expose_secret());
    }
    if endpoint.tls {
        builder = builder
            .set_client_to_redis_tls_mode(TlsMode::Secure)
            .set_client_to_redis_certificates(certificates(endpoint)?)
            .set_client_to_sentinel_tls_mode(TlsMode::Secure)
            .set_client_to_sentinel_certificates(certificates(endpoint)?);
    }
    builder.build()
}

fn cluster(endpoint: &RedisEndpoint, nodes: &[(String, u16)]) -> Result<ClusterClient, RedisError> {
    let nodes = nodes.iter().map(|(host, port)| address(endpoint, host, *port));
    let mut builder = ClusterClient::builder(nodes)
        .retries(3)
        .min_retry_wait(50)
        .max_retry_wait(500)
        .connection_timeout(CONNECT)
        .response_timeout(ANSWER)
        .tcp_settings(tcp());
    if let Some(username) = &endpoint.username {
        builder = builder.username(username);
    }
    if let Some(password) = &endpoint.password {
        builder = builder.password(password.expose_secret());
    }
    if endpoint.tls {
        builder = builder.tls(TlsMode::Secure).certs(certificates(endpoint)?);
    }
    builder.build()
}

/// Settings with which the system notices that nobody is at the other end any more, also of a connection that only listens.
fn tcp() -> TcpSettings {
    let probes = TcpKeepalive::new().with_time(PROBE).with_interval(PROBE);
    let settings = TcpSettings::default().set_nodelay(true).set_keepalive(probes);
    #[cfg(target_os = "linux")]
    let settings = settings.set_user_timeout(GONE);
    settings
}

fn address(endpoint: &RedisEndpoint, host: &str, port: u16) -> ConnectionAddr {
    let host = host.to_owned();
    match endpoint.tls {
        true => ConnectionAddr::TcpTls { host, port, insecure: false, tls_params: None },
        false => ConnectionAddr::Tcp(host, port),
    }
}

fn certificates(endpoint: &RedisEndpoint) -> Result<TlsCertificates, RedisError> {
    let root_cert = endpoint.ca_file.as_ref().map(std::fs::read).transpose()?;
    Ok(TlsCertificates { client_tls: None, root_cert })
}

impl Master {
    /// Returns the connection, opened when there is none, and its number.
    async fn connection(&self) -> Result<(MultiplexedConnection, u64), RedisError> {
        let mut state = self.state.lock().await;
        if let Some(connection) = &state.connection {
            return Ok((connection.clone(), state.number));
        }
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(CONNECT))
            .set_response_timeout(Some(ANSWER));
        let found = state.client.get_async_connection_with_config(&config);
        let connection = tokio::time::timeout(FIND_MASTER, found)
            .await
            .map_err(|_| RedisError::from((ErrorKind::Io, "the sentinels named no master in time")))??;
        state.number += 1;
        state.connection = Some(connection.clone());
        Ok((connection, state.number))
    }

    /// Drops connection `number`. The next command asks the sentinels again.
    async fn drop_connection(&self, number: u64) {
        let mut state = self.state.lock().await;
        if state.number == number {
            state.connection = None;
        }
    }
}

/// Returns whether the server behind the connection is gone, or is no master any more.
fn is_over(error: &RedisError) -> bool {
    let demoted = matches!(
        error.kind(),
        ErrorKind::Server(
            ServerErrorKind::ReadOnly | ServerErrorKind::MasterDown | ServerErrorKind::BusyLoading
        )
    );
    // After what is not the protocol, nobody knows where the next answer begins.
    let is_unreadable = error.kind() == ErrorKind::Parse;
    demoted || is_unreadable || error.is_connection_dropped() || error.is_io_error() || error.is_timeout()
}

/// Returns whether the command did not run because the server is a replica.
fn did_not_run(error: &RedisError) -> bool {
    error.kind() == ErrorKind::Server(ServerErrorKind::ReadOnly)
}

/// Runs a command on the master, and retries once when the server is no master any more.
macro_rules! on_master {
    ($master:expr, $connection:ident => $run:expr) => {{
        let mut tries = 0;
        loop {
            let (mut $connection, number) = $master.connection().await?;
            let outcome = $run.await;
            tries += 1;
            match outcome {
                Err(error) if is_over(&error) => {
                    $master.drop_connection(number).await;
                    if tries > 1 || !did_not_run(&error) {
                        break Err(error);
                    }
                }
                outcome => break outcome,
            }
        }
    }};
}

impl ConnectionLike for Connection {
    fn req_packed_command<'a>(&'a mut self, cmd: &'a Cmd) -> RedisFuture<'a, Value> {
        match self {
            Self::Single(single) => Box::pin(async move {
                let used = single.current.load_full();
                single.check(&used, ConnectionManager::clone(&used).req_packed_command(cmd).await)
            }),
            Self::Cluster(connection) => connection.req_packed_command(cmd),
            Self::Master(master) => {
                Box::pin(async move { on_master!(master, state => state.req_packed_command(cmd)) })
            }
        }
    }

    fn req_packed_commands<'a>(
        &'a mut self,
        pipeline: &'a Pipeline,
        offset: usize,
        count: usize,
    ) -> RedisFuture<'a, Vec<Value>> {
        match self {
            Self::Single(single) => Box::pin(async move {
                let used = single.current.load_full();
                let mut connection = ConnectionManager::clone(&used);
                let outcome = connection.req_packed_commands(pipeline, offset, count).await;
                single.check(&used, outcome)
            }),
            Self::Cluster(connection) => connection.req_packed_commands(pipeline, offset, count),
            Self::Master(master) => Box::pin(async move {
                on_master!(master, state => state.req_packed_commands(pipeline, offset, count))
            }),
        }
    }

    fn get_db(&self) -> i64 {
        match self {
            Self::Single(single) => single.current.load().get_db(),
            Self::Cluster(connection) => connection.get_db(),
            Self::Master(master) => master.database,
        }
    }
}
