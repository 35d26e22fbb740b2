//! The whole gateway, as a client sees it.

#[cfg(test)]
mod access;
#[cfg(test)]
mod admin;
#[cfg(test)]
mod api_keys;
#[cfg(test)]
mod arrows;
#[cfg(test)]
mod audit;
#[cfg(test)]
mod auth;
#[cfg(test)]
mod bare_image;
#[cfg(test)]
mod check;
#[cfg(test)]
mod circles;
#[cfg(test)]
mod connect;
#[cfg(test)]
mod contract_auth;
#[cfg(test)]
mod counted;
#[cfg(test)]
mod demo_tour;
#[cfg(test)]
mod describe;
#[cfg(test)]
mod documentation;
#[cfg(test)]
mod endpoints;
#[cfg(test)]
mod eval;
#[cfg(test)]
mod eval_context;
#[cfg(test)]
mod examples;
#[cfg(test)]
mod execute;
#[cfg(test)]
mod executions;
#[cfg(test)]
mod fuzz;
#[cfg(test)]
mod gate;
#[cfg(test)]
mod growth;
#[cfg(test)]
mod hostile_scripts;
#[cfg(test)]
mod init;
#[cfg(test)]
mod invoke;
#[cfg(test)]
mod json_reads;
#[cfg(test)]
mod key_order;
#[cfg(test)]
mod keys;
#[cfg(test)]
mod leaks;
#[cfg(test)]
mod limits;
#[cfg(test)]
mod login;
#[cfg(test)]
mod mcp_json;
mod memory;
#[cfg(test)]
mod mock;
#[cfg(test)]
mod names;
#[cfg(test)]
mod no_server;
#[cfg(test)]
mod notes;
#[cfg(test)]
mod openapi;
#[cfg(test)]
mod openapi_mtls;
#[cfg(test)]
mod openapi_pages;
#[cfg(test)]
mod openapi_users;
#[cfg(test)]
mod operate;
#[cfg(test)]
mod operator_messages;
#[cfg(test)]
mod operators;
#[cfg(test)]
mod output;
#[cfg(test)]
mod pins;
#[cfg(test)]
mod plan_check;
#[cfg(test)]
mod plans;
#[cfg(test)]
mod policies;
#[cfg(test)]
mod presented;
#[cfg(test)]
mod probed;
#[cfg(test)]
mod production;
#[cfg(test)]
mod production_check;
#[cfg(test)]
mod quickstart_testing;
#[cfg(test)]
mod recorded;
#[cfg(test)]
mod refusals;
#[cfg(test)]
mod reload;
#[cfg(test)]
mod remote;
#[cfg(test)]
mod reserved_key;
#[cfg(test)]
mod runs;
#[cfg(test)]
mod search;
#[cfg(test)]
mod secrets;
#[cfg(test)]
mod semantic;
#[cfg(test)]
mod serve;
#[cfg(test)]
mod served;
#[cfg(test)]
mod stub;
#[cfg(test)]
mod suite;
#[cfg(test)]
mod suite_examples;
#[cfg(test)]
mod suite_steps;
#[cfg(test)]
mod supply_chain;
#[cfg(test)]
mod support;
#[cfg(test)]
mod terminal;
#[cfg(test)]
mod tls;
#[cfg(test)]
mod traces;
#[cfg(test)]
mod transparent;
#[cfg(test)]
mod unsafe_code;
#[cfg(test)]
mod upstream_tokens;
#[cfg(test)]
mod visibility;
