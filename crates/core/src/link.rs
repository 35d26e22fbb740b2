//! Keeps an app's catalog current from a client connection to its server.

use std::sync::Arc;

use arc_swap::ArcSwap;
use rmcp::{
    ClientHandler, RoleClient, ServiceError,
    model::{ClientConfig, ResourceUpdatedNotificationParam, ServerCapabilities},
    service::{NotificationContext, Peer},
};
use tokio::sync::{Notify, broadcast};

use crate::{AppEvent, AppHealth, Audience, Catalog, DownReason, Rereads};

/// The shared state between a connection and the [`App`](crate::App) in front of it.
#[derive(Debug)]
pub struct CatalogLink {
    catalog: ArcSwap<Catalog>,
    health: ArcSwap<AppHealth>,
    events: broadcast::Sender<AppEvent>,
    stale: Notify,
}

impl Default for CatalogLink {
    fn default() -> Self {
        Self {
            catalog: ArcSwap::default(),
            health: ArcSwap::from_pointee(AppHealth::Starting),
            events: broadcast::channel(64).0,
            stale: Notify::new(),
        }
    }
}

impl CatalogLink {
    /// The current catalog.
    pub fn catalog(&self) -> Arc<Catalog> {
        self.catalog.load_full()
    }

    /// The current health.
    pub fn health(&self) -> AppHealth {
        (**self.health.load()).clone()
    }

    /// Changes from now on.
    pub fn events(&self) -> broadcast::Receiver<AppEvent> {
        self.events.subscribe()
    }

    /// Replaces the catalog and says the app is up.
    pub fn up(&self, catalog: Catalog) {
        let same = *self.health.load_full() == AppHealth::Up && **self.catalog.load() == catalog;
        if same {
            return;
        }
        self.catalog.store(Arc::new(catalog));
        self.health.store(Arc::new(AppHealth::Up));
        self.tell(AppEvent::Changed(Audience::Everyone));
    }

    /// Says the app cannot be used.
    pub fn down(&self, why: impl Into<DownReason>) {
        let why = AppHealth::Down(why.into());
        if **self.health.load() != why {
            self.health.store(Arc::new(why));
            self.tell(AppEvent::Changed(Audience::Everyone));
        }
    }

    /// Says the app cannot be used because of its catalog, which is dropped.
    pub fn refuse(&self, why: impl Into<DownReason>) {
        self.catalog.store(Arc::default());
        self.down(why);
    }

    /// Says a followed resource changed.
    pub fn resource_updated(&self, uri: &str) {
        self.tell(AppEvent::ResourceUpdated(uri.into(), Audience::Everyone));
    }

    /// Says the server's lists changed.
    pub(crate) fn mark_stale(&self) {
        self.stale.notify_one();
    }

    /// Reads the catalog, and again each time the server says it changed. Ends only with an error of the connection.
    pub async fn follow(&self, peer: &Peer<RoleClient>, capabilities: ServerCapabilities) -> ServiceError {
        let mut rereads = Rereads::default();
        loop {
            match Catalog::read(peer, capabilities.clone()).await {
                Ok(catalog) => self.up(catalog),
                Err(error) => return error,
            }
            rereads.next(&self.stale).await;
        }
    }

    /// Tells those who hear of changes.
    pub fn tell(&self, event: AppEvent) {
        // No receiver yet is fine: the catalog and the health are read first.
        let _ = self.events.send(event);
    }
}

/// The client side of a connection that only feeds a [`CatalogLink`].
#[derive(Debug, Clone)]
pub(crate) struct LinkHandler {
    /// The link that the connection feeds.
    pub(crate) link: Arc<CatalogLink>,
    /// The client info of the gateway.
    pub(crate) info: ClientConfig,
}

impl ClientHandler for LinkHandler {
    fn get_info(&self) -> ClientConfig {
        self.info.clone()
    }

    async fn on_tool_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.link.mark_stale();
    }

    async fn on_resource_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.link.mark_stale();
    }

    async fn on_prompt_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.link.mark_stale();
    }

    async fn on_resource_updated(
        &self,
        params: ResourceUpdatedNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        self.link.resource_updated(&params.uri);
    }
}
