//! An audit file: one JSON object a line, each with a digest over itself and the line before.
//!
//! A line that is changed, taken out, put in or moved breaks the chain, and [`verify`] names it. A file that was cut short at its end
//! still fits together: keep the last digest elsewhere ([`Verified::chain`]) where that matters. A line that a crash cut in two stays
//! in the file, and the next process says so in the line after it.
//!
//! One process writes a file at a time. Lines reach the system before the call returns and so outlive the process; with
//! [`AuditFile::sync_each`] they reach the disk and outlive the machine's crash too, at the cost of a disk write each.

mod chain;
mod file;
mod verify;

pub use chain::{CONTINUES, LOST, TORN, hex, sha256_hex};
pub use file::{AuditError, AuditFile};
pub use verify::{Broken, Verified, verify};
