//! Passkey endpoints: login, the account page where passkeys are added and removed, and the first passkey of a user without a password.

pub(super) mod account;
mod ceremony;
pub(super) mod enrol;
pub(super) mod login;
pub(super) mod prompt;
mod registration;
