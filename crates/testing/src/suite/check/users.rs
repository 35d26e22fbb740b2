//! Checks of the names of users.

use gatewright_findings::unknown;

use super::{Findings, USERS};
use crate::suite::format::User;

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
    }
}
