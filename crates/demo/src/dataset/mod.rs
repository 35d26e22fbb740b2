//! The data behind the demo apps: what there is, and how rows are found.
//!
//! The seeded rows are in `seed`; calendar arithmetic is in `date`.

mod date;
mod records;
mod seed;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

pub(crate) use date::{is_date, plus_days};
pub(crate) use records::{
    Account, AccountStatus, Category, Comment, Invoice, InvoiceStatus, Item, Order, OrderStatus, Plan,
    Priority, Product, Role, Ticket, TicketStatus, User, word,
};

use crate::answer::Failure;

/// The day it always is in the demo, so that every answer is the same on every run.
pub const TODAY: &str = "2026-03-31";

/// Calls allowed within [`RATE_WINDOW`] of each other to a tool with a rate limit.
pub(crate) const RATE_LIMIT: usize = 3;
/// Time that a call counts against the rate limit.
pub(crate) const RATE_WINDOW: Duration = Duration::from_secs(60);

/// One set of accounts, users, products, orders, invoices and tickets, shared by the apps built on
/// it. Changes live in memory and end with the value.
pub struct Dataset {
    state: Mutex<State>,
    clock: Box<dyn Fn() -> Duration + Send + Sync>,
}

impl Dataset {
    /// The seeded data: always the same rows, with the same ids.
    #[must_use]
    pub fn seeded() -> Arc<Self> {
        let start = Instant::now();
        Self::seeded_with_clock(move || start.elapsed())
    }

    /// The seeded data with a clock of the caller's, which says how long the data set has existed.
    /// Only rate limits look at it.
    pub fn seeded_with_clock(clock: impl Fn() -> Duration + Send + Sync + 'static) -> Arc<Self> {
        Arc::new(Self { state: Mutex::new(seed::state()), clock: Box::new(clock) })
    }

    /// Runs `work` alone on the data.
    pub(crate) fn with<T>(&self, work: impl FnOnce(&mut State) -> T) -> T {
        let now = (self.clock)();
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.now = now;
        work(&mut state)
    }
}

impl fmt::Debug for Dataset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dataset").finish_non_exhaustive()
    }
}

/// Rows by id. Ids have a fixed width, so their order is the order of creation.
pub(crate) type Table<T> = BTreeMap<String, T>;

#[derive(Default)]
pub(crate) struct State {
    pub(crate) accounts: Table<Account>,
    pub(crate) users: Table<User>,
    pub(crate) products: Table<Product>,
    pub(crate) orders: Table<Order>,
    pub(crate) invoices: Table<Invoice>,
    pub(crate) tickets: Table<Ticket>,
    issued: BTreeMap<&'static str, u32>,
    recent: BTreeMap<&'static str, Vec<Duration>>,
    now: Duration,
}

impl State {
    /// The next unused id with this prefix. Ids of deleted rows are not used again.
    pub(crate) fn next_id(&mut self, prefix: &'static str) -> String {
        let last = self.issued.entry(prefix).or_default();
        *last += 1;
        format!("{prefix}_{last:04}")
    }

    /// Counts one call to `what`, or refuses it when [`RATE_LIMIT`] calls were made within
    /// [`RATE_WINDOW`].
    pub(crate) fn spend(&mut self, what: &'static str) -> Result<(), Failure> {
        let now = self.now;
        let calls = self.recent.entry(what).or_default();
        calls.retain(|made| now.saturating_sub(*made) < RATE_WINDOW);
        match calls.first() {
            Some(first) if calls.len() >= RATE_LIMIT => {
                let left = RATE_WINDOW.saturating_sub(now.saturating_sub(*first));
                Err(Failure::RateLimit { seconds: left.as_millis().div_ceil(1000) })
            }
            _ => {
                calls.push(now);
                Ok(())
            }
        }
    }

    pub(crate) fn account(&self, id: &str) -> Result<&Account, Failure> {
        find(&self.accounts, "account", id)
    }

    pub(crate) fn user(&self, id: &str) -> Result<&User, Failure> {
        find(&self.users, "user", id)
    }

    pub(crate) fn product(&self, id: &str) -> Result<&Product, Failure> {
        find(&self.products, "product", id)
    }

    pub(crate) fn order(&self, id: &str) -> Result<&Order, Failure> {
        find(&self.orders, "order", id)
    }

    pub(crate) fn invoice(&self, id: &str) -> Result<&Invoice, Failure> {
        find(&self.invoices, "invoice", id)
    }

    pub(crate) fn ticket(&self, id: &str) -> Result<&Ticket, Failure> {
        find(&self.tickets, "ticket", id)
    }
}

/// The row with this id, or the failure that says there is none.
pub(crate) fn find<'t, T>(table: &'t Table<T>, kind: &'static str, id: &str) -> Result<&'t T, Failure> {
    table.get(id).ok_or_else(|| Failure::not_found(kind, id))
}

/// The row with this id, to change it.
pub(crate) fn find_mut<'t, T>(
    table: &'t mut Table<T>,
    kind: &'static str,
    id: &str,
) -> Result<&'t mut T, Failure> {
    table.get_mut(id).ok_or_else(|| Failure::not_found(kind, id))
}
