//! The passkey button of the login page.

use super::ceremony::{Ceremony, seal};
use crate::{pages::PasskeyPrompt, server::services::Services};

/// Returns the passkey button of the login page; `None` where passkeys are off.
pub(in crate::server) fn login_prompt(services: &Services, id: &str, browser: &str) -> Option<PasskeyPrompt> {
    let started = services.relying_party.as_ref()?.start_login()?;
    let ceremony = seal(&services.ctx, &started, &Ceremony { step: "login", browser, subject: id });
    let action = services.ctx.url("/oauth/login/passkey");
    Some(PasskeyPrompt { action, options: started.options, ceremony })
}
