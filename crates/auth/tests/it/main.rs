//! Integration tests, one file per capability.

#[cfg(test)]
mod account;
#[cfg(test)]
mod api_keys;
#[cfg(test)]
mod approvals;
#[cfg(test)]
mod authorize;
#[cfg(test)]
mod ceilings;
#[cfg(test)]
mod client_documents;
#[cfg(test)]
mod client_metadata;
#[cfg(test)]
mod configuration;
#[cfg(test)]
mod connect;
#[cfg(test)]
mod connect_api;
#[cfg(test)]
mod consent;
#[cfg(test)]
mod discovery;
#[cfg(test)]
mod documentation;
#[cfg(test)]
mod dpop;
#[cfg(test)]
mod dpop_keys;
#[cfg(test)]
mod endings;
#[cfg(test)]
mod endpoints;
#[cfg(test)]
mod error_codes;
#[cfg(test)]
mod floods;
#[cfg(test)]
mod fuzz;
#[cfg(test)]
mod grant_refusals;
#[cfg(test)]
mod groups;
#[cfg(test)]
mod growth;
#[cfg(test)]
mod keys;
#[cfg(test)]
mod login;
#[cfg(test)]
mod openapi;
#[cfg(test)]
mod openid;
#[cfg(test)]
mod operations;
#[cfg(test)]
mod parameters;
#[cfg(test)]
mod parked;
#[cfg(test)]
mod passkeys;
#[cfg(test)]
mod provider;
#[cfg(test)]
mod provider_login;
#[cfg(test)]
mod provider_recheck;
#[cfg(test)]
mod questions;
#[cfg(test)]
mod records;
#[cfg(test)]
mod redis_peers;
#[cfg(test)]
mod redis_sets;
#[cfg(test)]
mod redis_store;
#[cfg(test)]
mod refresh;
#[cfg(test)]
mod resource;
#[cfg(test)]
mod same_answers;
#[cfg(test)]
mod scopes;
#[cfg(test)]
mod sealing;
#[cfg(test)]
mod store_contract;
#[cfg(test)]
mod store_passkeys;
#[cfg(test)]
mod store_race;
#[cfg(test)]
mod support;
#[cfg(test)]
mod token;
