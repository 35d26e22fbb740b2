//! Billing: products, orders, invoices and what they earn.

mod invoices;
mod orders;
mod products;
mod shelf;

pub(crate) use shelf::shelf;

use crate::tool::Spec;

pub(crate) fn tools() -> Vec<Spec> {
    let mut all = products::tools();
    all.extend(orders::tools());
    all.extend(invoices::tools());
    all
}
