//! Log levels: each session has one of its own.
//!
//! An app whose connection several sessions share sends one stream of log messages. It is asked for more than `info` while a
//! session wants more, and for `info` again afterwards; each session receives what is of its own level ([`SessionLogLevel`]). An
//! app with a connection for each session is asked for exactly the level of that session.

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use rmcp::model::LoggingLevel;

use crate::{Audience, Caller, Permitted, WholeApp};

/// The least severe log level a session of the older era asked for, as an extension of its requests' contexts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionLogLevel(u8);

impl SessionLogLevel {
    /// Wants messages of `level` and of every more severe one.
    pub fn from_level(level: LoggingLevel) -> Self {
        Self(rank(level))
    }

    pub(super) fn ranked(rank: u8) -> Self {
        Self(rank)
    }

    /// Returns `true` if a message of `level` is wanted.
    pub fn wants(self, level: LoggingLevel) -> bool {
        rank(level) >= self.0
    }
}

/// Severity of a level, least severe first.
pub(super) fn rank(level: LoggingLevel) -> u8 {
    match level {
        LoggingLevel::Debug => 0,
        LoggingLevel::Info => 1,
        LoggingLevel::Notice => 2,
        LoggingLevel::Warning => 3,
        LoggingLevel::Error => 4,
        LoggingLevel::Critical => 5,
        LoggingLevel::Alert => 6,
        LoggingLevel::Emergency => 7,
    }
}

/// The levels that open sessions asked for.
#[derive(Debug, Default)]
pub(super) struct LogLevels(Mutex<Levels>);

#[derive(Debug, Default)]
struct Levels {
    /// By the id of the session.
    sessions: HashMap<u64, (Caller, LoggingLevel)>,
    /// Connections that were asked for a level that has to be taken back.
    raised: HashSet<(Arc<str>, Audience)>,
}

impl LogLevels {
    fn lock(&self) -> MutexGuard<'_, Levels> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes the level of a session; `true` when it had none before.
    pub(super) fn set(&self, session: u64, caller: &Caller, level: LoggingLevel) -> bool {
        self.lock().sessions.insert(session, (caller.clone(), level)).is_none()
    }

    pub(super) fn forget(&self, session: u64) -> Option<Caller> {
        self.lock().sessions.remove(&session).map(|(caller, _)| caller)
    }

    /// The level to ask an app for; none when it need not hear of a change.
    pub(super) fn asked_of(&self, app: &Permitted<WholeApp>) -> Option<LoggingLevel> {
        let audience = app.audience();
        let mut levels = self.lock();
        let members = levels.sessions.values().filter(|(caller, _)| audience.includes(caller));
        let most_verbose = members.map(|(_, level)| *level).min_by_key(|level| rank(*level));
        let is_shared = !matches!(audience, Audience::Session(_));
        let key = (app.app_id().clone(), audience);
        match most_verbose {
            Some(level) if !is_shared || rank(level) < rank(LoggingLevel::Info) => {
                levels.raised.insert(key);
                Some(level)
            }
            _ => levels.raised.remove(&key).then_some(LoggingLevel::Info),
        }
    }
}
