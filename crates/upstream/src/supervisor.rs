//! Keeps one upstream connected: connects, reads its lists, follows their changes, and tries again when it fails.

use std::{
    sync::{Arc, PoisonError},
    time::Duration,
};

use futures::{StreamExt as _, stream};
use gatewright_core::{Catalog, CatalogError, CatalogLimit, DownReason, Era, Rereads};
use rmcp::{
    ServiceError,
    model::{
        ClientRequest, DiscoverRequest, DiscoverRequestParams, PingRequest, ServerNotification,
        SetLevelRequestParams, SubscribeRequestParams, SubscriptionFilter,
    },
    service::PeerRequestOptions,
};
use tokio::{sync::Notify, time::Instant};

use crate::{
    TransportType,
    backoff::{Backoff, random},
    connect::{Live, NotConnected, connect},
    connection::Connection,
    failure::{self, RequestFault},
    upstream::Upstream,
};

/// Pauses after which a ping is repeated whose connection broke.
const PINGED_AGAIN_AFTER: [Duration; 3] =
    [Duration::from_millis(50), Duration::from_millis(250), Duration::from_secs(1)];
/// Regular pings with an HTTP error in a row after which a server counts as gone.
const MOST_REFUSED: u32 = 3;
/// Time between two pings of a server behind a URL.
const PING_EVERY: Duration = Duration::from_secs(30);
/// Longest time for the answer.
const PING_WITHIN: Duration = Duration::from_secs(10);
/// Shortest time between two requests that name all followed resources.
const LISTEN_EVERY: Duration = Duration::from_millis(500);
/// Subscriptions that are restored at a time.
const RESTORED_AT_ONCE: usize = 16;
/// Reason of a shared app for whose lists there is no room.
const NO_MEMORY: &str = "its lists need more memory than the machine or the container has for them: all apps together may have a quarter of it; let it offer less, or \
     give the gateway more memory";
/// Reason of a connection for whose catalog there is no room.
pub(crate) const NO_ROOM: &str = "its lists, together with those of the app's other connections in use, are over 384 MiB in memory or 100,000 items, or those of all apps over 768 MiB; let \
     the server offer less, or end sessions that are not needed";

/// Runs until the app is shut down.
pub(crate) async fn supervise(shared: Arc<Upstream>) {
    let mut backoff = Backoff::new(shared.config.restart);
    let mut era = Era::Session;
    while !shared.stop.is_cancelled() {
        match connect_in(&shared, &mut era).await {
            Ok(live) => {
                let since = Instant::now();
                let why = serve(&shared, live).await;
                backoff.served(since.elapsed());
                down(&shared, why);
            }
            Err(why) => down(&shared, why),
        }
        let wait = backoff.wait(random());
        tracing::debug!(app.id = %shared.id, duration_ms = wait.as_millis(), "next try of an app");
        tokio::select! {
            () = tokio::time::sleep(wait) => {}
            () = shared.stop.cancelled() => {}
        }
    }
    shared.link.down("the gateway is ending");
}

fn down(shared: &Upstream, why: DownReason) {
    if !shared.stop.is_cancelled() {
        shared.link.down(why);
    }
}

/// Connects in the way that worked last, or in the other one when that is refused.
async fn connect_in(shared: &Arc<Upstream>, era: &mut Era) -> Result<Live, DownReason> {
    let first = match connect(shared, *era).await {
        Ok(live) => return Ok(live),
        Err(NotConnected::Failed(why)) => return Err(why),
        Err(NotConnected::WrongEra(why)) => why,
    };
    *era = match *era {
        Era::Session => Era::Stateless,
        Era::Stateless => Era::Session,
    };
    if shared.stop.is_cancelled() {
        return Err(first);
    }
    match connect(shared, *era).await {
        Ok(live) => Ok(live),
        Err(second) => {
            let why = second.into_reason().in_full();
            tracing::debug!(app.id = %shared.id, why, "the other handshake failed too");
            *era = Era::Session;
            Err(first)
        }
    }
}

/// Serves one connection until it ends, and says why it did. Everything of it is gone afterwards.
async fn serve(shared: &Arc<Upstream>, mut live: Live) -> DownReason {
    let connection = live.connection.clone();
    let catalog = tokio::select! {
        catalog = read_lists(shared, &connection) => Some(catalog),
        () = shared.stop.cancelled() => None,
    };
    let why = match catalog {
        Some(Ok(catalog)) => {
            shared.set_current(Some(connection.clone()));
            shared.link.up(catalog);
            let stale = live.stale.clone();
            // A server that does not answer is pinged meanwhile, and its lists are followed.
            let restoring = async {
                restore(shared, &connection).await;
                std::future::pending().await
            };
            tokio::select! {
                why = live.over() => why,
                why = watch_over(shared, &connection) => why,
                why = follow(shared, &connection, &stale) => why,
                why = listen(shared, &connection, &stale) => why,
                why = renew(shared, &connection, &stale) => why,
                why = restoring => why,
                never = shared.followed.pass_on(|uri| shared.link.resource_updated(uri)) => match never {},
                () = shared.refused.notified() => NO_ROOM.into(),
                () = shared.stop.cancelled() => "the gateway is ending".into(),
            }
        }
        Some(Err(NotRead::Closed)) => live.over().await,
        Some(Err(NotRead::Failed(why) | NotRead::TooLarge(why))) => why,
        None => "the gateway is ending".into(),
    };
    shared.set_current(None);
    // Calls hear of it before anyone waits for the process to end.
    down(shared, why.clone());
    live.end(why.clone()).await;
    why
}

