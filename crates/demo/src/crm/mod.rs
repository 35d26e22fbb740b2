//! The CRM: accounts and the users who belong to them.

mod accounts;
mod shelf;
mod users;

pub(crate) use shelf::shelf;
