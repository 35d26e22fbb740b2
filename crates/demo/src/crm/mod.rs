//! The CRM: accounts and the users who belong to them.

mod accounts;
mod shelf;
mod users;

pub(crate) use shelf::shelf;

use crate::tool::Spec;

pub(crate) fn tools() -> Vec<Spec> {
    let mut all = users::tools();
    all.extend(accounts::tools());
    all
}
