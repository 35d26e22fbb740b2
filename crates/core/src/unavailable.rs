//! Apps whose tools a caller cannot see at the moment, and why.

use std::{fmt, sync::Arc};

use crate::{AppHealth, codes, names::clipped};

/// Why the tools of an app are not there.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unavailable {
    /// The first connection is still being made.
    Starting,
    /// The app does not serve, for this reason. It is being restarted or connected again.
    Down(String),
    /// The app has no connection for the caller, for this reason, which says what to do.
    Busy(String),
    /// The caller has to sign in first, with this tool.
    SignIn(String),
}

/// An app whose tools a caller cannot see at the moment. Display says what to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnavailableApp {
    /// The app's id.
    pub id: Arc<str>,
    /// Why.
    pub why: Unavailable,
}

impl UnavailableApp {
    /// The app, unless it is up.
    pub fn of(id: &Arc<str>, health: AppHealth) -> Option<Self> {
        let why = match health {
            AppHealth::Up => return None,
            AppHealth::Starting => Unavailable::Starting,
            AppHealth::Down(why) => Unavailable::Down(why.to_string()),
        };
        Some(Self { id: id.clone(), why })
    }

    /// `UPSTREAM_STARTING`, `UPSTREAM_DOWN` or `AUTHORIZATION_REQUIRED`.
    pub fn code(&self) -> &'static str {
        match self.why {
            Unavailable::Starting => codes::UPSTREAM_STARTING,
            Unavailable::Down(_) | Unavailable::Busy(_) => codes::UPSTREAM_DOWN,
            Unavailable::SignIn(_) => codes::AUTHORIZATION_REQUIRED,
        }
    }
}

impl fmt::Display for UnavailableApp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let id = &self.id;
        match &self.why {
            Unavailable::Starting => write!(f, "app `{id}` is still starting; try again in a moment"),
            Unavailable::Down(why) => {
                write!(f, "app `{id}` is down: {}; it is being restarted, try again later", clipped(why))
            }
            Unavailable::Busy(why) => write!(f, "app `{id}` is busy: it {}", clipped(why)),
            Unavailable::SignIn(tool) => write!(f, "app `{id}` waits for your sign-in; call `{tool}`"),
        }
    }
}
