//! State of one upstream: shared by the app, its calls and its supervisor.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError, RwLock},
};

use gatewright_core::{AppHealth, CatalogLink, codes};
use rmcp::{ErrorData, model::LoggingLevel};
use tokio::sync::{Notify, Semaphore};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    UpstreamConfig,
    connection::Connection,
    failure,
    followed::{FollowedResources, FollowedRoom},
    kept_lists::KeptLists,
    places::{CallerPlaces, Places, caller_places},
    redactor::Redactor,
    user::User,
};

/// Lists of the connections of one app that are read at a time: each takes many times its text until it is counted.
const MOST_READ: usize = 4;

/// Places, room and turns that all connections of one app share.
#[derive(Debug, Clone)]
pub(crate) struct SharedByConnections {
    own_places: Arc<CallerPlaces>,
    followed: FollowedRoom,
    /// Turns to read lists.
    pub(crate) reading: Arc<Semaphore>,
    /// The connections belong to callers, who begin them.
    of_callers: bool,
}

impl SharedByConnections {
    /// For an app with this configuration, with one connection or with those `of_callers`.
    pub(crate) fn new(config: &UpstreamConfig, of_callers: bool) -> Self {
        Self {
            of_callers,
            own_places: caller_places(config.max_concurrency),
            followed: FollowedRoom::default(),
            reading: Arc::new(Semaphore::new(MOST_READ)),
        }
    }
}

/// One upstream.
#[derive(Debug)]
pub(crate) struct Upstream {
    pub(crate) id: Arc<str>,
    pub(crate) config: UpstreamConfig,
    pub(crate) environment: HashMap<String, String>,
    pub(crate) redactor: Redactor,
    /// For whom the server is called, when it is one user.
    pub(crate) user: Option<User>,
    pub(crate) link: Arc<CatalogLink>,
    /// Places for calls.
    pub(crate) places: Places,
    /// Turns to read lists.
    pub(crate) reading: Arc<Semaphore>,
    /// It is one of the connections that callers begin.
    pub(crate) is_of_caller: bool,
    /// Resources followed for clients.
    pub(crate) followed: Arc<FollowedResources>,
    pub(crate) level: Mutex<Option<LoggingLevel>>,
    /// A request did not reach the server: look whether it is still there.
    pub(crate) suspect: Notify,
    /// There is no room for its catalog.
    pub(crate) refused: Notify,
    /// Memory of its lists, if all callers share them.
    pub(crate) lists: Mutex<KeptLists>,
    pub(crate) stop: CancellationToken,
    pub(crate) tasks: TaskTracker,
    current: RwLock<Option<Arc<Connection>>>,
}

impl Upstream {
    pub(crate) fn new(
        id: &str,
        config: UpstreamConfig,
        environment: HashMap<String, String>,
        user: Option<User>,
        SharedByConnections { own_places, followed, reading, of_callers }: SharedByConnections,
    ) -> Self {
        Self {
            reading,
            is_of_caller: of_callers,
            lists: Mutex::new(KeptLists::shared()),
            user,
            id: id.into(),
            redactor: config.redactor(),
            places: Places::new(config.max_concurrency, own_places),
            config,
            environment,
            link: Arc::default(),
            followed: Arc::new(FollowedResources::new(followed)),
            level: Mutex::default(),
            suspect: Notify::new(),
            refused: Notify::new(),
            stop: CancellationToken::new(),
            tasks: TaskTracker::new(),
            current: RwLock::default(),
        }
    }

    pub(crate) fn set_current(&self, connection: Option<Arc<Connection>>) {
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = connection;
    }

    /// The connection, or why there is none.
    pub(crate) fn connection(&self) -> Result<Arc<Connection>, ErrorData> {
        let current = self.current.read().unwrap_or_else(PoisonError::into_inner).clone();
        current.ok_or_else(|| {
            let id = &self.id;
            match self.link.health() {
                AppHealth::Starting => failure::failed(
                    format!("app `{id}` is still starting; try again in a moment"),
                    codes::UPSTREAM_STARTING,
                ),
                AppHealth::Down(why) => {
                    failed(format!("app `{id}` is down: {why}; it is being restarted, try again"))
                }
                AppHealth::Up => failed(format!("app `{id}` is being reconnected; try again in a moment")),
            }
        })
    }

    pub(crate) fn level(&self) -> Option<LoggingLevel> {
        *self.level.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn failed(message: String) -> ErrorData {
    failure::failed(message, codes::UPSTREAM_DOWN)
}
