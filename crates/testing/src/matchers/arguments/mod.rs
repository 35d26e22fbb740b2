//! The types of arguments of matchers.

mod compiled;
mod item;
mod kept;
mod latency;
mod message;
mod number;
mod path;
mod snapshot;

pub use compiled::{JsonSchema, Pattern};
pub use item::ItemMatcher;
#[cfg(feature = "suites")]
pub(crate) use kept::KeptFiles;
pub(super) use kept::{Kept, KeptFile};
pub use latency::Latency;
pub(super) use latency::PERCENTILES;
pub use message::{LogMessage, Message};
pub use number::{NumberRange, Times};
pub use path::Path;
pub use snapshot::Snapshot;
