//! What the crate promises, one file per capability.

#[cfg(test)]
mod authorize;
#[cfg(test)]
mod keys;
#[cfg(test)]
mod redis_store;
#[cfg(test)]
mod store_contract;
#[cfg(test)]
mod store_race;
#[cfg(test)]
mod support;
#[cfg(test)]
mod token;
