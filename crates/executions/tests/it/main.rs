//! Integration tests, one file per capability.

#[cfg(test)]
mod bounds;
#[cfg(test)]
mod contract;
#[cfg(test)]
mod deaths;
#[cfg(test)]
mod interleaving;
#[cfg(test)]
#[path = "../../../../tests/records/mod.rs"]
mod records;
#[cfg(test)]
mod sealed;
#[cfg(test)]
mod stores;
#[cfg(test)]
mod support;
#[cfg(test)]
mod takeover;