/// Why the lists of a server were not read.
enum NotRead {
    /// The connection ended, for a reason that is known elsewhere.
    Closed,
    /// A request failed, or took too long.
    Failed(DownReason),
    /// The lists are over the limit.
    TooLarge(DownReason),
}

/// Reads all lists, within `connectTimeout` and `maxCatalogBytes`.
async fn read_lists(shared: &Upstream, connection: &Connection) -> Result<Catalog, NotRead> {
    let limit = CatalogLimit::of_bytes(shared.config.max_catalog_bytes);
    // Never closed.
    let _turn = shared.reading.acquire().await.ok();
    let _room = shared.is_of_caller.then(|| connection.calls.read_lists());
    let reading = Catalog::read_within(&connection.peer, connection.capabilities.clone(), limit);
    let longest = shared.config.connect_timeout;
    match tokio::time::timeout(longest, reading).await {
        Ok(Ok(catalog)) => {
            let mut lists = shared.lists.lock().unwrap_or_else(PoisonError::into_inner);
            match shared.is_of_caller || lists.count(&shared.id, &catalog).is_ok() {
                true => Ok(catalog),
                false => Err(NotRead::Failed(NO_MEMORY.into())),
            }
        }
        Ok(Err(CatalogError::Service(ServiceError::TransportClosed))) => Err(NotRead::Closed),
        Ok(Err(CatalogError::Service(error))) => {
            let why = failure::of_request(&error, &shared.redactor).ok_or(NotRead::Closed)?;
            Err(NotRead::Failed(why.map_summary(|why| format!("its lists cannot be read: {why}"))))
        }
        Ok(Err(CatalogError::TooLarge(why))) => {
            let why = format!("{why}; let it offer less, or raise `maxCatalogBytes` of the app");
            Err(NotRead::TooLarge(why.into()))
        }
        Err(_) => {
            let longest = longest.as_millis();
            let why = format!("its lists were not read within {longest} ms (`connectTimeout`)");
            Err(NotRead::Failed(why.into()))
        }
    }
}

/// Restores log level and subscriptions of an earlier connection.
async fn restore(shared: &Upstream, connection: &Connection) {
    if connection.era.is_stateless() {
        return;
    }
    let within = shared.config.timeout;
    if connection.capabilities.logging.is_some()
        && let Some(level) = shared.level()
    {
        let _ =
            tokio::time::timeout(within, connection.peer.set_level(SetLevelRequestParams::new(level))).await;
    }
    let following = shared.followed.uris().into_iter().map(|uri| async move {
        // It may have been let go meanwhile.
        if !shared.followed.contains(&uri) {
            return None;
        }
        let following = connection.peer.subscribe(SubscribeRequestParams::new(uri));
        match tokio::time::timeout(within, following).await {
            Ok(Ok(_)) => None,
            Ok(Err(error)) => failure::of_request(&error, &shared.redactor),
            Err(_) => Some("it did not answer in time".into()),
        }
    });
    let failed = stream::iter(following).buffer_unordered(RESTORED_AT_ONCE);
    let failed: Vec<DownReason> = failed.filter_map(std::future::ready).collect().await;
    if let Some(why) = failed.first() {
        let (why, resources) = (why.in_full(), failed.len());
        tracing::warn!(app.id = %shared.id, why, resources, "resources cannot be followed again");
    }
}

/// Restores log level and subscriptions in each session that takes the place of one, and has the lists read again: the server may have been
/// restarted.
async fn renew(shared: &Upstream, connection: &Connection, stale: &Notify) -> DownReason {
    loop {
        connection.sessions.renewed().await;
        tracing::info!(app.id = %shared.id, "the server has begun another session");
        stale.notify_one();
        restore(shared, connection).await;
    }
}

/// Reads the lists again each time the server says they changed, until they are over the limit.
async fn follow(shared: &Upstream, connection: &Connection, stale: &Notify) -> DownReason {
    let mut rereads = Rereads::default();
    loop {
        rereads.next(stale).await;
        if let Some(why) = read_again(shared, connection).await {
            return why;
        }
    }
}

