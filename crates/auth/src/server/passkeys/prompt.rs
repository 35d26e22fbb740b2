//! The passkey button of the login page, and the link to the account page.

use super::ceremony::{Ceremony, seal};
use crate::{pages::PasskeyPrompt, server::services::Services};

/// Path of the account page.
pub(super) const ACCOUNT_PATH: &str = "/oauth/account";

/// Returns the passkey button of the login page; `None` where passkeys are off.
pub(in crate::server) fn login_prompt(services: &Services, id: &str, browser: &str) -> Option<PasskeyPrompt> {
    let started = services.relying_party.as_ref()?.start_login()?;
    let ceremony = seal(&services.ctx, &started, &Ceremony { step: "login", browser, subject: id });
    let action = services.ctx.url("/oauth/login/passkey");
    Some(PasskeyPrompt { action, options: started.options, ceremony })
}

/// Returns the address of the account page; `None` where passkeys are off.
pub(in crate::server) fn account_url(services: &Services) -> Option<String> {
    services.relying_party.as_ref().map(|_| services.ctx.url(ACCOUNT_PATH))
}
