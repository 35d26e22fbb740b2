//! The registry and the gateway from outside.

#[cfg(test)]
mod access;
#[cfg(test)]
mod approvals;
#[cfg(test)]
mod approvals_of_content;
#[cfg(test)]
mod cancelled;
#[cfg(test)]
mod current_rights;
#[cfg(test)]
mod ended_subscriptions;
#[cfg(test)]
mod endpoints;
#[cfg(test)]
mod eras;
#[cfg(test)]
mod local_app;
#[cfg(test)]
mod observe;
#[cfg(test)]
#[path = "../../../../tests/person/mod.rs"]
mod person;
#[cfg(test)]
mod policy;
#[cfg(test)]
#[path = "../../../../tests/records/mod.rs"]
mod records;
#[cfg(test)]
mod settled_approvals;
#[cfg(test)]
mod shadowing;
#[cfg(test)]
mod shop;
#[cfg(test)]
mod support;
#[cfg(test)]
mod uris;