/// Reads changed lists. Those that cannot be read stay as they were. Returns a text if they are over the limit.
async fn read_again(shared: &Upstream, connection: &Connection) -> Option<DownReason> {
    match read_lists(shared, connection).await {
        Ok(catalog) => shared.link.up(catalog),
        // The end of the connection is noticed elsewhere.
        Err(NotRead::Closed) => {}
        Err(NotRead::Failed(why)) => {
            let why = why.in_full();
            tracing::warn!(app.id = %shared.id, why, "changed lists of an app cannot be read; the last ones stay");
        }
        Err(NotRead::TooLarge(why)) => return Some(why),
    }
    None
}

/// Follows `subscriptions/listen` of a server of the newer era, which announces changes only there.
async fn listen(shared: &Upstream, connection: &Connection, stale: &Notify) -> DownReason {
    let mut backoff = Backoff::new(shared.config.restart);
    if !connection.era.is_stateless() {
        return std::future::pending().await;
    }
    loop {
        let mut filter = SubscriptionFilter::builder()
            .tools_list_changed()
            .prompts_list_changed()
            .resources_list_changed()
            .build();
        let uris = shared.followed.uris();
        filter.resource_subscriptions = (!uris.is_empty()).then_some(uris);
        // All resources are named again for each that is followed or let go: those that come soon after one another go together.
        let earliest = Instant::now() + LISTEN_EVERY;
        let changed = async {
            shared.followed.changed.notified().await;
            tokio::time::sleep_until(earliest).await;
        };
        tokio::pin!(changed);
        match connection.peer.listen(filter).await {
            Ok(mut subscription) => loop {
                let next = tokio::select! {
                    next = subscription.next() => next,
                    () = &mut changed => break,
                };
                match next {
                    Ok(Some(ServerNotification::ResourceUpdatedNotification(updated))) => {
                        shared.followed.announce(&updated.params.uri);
                    }
                    Ok(Some(_)) => stale.notify_one(),
                    Ok(None) | Err(_) => {
                        tokio::time::sleep(backoff.wait(random())).await;
                        break;
                    }
                }
            },
            // It has no such stream: there is nothing to hear, ever.
            Err(ServiceError::McpError(_)) => break,
            Err(_) => tokio::time::sleep(backoff.wait(random())).await,
        }
    }
    std::future::pending().await
}

/// Asks a server behind a URL now and then whether it is still there, and at once when a request did not reach it.
/// The end of a process is seen without asking.
async fn watch_over(shared: &Upstream, connection: &Connection) -> DownReason {
    if shared.config.transport() == TransportType::Stdio {
        return std::future::pending().await;
    }
    let mut refused = 0;
    loop {
        let is_regular = tokio::select! {
            () = tokio::time::sleep(PING_EVERY) => true,
            () = shared.suspect.notified() => false,
        };
        match tokio::time::timeout(PING_WITHIN, ping_again(shared, connection)).await {
            Ok(Ok(())) => refused = 0,
            // A limit, or a fault that may soon be over: a caller must not end the calls of others with it.
            Ok(Err((RequestFault::Refused, why))) => {
                refused += u32::from(is_regular);
                if refused == MOST_REFUSED {
                    return why;
                }
            }
            Ok(Err((_, why))) => return why,
            Err(_) => return format!("it did not answer a ping within {} s", PING_WITHIN.as_secs()).into(),
        }
    }
}

/// Pings a server, and again if the connection breaks: the server may have closed it, and others that are kept, a moment ago.
async fn ping_again(shared: &Upstream, connection: &Connection) -> Result<(), (RequestFault, DownReason)> {
    let mut pauses = PINGED_AGAIN_AFTER.into_iter();
    loop {
        match ping(shared, connection).await {
            Err((RequestFault::Broken, why)) => match pauses.next() {
                Some(pause) => tokio::time::sleep(pause).await,
                None => return Err((RequestFault::Broken, why)),
            },
            answered => return answered,
        }
    }
}

/// Asks a server whether it is still there. An error of MCP is an answer, too.
async fn ping(shared: &Upstream, connection: &Connection) -> Result<(), (RequestFault, DownReason)> {
    let ping = if connection.era.is_stateless() {
        ClientRequest::DiscoverRequest(DiscoverRequest::new(DiscoverRequestParams {}))
    } else {
        ClientRequest::PingRequest(PingRequest { method: Default::default(), extensions: Default::default() })
    };
    let asking = async {
        let handle = connection.peer.send_cancellable_request(ping, PeerRequestOptions::no_options()).await?;
        handle.await_response().await
    };
    match asking.await {
        Ok(_) | Err(ServiceError::McpError(_) | ServiceError::UnexpectedResponse) => Ok(()),
        Err(error) => {
            let why = failure::of_request(&error, &shared.redactor);
            Err((failure::fault(&error), why.unwrap_or_else(|| "the connection was closed".into())))
        }
    }
}
