//! Checks of the names of users.

use gatewright_findings::unknown;

use super::{Findings, USERS};
use crate::{
    server::Transport,
    suite::format::{User, UserSection},
    token::Defect,
};

impl Findings<'_> {
    pub(super) fn user(&mut self, place: &str, user: &User) {
        if let User::Named(name) = user
            && !name.contains("${")
            && !USERS.contains(&name.as_str())
            && !self.file.users.contains_key(name)
        {
            let known = USERS.into_iter().chain(self.file.users.keys().map(String::as_str));
            self.add(place, format!("`{name}`: {}", unknown("user", name, known)));
        }
        if let User::Described(user) = user {
            self.described(place, user);
        }
    }

    /// Checks the headers of a user, and that it has them or a subject.
    pub(super) fn described(&mut self, place: &str, user: &UserSection) {
        if user.sub.is_none() && user.headers.is_empty() {
            self.add(place, "it needs `sub`, for a token, or `headers`");
        }
        if let Some(name) = user.broken.as_ref().filter(|name| !name.contains("${"))
            && let Err(problem) = name.parse::<Defect>()
        {
            self.add(&format!("{place}/broken"), problem);
        }
        if user.broken.is_some() && user.sub.is_none() {
            self.add(&format!("{place}/broken"), "only a token can be broken, and that needs `sub`");
        }
        self.header_names(place, "headers", &user.headers);
        if !user.headers.is_empty() && self.file.server.transport == Transport::Stdio {
            self.add(&format!("{place}/headers"), "a server over stdio gets no headers");
        }
    }
}
