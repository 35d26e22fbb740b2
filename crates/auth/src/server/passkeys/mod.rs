//! Passkey endpoints: login, changes on the account page, and the first passkey of a user without a password.

mod ceremony;
pub(super) mod changes;
pub(super) mod enrol;
pub(super) mod login;
pub(super) mod prompt;
pub(super) mod registration;
