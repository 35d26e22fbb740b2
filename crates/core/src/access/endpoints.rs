//! The endpoints of a gateway, as the configuration now has them.

use std::{collections::BTreeMap, sync::Arc};

use arc_swap::ArcSwap;
use futures::future::BoxFuture;
use http::request::Parts;
use tokio::sync::watch;

use super::{Endpoint, EndpointConfig, endpoint::Reach};
use crate::Principal;

type Table = BTreeMap<Arc<str>, Arc<Endpoint>>;

/// The name of the endpoint at which a request came, on its extensions; none is the main one. Transports that have several put it there before the caller
/// is authenticated.
#[derive(Debug, Clone)]
pub struct EndpointName(pub Arc<str>);

impl EndpointName {
    /// The name on a request.
    pub fn of(parts: &Parts) -> Option<Arc<str>> {
        parts.extensions.get::<Self>().map(|name| name.0.clone())
    }
}

/// The endpoints beside the main one, by name. They can be replaced at any time.
#[derive(Debug)]
pub struct Endpoints {
    table: ArcSwap<Table>,
    replaced: watch::Sender<()>,
}

impl Default for Endpoints {
    fn default() -> Self {
        Self { table: ArcSwap::default(), replaced: watch::channel(()).0 }
    }
}

impl Endpoints {
    /// These endpoints.
    pub fn new(configs: &BTreeMap<String, EndpointConfig>) -> Self {
        let endpoints = Self::default();
        endpoints.replace(configs);
        endpoints
    }

    /// Serves these from now on. Callers of one that is not among them reach nothing, and their streams end.
    pub(crate) fn replace(&self, configs: &BTreeMap<String, EndpointConfig>) {
        let new = |(name, config): (&String, &EndpointConfig)| {
            let endpoint = Endpoint::new(name, config.clone());
            (endpoint.name.clone(), Arc::new(endpoint))
        };
        self.table.store(Arc::new(configs.iter().map(new).collect()));
        self.replaced.send_replace(());
    }

    /// The endpoint `name`.
    pub fn get(&self, name: &str) -> Option<Arc<Endpoint>> {
        self.table.load().get(name).cloned()
    }

    /// The endpoint that `principal` calls through; none for the main one.
    pub fn of(&self, principal: &Principal) -> Option<Arc<Endpoint>> {
        self.get(principal.endpoint.as_deref()?)
    }

    /// All of them, in the order of their names.
    pub fn all(&self) -> Vec<Arc<Endpoint>> {
        self.table.load().values().cloned().collect()
    }

    /// The scopes of its endpoint that `principal` lacks.
    pub fn missing_scopes(&self, principal: &Principal) -> Vec<String> {
        let Some(endpoint) = self.of(principal) else { return Vec::new() };
        principal.missing(&endpoint.config.scopes).into_iter().map(str::to_owned).collect()
    }

    /// Resolves once there is no endpoint `name`; never for the main one.
    pub fn until_removed(self: &Arc<Self>, name: Option<Arc<str>>) -> BoxFuture<'static, ()> {
        let Some(name) = name else { return Box::pin(std::future::pending()) };
        let (this, mut replaced) = (self.clone(), self.replaced.subscribe());
        Box::pin(async move {
            while this.get(&name).is_some() {
                // `this` keeps the sender.
                let _ = replaced.changed().await;
            }
        })
    }

    pub(crate) fn reach(&self, principal: &Principal) -> Reach {
        match &principal.endpoint {
            None => Reach::Everything,
            Some(name) => self.get(name).map_or(Reach::Nothing, Reach::Endpoint),
        }
    }
}
