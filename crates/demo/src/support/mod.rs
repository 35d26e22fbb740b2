//! Support: tickets and the agents who answer them.

mod shelf;
mod tickets;
mod work;

pub(crate) use shelf::shelf;

use crate::tool::Spec;

pub(crate) fn tools() -> Vec<Spec> {
    let mut all = tickets::tools();
    all.extend(work::tools());
    all
}
