//! Billing: products, orders, invoices and what they earn.

mod invoices;
mod orders;
mod products;
mod shelf;

pub(crate) use shelf::shelf;
