//! The endpoints as a router.

use axum::{Router, routing::get};

use super::{browser, client, vault::UpstreamVault};
use crate::server::router::below_issuer;

impl UpstreamVault {
    /// The endpoints: the page that users open, `/oauth/connect`, and for each issuer `/oauth/connect/{issuer}/callback` and `/oauth/connect/{issuer}/client.json`.
    pub fn router(&self) -> Router {
        let routes = Router::new()
            .route("/oauth/connect", get(browser::start))
            .route("/oauth/connect/{issuer}/callback", get(browser::callback))
            .route("/oauth/connect/{issuer}/client.json", get(client::document));
        below_issuer(&self.0.services.ctx.deployment.public_url, routes).with_state(self.clone())
    }
}
