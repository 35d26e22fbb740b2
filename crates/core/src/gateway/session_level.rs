//! `logging/setLevel`, and the level of a session on its requests.

use std::sync::{Arc, atomic::Ordering};

use rmcp::{RoleServer, model::LoggingLevel, service::RequestContext};

use super::{
    Gateway, GatewayCore,
    log_levels::{SessionLogLevel, rank},
};
use crate::{Caller, Permitted, WholeApp};

impl Gateway {
    /// Sets the level of this session. It holds until the session ends.
    pub(super) async fn set_session_level(&self, level: LoggingLevel, caller: &Caller) {
        let session = &self.session.this;
        self.session.log_level.store(rank(level), Ordering::Relaxed);
        if self.shared.log_levels.set(session.id(), caller, level) {
            let (shared, id) = (Arc::downgrade(&self.shared), session.id());
            let ended = session.ended().clone();
            tokio::spawn(async move {
                ended.cancelled().await;
                let Some(shared) = shared.upgrade() else { return };
                if let Some(caller) = shared.log_levels.forget(id) {
                    shared.ask_for_levels(&caller).await;
                }
            });
        }
        self.shared.ask_for_levels(caller).await;
    }

    /// Puts the level of this session on a request, for those who send log messages during it.
    pub(super) fn note_level(&self, context: &mut RequestContext<RoleServer>) {
        let level = self.session.log_level.load(Ordering::Relaxed);
        if level > 0 {
            context.extensions.insert(SessionLogLevel::ranked(level));
        }
    }
}

impl GatewayCore {
    /// Asks the apps of `caller` for what their sessions want. One that refuses it still serves: there is nothing to say to the client.
    async fn ask_for_levels(&self, caller: &Caller) {
        let apps = self.registry.view(caller).apps();
        let ask = async |app: &Permitted<WholeApp>| {
            if let Some(level) = self.log_levels.asked_of(app) {
                let _ = app.set_level(level).await;
            }
        };
        futures::future::join_all(apps.iter().map(ask)).await;
    }
}
