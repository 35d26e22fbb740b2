//! Support: tickets and the agents who answer them.

mod shelf;
mod tickets;
mod work;

pub(crate) use shelf::shelf;
