//! `local.passkeys`: passkeys (WebAuthn) for the built-in login.

use schemars::JsonSchema;
use serde::Deserialize;
use url::{Host, Url};

use super::{AuthConfig, Deployment, LoginMethod, LoginSource, SessionMode};

/// `local.passkeys`: users may sign in with a passkey in place of the password.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct PasskeyConfig {
    /// Lets users add passkeys at `/oauth/account` and sign in with them. Default false. Needs a `publicUrl` with a host name
    /// (`https://mcp.example.com`, or `http://localhost:3000` for development): browsers know no passkeys for an IP address. A passkey
    /// belongs to that host name for good: when it changes, users have to add new ones.
    pub enabled: bool,
    /// Passkeys a user may have, 1 to 100. Default 10.
    pub most_per_user: usize,
}

impl Default for PasskeyConfig {
    fn default() -> Self {
        Self { enabled: false, most_per_user: 10 }
    }
}

impl PasskeyConfig {
    /// Greatest value of `most_per_user`: the passkeys of a user are one record.
    pub const MOST: usize = 100;
}

/// Returns the host that passkeys belong to (the RP ID of WebAuthn §5.4.2), when browsers accept that of `public_url`.
pub(crate) fn host_of(public_url: &str) -> Option<String> {
    match Url::parse(public_url).ok()?.host()? {
        Host::Domain(name) => Some(name.trim_end_matches('.').to_owned()).filter(|name| !name.is_empty()),
        Host::Ipv4(_) | Host::Ipv6(_) => None,
    }
}

impl AuthConfig {
    pub(super) fn check_passkeys(&self, deployment: &Deployment, say: &mut impl FnMut(&str, String)) {
        let passkeys = &self.local.passkeys;
        if !passkeys.enabled {
            return;
        }
        const AT: &str = "local.passkeys.enabled";
        if host_of(&deployment.public_url).is_none() {
            let text = format!(
                "browsers know no passkeys for an IP address: set `publicUrl` to a host name (it is {}; for development \
                 http://localhost with the port), or turn passkeys off",
                deployment.public_url
            );
            say(AT, text);
        }
        if self.kind != LoginSource::Local {
            say(AT, "is for the built-in login (`type: local`): users of a provider sign in there".into());
        }
        if self.local.login == LoginMethod::Demo {
            say(AT, "needs users with an account: `local.login` must be `password`".into());
        }
        if self.session_mode != SessionMode::Stateful {
            say(
                AT,
                "needs `sessionMode: stateful`: the page where passkeys are added is for who signed in"
                    .into(),
            );
        }
        if !(1..=PasskeyConfig::MOST).contains(&passkeys.most_per_user) {
            say("local.passkeys.mostPerUser", format!("must be 1 to {}", PasskeyConfig::MOST));
        }
    }
}
